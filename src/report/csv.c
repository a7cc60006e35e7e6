#include "report/csv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static rrl_status separate(rrl_buffer *b) {
    return b->len && b->data[b->len - 1] != '\n' ? rrl_buffer_puts(b, ",") : RRL_OK;
}

rrl_status rrl_csv_text(rrl_buffer *b, const char *text) {
    RRL_TRY(separate(b));
    /* an empty first field is written "" so that the row does not begin like an end of row */
    bool first = b->len == 0 || b->data[b->len - 1] == '\n';
    if (text[strcspn(text, ",\"\r\n")] == '\0' && (*text || !first)) return rrl_buffer_puts(b, text);
    RRL_TRY(rrl_buffer_puts(b, "\""));
    for (const char *p = text; *p; p++) RRL_TRY(rrl_buffer_put(b, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1));
    return rrl_buffer_puts(b, "\"");
}

rrl_status rrl_csv_number(rrl_buffer *b, double v) {
    char text[RRL_NUMBER_CHARS] = "";
    if (!isnan(v)) rrl_format_double(text, v);
    return rrl_csv_text(b, text);
}

rrl_status rrl_csv_count(rrl_buffer *b, uint64_t v) {
    char text[RRL_NUMBER_CHARS];
    snprintf(text, sizeof text, "%" PRIu64, v);
    return rrl_csv_text(b, text);
}

rrl_status rrl_csv_level(rrl_buffer *b, double level) {
    return isnan(level) ? rrl_csv_text(b, "fixed") : rrl_csv_number(b, level);
}

rrl_status rrl_csv_end(rrl_buffer *b) {
    return rrl_buffer_puts(b, "\n");
}
