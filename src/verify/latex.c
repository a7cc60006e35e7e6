/* Mark-up of numbers resolved into plain characters: LaTeX commands, fraction characters, signs, emphasis.
 *
 * One pass with a stack of open braces. It rewrites, it never computes, and it keeps apart what was apart:
 * deleting a command or a blank between two digits would invent a number. */
#include "verify/answer.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

/* What the closing brace of an open group means. */
typedef enum { GROUP_PLAIN, GROUP_WRAPPER, GROUP_NUMERATOR, GROUP_DENOMINATOR } group_kind;
typedef struct {
    group_kind kind;
    size_t at; /* where its content begins in the output */
} group;

typedef struct {
    rrl_points *out;
    const uint32_t *in;
    size_t n, i;
    group *open;
    size_t n_open, open_capacity;
    bool emphasis; /* inside ** ** */
} cleaner;

static const char *const WRAPPERS[] = {"text",         "textbf", "textit", "textrm", "textnormal",
                                       "mbox",         "mathrm", "mathbf", "mathit", "emph",
                                       "operatorname", "boxed",  "fbox",   "hbox"};
static const char *const FRACTIONS[] = {"frac", "dfrac", "tfrac", "cfrac"};

bool rrl_command_at(const uint32_t *in, size_t n, size_t i, const char *name) {
    size_t len = strlen(name);
    if (i >= n || in[i] != '\\' || n - i - 1 < len) return false;
    for (size_t k = 0; k < len; k++)
        if (in[i + 1 + k] != (unsigned char)name[k]) return false;
    return i + 1 + len == n || !rrl_point_letter(in[i + 1 + len]);
}

size_t rrl_wrapper_at(const uint32_t *in, size_t n, size_t i) {
    for (size_t k = 0; k < sizeof WRAPPERS / sizeof *WRAPPERS; k++)
        if (rrl_command_at(in, n, i, WRAPPERS[k])) return 1 + strlen(WRAPPERS[k]);
    return 0;
}

size_t rrl_brace_end(const uint32_t *in, size_t n, size_t open) {
    size_t depth = 0;
    for (size_t i = open; i < n; i++) {
        if (in[i] == '\\')
            i++;
        else if (in[i] == '{')
            depth++;
        else if (in[i] == '}' && --depth == 0)
            return i + 1;
    }
    return 0;
}

/* --- output */

static rrl_status put(cleaner *c, uint32_t cp) {
    return rrl_points_put(c->out, cp);
}

/* Two blanks: a gap that no grouping of digits bridges. */
static rrl_status put_gap(cleaner *c) {
    RRL_TRY(put(c, ' '));
    return put(c, ' ');
}

/* The last output that is no blank, 0 if none. */
static uint32_t last_solid(const cleaner *c, size_t from) {
    for (size_t i = c->out->n; i > from; i--)
        if (c->out->cp[i - 1] != ' ') return c->out->cp[i - 1];
    return 0;
}

static bool is_digit(uint32_t cp) {
    return cp >= '0' && cp <= '9';
}

static bool is_atom(uint32_t cp) {
    return is_digit(cp) || rrl_point_letter(cp);
}

static size_t skip_white(const cleaner *c, size_t i) {
    while (i < c->n && rrl_point_white(c->in[i])) i++;
    return i;
}

static rrl_status push(cleaner *c, group_kind kind) {
    RRL_TRY(rrl_grow(&c->open, &c->open_capacity, c->n_open + 1, sizeof *c->open, "open braces"));
    c->open[c->n_open++] = (group){kind, c->out->n};
    return RRL_OK;
}

/* --- fractions */

/* One side of a fraction stands in the output from `at` on: trim it, and put parentheses around it unless it
 * is a bare number or name, so that \frac{1+1}{2} does not become 1+1/2. */
