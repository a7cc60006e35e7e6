/* Encoding and decoding with the parts that tokenizer_load.c makes.
 *
 * Encoding: added tokens are cut out first, what lies between them is normalised, cut by added tokens that
 * want normalised text, cut into pieces and merged. The order matters: a combining mark after <|im_end|> does
 * not join its last character. */
#include "data/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/tokenizer_parts.h"

/* Memory of one call, so that a tokenizer can serve many threads. */
typedef struct {
    rrl_ids ids;
    rrl_spans pieces;
    rrl_buffer normal;
    rrl_bpe_scratch bpe;
} work;

rrl_status rrl_tokenizer_open(rrl_tokenizer **out, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_tokenizer *t = NULL;
    RRL_GOTO(rrl_alloc(&t, 1, sizeof *t, "tokenizer"));
    t->eos = -1;
    RRL_GOTO(rrl_tokenizer_load(t, dir));
    *out = t;
    t = NULL;
done:
    rrl_tokenizer_close(&t);
    return rc;
}

void rrl_tokenizer_close(rrl_tokenizer **t) {
    if (!t || !*t) return;
    rrl_bpe_close(&(*t)->bpe);
    rrl_vocab_close(&(*t)->vocab);
    rrl_added_tokens_close(&(*t)->added);
    rrl_pretokenizer_close(&(*t)->pretokenizer);
    free((*t)->chat_template);
    free(*t);
    *t = NULL;
}

static rrl_status encode_plain(work *w, const rrl_tokenizer *t, const char *text, size_t len) {
    RRL_TRY(rrl_pretokenize(&w->pieces, t->pretokenizer, text, len));
    for (size_t i = 0; i < w->pieces.n; i++)
        RRL_TRY(rrl_bpe_encode(&w->ids, t->bpe, &w->bpe, text + w->pieces.data[i].at, w->pieces.data[i].len));
    return RRL_OK;
}

static rrl_status encode_normalized(work *w, const rrl_tokenizer *t, const char *text, size_t len) {
    int32_t id = 0;
    size_t from = 0, at = 0, n = 0;
    while (rrl_added_tokens_find(t->added, true, text, len, from, &id, &at, &n)) {
        RRL_TRY(encode_plain(w, t, text + from, at - from));
        RRL_TRY(rrl_ids_put(&w->ids, id));
        from = at + n;
    }
    return encode_plain(w, t, text + from, len - from);
}

static rrl_status encode_between(work *w, const rrl_tokenizer *t, const char *text, size_t len) {
    if (!t->nfc) return encode_normalized(w, t, text, len);
    w->normal.len = 0;
    RRL_TRY(rrl_nfc(&w->normal, text, len));
    return encode_normalized(w, t, w->normal.data, w->normal.len);
}

rrl_status rrl_tokenizer_encode(int32_t **ids, int64_t *n, const rrl_tokenizer *t, const char *text,
                                size_t len) {
    rrl_status rc = RRL_OK;
    work w = {0};
    int32_t id = 0;
    size_t from = 0, at = 0, match = 0, valid = rrl_utf8_valid(text, len);
    if (valid != len) {
        rc = RRL_FAIL(RRL_ERR_DATA, "text to encode is no UTF-8 at byte %zu of %zu", valid, len);
        goto done;
    }
    while (rrl_added_tokens_find(t->added, false, text, len, from, &id, &at, &match)) {
        RRL_GOTO(encode_between(&w, t, text + from, at - from));
        RRL_GOTO(rrl_ids_put(&w.ids, id));
        from = at + match;
    }
    RRL_GOTO(encode_between(&w, t, text + from, len - from));
    *ids = w.ids.data;
    *n = (int64_t)w.ids.n;
    w.ids.data = NULL;
done:
    free(w.ids.data);
    free(w.pieces.data);
    rrl_buffer_free(&w.normal);
    rrl_bpe_scratch_free(&w.bpe);
    return rc;
}

rrl_status rrl_tokenizer_bytes(rrl_buffer *out, const rrl_tokenizer *t, const int32_t *ids, int64_t n,
                               bool skip_special) {
    for (int64_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *bytes = rrl_vocab_bytes(t->vocab, ids[i], &len);
        if (!bytes || (skip_special && rrl_added_tokens_special(t->added, ids[i]))) continue;
        RRL_TRY(rrl_buffer_put(out, bytes, len));
    }
    return RRL_OK;
}

rrl_status rrl_tokenizer_decode(rrl_buffer *out, const rrl_tokenizer *t, const int32_t *ids, int64_t n,
                                bool skip_special) {
    rrl_status rc = RRL_OK;
    rrl_buffer bytes = {0};
    RRL_GOTO(rrl_tokenizer_bytes(&bytes, t, ids, n, skip_special));
    /* all bytes are joined first: a character may be spread over several tokens */
    RRL_GOTO(rrl_utf8_replace(out, bytes.data, bytes.len));
done:
    rrl_buffer_free(&bytes);
    return rc;
}

int32_t rrl_tokenizer_id(const rrl_tokenizer *t, const char *token) {
    return rrl_vocab_find(t->vocab, token, strlen(token));
}

int32_t rrl_tokenizer_size(const rrl_tokenizer *t) {
    return rrl_vocab_size(t->vocab);
}

const char *rrl_tokenizer_chat_template(const rrl_tokenizer *t) {
    return t->chat_template;
}

int32_t rrl_tokenizer_eos(const rrl_tokenizer *t) {
    return t->eos;
}

const char *rrl_tokenizer_digest(const rrl_tokenizer *t) {
    return t->digest;
}
