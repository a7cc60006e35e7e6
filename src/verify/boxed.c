/* A box says "this is the answer" whatever the sentence, so only what touches it can make it another number:
 * -\boxed{5}, \boxed{5}k, \sqrt{\boxed{5}}, \boxed{3} or \boxed{5}. The line further off is not asked. */
#include "verify/boxed.h"

#include <string.h>

#include "verify/answer.h"
#include "verify/context.h"
#include "verify/words.h"

enum { NEIGHBOUR_BYTES = 160 };

typedef struct {
    const char *p;
    size_t n;
} text_view;

static bool blank(char c) {
    return c == ' ' || c == '\t';
}

static bool letter(char c) {
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static bool ends(text_view t, const char *end) {
    size_t len = strlen(end);
    return t.n >= len && memcmp(t.p + t.n - len, end, len) == 0;
}

/* The word of letters at the end of t, lower case and whole. */
static bool ends_in_word(text_view t, const char *word) {
    size_t len = strlen(word);
    return ends(t, word) && (t.n == len || !letter(t.p[t.n - len - 1]));
}

static text_view without_blanks(text_view t) {
    while (t.n && blank(t.p[t.n - 1])) t.n--;
    return t;
}

/* ---- braces around the box ---- */

/* Where the brace that is open at the end of t stands; false if none is. */
static bool open_brace(text_view t, size_t *at) {
    size_t depth = 0;
    for (size_t i = t.n; i > 0; i--) {
        if (i > 1 && t.p[i - 2] == '\\') continue; /* \{ is no brace */
        if (t.p[i - 1] == '}') depth++;
        if (t.p[i - 1] == '{' && depth-- == 0) {
            *at = i - 1;
            return true;
        }
    }
    return false;
}

/* Braces that only group: behind nothing, or behind \text and its like. */
static bool brace_groups(text_view before) {
    static const char *const NAMES[] = {"\\text", "\\textbf", "\\mathbf", "\\mathrm", "\\mbox", "\\boxed", "\\fbox",
                                        "\\bm",   "\\underline", "\\displaystyle"};
    before = without_blanks(before);
    if (before.n == 0) return true;
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++)
        if (ends(before, NAMES[k])) return true;
    char last = before.p[before.n - 1];
    return !letter(last) && !strchr("^_}]", last);
}

static bool enclosed_plainly(text_view before) {
    for (size_t at; open_brace(before, &at); before.n = at)
        if (!brace_groups((text_view){before.p, at})) return false;
    return true;
}

/* ---- a list of boxes ---- */

/* What may stand between two boxes of one list. */
static bool strip_joint(text_view *t) {
    static const char *const SIGNS[] = {"$", ",", ";", "&", "-", "\xE2\x80\x93", "\\(", "\\)", "\\,", "\\ "};
    static const char *const WORDS[] = {"and", "or", "to"};
    *t = without_blanks(*t);
    for (size_t k = 0; k < sizeof SIGNS / sizeof *SIGNS; k++)
        if (ends(*t, SIGNS[k])) {
            t->n -= strlen(SIGNS[k]);
            return true;
        }
    for (size_t k = 0; k < sizeof WORDS / sizeof *WORDS; k++)
        if (ends_in_word(*t, WORDS[k])) {
            t->n -= strlen(WORDS[k]);
            return true;
        }
    return false;
}

static bool listed(text_view before) {
    size_t at;
    while (strip_joint(&before)) {
    }
    if (!ends(before, "}")) return false;
    before.n--;
    if (!open_brace(before, &at)) return false;
    before = without_blanks((text_view){before.p, at});
    return ends(before, "\\boxed") || ends(before, "\\fbox");
}

/* ---- signs and words ---- */

