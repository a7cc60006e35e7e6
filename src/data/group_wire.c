/* The wire form of a group: head, rows, verdicts, tokens, log-probs, text, one after the other, little-endian
 * and without padding. The lists of group.h say that the structs have none, so whole arrays are copied. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rrl/group.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire form is little-endian");
#define X(name, type, doc) +sizeof(type)
_Static_assert(sizeof(rrl_group_head) == 0 RRL_GROUP_HEAD(X), "padding on the wire");
_Static_assert(sizeof(rrl_completion) == 0 RRL_COMPLETION_FIELDS(X), "padding on the wire");
_Static_assert(sizeof(rrl_verdict) == 0 RRL_VERDICT_FIELDS(X), "padding on the wire");
#undef X

/* Whether head and rows of a group agree with each other; rc is what a failure returns. */
static rrl_status check_group(const rrl_group_head *h, const rrl_completion *rows, rrl_status rc) {
    int64_t tokens = 0, text = 0;
    for (int32_t i = 0; i < h->count; i++) {
        const rrl_completion *r = &rows[i];
        if (r->n_tokens < 0 || r->n_text < 0 || r->n_answer < -1 || r->n_reasoning < 0 ||
            r->n_reasoning > r->n_text)
            return RRL_FAIL(rc, "group of question %d: lengths of completion %d make no sense", h->question,
                            i);
        if (r->sample != h->first + i || r->available < 0 || r->available > h->members ||
            (r->finish != RRL_FINISH_EOS && r->finish != RRL_FINISH_LENGTH))
            return RRL_FAIL(rc, "group of question %d: row %d does not belong to sample %d", h->question, i,
                            h->first + i);
        tokens += r->n_tokens;
        text += (int64_t)r->n_text + (r->n_answer > 0 ? r->n_answer : 0);
    }
    if (tokens != h->n_tokens || text != h->n_text)
        return RRL_FAIL(
            rc, "group of question %d: %lld tokens and %lld bytes in its rows, %lld and %lld in its head",
            h->question, (long long)tokens, (long long)text, (long long)h->n_tokens, (long long)h->n_text);
    return RRL_OK;
}

/* Bytes after the head, with the checks that keep the sum from overflowing: each factor is bounded by
 * `limit`. */
static rrl_status body_bytes(size_t *bytes, const rrl_group_head *h, uint64_t limit, rrl_status rc) {
    uint64_t count = (uint64_t)h->count, members = (uint64_t)h->members, n_tokens = (uint64_t)h->n_tokens;
    uint64_t n_text = (uint64_t)h->n_text, rows, verdicts, tokens, sum;
    bool bad = h->count < 1 || h->members < 0 || h->n_tokens < 0 || h->n_text < 0 || h->first < 0 ||
               (int64_t)h->first + h->count > h->group_size;
    bad = bad || __builtin_mul_overflow(count, sizeof(rrl_completion), &rows) ||
          __builtin_mul_overflow(count * members, sizeof(rrl_verdict), &verdicts) ||
          __builtin_mul_overflow(n_tokens, sizeof(int32_t) + sizeof(float), &tokens) ||
          __builtin_add_overflow(rows, verdicts, &sum) || __builtin_add_overflow(sum, tokens, &sum) ||
          __builtin_add_overflow(sum, n_text, &sum) || sum > limit;
    if (bad)
        return RRL_FAIL(
            rc, "group head: %d completions from %d of %d, %d members, %lld tokens, %lld bytes make no sense",
            h->count, h->first, h->group_size, h->members, (long long)h->n_tokens, (long long)h->n_text);
    *bytes = (size_t)sum;
    return RRL_OK;
}

static char *put(char *to, const void *from, size_t n) {
    if (n) memcpy(to, from, n);
    return to + n;
}

rrl_status rrl_group_pack(char **bytes, size_t *len, const rrl_group *g) {
    const rrl_group_head *h = &g->head;
    size_t body = 0;
    char *b = NULL;
    RRL_TRY(body_bytes(&body, h, PTRDIFF_MAX / 2, RRL_ERR_INTERNAL));
    RRL_TRY(check_group(h, g->rows, RRL_ERR_INTERNAL));
    RRL_TRY(rrl_alloc(&b, sizeof *h + body, 1, "packed group"));
    char *p = put(b, h, sizeof *h);
    p = put(p, g->rows, (size_t)h->count * sizeof *g->rows);
    p = put(p, g->verdicts, (size_t)h->count * (size_t)h->members * sizeof *g->verdicts);
    p = put(p, g->tokens, (size_t)h->n_tokens * sizeof *g->tokens);
    p = put(p, g->logprobs, (size_t)h->n_tokens * sizeof *g->logprobs);
    put(p, g->text, (size_t)h->n_text);
    *bytes = b;
    *len = sizeof *h + body;
    return RRL_OK;
}

