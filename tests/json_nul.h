/* U+0000 in JSON texts of test cases. It cannot stand in a C string, and the program's JSON reader refuses it; a
 * tokenizer and the answer parser take it. So it travels through the reader as a private-use character. */
#ifndef RRL_TESTS_JSON_NUL_H
#define RRL_TESTS_JSON_NUL_H

#include "base/memory.h"

/** Append JSON with every \u0000 replaced. */
rrl_status json_nul_hide(rrl_buffer *out, const char *json, size_t len);
/** Append a text of such JSON with its U+0000 again. */
rrl_status json_nul_text(rrl_buffer *out, const char *text);

#endif
