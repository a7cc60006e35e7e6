/* The forward pass over a batch, with room for what a backward pass needs: one code for rollout and training.
 */
#ifndef RRL_MODEL_FORWARD_H
#define RRL_MODEL_FORWARD_H

#include "model/model_parts.h"

/* Of a training slot, the first `again` layers keep their x alone and are computed again in the backward pass; the
 * others keep all that is not cheap to make again. A rollout keeps nothing. */
enum { RRL_KEEP_NOTHING = -1 };

/* What a layer computes; [n_rows, cols]. Buffers that are not kept are shared by layers. */
typedef struct {
    rrl_tensor x;       /* [hidden] residual on entry */
    rrl_tensor h;       /* [hidden] norm of x */
    rrl_tensor q, k, v; /* [heads * head_dim], [kv_heads * head_dim]; q, k after rope */
    rrl_tensor attended;
    rrl_tensor lse;             /* [heads] log-sum-exp of the scores; empty in rollout */
    rrl_tensor mid;             /* [hidden] residual after attention */
    rrl_tensor h2;              /* [hidden] norm of mid */
    rrl_tensor gate, up;        /* [intermediate]; a block of rows where not kept */
    rrl_tensor act;             /* [intermediate] swiglu; a block of rows */
    rrl_tensor us[RRL_MODULES]; /* [r16] scale * A x of each module */
} rrl_layer_activations;

typedef struct {
    rrl_layer_activations *layers; /* [n_layers] */
    int32_t n_layers, again;
    int64_t block;            /* rows of a block */
    rrl_tensor last;          /* [hidden] residual after the last layer */
    rrl_tensor hidden;        /* [hidden] its norm */
    const rrl_lora **modules; /* [RRL_MOST_PRODUCTS, n_adapters] host scratch of one lora call */
    int32_t n_modules;
} rrl_activations;

/** Rows [first, first + n) of a tensor. */
static inline rrl_tensor rrl_tensor_rows(rrl_tensor t, int64_t first, int64_t n) {
    return (rrl_tensor){t.data + first * t.cols, n, t.cols};
}
/** The same rows of a batch, for ops that take rows one by one (device.h): seq_row stays that of the whole. */
static inline rrl_batch rrl_batch_rows(const rrl_batch *b, int64_t first, int64_t n) {
    return (rrl_batch){.n_rows = (int32_t)n, .n_seqs = b->n_seqs, .token = b->token + first,
                       .position = b->position + first, .row_seq = b->row_seq + first, .seq_row = b->seq_row,
                       .adapter = b->adapter};
}
/** Rows of the blocks that `rows` are cut into: all but the last of one size, at most `most`. */
int64_t rrl_block_size(int64_t rows, int64_t most);
/** The same, and near enough for the device's caches. */
int64_t rrl_near_size(const rrl_device *d, int64_t rows, int64_t most);

/** Carve the buffers of `rows` rows, feed-forward parts of at most `block`. a NULL = only count. The us tensors are
 *  carved by rrl_activations_carve_lora. */
void rrl_activations_carve(rrl_activations *a, rrl_carver *carver, const rrl_model_config *c, int64_t rows,
                           int64_t block, int32_t again);
/** us of rank r16: per module, and per layer that keeps it. */
void rrl_activations_carve_lora(rrl_activations *a, rrl_carver *carver, const rrl_model_config *c, int64_t rows,
                                int32_t r16, int32_t again);
/** Number of rows of every tensor but those of a block, for the batch at hand. */
void rrl_activations_rows(rrl_activations *a, int64_t rows);
/** Embedding, all layers, final norm: fills `a`. A pool of one layer serves all layers in turn (training). */
rrl_status rrl_forward_run(rrl_activations *a, rrl_model *m, const rrl_forward *f);
/** The attention part of a layer again, from its x to mid, which is whole when rrl_forward_gates has seen all rows.
 *  After rrl_forward_run of the same batch: the same bits. */
rrl_status rrl_forward_attend(rrl_activations *a, rrl_model *m, const rrl_forward *f, int32_t layer);
/** The feed-forward part again, after rrl_forward_attend, once for a block of rows from `first` on, from mid to act and
 *  down's us. scratch [rows of the block, hidden]: what it holds afterwards means nothing. */
rrl_status rrl_forward_gates(rrl_activations *a, rrl_model *m, const rrl_forward *f, int32_t layer, int64_t first,
                             rrl_tensor scratch);
/** Rows [first, first + n) of a layer's gate or up, wherever they lie. */
rrl_tensor rrl_block_of(const rrl_activations *a, int32_t layer, rrl_tensor gate_or_up, int64_t first, int64_t n);

#endif
