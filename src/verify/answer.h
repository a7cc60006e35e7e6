/* Parts of the answer parser that its files share: from a candidate text to a settled answer. */
#ifndef RRL_VERIFY_ANSWER_H
#define RRL_VERIFY_ANSWER_H

#include "verify/points.h"

enum {
    RRL_ANSWER_CHARS = 4096,  /* a longer candidate is no answer */
    RRL_SENTENCE_CHARS = 160, /* a longer candidate is not searched for its one number */
    RRL_SCALAR_CHARS = 256    /* a scalar with a longer normal form is refused */
};

/* ---- latex.c ---- */

/** `in` with its mark-up resolved, into the empty `out`: digits of all scripts, signs and fraction characters
 *  to ASCII, \text{..} and its like unwrapped, \frac{a}{b} to a/b, x 10^{n} behind a digit to an exponent,
 *  currency signs, \( \) \left \right out. Nothing is ever joined: what stood between two digits leaves two
 *  blanks, one space of the text (or \, or ~) leaves one. */
rrl_status rrl_latex_clean(rrl_points *out, const uint32_t *in, size_t n);

/** Point behind the brace that closes the one at `open`; 0 if none does. */
size_t rrl_brace_end(const uint32_t *in, size_t n, size_t open);
/** Whether `in` has \name at i (and no letter follows); the length is that of \name. */
bool rrl_command_at(const uint32_t *in, size_t n, size_t i, const char *name);
/** Length of the name of a wrapper (\text \mathrm \boxed ...) at i, backslash included; 0 if there is none. */
size_t rrl_wrapper_at(const uint32_t *in, size_t n, size_t i);

/* ---- scalar.c ---- */

/** Normal spelling of a scalar: sign, digits without groups, point, exponent; "a/b"; a mixed "1 1/2". */
typedef struct {
    char text[RRL_SCALAR_CHARS + 1];
    size_t len;
    bool too_long; /* more than RRL_SCALAR_CHARS: text is cut, the scalar is refused */
} rrl_scalar;

typedef enum { RRL_LEX_NONE, RRL_LEX_OK, RRL_LEX_BAD } rrl_lex;
/** The unsigned quantity (number, a/b or mixed number) that begins at *at of cleaned text; *at moves behind
 * it. BAD: digits that are no number ("1.2.3", "56,78", "5 9/4"), which must not be cut to a part. Appends to
 * s. */
rrl_lex rrl_lex_quantity(rrl_scalar *s, const uint32_t *p, size_t n, size_t *at);
/** Whether the whole cleaned text is a scalar: optional sign, then a quantity. */
bool rrl_scalar_parse(rrl_scalar *s, const uint32_t *p, size_t n);
void rrl_scalar_put(rrl_scalar *s, char c);
/** Whether a number begins at i: a digit, or a point and a digit. */
bool rrl_number_at(const uint32_t *p, size_t n, size_t i);

/* ---- sentence.c ---- */

/** The one number that a short cleaned text states: points *begin to *end of it. False when it states none,
 * several, or something else than its value (context.h). `x = 5 cm`, with one letter or
 * a word for a quantity before the sign, counts too. money: a currency sign stood in the text before it was cleaned. */
rrl_status rrl_sentence_number(bool *found, size_t *begin, size_t *end, const uint32_t *p, size_t n, bool money);

/* ---- settle.c ---- */

/** Make a candidate p[*begin..*end) bare: ends peeled of blanks, emphasis, quotes, currency, closing
 * punctuation, wrappers. */
void rrl_answer_bare(const uint32_t *p, size_t *begin, size_t *end);
typedef enum { RRL_SETTLED_NONE, RRL_SETTLED_TEXT, RRL_SETTLED_SCALAR } rrl_settled;
/** What a candidate (answer line, box content, reference) amounts to, appended to out as written. */
rrl_status rrl_answer_settle(rrl_settled *kind, rrl_points *out, const char *text, size_t len);

/* ---- rational.c ---- */

/** Whether the scalar has a value (0 as denominator and refused lengths have none) and both have the same. */
bool rrl_scalar_valued(const rrl_scalar *s);
bool rrl_scalar_same(const rrl_scalar *a, const rrl_scalar *b);
/** "p" or "p/q" in lowest terms, NULL without a value; the caller frees *out. */
rrl_status rrl_scalar_rational(char **out, const rrl_scalar *s);

#endif
