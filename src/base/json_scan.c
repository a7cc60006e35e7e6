/* cJSON is lenient: it takes trailing text, raw controls, 01 and \u0000 (which ends its string early). This
 * scanner lets only RFC 8259 through, so cJSON behind it is just the builder of the tree. */
#include "base/json_scan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

typedef struct {
    const char *start, *p, *end, *where;
    int depth;
    size_t n_numbers;
    rrl_json_long *list;
    size_t n, capacity;
} scanner;

static rrl_status fail_at(const scanner *s, const char *at, const char *problem) {
    size_t line = 1, column = 1;
    for (const char *p = s->start; p < at; p++) {
        column++;
        if (*p != '\n') continue;
        line++;
        column = 1;
    }
    return RRL_FAIL(RRL_ERR_DATA, "%s: not valid JSON at line %zu, byte %zu: %s", s->where, line, column,
                    problem);
}

static rrl_status expected(const scanner *s, const char *what) {
    char problem[96], found[16] = "the end";
    if (s->p < s->end) {
        unsigned char c = (unsigned char)*s->p;
        snprintf(found, sizeof found, c > 0x20 && c < 0x7F ? "%c" : "byte 0x%02x", c);
    }
    snprintf(problem, sizeof problem, "expected %s, found %s", what, found);
    return fail_at(s, s->p, problem);
}

static void skip_space(scanner *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r')) s->p++;
}

static bool at(const scanner *s, char c) {
    return s->p < s->end && *s->p == c;
}

static bool at_digit(const scanner *s) {
    return s->p < s->end && *s->p >= '0' && *s->p <= '9';
}

