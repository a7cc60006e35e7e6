/* From a candidate to a settled answer, its normal form, and equality with a reference. */
#include "verify/answer.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "base/text.h"
#include "rrl/verify.h"

/* A candidate in the stages of its reading. */
typedef struct {
    rrl_points raw;     /* as written */
    size_t begin, end;  /* the bare part of raw */
    rrl_points cleaned; /* the bare part, mark-up resolved */
    rrl_scalar scalar;
    bool is_scalar; /* scalar holds it, with or without a value */
    bool goes_on;   /* an ellipsis stands behind digits: raw is kept whole */
} candidate;

static void candidate_free(candidate *c) {
    rrl_points_free(&c->raw);
    rrl_points_free(&c->cleaned);
}

/* Bytes without white space at the ends; a text beyond the limit is cut here, so that all that follows is
 * bounded. */
static bool within_limit(const char **text, size_t *len) {
    enum { BYTES_PER_POINT = 4 };
    while (*len && ((unsigned char)**text == ' ' || (**text >= 9 && **text <= 13))) ++*text, --*len;
    while (*len && ((*text)[*len - 1] == ' ' || ((*text)[*len - 1] >= 9 && (*text)[*len - 1] <= 13))) --*len;
    return *len <= (size_t)RRL_ANSWER_CHARS * BYTES_PER_POINT;
}

/* Two points, or an ellipsis in any spelling. */
static bool ellipsis_at(const rrl_points *p, size_t i) {
    static const char *const COMMANDS[] = {"dots", "ldots", "cdots", "dotsc", "dotsb"};
    if (i >= p->n) return false;
    if (p->cp[i] == 0x2026 || (p->cp[i] == '.' && i + 1 < p->n && p->cp[i + 1] == '.')) return true;
    for (size_t k = 0; k < sizeof COMMANDS / sizeof *COMMANDS; k++)
        if (rrl_command_at(p->cp, p->n, i, COMMANDS[k])) return true;
    return false;
}

/* 0.333...: the digits are not all, and the number they stand for is not written. Blanks and mark-up may lie
 * between. */
static bool digits_go_on(const rrl_points *p) {
    for (size_t i = 0; i < p->n; i++) {
        if (rrl_point_digit(p->cp[i]) < 0) continue;
        size_t end = i + 1;
        while (end < p->n && (rrl_point_white(p->cp[end]) || p->cp[end] == '*' || p->cp[end] == '$')) end++;
        if (ellipsis_at(p, end)) return true;
    }
    return false;
}

/* Read a candidate; one that is empty or too long stays empty. */
static rrl_status candidate_read(candidate *c, const char *text, size_t len) {
    if (!within_limit(&text, &len)) return RRL_OK;
    RRL_TRY(rrl_points_decode(&c->raw, text, len));
    if (c->raw.n == 0 || c->raw.n > RRL_ANSWER_CHARS) return RRL_OK;
    c->end = c->raw.n;
    c->goes_on = digits_go_on(&c->raw);
    if (!c->goes_on) rrl_answer_bare(c->raw.cp, &c->begin, &c->end);
    RRL_TRY(rrl_latex_clean(&c->cleaned, c->raw.cp + c->begin, c->end - c->begin));
    c->is_scalar = rrl_scalar_parse(&c->scalar, c->cleaned.cp, c->cleaned.n);
    return RRL_OK;
}

/* Without sign: no number, and no word that may equal another such word. */
static bool is_nonfinite(const rrl_points *p) {
    static const char *const WORDS[] = {"inf", "infinity", "nan", "\\infty"};
    size_t i = 0, n = p->n;
    while (i < n && (p->cp[i] == ' ' || p->cp[i] == '-' || p->cp[i] == '+')) i++;
    while (n > i && p->cp[n - 1] == ' ') n--;
    if (n - i == 1 && p->cp[i] == 0x221E) return true;
    for (size_t k = 0; k < sizeof WORDS / sizeof *WORDS; k++) {
        size_t len = strlen(WORDS[k]), j = 0;
        if (n - i != len) continue;
        while (j < len && (p->cp[i + j] | 0x20) == (uint32_t)(WORDS[k][j] | 0x20)) j++;
        if (j == len) return true;
    }
    return false;
}

