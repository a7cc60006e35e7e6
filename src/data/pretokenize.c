/* A pre-tokenizer is a list of cuts, applied one after the other to every piece the one before left. */
#include "data/pretokenize.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "data/split_pattern.h"

enum { MAX_CUTS = 8 };

/* The regular expression of GPT-2, which ByteLevel applies where use_regex is set. */
static const char GPT2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

typedef struct {
    rrl_split_pattern *pattern; /* NULL = numeric characters */
    bool single;                /* numeric characters: each one alone */
    bool keep_matches, keep_rest;
} cut;

struct rrl_pretokenizer {
    cut cuts[MAX_CUTS];
    int n;
    bool closed; /* ByteLevel seen: nothing may follow, it would see spelled bytes */
};

static rrl_status add_digits(rrl_pretokenizer *p, const cJSON *node, const char *where) {
    cut c = {.keep_matches = true, .keep_rest = true};
    RRL_TRY(rrl_json_bool(&c.single, node, "individual_digits", false, where));
    p->cuts[p->n++] = c;
    return RRL_OK;
}

static rrl_status add_split(rrl_pretokenizer *p, const cJSON *node, const char *where) {
    const cJSON *pattern = NULL;
    const char *regex = NULL, *text = NULL, *behavior = NULL;
    bool invert = false;
    RRL_TRY(rrl_json_get(&pattern, node, "pattern", false, where));
    RRL_TRY(rrl_json_string(&regex, pattern, "Regex", true, where));
    RRL_TRY(rrl_json_string(&text, pattern, "String", true, where));
    RRL_TRY(rrl_json_string(&behavior, node, "behavior", false, where));
    RRL_TRY(rrl_json_bool(&invert, node, "invert", true, where));
    bool removed = strcmp(behavior, "Removed") == 0;
    if (!removed && strcmp(behavior, "Isolated") != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: Split behavior %s is not supported (Isolated, Removed are)", where,
                        behavior);
    if (!regex && !text)
        return RRL_FAIL(RRL_ERR_DATA, "%s: Split has neither Regex nor String as pattern", where);

    cut c = {.keep_matches = !removed || invert, .keep_rest = !removed || !invert};
    RRL_TRY(rrl_split_pattern_open(&c.pattern, regex ? regex : text, !regex, where));
    p->cuts[p->n++] = c;
    return RRL_OK;
}

static rrl_status add_byte_level(rrl_pretokenizer *p, const cJSON *node, const char *where) {
    bool prefix = false, regex = true;
    RRL_TRY(rrl_json_bool(&prefix, node, "add_prefix_space", true, where));
    RRL_TRY(rrl_json_bool(&regex, node, "use_regex", true, where));
    if (prefix) return RRL_FAIL(RRL_ERR_DATA, "%s: ByteLevel with add_prefix_space is not supported", where);
    p->closed = true;
    if (!regex) return RRL_OK;
    cut c = {.keep_matches = true, .keep_rest = true};
    RRL_TRY(rrl_split_pattern_open(&c.pattern, GPT2, false, where));
    p->cuts[p->n++] = c;
    return RRL_OK;
}

static rrl_status add_step(rrl_pretokenizer *p, const cJSON *node, const char *where) {
    const char *type = NULL;
    RRL_TRY(rrl_json_string(&type, node, "type", false, where));
    if (p->closed)
        return RRL_FAIL(RRL_ERR_DATA, "%s: pre-tokenizer %s after ByteLevel is not supported", where, type);
    if (p->n == MAX_CUTS) return RRL_FAIL(RRL_ERR_DATA, "%s: more than %d pre-tokenizers", where, MAX_CUTS);
    if (strcmp(type, "Digits") == 0) return add_digits(p, node, where);
    if (strcmp(type, "Split") == 0) return add_split(p, node, where);
    if (strcmp(type, "ByteLevel") == 0) return add_byte_level(p, node, where);
    return RRL_FAIL(RRL_ERR_DATA,
                    "%s: pre-tokenizer %s is not supported (Digits, Split, ByteLevel, Sequence are)", where,
                    type);
}

