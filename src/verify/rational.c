/* Exact values of scalars by GMP. The lengths are bounded before anything is built: 256 characters and
 * exponents of three digits, so a number has at most some 1300 digits. */
#include "verify/answer.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

#include "rrl/verify.h"

/* [sign] digits [. digits] [e [-] digits] up to one of the stop characters; *text moves there. */
static void parse_number(mpq_t q, const char **text, mpz_t scratch) {
    char digits[RRL_SCALAR_CHARS + 2];
    size_t n = 0;
    long scale = 0;
    const char *p = *text;
    bool minus = *p == '-', point = false;
    if (*p == '-' || *p == '+') p++;
    for (; (*p >= '0' && *p <= '9') || *p == '.'; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        digits[n++] = *p;
        scale -= point;
    }
    digits[n] = 0;
    if (*p == 'e') {
        char *end;
        scale += strtol(p + 1, &end, 10);
        p = end;
    }
    mpz_set_str(mpq_numref(q), digits, 10);
    mpz_set_ui(mpq_denref(q), 1);
    mpz_ui_pow_ui(scratch, 10, (unsigned long)labs(scale));
    if (scale > 0) mpz_mul(mpq_numref(q), mpq_numref(q), scratch);
    if (scale < 0) mpz_set(mpq_denref(q), scratch);
    mpq_canonicalize(q);
    if (minus) mpq_neg(q, q);
    *text = p;
}

/* The value of a scalar; false for a quotient by zero and for a refused length. q is initialised by the
 * caller. */
static bool scalar_value(mpq_t q, const rrl_scalar *s) {
    if (s->too_long || s->len == 0) return false;
    mpq_t part;
    mpz_t scratch;
    mpq_init(part);
    mpz_init(scratch);
    const char *p = s->text;
    bool minus = *p == '-', valid = true;
    parse_number(q, &p, scratch);
    if (*p == ' ') { /* mixed: the sign covers the whole */
        p++;
        parse_number(part, &p, scratch);
        mpq_t denominator;
        mpq_init(denominator);
        p++;
        parse_number(denominator, &p, scratch);
        valid = mpq_sgn(denominator) != 0;
        if (valid) mpq_div(part, part, denominator);
        mpq_clear(denominator);
        if (minus)
            mpq_sub(q, q, part);
        else
            mpq_add(q, q, part);
    } else if (*p == '/') {
        p++;
        parse_number(part, &p, scratch);
        valid = mpq_sgn(part) != 0;
        if (valid) mpq_div(q, q, part);
    }
    mpq_clear(part);
    mpz_clear(scratch);
    return valid;
}

bool rrl_scalar_valued(const rrl_scalar *s) {
    mpq_t q;
    mpq_init(q);
    bool valued = scalar_value(q, s);
    mpq_clear(q);
    return valued;
}

bool rrl_scalar_same(const rrl_scalar *a, const rrl_scalar *b) {
    mpq_t x, y;
    mpq_init(x);
    mpq_init(y);
    bool same = scalar_value(x, a) && scalar_value(y, b) && mpq_equal(x, y) != 0;
    mpq_clear(x);
    mpq_clear(y);
    return same;
}

rrl_status rrl_scalar_rational(char **out, const rrl_scalar *s) {
    rrl_status rc = RRL_OK;
    char *text = NULL;
    mpq_t q;
    mpq_init(q);
    if (scalar_value(q, s)) {
        size_t size = mpz_sizeinbase(mpq_numref(q), 10) + mpz_sizeinbase(mpq_denref(q), 10) + 3;
        RRL_GOTO(rrl_alloc(&text, size, 1, "rational"));
        mpq_get_str(text, 10, q);
    }
    *out = text;
done:
    mpq_clear(q);
    return rc;
}
