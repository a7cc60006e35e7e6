/* The source text of an object's member. cJSON keeps numbers as doubles, so 1 and 1.0 look alike there. */
#ifndef RRL_DATA_JSON_MEMBER_H
#define RRL_DATA_JSON_MEMBER_H

#include "base/json.h"

/** A copy of the value of member `key` as it is written in `text`, the source of the object. The object has
 * such a member. The caller frees *out. */
rrl_status rrl_json_member_text(char **out, const cJSON *object, const char *text, const char *key);

#endif
