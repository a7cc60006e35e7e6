/* Peeling a candidate: what stands around an answer without being part of it comes off both ends, again and
 * again until nothing more does. Only the ends move; the inside is left as it is written. */
#include "verify/answer.h"

#include <string.h>

typedef struct {
    const uint32_t *p;
    size_t a, b; /* the candidate is p[a..b) */
} slice;

static size_t length(const slice *s) {
    return s->b - s->a;
}

static bool peel_white(slice *s) {
    size_t a = s->a, b = s->b;
    while (s->a < s->b && rrl_point_white(s->p[s->a])) s->a++;
    while (s->b > s->a && rrl_point_white(s->p[s->b - 1])) s->b--;
    return a != s->a || b != s->b;
}

static bool one_of(uint32_t cp, const char *set) {
    return cp && cp < 0x80 && strchr(set, (int)cp);
}

/* Closing . ! ; and a line break of LaTeX, and \) \] \$ as a whole before their last character goes alone. */
static bool peel_end(slice *s) {
    if (!length(s)) return false;
    uint32_t last = s->p[s->b - 1];
    bool escaped = length(s) > 1 && s->p[s->b - 2] == '\\';
    if (escaped && one_of(last, ")]$\\")) {
        s->b -= 2;
        return true;
    }
    if (escaped || !one_of(last, ".!;$*`")) return false;
    bool factor = last == '*' && length(s) > 1 && rrl_point_white(s->p[s->b - 2]) && s->p[s->a] != '*';
    if (factor) return false; /* 12 * ..: no emphasis began */
    s->b--;
    return true;
}

/* "**12** apples": an emphasis that ends before the candidate does is left to the cleaning. */
static bool emphasis_within(const slice *s) {
    if (length(s) < 2 || s->p[s->a] != '*' || s->p[s->a + 1] != '*') return false;
    size_t end = s->a + 2;
    while (end + 1 < s->b && !(s->p[end] == '*' && s->p[end + 1] == '*')) end++;
    return end > s->a + 2 && end + 2 < s->b;
}

static bool peel_start(slice *s) {
    if (!length(s)) return false;
    uint32_t first = s->p[s->a];
    if (first == '\\' && length(s) > 1 && one_of(s->p[s->a + 1], "([$")) {
        s->a += 2;
        return true;
    }
    if (!one_of(first, "$*`") || emphasis_within(s)) return false;
    s->a++;
    return true;
}

/* Quotes and underscores go in pairs: f' keeps its prime. */
static bool peel_quotes(slice *s) {
    static const uint32_t PAIRS[][2] = {{'\'', '\''},     {'"', '"'},       {'_', '_'},      {0x2018, 0x2019},
                                        {0x201C, 0x201D}, {0x201E, 0x201C}, {0x201D, 0x201D}};
    if (length(s) < 2) return false;
    for (size_t k = 0; k < sizeof PAIRS / sizeof *PAIRS; k++)
        if (s->p[s->a] == PAIRS[k][0] && s->p[s->b - 1] == PAIRS[k][1]) {
            s->a++;
            s->b--;
            return true;
        }
    return false;
}

static bool text_at(const slice *s, size_t i, const char *text) {
    for (; *text; text++, i++) {
        if (i >= s->b) return false;
        uint32_t cp = s->p[i] >= 'A' && s->p[i] <= 'Z' ? s->p[i] + 32 : s->p[i];
        if (cp != (unsigned char)*text) return false;
    }
    return true;
}

static bool peel_tags(slice *s) {
    enum { OPEN = 8, CLOSE = 9 };
    if (length(s) < OPEN + CLOSE || !text_at(s, s->a, "<answer>") || !text_at(s, s->b - CLOSE, "</answer>"))
        return false;
    s->a += OPEN;
    s->b -= CLOSE;
    return true;
}

/* \text{...}, \boxed{...}: the whole candidate in one wrapper. */
static bool peel_wrapper(slice *s) {
    size_t name = rrl_wrapper_at(s->p, s->b, s->a), open = s->a + name;
    if (!name) return false;
    while (open < s->b && rrl_point_white(s->p[open])) open++;
    if (open >= s->b || s->p[open] != '{' || rrl_brace_end(s->p, s->b, open) != s->b) return false;
    s->a = open + 1;
    s->b--;
    return true;
}

/* (8) and \left(8\right), but no pair (3, 500). */
static bool peel_parentheses(slice *s) {
    size_t open = s->a, depth = 0;
    bool left = rrl_command_at(s->p, s->b, open, "left");
    if (left) open += 5;
    if (open >= s->b || s->p[open] != '(' || s->p[s->b - 1] != ')') return false;
    for (size_t i = open; i < s->b; i++) {
        if (s->p[i] == ',') return false;
        if (s->p[i] == '(') depth++;
        if (s->p[i] == ')' && --depth == 0 && i + 1 != s->b) return false;
    }
    size_t close = s->b - 1;
    if (left && close >= open + 7 && rrl_command_at(s->p, s->b, close - 6, "right")) close -= 6;
    s->a = open + 1;
    s->b = close;
    return true;
}

void rrl_answer_bare(const uint32_t *p, size_t *begin, size_t *end) {
    slice s = {p, *begin, *end};
    while (peel_white(&s) || peel_end(&s) || peel_start(&s) || peel_tags(&s) || peel_quotes(&s) ||
           peel_wrapper(&s) || peel_parentheses(&s)) {
    }
    *begin = s.a;
    *end = s.b;
}