/* A currency sign among the raw points, escaped or not; two dollars are the delimiters of mathematics. */
static bool has_money(const rrl_points *raw) {
    int dollars = 0;
    for (size_t i = 0; i < raw->n; i++) {
        if (raw->cp[i] == '$')
            dollars++;
        else if (rrl_point_currency(raw->cp[i]))
            return true;
    }
    return dollars % 2 == 1;
}

/* What the candidate amounts to: p[*begin..*end) of raw or cleaned. */
static rrl_status candidate_settle(rrl_settled *kind, const rrl_points **of, size_t *begin, size_t *end,
                                   candidate *c) {
    bool found = false;
    *kind = RRL_SETTLED_NONE;
    *of = &c->raw;
    *begin = c->begin;
    *end = c->end;
    if (c->begin == c->end || is_nonfinite(&c->cleaned)) return RRL_OK;
    if (c->is_scalar) {
        if (rrl_scalar_valued(&c->scalar)) *kind = RRL_SETTLED_SCALAR;
        return RRL_OK;
    }
    *kind = RRL_SETTLED_TEXT;
    if (c->goes_on || c->end - c->begin > RRL_SENTENCE_CHARS) return RRL_OK;
    size_t b, e;
    bool money = has_money(&c->raw);
    RRL_TRY(rrl_sentence_number(&found, &b, &e, c->cleaned.cp, c->cleaned.n, money));
    if (found) {
        *kind = RRL_SETTLED_SCALAR;
        *of = &c->cleaned;
        *begin = b;
        *end = e;
    } else if (money) { /* with its sign: read again, "$12m" must not become 12 metres */
        *begin = 0;
        *end = c->raw.n;
    }
    return RRL_OK;
}

rrl_status rrl_answer_settle(rrl_settled *kind, rrl_points *out, const char *text, size_t len) {
    rrl_status rc = RRL_OK;
    candidate c = {0};
    const rrl_points *of;
    rrl_settled settled;
    size_t begin, end;
    RRL_GOTO(candidate_read(&c, text, len));
    RRL_GOTO(candidate_settle(&settled, &of, &begin, &end, &c));
    if (settled != RRL_SETTLED_NONE) RRL_GOTO(rrl_points_add(out, of->cp + begin, end - begin));
    *kind = settled;
done:
    candidate_free(&c);
    return rc;
}

/* Text without white space, but one blank is kept between two digits: 5 6 is not 56. Folded and composed by
 * utf8proc. */
static rrl_status normal_text(rrl_buffer *out, const rrl_points *p) {
    rrl_status rc = RRL_OK;
    rrl_buffer plain = {0};
    utf8proc_uint8_t *folded = NULL;
    uint32_t last = 0;
    bool gap = false;
    for (size_t i = 0; i < p->n; i++) {
        if (rrl_point_white(p->cp[i])) {
            gap = true;
            continue;
        }
        if (gap && rrl_point_digit(last) >= 0 && rrl_point_digit(p->cp[i]) >= 0)
            RRL_GOTO(rrl_utf8_put(&plain, ' '));
        last = p->cp[i];
        gap = false;
        RRL_GOTO(rrl_utf8_put(&plain, last));
    }
    if (plain.len == 0) goto done;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)plain.data, (utf8proc_ssize_t)plain.len,
                                      &folded, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
    if (n < 0) {
        rc = RRL_FAIL(n == UTF8PROC_ERROR_NOMEM ? RRL_ERR_NOMEM : RRL_ERR_INTERNAL,
                      "case folding of an answer: %s", utf8proc_errmsg(n));
        goto done;
    }
    RRL_GOTO(rrl_buffer_put(out, folded, (size_t)n));
done:
    free(folded);
    rrl_buffer_free(&plain);
    return rc;
}

