/* JSON strings and numbers as text; no cJSON, so that what only writes needs none. */
#include "base/json_write.h"

#include <math.h>
#include <stdio.h>

#include "base/text.h"

/* The escape of a byte, "" if it stands for itself. */
static void escape_of(char out[8], unsigned char c) {
    static const char SHORT[] = "\"\"\\\\\nn\rr\tt\bb\ff"; /* pairs: byte, letter */
    out[0] = 0;
    for (const char *p = SHORT; *p; p += 2)
        if ((unsigned char)*p == c) snprintf(out, 8, "\\%c", p[1]);
    if (!out[0] && c < 0x20) snprintf(out, 8, "\\u%04x", c);
}

rrl_status rrl_json_quote(rrl_buffer *b, const char *text, size_t len) {
    RRL_TRY(rrl_buffer_put(b, "\"", 1));
    size_t start = 0; /* of the run of bytes that need no escape */
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        char escape[8];
        escape_of(escape, c);
        RRL_TRY(rrl_buffer_put(b, text + start, i - start));
        RRL_TRY(rrl_buffer_puts(b, escape));
        start = i + 1;
    }
    RRL_TRY(rrl_buffer_put(b, text + start, len - start));
    return rrl_buffer_put(b, "\"", 1);
}

rrl_status rrl_json_number(rrl_buffer *b, double v) {
    if (isnan(v)) return rrl_buffer_puts(b, "null");
    if (isinf(v)) return rrl_buffer_puts(b, v > 0 ? "1e999" : "-1e999");
    if (v == 0 && signbit(v)) return rrl_buffer_puts(b, "-0.0"); /* "-0" is the integer 0 to some readers */
    char text[RRL_NUMBER_CHARS];
    rrl_format_double(text, v);
    return rrl_buffer_puts(b, text);
}
