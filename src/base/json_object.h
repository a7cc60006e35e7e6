/* Members of a JSON object, appended one after the other: the comma is put where one is due. */
#ifndef RRL_BASE_JSON_OBJECT_H
#define RRL_BASE_JSON_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_write.h"

/** "key": behind a comma, unless the buffer ends with the object's "{". The value follows. */
rrl_status rrl_json_key(rrl_buffer *b, const char *key);
/** A text; NULL = null. */
rrl_status rrl_json_put_text(rrl_buffer *b, const char *key, const char *text);
rrl_status rrl_json_put_bytes(rrl_buffer *b, const char *key, const char *text, size_t len);
/** A number; NaN = null. A float is written as the shortest decimal that reads back to the same float. */
rrl_status rrl_json_put_real(rrl_buffer *b, const char *key, double v);
rrl_status rrl_json_put_float(rrl_buffer *b, const char *key, float v);
rrl_status rrl_json_put_count(rrl_buffer *b, const char *key, int64_t v);
rrl_status rrl_json_put_seed(rrl_buffer *b, const char *key, uint64_t v);
rrl_status rrl_json_put_bool(rrl_buffer *b, const char *key, bool v);
/** "key": [ and the "{" of item i of it. */
rrl_status rrl_json_open_list(rrl_buffer *b, const char *key);
rrl_status rrl_json_open_item(rrl_buffer *b, int64_t i);

#endif