static rrl_status candidate_normal(rrl_buffer *out, const candidate *c) {
    if (c->is_scalar && !c->scalar.too_long) return rrl_buffer_put(out, c->scalar.text, c->scalar.len);
    return normal_text(out, &c->cleaned);
}

rrl_status rrl_answer_normal(char **out, const char *text, size_t len) {
    rrl_status rc = RRL_OK;
    candidate c = {0};
    rrl_buffer normal = {0};
    RRL_GOTO(candidate_read(&c, text, len));
    RRL_GOTO(rrl_buffer_put(&normal, "", 0));
    RRL_GOTO(candidate_normal(&normal, &c));
    *out = normal.data;
    normal = (rrl_buffer){0};
done:
    rrl_buffer_free(&normal);
    candidate_free(&c);
    return rc;
}

rrl_status rrl_answer_rational(char **rational, const char *text, size_t len) {
    rrl_status rc = RRL_OK;
    candidate c = {0};
    char *value = NULL;
    RRL_GOTO(candidate_read(&c, text, len));
    if (c.is_scalar) RRL_GOTO(rrl_scalar_rational(&value, &c.scalar));
    *rational = value;
done:
    candidate_free(&c);
    return rc;
}

/* Settle, then read again what was settled on. */
static rrl_status read_settled(rrl_settled *kind, candidate *c, const char *text, size_t len) {
    rrl_status rc = RRL_OK;
    rrl_points settled = {0};
    rrl_buffer bytes = {0};
    RRL_GOTO(rrl_answer_settle(kind, &settled, text, len));
    RRL_GOTO(rrl_points_encode(&bytes, settled.cp, settled.n));
    RRL_GOTO(candidate_read(c, bytes.data ? bytes.data : "", bytes.len));
done:
    rrl_points_free(&settled);
    rrl_buffer_free(&bytes);
    return rc;
}

rrl_status rrl_answer_equal(bool *equal, const char *kind, const char *answer, size_t answer_len,
                            const char *reference, size_t reference_len) {
    rrl_status rc = RRL_OK;
    candidate a = {0}, r = {0};
    rrl_buffer na = {0}, nr = {0};
    rrl_settled ka, kr;
    bool rule = strcmp(kind, "rule") == 0;
    if (!rule && strcmp(kind, "exact") != 0)
        return RRL_FAIL(RRL_ERR_CONFIG, "verifier kind \"%s\" is unknown; use \"rule\" or \"exact\"", kind);
    if (!answer) {
        *equal = false;
        return RRL_OK;
    }
    RRL_GOTO(read_settled(&ka, &a, answer, answer_len));
    RRL_GOTO(read_settled(&kr, &r, reference, reference_len));
    if (ka == RRL_SETTLED_NONE || kr == RRL_SETTLED_NONE) {
        *equal = false;
    } else if (rule && ka == RRL_SETTLED_SCALAR && kr == RRL_SETTLED_SCALAR) {
        *equal = rrl_scalar_same(&a.scalar, &r.scalar);
    } else {
        RRL_GOTO(candidate_normal(&na, &a));
        RRL_GOTO(candidate_normal(&nr, &r));
        *equal = na.len > 0 && na.len == nr.len && memcmp(na.data, nr.data, na.len) == 0;
    }
done:
    rrl_buffer_free(&na);
    rrl_buffer_free(&nr);
    candidate_free(&a);
    candidate_free(&r);
    return rc;
}

rrl_status rrl_answer_counts(bool *counts, const char *answer, size_t answer_len, const char *reference,
                             size_t reference_len) {
    rrl_status rc = RRL_OK;
    rrl_points scratch = {0};
    rrl_settled ka = RRL_SETTLED_NONE, kr = RRL_SETTLED_NONE;
    if (answer) RRL_GOTO(rrl_answer_settle(&ka, &scratch, answer, answer_len));
    RRL_GOTO(rrl_answer_settle(&kr, &scratch, reference, reference_len));
    *counts = ka == RRL_SETTLED_SCALAR || (ka == RRL_SETTLED_TEXT && kr == RRL_SETTLED_TEXT);
done:
    rrl_points_free(&scratch);
    return rc;
}
