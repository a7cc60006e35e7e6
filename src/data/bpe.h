/* Byte-pair merging of one piece of text, in the order of the tokenizers library and in time n log n. */
#ifndef RRL_DATA_BPE_H
#define RRL_DATA_BPE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/vocab.h"

/* Token ids that grow. */
typedef struct {
    int32_t *data;
    size_t n, capacity;
} rrl_ids;
rrl_status rrl_ids_put(rrl_ids *ids, int32_t id);

typedef struct rrl_bpe rrl_bpe;
/** vocab is borrowed and outlives the table. unknown: id for bytes without a token, -1 = they are dropped.
 *  whole_first: a piece that is a token is taken whole, before any merge (ignore_merges). */
rrl_status rrl_bpe_open(rrl_bpe **out, const rrl_vocab *vocab, size_t n_merges, int32_t unknown,
                        bool whole_first);
void rrl_bpe_close(rrl_bpe **b);
/** The next merge, best rank first: left + right -> merged. A pair given again takes the later rank. */
rrl_status rrl_bpe_merge(rrl_bpe *b, int32_t left, int32_t right, int32_t merged);

/* Working memory of one caller, reused from piece to piece; start from {0}. */
typedef struct {
    struct rrl_bpe_symbol *symbols;
    struct rrl_bpe_candidate *heap;
    size_t symbols_capacity, heap_capacity;
    rrl_buffer spelling;
} rrl_bpe_scratch;
void rrl_bpe_scratch_free(rrl_bpe_scratch *s);
/** Append the ids of one piece of raw bytes. */
rrl_status rrl_bpe_encode(rrl_ids *ids, const rrl_bpe *b, rrl_bpe_scratch *s, const char *piece, size_t len);

#endif