static rrl_status close_side(cleaner *c, size_t at) {
    rrl_points *o = c->out;
    while (o->n > at && o->cp[o->n - 1] == ' ') o->n--;
    size_t lead = at;
    while (lead < o->n && o->cp[lead] == ' ') lead++;
    if (lead > at) memmove(o->cp + at, o->cp + lead, (o->n - lead) * sizeof *o->cp);
    o->n -= lead - at;
    size_t i = at;
    if (i < o->n && (o->cp[i] == '-' || o->cp[i] == '+')) i++;
    while (i < o->n && (is_atom(o->cp[i]) || o->cp[i] == '.' || o->cp[i] == ',')) i++;
    if (i == o->n && o->n > at) return RRL_OK;
    RRL_TRY(put(c, ')'));
    RRL_TRY(put(c, ')')); /* room for one more */
    memmove(o->cp + at + 1, o->cp + at, (o->n - at - 1) * sizeof *o->cp);
    o->cp[at] = '(';
    return RRL_OK;
}

static rrl_status end_fraction(cleaner *c) {
    return c->i < c->n && (rrl_point_digit(c->in[c->i]) >= 0 || rrl_point_letter(c->in[c->i])) ? put_gap(c)
                                                                                               : RRL_OK;
}

/* A side in braces is left to the main loop; one character is taken at once. *taken tells which. */
static rrl_status open_side(cleaner *c, group_kind kind, bool *taken) {
    c->i = skip_white(c, c->i);
    *taken = false;
    if (c->i >= c->n) return RRL_OK;
    uint32_t cp = c->in[c->i];
    if (cp == '{') {
        c->i++;
        return push(c, kind);
    }
    int digit = rrl_point_digit(cp);
    if (digit < 0 && !rrl_point_letter(cp)) return RRL_OK;
    c->i++;
    *taken = true;
    return put(c, digit >= 0 ? (uint32_t)('0' + digit) : cp);
}

static rrl_status open_denominator(cleaner *c) {
    bool taken;
    RRL_TRY(put(c, '/'));
    RRL_TRY(open_side(c, GROUP_DENOMINATOR, &taken));
    return taken ? end_fraction(c) : RRL_OK;
}

static rrl_status open_fraction(cleaner *c) {
    bool taken;
    if (is_digit(last_solid(c, 0))) RRL_TRY(put_gap(c)); /* 2\frac{1}{2} is a mixed number */
    RRL_TRY(open_side(c, GROUP_NUMERATOR, &taken));
    return taken ? open_denominator(c) : RRL_OK;
}

/* --- braces */

static rrl_status close_group(cleaner *c) {
    c->i++;
    if (c->n_open == 0) return put(c, '}');
    group g = c->open[--c->n_open];
    switch (g.kind) {
    case GROUP_PLAIN:
        return put(c, '}');
    case GROUP_WRAPPER:
        return put_gap(c);
    case GROUP_NUMERATOR:
        RRL_TRY(close_side(c, g.at));
        return open_denominator(c);
    case GROUP_DENOMINATOR:
        RRL_TRY(close_side(c, g.at));
        return end_fraction(c);
    }
    return RRL_OK;
}

/* --- powers of ten */

/* [times sign at i of length `len`] 10 ^ {n}: behind a digit this is an exponent, and *matched. */
static rrl_status power_of_ten(cleaner *c, size_t len, bool *matched) {
    *matched = false;
    if (!is_digit(last_solid(c, 0))) return RRL_OK;
    size_t i = skip_white(c, c->i + len);
    if (c->n - i < 3 || c->in[i] != '1' || c->in[i + 1] != '0') return RRL_OK;
    i = skip_white(c, i + 2);
    if (i >= c->n || c->in[i] != '^') return RRL_OK;
    i = skip_white(c, i + 1);
    bool braced = i < c->n && c->in[i] == '{';
    if (braced) i = skip_white(c, i + 1);
    bool minus = i < c->n && (c->in[i] == '-' || c->in[i] == 0x2212);
    if (minus || (i < c->n && c->in[i] == '+')) i++;
    size_t digits = i;
    while (i < c->n && rrl_point_digit(c->in[i]) >= 0) i++;
    size_t end = braced ? skip_white(c, i) : i;
    if (i == digits || i - digits > 3 || (braced && (end >= c->n || c->in[end] != '}'))) return RRL_OK;
    while (c->out->cp[c->out->n - 1] == ' ') c->out->n--;
    RRL_TRY(put(c, 'e'));
    if (minus) RRL_TRY(put(c, '-'));
    for (; digits < i; digits++) RRL_TRY(put(c, (uint32_t)('0' + rrl_point_digit(c->in[digits]))));
    c->i = braced ? end + 1 : end;
    *matched = true;
    return end_fraction(c);
}

