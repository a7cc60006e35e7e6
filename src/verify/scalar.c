/* The grammar of scalars, on cleaned text: number, quotient of two numbers, mixed number.
 *
 * Digits that do not fit it are BAD rather than cut: a reader of "56,78" or "1.2.3" must not be paid for 56
 * or 1.2. */
#include "verify/answer.h"

#include <string.h>

enum { EXPONENT_DIGITS = 3 };

typedef struct {
    bool integer; /* digits only: no groups, point or exponent */
    bool spaced;  /* groups parted by blanks */
} number_form;

void rrl_scalar_put(rrl_scalar *s, char c) {
    if (s->len == RRL_SCALAR_CHARS) {
        s->too_long = true;
        return;
    }
    s->text[s->len++] = c;
    s->text[s->len] = 0;
}

static bool digit_at(const uint32_t *p, size_t n, size_t i) {
    return i < n && p[i] >= '0' && p[i] <= '9';
}

static size_t skip_digits(const uint32_t *p, size_t n, size_t i) {
    while (digit_at(p, n, i)) i++;
    return i;
}

bool rrl_number_at(const uint32_t *p, size_t n, size_t i) {
    return digit_at(p, n, i) || (i < n && p[i] == '.' && digit_at(p, n, i + 1));
}

static void put_digits(rrl_scalar *s, const uint32_t *p, size_t from, size_t to) {
    for (; from < to; from++) rrl_scalar_put(s, (char)p[from]);
}

/* Exactly three digits behind the separator at i. */
static bool group_at(const uint32_t *p, size_t n, size_t i, uint32_t separator) {
    return i < n && p[i] == separator && skip_digits(p, n, i + 1) == i + 4;
}

/* Digits, with thousands groups parted all by commas or all by single blanks. */
static rrl_lex lex_whole(rrl_scalar *s, number_form *f, const uint32_t *p, size_t n, size_t *at) {
    size_t i = *at, end = skip_digits(p, n, i);
    put_digits(s, p, i, end);
    bool may_group = end - i <= 3 && p[i] != '0';
    i = end;
    if (may_group && i < n && (p[i] == ',' || p[i] == ' ')) {
        uint32_t separator = p[i];
        for (; group_at(p, n, i, separator); i += 4) {
            put_digits(s, p, i + 1, i + 4);
            f->integer = false;
            f->spaced = separator == ' ';
        }
    }
    *at = i;
    return i < n && p[i] == ',' && digit_at(p, n, i + 1) ? RRL_LEX_BAD : RRL_LEX_OK;
}

static rrl_lex lex_exponent(rrl_scalar *s, number_form *f, const uint32_t *p, size_t n, size_t *at) {
    size_t i = *at;
    if (i >= n || (p[i] != 'e' && p[i] != 'E')) return RRL_LEX_OK;
    i++;
    bool minus = i < n && p[i] == '-';
    if (minus || (i < n && p[i] == '+')) i++;
    size_t end = skip_digits(p, n, i);
    if (end == i) return RRL_LEX_OK; /* a letter, not an exponent */
    if (end - i > EXPONENT_DIGITS) return RRL_LEX_BAD;
    rrl_scalar_put(s, 'e');
    if (minus) rrl_scalar_put(s, '-');
    put_digits(s, p, i, end);
    f->integer = false;
    *at = end;
    return RRL_LEX_OK;
}

static rrl_lex lex_number(rrl_scalar *s, number_form *f, const uint32_t *p, size_t n, size_t *at) {
    size_t i = *at;
    *f = (number_form){.integer = true};
    if (!rrl_number_at(p, n, i)) return RRL_LEX_NONE;
    if (p[i] != '.' && lex_whole(s, f, p, n, &i) == RRL_LEX_BAD) return RRL_LEX_BAD;
    if (i < n && p[i] == '.' && digit_at(p, n, i + 1)) {
        size_t end = skip_digits(p, n, i + 1);
        rrl_scalar_put(s, '.');
        put_digits(s, p, i + 1, end);
        f->integer = false;
        i = end;
        if (i < n && (p[i] == '.' || p[i] == ',') && digit_at(p, n, i + 1)) return RRL_LEX_BAD;
    }
    if (lex_exponent(s, f, p, n, &i) == RRL_LEX_BAD) return RRL_LEX_BAD;
    *at = i;
    return RRL_LEX_OK;
}

