/* Writing JSON text into a buffer (json.h includes this). */
#ifndef RRL_BASE_JSON_WRITE_H
#define RRL_BASE_JSON_WRITE_H

#include "base/memory.h"

/** Append text as a JSON string with quotes, escaped as Python's json.dumps(ensure_ascii=False) does: short escapes
 *  \" \\ \n \r \t \b \f, other controls below 0x20 as \u00xx in lower-case hex, nothing else. */
rrl_status rrl_json_quote(rrl_buffer *b, const char *text, size_t len);
/** Append a double in the shortest form that reads back to the same bits, with a point in every locale; NaN = null. The
 *  infinities become 1e999 and -1e999, which readers take for infinite; -0 is -0.0. */
rrl_status rrl_json_number(rrl_buffer *b, double v);

#endif