/* --- commands */

static rrl_status symbol_command(cleaner *c) {
    uint32_t next = c->i + 1 < c->n ? c->in[c->i + 1] : 0;
    c->i += c->i + 1 < c->n ? 2 : 1;
    switch (next) {
    case '!':
        return RRL_OK; /* negative thin space */
    case ',':
    case ';':
    case ':':
    case ' ':
        return put(c, ' ');
    case '%':
        return put(c, '%');
    case '(':
    case ')':
    case '[':
    case ']':
    case '$':
        return c->out->n ? put_gap(c) : RRL_OK;
    case 0:
        return put(c, '\\');
    default:
        RRL_TRY(put(c, '\\'));
        return put(c, next);
    }
}

static rrl_status command(cleaner *c) {
    size_t end = c->i + 1;
    while (end < c->n && rrl_point_letter(c->in[end])) end++;
    if (end == c->i + 1) return symbol_command(c);
    for (size_t k = 0; k < sizeof FRACTIONS / sizeof *FRACTIONS; k++)
        if (rrl_command_at(c->in, c->n, c->i, FRACTIONS[k])) {
            c->i = end;
            return open_fraction(c);
        }
    bool wrapper = rrl_wrapper_at(c->in, c->n, c->i) > 0;
    bool times = rrl_command_at(c->in, c->n, c->i, "times"), dot = rrl_command_at(c->in, c->n, c->i, "cdot");
    if (times || dot) {
        bool matched;
        RRL_TRY(power_of_ten(c, end - c->i, &matched));
        if (matched) return RRL_OK;
        c->i = end;
        return put(c, times ? 0xD7 : 0xB7);
    }
    bool out = rrl_command_at(c->in, c->n, c->i, "left") || rrl_command_at(c->in, c->n, c->i, "right");
    bool gap = rrl_command_at(c->in, c->n, c->i, "quad") || rrl_command_at(c->in, c->n, c->i, "qquad");
    bool circle = rrl_command_at(c->in, c->n, c->i, "circ") || rrl_command_at(c->in, c->n, c->i, "degree");
    if (!wrapper && !out && !gap && !circle) { /* unknown: kept, so that no scalar comes of it */
        RRL_TRY(rrl_points_add(c->out, c->in + c->i, end - c->i));
        c->i = end;
        return RRL_OK;
    }
    c->i = end;
    if (out)
        return is_digit(last_solid(c, 0)) && end < c->n && rrl_point_digit(c->in[end]) >= 0 ? put_gap(c)
                                                                                            : RRL_OK;
    if (circle) return put(c, 0xB0);
    if (wrapper) {
        c->i = skip_white(c, c->i);
        if (c->i < c->n && c->in[c->i] == '{') {
            c->i++;
            RRL_TRY(push(c, GROUP_WRAPPER));
        }
    }
    return put_gap(c);
}

/* --- single characters */

/* ** as emphasis: opens at a word's start, closes at a word's end. Between digits it stays what it is: a
 * power. */
static bool emphasis_at(cleaner *c) {
    if (c->i + 1 >= c->n || c->in[c->i] != '*' || c->in[c->i + 1] != '*') return false;
    bool before = c->i == 0 || rrl_point_white(c->in[c->i - 1]) || c->in[c->i - 1] == '(';
    bool after =
        c->i + 2 >= c->n || !(rrl_point_digit(c->in[c->i + 2]) >= 0 || rrl_point_letter(c->in[c->i + 2]));
    if (!c->emphasis && before) {
        for (size_t k = c->i + 2; k + 1 < c->n; k++) /* only with its end, or a power would lose its sign */
            if (c->in[k] == '*' && c->in[k + 1] == '*') return c->emphasis = true;
        return false;
    }
    if (c->emphasis && after) {
        c->emphasis = false;
        return true;
    }
    return false;
}