/* a < b for digit strings. */
static bool digits_less(const uint32_t *a, size_t na, const uint32_t *b, size_t nb) {
    while (na && *a == '0') a++, na--;
    while (nb && *b == '0') b++, nb--;
    if (na != nb) return na < nb;
    for (size_t i = 0; i < na; i++)
        if (a[i] != b[i]) return a[i] < b[i];
    return false;
}

/* Behind an integer: blanks, then a proper fraction of integers makes a mixed number. An improper one does
 * not, and what stands there must not be cut to its parts either. */
static rrl_lex lex_mixed(rrl_scalar *s, const uint32_t *p, size_t n, size_t *at) {
    size_t a = rrl_skip_blanks(p, n, *at);
    if (a == *at || !digit_at(p, n, a)) return RRL_LEX_NONE;
    size_t a_end = skip_digits(p, n, a), slash = rrl_skip_blanks(p, n, a_end);
    if (slash >= n || p[slash] != '/') return RRL_LEX_NONE;
    size_t b = rrl_skip_blanks(p, n, slash + 1), b_end = skip_digits(p, n, b);
    bool ends = b_end > b && !rrl_number_at(p, n, b_end) &&
                !(b_end < n && p[b_end] == ',' && digit_at(p, n, b_end + 1));
    if (!ends || !digits_less(p + a, a_end - a, p + b, b_end - b)) return RRL_LEX_BAD;
    rrl_scalar_put(s, ' ');
    put_digits(s, p, a, a_end);
    rrl_scalar_put(s, '/');
    put_digits(s, p, b, b_end);
    *at = b_end;
    return RRL_LEX_OK;
}

static bool slash_and_number(const uint32_t *p, size_t n, size_t i) {
    i = rrl_skip_blanks(p, n, i);
    if (i >= n || p[i] != '/') return false;
    i = rrl_skip_blanks(p, n, i + 1);
    if (i < n && (p[i] == '-' || p[i] == '+')) i = rrl_skip_blanks(p, n, i + 1);
    return rrl_number_at(p, n, i);
}

rrl_lex rrl_lex_quantity(rrl_scalar *s, const uint32_t *p, size_t n, size_t *at) {
    number_form f;
    size_t i = *at;
    rrl_lex lex = lex_number(s, &f, p, n, &i);
    if (lex != RRL_LEX_OK) return lex;
    if (f.integer && (lex = lex_mixed(s, p, n, &i)) != RRL_LEX_NONE) {
        *at = i;
        return lex == RRL_LEX_OK && slash_and_number(p, n, i) ? RRL_LEX_BAD : lex;
    }
    if (slash_and_number(p, n, i)) {
        if (f.spaced) return RRL_LEX_BAD; /* 1 200/300: thousands or a mixed number? */
        i = rrl_skip_blanks(p, n, rrl_skip_blanks(p, n, i) + 1);
        rrl_scalar_put(s, '/');
        if (p[i] == '-' || p[i] == '+') {
            if (p[i] == '-') rrl_scalar_put(s, '-');
            i = rrl_skip_blanks(p, n, i + 1);
        }
        if (lex_number(s, &f, p, n, &i) != RRL_LEX_OK || f.spaced || slash_and_number(p, n, i))
            return RRL_LEX_BAD;
    }
    *at = i;
    return RRL_LEX_OK;
}

bool rrl_scalar_parse(rrl_scalar *s, const uint32_t *p, size_t n) {
    *s = (rrl_scalar){0};
    size_t i = rrl_skip_blanks(p, n, 0);
    if (i < n && (p[i] == '-' || p[i] == '+')) {
        rrl_scalar_put(s, (char)p[i]);
        i = rrl_skip_blanks(p, n, i + 1);
    }
    return rrl_lex_quantity(s, p, n, &i) == RRL_LEX_OK && rrl_skip_blanks(p, n, i) == n;
}