/* Four hexadecimal digits; -1 if they are not there. */
static int hex4(scanner *s) {
    int value = 0;
    for (int i = 0; i < 4; i++, s->p++) {
        if (s->p == s->end) return -1;
        char c = *s->p;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* Behind the backslash. */
static rrl_status scan_escape(scanner *s) {
    const char *place = s->p - 1;
    if (s->p == s->end || !strchr("\"\\/bfnrtu", *s->p))
        return expected(s, "one of \" \\ / b f n r t u after a backslash");
    if (*s->p++ != 'u') return RRL_OK;
    int unit = hex4(s);
    if (unit < 0) return expected(s, "four hexadecimal digits after \\u");
    if (unit == 0) return fail_at(s, place, "NUL characters are not allowed in text");
    if (unit >= 0xDC00 && unit < 0xE000)
        return fail_at(s, place, "second half of a surrogate pair without the first");
    if (unit < 0xD800 || unit >= 0xE000) return RRL_OK;
    int low = -1;
    if (s->end - s->p >= 2 && s->p[0] == '\\' && s->p[1] == 'u') {
        s->p += 2;
        low = hex4(s);
    }
    if (low < 0xDC00 || low >= 0xE000)
        return fail_at(s, place, "first half of a surrogate pair without the second");
    return RRL_OK;
}

static rrl_status scan_string(scanner *s) {
    s->p++;
    for (;;) {
        if (s->p == s->end) return expected(s, "a closing \"");
        char c = *s->p;
        if ((unsigned char)c < 0x20)
            return expected(s, "text without control characters (write \\n or \\u00xx)");
        s->p++;
        if (c == '"') return RRL_OK;
        if (c == '\\') RRL_TRY(scan_escape(s));
    }
}

static rrl_status scan_digits(scanner *s) {
    if (!at_digit(s)) return expected(s, "a digit");
    while (at_digit(s)) s->p++;
    return RRL_OK;
}

static rrl_status scan_number(scanner *s) {
    enum { EXACT_DIGITS = 15 };
    const char *start = s->p;
    if (at(s, '-')) s->p++;
    const char *digits = s->p;
    if (at(s, '0')) {
        s->p++;
        if (at_digit(s)) return expected(s, "no digit after a leading 0");
    } else {
        RRL_TRY(scan_digits(s));
    }
    size_t n_digits = (size_t)(s->p - digits);
    bool integer = true;
    if (at(s, '.')) {
        integer = false;
        s->p++;
        RRL_TRY(scan_digits(s));
    }
    if (at(s, 'e') || at(s, 'E')) {
        integer = false;
        s->p++;
        if (at(s, '+') || at(s, '-')) s->p++;
        RRL_TRY(scan_digits(s));
    }
    size_t len = (size_t)(s->p - start);
    if (len > RRL_JSON_NUMBER_CHARS) return fail_at(s, start, "number of more than 63 characters");
    if (integer && n_digits > EXACT_DIGITS) {
        RRL_TRY(rrl_grow(&s->list, &s->capacity, s->n + 1, sizeof *s->list, "long integers"));
        s->list[s->n++] = (rrl_json_long){.ordinal = s->n_numbers, .text = start, .len = len};
    }
    s->n_numbers++;
    return RRL_OK;
}

static rrl_status scan_word(scanner *s, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return expected(s, "a value (true, false or null)");
    s->p += n;
    return RRL_OK;
}

static rrl_status scan_value(scanner *s);

static rrl_status scan_key(scanner *s) {
    skip_space(s);
    if (!at(s, '"')) return expected(s, "a key in quotes");
    RRL_TRY(scan_string(s));
    skip_space(s);
    if (!at(s, ':')) return expected(s, ":");
    s->p++;
    return RRL_OK;
}

/* An array or, with keys, an object. */
static rrl_status scan_members(scanner *s, bool keys, char close, const char *what) {
    if (++s->depth > RRL_JSON_DEPTH) return fail_at(s, s->p, "more than 64 levels of nesting");
    s->p++;
    skip_space(s);
    bool more = !at(s, close);
    while (more) {
        if (keys) RRL_TRY(scan_key(s));
        RRL_TRY(scan_value(s));
        more = at(s, ',');
        if (more) s->p++;
    }
    if (!at(s, close)) return expected(s, what);
    s->p++;
    s->depth--;
    return RRL_OK;
}

/* A value with the space around it. */
static rrl_status scan_value(scanner *s) {
    skip_space(s);
    char c = s->p < s->end ? *s->p : 0;
    if (c == '{') {
        RRL_TRY(scan_members(s, true, '}', ", or }"));
    } else if (c == '[') {
        RRL_TRY(scan_members(s, false, ']', ", or ]"));
    } else if (c == '"') {
        RRL_TRY(scan_string(s));
    } else if (c == '-' || at_digit(s)) {
        RRL_TRY(scan_number(s));
    } else if (c == 't') {
        RRL_TRY(scan_word(s, "true"));
    } else if (c == 'f') {
        RRL_TRY(scan_word(s, "false"));
    } else if (c == 'n') {
        RRL_TRY(scan_word(s, "null"));
    } else {
        return expected(s, "a value");
    }
    skip_space(s);
    return RRL_OK;
}

static rrl_status scan_document(scanner *s) {
    const char *nul = memchr(s->start, 0, (size_t)(s->end - s->start));
    if (nul) return fail_at(s, nul, "NUL byte");
    const char *invalid = s->start + rrl_utf8_valid(s->start, (size_t)(s->end - s->start));
    if (invalid < s->end) return fail_at(s, invalid, "not UTF-8");
    RRL_TRY(scan_value(s));
    if (s->p < s->end) return expected(s, "nothing after the document");
    return RRL_OK;
}

rrl_status rrl_json_scan(rrl_json_long **list, size_t *n, const char *text, size_t len, const char *where) {
    scanner s = {.start = text, .p = text, .end = text + len, .where = where};
    rrl_status rc = scan_document(&s);
    if (rc != RRL_OK) {
        free(s.list);
        return rc;
    }
    *list = s.list;
    *n = s.n;
    return RRL_OK;
}
