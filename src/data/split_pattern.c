/* The two engines agree on what tokenizers use but for one thing: PCRE2's \s has U+180E, which is no white
 * space since Unicode 6.3. So \s and \S are written out. Oniguruma's nested sets mean something else to PCRE2
 * and are refused. Checked with the pattern of Qwen2.5: the same ids for every character up to Unicode 14, the
 * tables of PCRE2 10.42; to those tables letters and digits that came later are neither, so they may be cut
 * differently until the library is newer. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "data/split_pattern.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Unicode's White_Space */
#define SPACES                                                                                               \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{" \
    "3000}"

struct rrl_split_pattern {
    pcre2_code *code;
};

struct rrl_split_search {
    const rrl_split_pattern *pattern;
    pcre2_match_data *match;
    pcre2_match_context *context;
};

static rrl_status put_escape(rrl_buffer *b, char c, bool in_set, const char *regex, const char *where) {
    if (c == 's') return rrl_buffer_puts(b, in_set ? SPACES : "[" SPACES "]");
    if (c == 'S' && !in_set) return rrl_buffer_puts(b, "[^" SPACES "]");
    if (c == 'S')
        return RRL_FAIL(RRL_ERR_DATA, "%s: \\S in a set is not supported in pattern %s", where, regex);
    return rrl_buffer_printf(b, "\\%c", c);
}

static rrl_status translate(rrl_buffer *b, const char *regex, const char *where) {
    bool in_set = false;
    for (const char *p = regex; *p; p++) {
        if (*p == '\\' && p[1]) {
            RRL_TRY(put_escape(b, *++p, in_set, regex, where));
            continue;
        }
        if (in_set && (*p == '[' || (*p == '&' && p[1] == '&')))
            return RRL_FAIL(RRL_ERR_DATA, "%s: nested sets are not supported in pattern %s", where, regex);
        RRL_TRY(rrl_buffer_put(b, p, 1));
        if (in_set) {
            in_set = *p != ']';
        } else if (*p == '[') {
            in_set = true;
            if (p[1] == '^') RRL_TRY(rrl_buffer_put(b, ++p, 1));
            if (p[1] == ']') RRL_TRY(rrl_buffer_put(b, ++p, 1)); /* literal in first place */
        }
    }
    return RRL_OK;
}

rrl_status rrl_split_pattern_open(rrl_split_pattern **out, const char *pattern, bool literal,
                                  const char *where) {
    rrl_status rc = RRL_OK;
    rrl_split_pattern *p = NULL;
    rrl_buffer regex = {0};
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);

    RRL_GOTO(rrl_alloc(&p, 1, sizeof *p, "pattern"));
    if (literal)
        RRL_GOTO(rrl_buffer_puts(&regex, pattern));
    else
        RRL_GOTO(translate(&regex, pattern, where));
    p->code = pcre2_compile((PCRE2_SPTR)(regex.data ? regex.data : ""), regex.len, options, &code, &at, NULL);
    if (!p->code) {
        char text[128] = "";
        pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof text);
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: pattern %s: %s", where, pattern, text);
        goto done;
    }
    *out = p;
    p = NULL;
done:
    rrl_split_pattern_close(&p);
    rrl_buffer_free(&regex);
    return rc;
}

void rrl_split_pattern_close(rrl_split_pattern **p) {
    if (!p || !*p) return;
    pcre2_code_free((*p)->code);
    free(*p);
    *p = NULL;
}

rrl_status rrl_split_search_open(rrl_split_search **out, const rrl_split_pattern *p) {
    rrl_status rc = RRL_OK;
    rrl_split_search *s = NULL;
    RRL_GOTO(rrl_alloc(&s, 1, sizeof *s, "pattern search"));
    s->pattern = p;
    s->match = pcre2_match_data_create(1, NULL);
    s->context = pcre2_match_context_create(NULL);
    if (!s->match || !s->context) {
        rc = RRL_FAIL(RRL_ERR_NOMEM, "pattern search: no memory");
        goto done;
    }
    /* the default limit of 10 million steps could meet a run of white space in a long text */
    pcre2_set_match_limit(s->context, UINT32_MAX);
    *out = s;
    s = NULL;
done:
    rrl_split_search_close(&s);
    return rc;
}

void rrl_split_search_close(rrl_split_search **s) {
    if (!s || !*s) return;
    pcre2_match_data_free((*s)->match);
    pcre2_match_context_free((*s)->context);
    free(*s);
    *s = NULL;
}

rrl_status rrl_split_search_next(bool *found, size_t *at, size_t *match_len, rrl_split_search *s,
                                 const char *text, size_t len, size_t from) {
    /* the caller gives valid UTF-8; checking it again at every match would cost len each time */
    int n =
        pcre2_match(s->pattern->code, (PCRE2_SPTR)text, len, from, PCRE2_NO_UTF_CHECK, s->match, s->context);
    *found = n >= 0;
    if (n == PCRE2_ERROR_NOMATCH) return RRL_OK;
    if (n < 0) {
        char message[128] = "";
        pcre2_get_error_message(n, (PCRE2_UCHAR *)message, sizeof message);
        return RRL_FAIL(RRL_ERR_INTERNAL, "pattern search at byte %zu of %zu: %s", from, len, message);
    }
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(s->match);
    *at = range[0];
    *match_len = range[1] > range[0] ? range[1] - range[0] : 0;
    return RRL_OK;
}
