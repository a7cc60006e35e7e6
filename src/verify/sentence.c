/* The one number in a short answer line: "The kite costs 23", "12 wombats", "3/4 hours", "20%".
 *
 * Every character has to be accounted for: words and a little punctuation around one number count; a second
 * number, an operator, a hedge, or a word that changes the number's scale do not. */
#include "verify/answer.h"

#include <string.h>

#include "verify/context.h"
#include "verify/words.h"

typedef struct {
    const uint32_t *p;
    size_t n, i;
    int numbers;       /* seen so far */
    bool sentence;     /* a sentence ended since the last number */
    bool money;        /* a currency sign stood in the text, or a word of money stands before the number */
    size_t begin, end; /* the number */
    rrl_scalar value;
} reader;

static uint32_t at(const reader *r, size_t i) {
    return i < r->n ? r->p[i] : 0;
}

static uint32_t before(const reader *r, size_t i) {
    return i > 0 ? r->p[i - 1] : 0;
}

static bool blank_from(const reader *r, size_t i) {
    while (at(r, i) == ' ') i++;
    return i >= r->n;
}

/* A word of one letter ends or begins at the nearest solid character: x - 5, 5 - x. */
static bool lone_letter_before(const reader *r, size_t i) {
    while (before(r, i) == ' ') i--;
    return rrl_point_letter(before(r, i)) && !rrl_point_letter(i > 1 ? r->p[i - 2] : 0);
}

static bool lone_letter_after(const reader *r, size_t i) {
    while (at(r, i) == ' ') i++;
    return rrl_point_letter(at(r, i)) && !rrl_point_letter(at(r, i + 1));
}

/* The word before i is one that a value follows: a dash behind it may be a minus. */
static bool states_value(const reader *r, size_t i) {
    static const char *const WORDS[] = {"is", "was", "are", "equals", "be", "to"};
    while (before(r, i) == ' ') i--;
    size_t end = i;
    while (rrl_point_letter(before(r, i))) i--;
    for (size_t k = 0; k < sizeof WORDS / sizeof *WORDS; k++)
        if (rrl_word_is(r->p + i, end - i, WORDS[k])) return true;
    return false;
}

/* One thing, or a part of one: 1, 0.5, 3/4. */
static bool single(const rrl_scalar *s) {
    const char *digits = s->text + (s->text[0] == '-' || s->text[0] == '+');
    return strchr(digits, '/') || strcmp(digits, "1") == 0 || digits[0] == '.' || strncmp(digits, "0.", 2) == 0;
}

/* [sign] quantity at r->i, its digits at `digits`. */
static bool read_number(reader *r, size_t digits) {
    rrl_scalar s = {0};
    size_t begin = r->i, end = digits;
    if (rrl_point_letter(before(r, begin)) || before(r, begin) == '.') return false; /* B12, x-5, ..5 */
    if (r->numbers && (!r->sentence || before(r, begin) != ' ')) return false;
    if (begin != digits) rrl_scalar_put(&s, (char)r->p[begin]);
    if (rrl_lex_quantity(&s, r->p, r->n, &end) != RRL_LEX_OK) return false;
    if (!rrl_number_followed(r->p, r->n, end, r->money, single(&s))) return false;
    if (at(r, end) == ',' && blank_from(r, end + 1)) return false; /* 1, may have become 1,200 */
    if (r->numbers && !rrl_scalar_same(&s, &r->value)) return false;
    if (!r->numbers) {
        r->begin = begin;
        r->end = end;
        r->value = s;
    }
    r->numbers++;
    r->sentence = false;
    r->i = end;
    while (at(r, r->i) == ' ' &&
           (at(r, r->i + 1) == ' ' || at(r, r->i + 1) == '%' || at(r, r->i + 1) == 0xB0))
        r->i++;
    if (at(r, r->i) == '%' || at(r, r->i) == 0xB0) r->i++;
    return true;
}

/* A sign belongs to digits right behind it, or, at the start of the text, behind blanks too. */
static bool read_sign(reader *r) {
    uint32_t sign = r->p[r->i], previous = before(r, r->i);
    size_t digits = r->i + 1;
    bool first = r->i == 0;
    for (size_t k = 0; k < r->i && !first; k++) {
        if (r->p[k] != ' ') break;
        first = k + 1 == r->i;
    }
    while (first && at(r, digits) == ' ') digits++;
    bool free_before = first || previous == ' ' || previous == ':' || previous == '\'';
    if (free_before && rrl_number_at(r->p, r->n, digits)) return read_number(r, digits);
    if (sign == '+' || rrl_number_at(r->p, r->n, digits)) return false; /* 3-4, x+1, --5 */
    bool lone_before = lone_letter_before(r, r->i), lone_after = lone_letter_after(r, r->i + 1);
    bool hyphen = rrl_point_letter(previous) && rrl_point_letter(at(r, r->i + 1)); /* T-shirts */
    bool minus = previous == ' ' && states_value(r, r->i); /* it is - 5: a minus or a dash? */
    r->i++;
    return hyphen ? !(lone_before && lone_after) : !(lone_before || lone_after || minus);
}

