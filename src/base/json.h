/* JSON access on cJSON with checks that name the place. */
#ifndef RRL_BASE_JSON_H
#define RRL_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/json_write.h"
#include "base/memory.h"

/** Parse one document by the letter of RFC 8259; refuses trailing text, duplicate keys in any object, NUL (as a byte or
 *  as \u0000), invalid UTF-8, half surrogate pairs, nesting > 64, numbers of more than 63 characters.
 *  `where` names the file (and line) in messages. Free with cJSON_Delete. Errors: RRL_ERR_DATA. */
rrl_status rrl_json_parse(cJSON **out, const char *text, size_t len, const char *where);
rrl_status rrl_json_file(cJSON **out, const char *path, size_t max_bytes);
/** Member of an object; required unless `optional`, then *out is NULL. */
rrl_status rrl_json_get(const cJSON **out, const cJSON *object, const char *key, bool optional, const char *where);
/** Typed members; a missing member leaves the value as it was and is no error when `optional`; then null counts as
 *  missing too. Integers are exact over all of int64 and may be written 1e3 or 2.0. Errors: RRL_ERR_DATA. */
rrl_status rrl_json_int(int64_t *out, const cJSON *object, const char *key, bool optional, const char *where);
rrl_status rrl_json_double(double *out, const cJSON *object, const char *key, bool optional, const char *where);
rrl_status rrl_json_bool(bool *out, const cJSON *object, const char *key, bool optional, const char *where);
/** The string is borrowed from the document. */
rrl_status rrl_json_string(const char **out, const cJSON *object, const char *key, bool optional, const char *where);

#endif