static bool computing_command(const uint32_t *p, size_t n) {
    static const char *const NAMES[] = {"leq", "geq", "le", "ge", "lt", "gt", "neq", "ne", "not", "sqrt", "pm",
                                        "mp",  "div", "log", "ln", "exp", "sin", "cos", "tan"};
    size_t begin = n;
    while (begin > 0 && rrl_point_letter(p[begin - 1])) begin--;
    if (begin == 0) return false;
    for (size_t k = 0; k < sizeof NAMES / sizeof *NAMES; k++)
        if (rrl_command_at(p, n, begin - 1, NAMES[k])) return true;
    return false;
}

static bool among(uint32_t c, const uint32_t *set) {
    while (*set && *set != c) set++;
    return *set != 0;
}

/* The sign at p[n - 1] works on what follows it; attached: no blank between. */
static bool sign_works(const uint32_t *p, size_t n, bool attached) {
    static const uint32_t ALWAYS[] = {'+',  '/',  '^',    '_',    '<',    0xD7, 0xB7,
                                      0xF7, 0xB1, 0x221A, 0x2260, 0x2264, 0x2265, 0};
    uint32_t sign = p[n - 1];
    if (among(sign, ALWAYS)) return true;
    size_t i = n - 1;
    while (i > 0 && p[i - 1] == ' ') i--;
    uint32_t before = i > 0 ? p[i - 1] : 0;
    bool quantity = (before >= '0' && before <= '9') || before == ')' || before == '}';
    if (sign == '>') return before != 0 && before != '=' && before != '-'; /* a quotation, an arrow */
    if (sign == '-') return attached || quantity || before == '=';         /* a list, a dash */
    return sign == '*' && quantity;
}

static bool before_plain(const uint32_t *p, size_t n) {
    size_t end = n;
    while (end > 1 && p[end - 1] == '*' && p[end - 2] == '*') end -= 2; /* emphasis that ends behind the box */
    bool attached = end > 0 && p[end - 1] != ' ';
    while (end > 0 && p[end - 1] == ' ') end--;
    if (end == 0) return true;
    if (attached && p[end - 1] >= '0' && p[end - 1] <= '9') return false;
    if (computing_command(p, end) || sign_works(p, end, attached)) return false;
    size_t begin = end;
    while (begin > 0 && (rrl_point_letter(p[begin - 1]) || p[begin - 1] == '\'')) begin--;
    unsigned classes = rrl_word_classes(p + begin, end - begin);
    return !(classes & (RRL_WORD_DOUBT | RRL_WORD_OPERATOR)) && !rrl_word_is(p + begin, end - begin, "than");
}

static size_t word_end(const uint32_t *p, size_t n, size_t i) {
    while (i < n && (rrl_point_letter(p[i]) || p[i] == '\'')) i++;
    return i;
}

/* The word p[i..end) behind a box: not "12 million", "12 k", "12 and a half", "12 or more"; "12 if", "12 wrong answers"
 * and "12 half-gallons" leave it alone. */
static bool word_behind_plain(const uint32_t *p, size_t n, size_t i, size_t end) {
    unsigned classes = rrl_word_classes(p + i, end - i);
    if (rrl_word_is(p + i, end - i, "or") || rrl_word_is(p + i, end - i, "not")) return false;
    bool compound = end + 1 < n && p[end] == '-' && rrl_point_letter(p[end + 1]);
    if (!compound && (classes & (RRL_WORD_SCALE | RRL_WORD_OPERATOR | RRL_WORD_NOT_BEHIND))) return false;
    if (end == i + 1) return rrl_unit_letter(p[i]) || p[i] == 'a' || p[i] == 'I';
    if (!rrl_word_is(p + i, end - i, "and")) return true;
    size_t next = rrl_skip_blanks(p, n, end);
    if (rrl_number_at(p, n, next)) return false;
    if (next < n && p[next] == 'a' && next + 1 < n && p[next + 1] == ' ') next = rrl_skip_blanks(p, n, next + 1);
    return !(rrl_word_classes(p + next, word_end(p, n, next) - next) & (RRL_WORD_OPERATOR | RRL_WORD_NUMBER));
}