/* m^2, cm^{3} */
static bool read_power_of_unit(reader *r) {
    size_t i = r->i + 1;
    bool braced = at(r, i) == '{';
    if (braced) i++;
    uint32_t power = at(r, i);
    size_t back = r->i;
    while (before(r, back) == ' ') back--;
    if (!r->numbers || !rrl_point_letter(before(r, back)) || (power != '2' && power != '3')) return false;
    i++;
    if (braced && at(r, i++) != '}') return false;
    if (rrl_number_at(r->p, r->n, i)) return false;
    r->i = i;
    return true;
}

/* km/h, 12/hour; 12/x is a quotient. */
static bool per_unit(const reader *r) {
    uint32_t previous = before(r, r->i);
    bool word = rrl_point_letter(at(r, r->i + 1)) && rrl_point_letter(at(r, r->i + 2));
    return rrl_point_letter(previous) ? rrl_point_letter(at(r, r->i + 1)) : r->i == r->end && word;
}

/* One character outside numbers. */
static bool read_other(reader *r) {
    uint32_t c = r->p[r->i];
    bool allowed = rrl_point_letter(c) || c == ' ' || c == '\'';
    if (!r->numbers) {
        allowed = allowed || c == ':';
    } else {
        if (c == '^') return read_power_of_unit(r);
        if (c == '.' && (at(r, r->i + 1) == ' ' || r->i + 1 == r->n)) r->sentence = true;
        allowed = allowed || c == '.' || c == ',' || c == '(' || c == ')' ||
                  ((c == 0xB2 || c == 0xB3) && rrl_point_letter(before(r, r->i))) || (c == '/' && per_unit(r));
    }
    r->i++;
    return allowed;
}

/* Whether the word that begins at r->i speaks of money: "USD 12m". */
static bool money_word(const reader *r) {
    size_t end = r->i;
    if (rrl_point_letter(before(r, r->i))) return false;
    while (rrl_point_letter(at(r, end))) end++;
    return rrl_word_classes(r->p + r->i, end - r->i) & RRL_WORD_MONEY;
}

/* Where the value of "x = 5" or "Total = 5" begins: behind one letter, or one word for a quantity, and the sign. 0 if
 * the text does not begin so, or no number comes next. */
static size_t assigned_at(const uint32_t *p, size_t n) {
    size_t i = 0;
    while (i < n && p[i] == ' ') i++;
    size_t name = i;
    while (i < n && rrl_point_letter(p[i])) i++;
    size_t len = i - name;
    while (i < n && p[i] == ' ') i++;
    if (i >= n || p[i] != '=') return 0;
    if (len != 1 && !(rrl_word_classes(p + name, len) & RRL_WORD_MEASURE)) return 0;
    for (i++; i < n && p[i] == ' '; i++) {
    }
    size_t digits = i < n && (p[i] == '-' || p[i] == '+') ? i + 1 : i;
    while (digits > i && digits < n && p[digits] == ' ') digits++;
    return rrl_number_at(p, n, digits) ? i : 0;
}

rrl_status rrl_sentence_number(bool *found, size_t *begin, size_t *end, const uint32_t *p, size_t n,
                               bool money) {
    *found = false;
    while (n && p[n - 1] == ' ') n--;
    if (n == 0) return RRL_OK; /* p may be NULL then */
    size_t value = assigned_at(p, n);
    p += value;
    n -= value;
    reader r = {.p = p, .n = n, .money = money};
    while (r.i < n) {
        if (!r.numbers && !r.money) r.money = money_word(&r);
        bool go_on = rrl_number_at(p, n, r.i)         ? read_number(&r, r.i)
                     : p[r.i] == '-' || p[r.i] == '+' ? read_sign(&r)
                                                      : read_other(&r);
        if (!go_on) return RRL_OK;
    }
    if (r.numbers == 0 || !rrl_scalar_valued(&r.value)) return RRL_OK;
    if (!rrl_lead_in_plain(p, r.begin) || !rrl_tail_plain(p + r.end, n - r.end)) return RRL_OK;
    *begin = value + r.begin;
    *end = value + r.end;
    *found = true;
    return RRL_OK;
}