/* 1/2 as one character: its compatibility form is digits, U+2044, digits. */
static rrl_status vulgar_fraction(cleaner *c, uint32_t cp) {
    utf8proc_int32_t parts[8];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, parts, 8,
                                                 UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
    if (is_digit(last_solid(c, 0))) RRL_TRY(put_gap(c));
    for (utf8proc_ssize_t k = 0; k < n && k < 8; k++)
        RRL_TRY(put(c, parts[k] == 0x2044 ? '/' : (uint32_t)parts[k]));
    c->i++;
    return end_fraction(c);
}

static bool is_vulgar_fraction(uint32_t cp) {
    return (cp >= 0xBC && cp <= 0xBE) || (cp >= 0x2150 && cp <= 0x215E) || cp == 0x2189;
}

static uint32_t plain_sign(uint32_t cp) {
    switch (cp) {
    case 0x2010: /* hyphens, en dash, minus, full-width hyphen-minus */
    case 0x2011:
    case 0x2012:
    case 0x2013:
    case 0x2212:
    case 0xFE63:
    case 0xFF0D:
        return '-';
    case 0xFF0B:
        return '+';
    case 0x2044: /* fraction slash, division slash, full-width slash */
    case 0x2215:
    case 0xFF0F:
        return '/';
    case 0x2019: /* apostrophes */
    case 0x2018:
        return '\'';
    case 0:
        return 0xFFFD; /* the normal form is a C string */
    default:
        return cp;
    }
}

/* ^\circ and ^{\circ} */
static size_t degree_at(const cleaner *c) {
    size_t i = skip_white(c, c->i + 1);
    bool braced = i < c->n && c->in[i] == '{';
    if (braced) i = skip_white(c, i + 1);
    if (!rrl_command_at(c->in, c->n, i, "circ")) return 0;
    i += 5;
    if (!braced) return i;
    i = skip_white(c, i);
    return i < c->n && c->in[i] == '}' ? i + 1 : 0;
}

static rrl_status character(cleaner *c, uint32_t cp) {
    int digit = rrl_point_digit(cp);
    if (digit >= 0) return put(c, (uint32_t)('0' + digit));
    bool tie = cp == '~' && c->out->n && c->out->cp[c->out->n - 1] != ' '; /* elsewhere it is "about" */
    if (cp == ' ' || tie || cp == 0xA0 || cp == 0x2009 || cp == 0x202F) return put(c, ' ');
    if (rrl_point_white(cp) || cp == '`' || cp == '"' || cp == 0x201C || cp == 0x201D) return put_gap(c);
    if (rrl_point_currency(cp)) {
        uint32_t last = last_solid(c, 0);
        return last == 0 || last == '-' || last == '+' ? RRL_OK : put_gap(c);
    }
    return put(c, plain_sign(cp));
}

static rrl_status step(cleaner *c) {
    uint32_t cp = c->in[c->i];
    size_t degree;
    if (cp == '\\') return command(c);
    if (cp == '}') return close_group(c);
    if (cp == '{') {
        if (c->n - c->i >= 3 && c->in[c->i + 1] == ',' && c->in[c->i + 2] == '}') { /* 1{,}200 */
            c->i += 3;
            return put(c, ',');
        }
        c->i++;
        RRL_TRY(push(c, GROUP_PLAIN));
        return put(c, '{');
    }
    if (cp == '^' && (degree = degree_at(c)) > 0) {
        c->i = degree;
        return put(c, 0xB0);
    }
    if (is_vulgar_fraction(cp)) return vulgar_fraction(c, cp);
    if (cp == 0xD7 || cp == 0xB7 || cp == 'x' || cp == '*') {
        bool matched;
        RRL_TRY(power_of_ten(c, 1, &matched));
        if (matched) return RRL_OK;
    }
    if (emphasis_at(c)) {
        c->i += 2;
        return put_gap(c);
    }
    c->i++;
    return character(c, cp);
}

rrl_status rrl_latex_clean(rrl_points *out, const uint32_t *in, size_t n) {
    rrl_status rc = RRL_OK;
    cleaner c = {.out = out, .in = in, .n = n};
    while (c.i < c.n) RRL_GOTO(step(&c));
    for (size_t k = c.n_open; k > 0; k--) /* cut off: \frac{1}{2 is not 1/2 */
        if (c.open[k - 1].kind != GROUP_PLAIN) RRL_GOTO(put(&c, '{'));
done:
    free(c.open);
    return rc;
}
