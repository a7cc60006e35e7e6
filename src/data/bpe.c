/* Merging: a doubly linked list of symbols and a heap of candidate merges, lowest rank first, leftmost among
 * equals.
 *
 * A candidate is not removed when one of its symbols is merged away; it is recognised as stale when it is
 * popped, because its pair no longer gives the merge it was entered for. So each piece costs O(n log n). */
#include "data/bpe.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t pair; /* left id << 32 | right id */
    int32_t rank;  /* -1 = free slot */
    int32_t merged;
} bpe_merge;

struct rrl_bpe {
    const rrl_vocab *vocab;
    bpe_merge *table; /* [n_slots], a power of two */
    size_t n_slots, n_used;
    int32_t next_rank, unknown;
    bool whole_first;
};

struct rrl_bpe_symbol {
    int32_t id; /* -1 = merged into the symbol before it */
    int32_t prev, next;
};

struct rrl_bpe_candidate {
    int32_t rank, at, merged;
};

typedef struct rrl_bpe_symbol symbol;
typedef struct rrl_bpe_candidate candidate;

rrl_status rrl_ids_put(rrl_ids *ids, int32_t id) {
    RRL_TRY(rrl_grow(&ids->data, &ids->capacity, ids->n + 1, sizeof *ids->data, "token ids"));
    ids->data[ids->n++] = id;
    return RRL_OK;
}

rrl_status rrl_bpe_open(rrl_bpe **out, const rrl_vocab *vocab, size_t n_merges, int32_t unknown,
                        bool whole_first) {
    rrl_status rc = RRL_OK;
    rrl_bpe *b = NULL;
    RRL_GOTO(rrl_alloc(&b, 1, sizeof *b, "merges"));
    *b = (rrl_bpe){.vocab = vocab, .unknown = unknown, .whole_first = whole_first, .n_slots = 16};
    while (b->n_slots < 2 * n_merges) b->n_slots *= 2;
    RRL_GOTO(rrl_alloc(&b->table, b->n_slots, sizeof *b->table, "merges"));
    for (size_t i = 0; i < b->n_slots; i++) b->table[i].rank = -1;
    *out = b;
    b = NULL;
done:
    rrl_bpe_close(&b);
    return rc;
}

void rrl_bpe_close(rrl_bpe **b) {
    if (!b || !*b) return;
    free((*b)->table);
    free(*b);
    *b = NULL;
}

static bpe_merge *slot_of(const rrl_bpe *b, int32_t left, int32_t right) {
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (pair * 0x9e3779b97f4a7c15u) >> 20 & (b->n_slots - 1);
    while (b->table[i].rank >= 0 && b->table[i].pair != pair) i = (i + 1) & (b->n_slots - 1);
    return &b->table[i];
}

rrl_status rrl_bpe_merge(rrl_bpe *b, int32_t left, int32_t right, int32_t merged) {
    bpe_merge *m = slot_of(b, left, right);
    if (m->rank < 0 && 2 * ++b->n_used > b->n_slots)
        return RRL_FAIL(RRL_ERR_INTERNAL, "more merges than announced");
    *m = (bpe_merge){(uint64_t)(uint32_t)left << 32 | (uint32_t)right, b->next_rank++, merged};
    return RRL_OK;
}

void rrl_bpe_scratch_free(rrl_bpe_scratch *s) {
    free(s->symbols);
    free(s->heap);
    rrl_buffer_free(&s->spelling);
    *s = (rrl_bpe_scratch){0};
}

static bool before(const candidate *a, const candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void heap_push(candidate *heap, size_t *n, candidate c) {
    size_t i = (*n)++;
    for (; i && before(&c, &heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = c;
}

static candidate heap_pop(candidate *heap, size_t *n) {
    candidate top = heap[0], last = heap[--*n];
    size_t i = 0, child;
    for (; (child = 2 * i + 1) < *n; i = child) {
        if (child + 1 < *n && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &last)) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

/* Enter the merge of symbol `at` with its right neighbour, if there is one. */
static void propose(const rrl_bpe *b, rrl_bpe_scratch *s, size_t *n_heap, int32_t at) {
    if (at < 0 || s->symbols[at].next < 0) return;
    const bpe_merge *m = slot_of(b, s->symbols[at].id, s->symbols[s->symbols[at].next].id);
    if (m->rank >= 0) heap_push(s->heap, n_heap, (candidate){m->rank, at, m->merged});
}

static void merge_all(const rrl_bpe *b, rrl_bpe_scratch *s, int32_t n) {
    size_t n_heap = 0;
    for (int32_t i = 0; i + 1 < n; i++) propose(b, s, &n_heap, i);
    while (n_heap) {
        candidate c = heap_pop(s->heap, &n_heap);
        symbol *left = &s->symbols[c.at];
        if (left->id < 0 || left->next < 0) continue;
        symbol *right = &s->symbols[left->next];
        const bpe_merge *m = slot_of(b, left->id, right->id);
        if (m->rank < 0 || m->merged != c.merged) continue; /* stale */
        left->id = c.merged;
        left->next = right->next;
        right->id = -1;
        if (left->next >= 0) s->symbols[left->next].prev = c.at;
        propose(b, s, &n_heap, left->prev);
        propose(b, s, &n_heap, c.at);
    }
}

rrl_status rrl_bpe_encode(rrl_ids *ids, const rrl_bpe *b, rrl_bpe_scratch *s, const char *piece, size_t len) {
    if (len > INT32_MAX) return RRL_FAIL(RRL_ERR_DATA, "%zu bytes of text in one piece are too many", len);
    if (b->whole_first) {
        s->spelling.len = 0;
        RRL_TRY(rrl_vocab_spell(&s->spelling, piece, len));
        int32_t whole = rrl_vocab_find(b->vocab, s->spelling.data, s->spelling.len);
        if (whole >= 0) return rrl_ids_put(ids, whole);
    }
    /* each merge takes one candidate's place and proposes at most two: 3 n is enough for the heap */
    RRL_TRY(rrl_grow(&s->symbols, &s->symbols_capacity, len, sizeof *s->symbols, "symbols"));
    RRL_TRY(rrl_grow(&s->heap, &s->heap_capacity, 3 * len, sizeof *s->heap, "merge candidates"));
    int32_t n = 0;
    for (size_t i = 0; i < len; i++) {
        int32_t id = rrl_vocab_byte(b->vocab, (uint8_t)piece[i]);
        if (id < 0) id = b->unknown;
        if (id < 0) continue; /* the library drops such bytes, and their neighbours meet */
        s->symbols[n] = (symbol){id, n - 1, n + 1};
        n++;
    }
    if (n == 0) return RRL_OK;
    s->symbols[n - 1].next = -1;
    merge_all(b, s, n);
    for (int32_t i = 0; i >= 0; i = s->symbols[i].next) RRL_TRY(rrl_ids_put(ids, s->symbols[i].id));
    return RRL_OK;
}