static bool behind_plain(const uint32_t *p, size_t n) {
    static const uint32_t WORKS[] = {'^', '_', '?', 0xD7, 0xB7, 0xF7, 0xB1, 0xB2, 0xB3, 0};
    size_t i = 0;
    while (i < n && p[i] == '}') i++;
    if (i < n && (p[i] == '.' || p[i] == ',') && i + 1 < n && p[i + 1] >= '0' && p[i + 1] <= '9') return false;
    while (i < n && (p[i] == ' ' || p[i] == '}' || p[i] == '*')) i++;
    if (i == n) return true;
    if (i > 0 && p[i - 1] == '*' && rrl_number_at(p, n, i)) return false;
    if (p[i] == '/') return word_end(p, n, i + 1) > i + 2; /* a rate: /month */
    if (among(p[i], WORKS)) return false;
    if (i == 0 && rrl_number_at(p, n, i)) return false;
    size_t next = rrl_skip_blanks(p, n, i + 1);
    if (among(p[i], (const uint32_t[]){'+', '-', ':', 0})) /* a dash or colon, unless a number comes */
        return !rrl_number_at(p, n, next) && !(p[i] == '+' && next == n);
    size_t end = word_end(p, n, i);
    return end == i || word_behind_plain(p, n, i, end);
}

rrl_status rrl_box_plain(bool *plain, const char *text, size_t len, size_t begin, size_t end) {
    rrl_status rc = RRL_OK;
    rrl_points raw = {0}, before = {0}, behind = {0};
    size_t from = begin, to = end;
    while (from > 0 && begin - from < NEIGHBOUR_BYTES && text[from - 1] != '\n' && text[from - 1] != '\r') from--;
    while (to < len && to - end < NEIGHBOUR_BYTES && text[to] != '\n' && text[to] != '\r') to++;
    text_view line = {text + from, begin - from};
    *plain = enclosed_plainly(line) && !listed(line);
    if (!*plain) return RRL_OK;
    RRL_GOTO(rrl_points_decode(&raw, line.p, line.n));
    RRL_GOTO(rrl_latex_clean(&before, raw.cp, raw.n));
    raw.n = 0;
    RRL_GOTO(rrl_points_decode(&raw, text + end, to - end));
    RRL_GOTO(rrl_latex_clean(&behind, raw.cp, raw.n));
    *plain = before_plain(before.cp, before.n) && behind_plain(behind.cp, behind.n);
done:
    rrl_points_free(&raw);
    rrl_points_free(&before);
    rrl_points_free(&behind);
    return rc;
}

/* ---- taken back ---- */

/* The lower-case phrase at i, its first letter in either case, and no letter behind it. */
static bool phrase_at(text_view t, size_t i, const char *phrase) {
    size_t len = strlen(phrase);
    if (t.n - i < len || (t.p[i] | 32) != phrase[0] || memcmp(t.p + i + 1, phrase + 1, len - 1) != 0) return false;
    return i + len == t.n || !letter(t.p[i + len]);
}

bool rrl_taken_back(const char *text, size_t len, size_t from) {
    static const char *const PHRASES[] = {"wait", "actually", "oops", "correction", "sorry", "hmm", "hold on", "no,"};
    text_view t = {text, len};
    bool fresh = false; /* a sentence begins */
    for (size_t i = from; i < len; i++) {
        char c = text[i];
        if (c == '\n' || c == '\r' || c == '.' || c == '!' || c == '?') {
            fresh = true;
        } else if (fresh && letter(c)) {
            for (size_t k = 0; k < sizeof PHRASES / sizeof *PHRASES; k++)
                if (phrase_at(t, i, PHRASES[k])) return true;
            fresh = false;
        } else if (!blank(c) && c != '*' && c != '_' && c != '(') {
            fresh = false;
        }
    }
    return false;
}
