/* Numbers in the C locale whatever the program's locale is, UTF-8, and the nearest name for "did you mean".
 */
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* glibc hands out a shared constant for the whole "C" locale, so this costs next to nothing and cannot fail
 * there; elsewhere a failure leaves the thread's locale as it is. */
rrl_c_locale rrl_c_locale_enter(void) {
    rrl_c_locale l = {.c = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    l.before = uselocale(l.c);
    return l;
}

void rrl_c_locale_leave(rrl_c_locale l) {
    uselocale(l.before);
    if (l.c) freelocale(l.c);
}

/* --- numbers to text */

enum { DIGITS_MAX = 17 };

/* A finite number as digits d1 d2 ... and the power of ten of d1. */
typedef struct {
    char digits[DIGITS_MAX + 1];
    int n, exponent;
} decimal;

static void strip_zeros(decimal *d) {
    while (d->n > 1 && d->digits[d->n - 1] == '0') d->n--;
    d->digits[d->n] = 0;
}

/* v >= 0 rounded to `precision` digits. The thread is in the C locale. Returns what it reads back to. */
static double decimal_round(decimal *d, double v, int precision) {
    char text[RRL_NUMBER_CHARS];
    snprintf(text, sizeof text, "%.*e", precision - 1, v);
    const char *p = text;
    d->n = 0;
    for (; *p != 'e'; p++)
        if (*p != '.') d->digits[d->n++] = *p;
    d->exponent = atoi(p + 1);
    strip_zeros(d);
    return strtod(text, NULL);
}

/* One more in the last of `precision` digits. Returns what it reads back to. */
static double decimal_next(decimal *d, int precision) {
    while (d->n < precision) d->digits[d->n++] = '0';
    int i = precision - 1;
    while (i >= 0 && d->digits[i] == '9') d->digits[i--] = '0';
    if (i >= 0) {
        d->digits[i]++;
    } else {
        d->digits[0] = '1';
        d->exponent++;
    }
    strip_zeros(d);
    char text[RRL_NUMBER_CHARS];
    snprintf(text, sizeof text, "%c.%se%d", d->digits[0], d->digits + 1, d->exponent);
    return strtod(text, NULL);
}

static void decimal_shortest(decimal *d, double v) {
    /* Doubles lie twice as wide above a power of two as below: there the nearest short decimal may lie below
     * and miss while the next one up, though farther away, reads back. */
    int exponent;
    bool power = frexp(v, &exponent) == 0.5;
    /* 15 digits fail for most numbers that come out of arithmetic: then only 16 and 17 are left to try. */
    int precision = power || decimal_round(d, v, 15) == v ? 1 : 16;
    for (; precision <= DIGITS_MAX; precision++) {
        if (decimal_round(d, v, precision) == v) return;
        if (power && decimal_next(d, precision) == v) return;
    }
}

/* Plain notation for exponents in [-4, limit), else d.ddde+XX: the rule of %g and of Python's repr. */
static void decimal_write(char out[RRL_NUMBER_CHARS], const decimal *d, bool negative, int limit) {
    char *p = out;
    if (negative) *p++ = '-';
    if (d->exponent < -4 || d->exponent >= limit) {
        *p++ = d->digits[0];
        if (d->n > 1) *p++ = '.';
        memcpy(p, d->digits + 1, (size_t)d->n - 1);
        p += d->n - 1;
        snprintf(p, (size_t)(out + RRL_NUMBER_CHARS - p), "e%+03d", d->exponent);
        return;
    }
    if (d->exponent < 0) {
        *p++ = '0';
        *p++ = '.';
        for (int i = -1; i > d->exponent; i--) *p++ = '0';
        memcpy(p, d->digits, (size_t)d->n);
        p += d->n;
    } else {
        for (int i = 0; i < d->n || i <= d->exponent; i++) {
            if (i == d->exponent + 1) *p++ = '.';
            *p++ = i < d->n ? d->digits[i] : '0';
        }
    }
    *p = 0;
}

/* nan and the infinities; false for a finite number. */
static bool format_special(char out[RRL_NUMBER_CHARS], double v) {
    if (isfinite(v)) return false;
    strcpy(out, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    return true;
}

void rrl_format_double(char out[RRL_NUMBER_CHARS], double v) {
    if (format_special(out, v)) return;
    decimal d;
    rrl_c_locale l = rrl_c_locale_enter();
    decimal_shortest(&d, fabs(v));
    rrl_c_locale_leave(l);
    decimal_write(out, &d, signbit(v), 16);
}

void rrl_format_g(char out[RRL_NUMBER_CHARS], double v) {
    if (format_special(out, v)) return;
    rrl_c_locale l = rrl_c_locale_enter();
    snprintf(out, RRL_NUMBER_CHARS, "%g", v);
    rrl_c_locale_leave(l);
}

/* --- text to numbers */

static const char *skip_digits(const char *p) {
    while (*p >= '0' && *p <= '9') p++;
    return p;
}

/* [+-] digits [. digits] [e [+-] digits] with a digit before or after the point: no spaces, no hexadecimal
 * forms. */
static bool is_decimal(const char *p) {
    if (*p == '+' || *p == '-') p++;
    const char *whole = p;
    p = skip_digits(p);
    size_t n_digits = (size_t)(p - whole);
    if (*p == '.') {
        const char *fraction = ++p;
        p = skip_digits(p);
        n_digits += (size_t)(p - fraction);
    }
    if (n_digits == 0) return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-') p++;
        const char *exponent = p;
        p = skip_digits(p);
        if (p == exponent) return false;
    }
    return *p == 0;
}

bool rrl_parse_double(double *out, const char *text) {
    bool special = strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0;
    if (!special && !is_decimal(text)) return false;
    rrl_c_locale l = rrl_c_locale_enter();
    double v = strtod(text, NULL);
    rrl_c_locale_leave(l);
    if (!special && isinf(v)) return false;
    *out = v;
    return true;
}

bool rrl_parse_int64(int64_t *out, const char *text) {
    const char *digits = text + (*text == '+' || *text == '-');
    const char *end = skip_digits(digits);
    if (end == digits || *end) return false;
    errno = 0;
    long long v = strtoll(text, NULL, 10);
    if (errno == ERANGE) return false;
    *out = v;
    return true;
}

/* --- UTF-8 */

/* Length of the sequence at p, its code point in *cp; or minus the length of the maximal invalid subpart
 * (Unicode, section 3.9, table 3-7: the longest start of some valid sequence, at least one byte). p < end. */
static int utf8_sequence(uint32_t *cp, const unsigned char *p, const unsigned char *end) {
    unsigned char lead = *p;
    if (lead < 0x80) {
        *cp = lead;
        return 1;
    }
    int n = lead >= 0xC2 && lead <= 0xDF   ? 2
            : (lead & 0xF0) == 0xE0        ? 3
            : lead >= 0xF0 && lead <= 0xF4 ? 4
                                           : 0;
    if (n == 0) return -1;
    /* the second byte's range keeps out overlong forms, surrogates and what lies above U+10FFFF */
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    uint32_t value = lead & (0xFFu >> (n + 1));
    for (int i = 1; i < n; i++) {
        if (p + i == end || p[i] < low || p[i] > high) return -i;
        value = value << 6 | (p[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    *cp = value;
    return n;
}

size_t rrl_utf8_valid(const char *text, size_t len) {
    const unsigned char *start = (const unsigned char *)text, *p = start, *end = start + len;
    uint32_t cp;
    while (p < end) {
        int n = utf8_sequence(&cp, p, end);
        if (n < 0) break;
        p += n;
    }
    return (size_t)(p - start);
}

rrl_status rrl_utf8_replace(rrl_buffer *b, const char *bytes, size_t len) {
    const char *p = bytes, *end = bytes + len;
    for (;;) {
        size_t valid = rrl_utf8_valid(p, (size_t)(end - p));
        RRL_TRY(rrl_buffer_put(b, p, valid));
        p += valid;
        if (p == end) return RRL_OK;
        uint32_t cp;
        p -= utf8_sequence(&cp, (const unsigned char *)p,
                           (const unsigned char *)end); /* negative: invalid here */
        RRL_TRY(rrl_utf8_put(b, 0xFFFD));
    }
}

uint32_t rrl_utf8_next(const char **text, const char *end) {
    uint32_t cp;
    int n = utf8_sequence(&cp, (const unsigned char *)*text, (const unsigned char *)end);
    if (n < 0) {
        n = -n;
        cp = 0xFFFD;
    }
    *text += n;
    return cp;
}

rrl_status rrl_utf8_put(rrl_buffer *b, uint32_t cp) {
    char s[4];
    size_t n;
    if (cp < 0x80) {
        s[0] = (char)cp;
        n = 1;
    } else if (cp < 0x800) {
        s[0] = (char)(0xC0 | cp >> 6);
        s[1] = (char)(0x80 | (cp & 0x3F));
        n = 2;
    } else if (cp < 0x10000) {
        if (cp >= 0xD800 && cp < 0xE000)
            return RRL_FAIL(RRL_ERR_RANGE, "U+%04X is a surrogate, no character", cp);
        s[0] = (char)(0xE0 | cp >> 12);
        s[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        s[2] = (char)(0x80 | (cp & 0x3F));
        n = 3;
    } else {
        if (cp > 0x10FFFF) return RRL_FAIL(RRL_ERR_RANGE, "U+%X is above U+10FFFF", cp);
        s[0] = (char)(0xF0 | cp >> 18);
        s[1] = (char)(0x80 | (cp >> 12 & 0x3F));
        s[2] = (char)(0x80 | (cp >> 6 & 0x3F));
        s[3] = (char)(0x80 | (cp & 0x3F));
        n = 4;
    }
    return rrl_buffer_put(b, s, n);
}

/* --- lines */

rrl_status rrl_buffer_wrap(rrl_buffer *b, const char *text, int indent, int columns) {
    const size_t room = columns > indent ? (size_t)(columns - indent) : 1;
    while (strlen(text) > room) {
        size_t n = room;
        while (n > 0 && text[n] != ' ') n--;
        if (n == 0) n = strcspn(text, " "); /* a word too long for any line */
        RRL_TRY(rrl_buffer_printf(b, "%.*s", (int)n, text));
        text += n + strspn(text + n, " ");
        if (!*text) return rrl_buffer_puts(b, "\n");
        RRL_TRY(rrl_buffer_printf(b, "\n%*s", indent, ""));
    }
    return rrl_buffer_printf(b, "%s\n", text);
}

/* --- nearest name */

enum { NAME_MAX_CHARS = 128, DISTANCE_MAX = 3 };

/* Levenshtein distance of two texts below NAME_MAX_CHARS bytes, one row at a time. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb) {
    size_t row[NAME_MAX_CHARS + 1];
    for (size_t j = 0; j <= nb; j++) row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[nb];
}

const char *rrl_nearest_name(const char *text, const char *const *names, size_t n) {
    const char *best = NULL;
    size_t len = strlen(text);
    if (len > NAME_MAX_CHARS) return NULL;
    size_t limit = len < DISTANCE_MAX + 1 ? len : DISTANCE_MAX + 1; /* distances below this count */
    for (size_t i = 0; i < n; i++) {
        size_t name_len = strlen(names[i]);
        if (name_len > NAME_MAX_CHARS) continue;
        size_t d = edit_distance(text, len, names[i], name_len);
        if (d < limit) {
            limit = d;
            best = names[i];
        }
    }
    return best;
}