rrl_status rrl_pretokenizer_open(rrl_pretokenizer **out, const cJSON *node, const char *where) {
    rrl_status rc = RRL_OK;
    rrl_pretokenizer *p = NULL;
    const char *type = NULL;
    const cJSON *list = NULL, *step;
    RRL_GOTO(rrl_alloc(&p, 1, sizeof *p, "pre-tokenizer"));
    if (!cJSON_IsObject(node)) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: has no pre_tokenizer; only byte-level BPE is supported", where);
        goto done;
    }
    RRL_GOTO(rrl_json_string(&type, node, "type", false, where));
    if (strcmp(type, "Sequence") == 0) {
        RRL_GOTO(rrl_json_get(&list, node, "pretokenizers", false, where));
        cJSON_ArrayForEach(step, list) RRL_GOTO(add_step(p, step, where));
    } else {
        RRL_GOTO(add_step(p, node, where));
    }
    if (!p->closed) {
        rc = RRL_FAIL(RRL_ERR_DATA,
                      "%s: pre_tokenizer does not end in ByteLevel; only byte-level BPE is supported", where);
        goto done;
    }
    *out = p;
    p = NULL;
done:
    rrl_pretokenizer_close(&p);
    return rc;
}

void rrl_pretokenizer_close(rrl_pretokenizer **p) {
    if (!p || !*p) return;
    for (int i = 0; i < (*p)->n; i++) rrl_split_pattern_close(&(*p)->cuts[i].pattern);
    free(*p);
    *p = NULL;
}

static rrl_status put_span(rrl_spans *out, size_t at, size_t end, bool keep) {
    if (at >= end || !keep) return RRL_OK;
    RRL_TRY(rrl_grow(&out->data, &out->capacity, out->n + 1, sizeof *out->data, "text pieces"));
    out->data[out->n++] = (rrl_span){at, end - at};
    return RRL_OK;
}

/* char::is_numeric of the tokenizers library: general category Nd, Nl or No */
static bool numeric(uint32_t cp) {
    if (cp < 0x80) return cp >= '0' && cp <= '9';
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c == UTF8PROC_CATEGORY_ND || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO;
}

static rrl_status cut_digits(rrl_spans *out, const cut *c, const char *text, rrl_span piece) {
    size_t begin = piece.at;
    bool last = false;
    for (const char *p = text + piece.at, *end = p + piece.len; p < end;) {
        size_t at = (size_t)(p - text);
        bool now = numeric(rrl_utf8_next(&p, end));
        if (at > begin && (now != last || (now && c->single))) {
            RRL_TRY(put_span(out, begin, at, true));
            begin = at;
        }
        last = now;
    }
    return put_span(out, begin, piece.at + piece.len, true);
}

/* A piece is searched as a text of its own: a lookahead must not see past its end. */
static rrl_status cut_pattern(rrl_spans *out, const cut *c, rrl_split_search *search, const char *text,
                              rrl_span piece) {
    const char *start = text + piece.at;
    size_t done = 0, from = 0;
    while (from <= piece.len) {
        bool found = false;
        size_t at = 0, len = 0;
        RRL_TRY(rrl_split_search_next(&found, &at, &len, search, start, piece.len, from));
        if (!found) break;
        RRL_TRY(put_span(out, piece.at + done, piece.at + at, c->keep_rest));
        RRL_TRY(put_span(out, piece.at + at, piece.at + at + len, c->keep_matches));
        done = from = at + len;
        if (len == 0) { /* an empty match cuts and moves on by a character */
            from++;
            while (from < piece.len && ((uint8_t)start[from] & 0xc0) == 0x80) from++;
        }
    }
    return put_span(out, piece.at + done, piece.at + piece.len, c->keep_rest);
}

rrl_status rrl_pretokenize(rrl_spans *out, const rrl_pretokenizer *p, const char *text, size_t len) {
    rrl_status rc = RRL_OK;
    rrl_spans next = {0}, swap;
    rrl_split_search *search = NULL;
    out->n = 0;
    RRL_GOTO(put_span(out, 0, len, true));
    for (int i = 0; i < p->n; i++) {
        const cut *c = &p->cuts[i];
        next.n = 0;
        if (c->pattern) RRL_GOTO(rrl_split_search_open(&search, c->pattern));
        for (size_t k = 0; k < out->n; k++) {
            if (c->pattern)
                RRL_GOTO(cut_pattern(&next, c, search, text, out->data[k]));
            else
                RRL_GOTO(cut_digits(&next, c, text, out->data[k]));
        }
        rrl_split_search_close(&search);
        swap = *out;
        *out = next;
        next = swap;
    }
done:
    rrl_split_search_close(&search);
    free(next.data);
    return rc;
}
