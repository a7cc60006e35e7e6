/* Members of JSON objects as text. */
#include "base/json_object.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

rrl_status rrl_json_key(rrl_buffer *b, const char *key) {
    if (b->len && b->data[b->len - 1] != '{') RRL_TRY(rrl_buffer_puts(b, ", "));
    RRL_TRY(rrl_json_quote(b, key, strlen(key)));
    return rrl_buffer_puts(b, ": ");
}

rrl_status rrl_json_put_text(rrl_buffer *b, const char *key, const char *text) {
    if (text) return rrl_json_put_bytes(b, key, text, strlen(text));
    RRL_TRY(rrl_json_key(b, key));
    return rrl_buffer_puts(b, "null");
}

rrl_status rrl_json_put_bytes(rrl_buffer *b, const char *key, const char *text, size_t len) {
    RRL_TRY(rrl_json_key(b, key));
    return rrl_json_quote(b, text, len);
}

rrl_status rrl_json_put_real(rrl_buffer *b, const char *key, double v) {
    RRL_TRY(rrl_json_key(b, key));
    return rrl_json_number(b, v);
}

/* Few digits do for a float: 0.2 and not 0.20000000298023224. */
rrl_status rrl_json_put_float(rrl_buffer *b, const char *key, float v) {
    double shortest = (double)v;
    char text[RRL_NUMBER_CHARS];
    rrl_c_locale locale = rrl_c_locale_enter();
    for (int digits = 6; isfinite(v) && digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (strtof(text, NULL) != v) continue;
        shortest = strtod(text, NULL);
        break;
    }
    rrl_c_locale_leave(locale);
    return rrl_json_put_real(b, key, shortest);
}

rrl_status rrl_json_put_count(rrl_buffer *b, const char *key, int64_t v) {
    RRL_TRY(rrl_json_key(b, key));
    return rrl_buffer_printf(b, "%" PRId64, v);
}

rrl_status rrl_json_put_seed(rrl_buffer *b, const char *key, uint64_t v) {
    RRL_TRY(rrl_json_key(b, key));
    return rrl_buffer_printf(b, "%" PRIu64, v);
}

rrl_status rrl_json_put_bool(rrl_buffer *b, const char *key, bool v) {
    RRL_TRY(rrl_json_key(b, key));
    return rrl_buffer_puts(b, v ? "true" : "false");
}

rrl_status rrl_json_open_list(rrl_buffer *b, const char *key) {
    RRL_TRY(rrl_json_key(b, key));
    return rrl_buffer_puts(b, "[");
}

rrl_status rrl_json_open_item(rrl_buffer *b, int64_t i) { return rrl_buffer_puts(b, i ? ", {" : "{"); }