rrl_status rrl_group_pack_rows(char **bytes, size_t *len, const rrl_group *g) {
    const size_t rows = (size_t)g->head.count * sizeof *g->rows;
    char *b = NULL;
    RRL_TRY(check_group(&g->head, g->rows, RRL_ERR_INTERNAL));
    RRL_TRY(rrl_alloc(&b, sizeof g->head + rows, 1, "packed rows"));
    put(put(b, &g->head, sizeof g->head), g->rows, rows);
    *bytes = b;
    *len = sizeof g->head + rows;
    return RRL_OK;
}

static const char *take(void *to, const char *from, size_t n) {
    if (n) memcpy(to, from, n);
    return from + n;
}

/* The head, of a version that is known. */
static rrl_status take_head(rrl_group_head *h, const char *bytes, size_t len) {
    if (len < sizeof *h)
        return RRL_FAIL(RRL_ERR_COMM, "group of %zu bytes: its head alone has %zu", len, sizeof *h);
    take(h, bytes, sizeof *h);
    if (h->version == RRL_GROUP_VERSION) return RRL_OK;
    return RRL_FAIL(RRL_ERR_COMM, "group in wire format %u, expected %d; all ranks must run the same program", h->version,
                    RRL_GROUP_VERSION);
}

rrl_status rrl_group_unpack_rows(rrl_group **out, const char *bytes, size_t len) {
    rrl_status rc = RRL_OK;
    rrl_group *g = NULL;
    rrl_group_head h;
    size_t body = 0;
    RRL_TRY(take_head(&h, bytes, len));
    RRL_TRY(body_bytes(&body, &h, PTRDIFF_MAX / 2, RRL_ERR_COMM));
    if ((len - sizeof h) / sizeof *g->rows != (size_t)h.count || (len - sizeof h) % sizeof *g->rows != 0)
        return RRL_FAIL(RRL_ERR_COMM, "rows of question %d: %zu bytes arrived, its head says %d rows", h.question, len,
                        h.count);
    RRL_GOTO(rrl_group_create(&g, h.count, 0));
    g->head = h;
    take(g->rows, bytes + sizeof h, (size_t)h.count * sizeof *g->rows);
    RRL_GOTO(check_group(&h, g->rows, RRL_ERR_COMM));
    *out = g;
    g = NULL;
done:
    rrl_group_free(&g);
    return rc;
}

rrl_status rrl_group_unpack(rrl_group **out, const char *bytes, size_t len) {
    rrl_status rc = RRL_OK;
    rrl_group *g = NULL;
    rrl_group_head h;
    size_t body = 0;
    RRL_TRY(take_head(&h, bytes, len));
    const char *p = bytes + sizeof h;
    RRL_GOTO(body_bytes(&body, &h, len, RRL_ERR_COMM));
    if (sizeof h + body != len) {
        rc = RRL_FAIL(RRL_ERR_COMM, "group of question %d: %zu bytes arrived, its head says %zu", h.question,
                      len, sizeof h + body);
        goto done;
    }
    RRL_GOTO(rrl_group_create(&g, h.count, h.n_tokens));
    g->head = h;
    if (h.members) RRL_GOTO(rrl_group_set_members(g, h.members));
    RRL_GOTO(rrl_alloc(&g->text, (size_t)h.n_text, 1, "text of a group"));
    p = take(g->rows, p, (size_t)h.count * sizeof *g->rows);
    RRL_GOTO(check_group(&h, g->rows, RRL_ERR_COMM));
    p = take(g->verdicts, p, (size_t)h.count * (size_t)h.members * sizeof *g->verdicts);
    p = take(g->tokens, p, (size_t)h.n_tokens * sizeof *g->tokens);
    p = take(g->logprobs, p, (size_t)h.n_tokens * sizeof *g->logprobs);
    take(g->text, p, (size_t)h.n_text);
    *out = g;
    g = NULL;
done:
    rrl_group_free(&g);
    return rc;
}
