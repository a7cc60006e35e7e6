/* Code points: growing arrays, UTF-8 in and out, and the few classes the parser asks for. */
#include "verify/points.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/text.h"

rrl_status rrl_points_put(rrl_points *p, uint32_t cp) {
    RRL_TRY(rrl_grow(&p->cp, &p->capacity, p->n + 1, sizeof *p->cp, "code points"));
    p->cp[p->n++] = cp;
    return RRL_OK;
}

rrl_status rrl_points_add(rrl_points *p, const uint32_t *from, size_t n) {
    RRL_TRY(rrl_grow(&p->cp, &p->capacity, p->n + n, sizeof *p->cp, "code points"));
    if (n) memcpy(p->cp + p->n, from, n * sizeof *from);
    p->n += n;
    return RRL_OK;
}

rrl_status rrl_points_decode(rrl_points *p, const char *text, size_t len) {
    rrl_status rc = RRL_OK;
    rrl_buffer fixed = {0};
    if (rrl_utf8_valid(text, len) != len) {
        RRL_GOTO(rrl_utf8_replace(&fixed, text, len));
        text = fixed.data;
        len = fixed.len;
    }
    for (const char *end = text + len; text < end;) RRL_GOTO(rrl_points_put(p, rrl_utf8_next(&text, end)));
done:
    rrl_buffer_free(&fixed);
    return rc;
}

rrl_status rrl_points_encode(rrl_buffer *out, const uint32_t *cp, size_t n) {
    for (size_t i = 0; i < n; i++) RRL_TRY(rrl_utf8_put(out, cp[i]));
    return RRL_OK;
}

void rrl_points_free(rrl_points *p) {
    free(p->cp);
    *p = (rrl_points){0};
}

bool rrl_point_white(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13) || (cp >= 28 && cp <= 31);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200F) || cp == 0x2028 ||
           cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x2060 || cp == 0x3000 || cp == 0xFEFF;
}

bool rrl_point_letter(uint32_t cp) {
    if (cp < 0x80) return (cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z');
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
           (c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME);
}

static bool is_decimal_digit(uint32_t cp) {
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

/* Unicode keeps the ten digits of a script together, in order, zero first. So a maximal run of Nd characters
 * is one or more tens (the mathematical digits are five), and the distance to its start gives the value.
 * test_answers checks this against the list of zeros of another implementation. */
int rrl_point_digit(uint32_t cp) {
    if (cp < 0x80) return cp >= '0' && cp <= '9' ? (int)(cp - '0') : -1;
    if (!is_decimal_digit(cp)) return -1;
    uint32_t first = cp;
    while (is_decimal_digit(first - 1)) first--;
    return (int)((cp - first) % 10);
}

bool rrl_point_currency(uint32_t cp) {
    return cp == '$' || (cp >= 0x80 && utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_SC);
}
