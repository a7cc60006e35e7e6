/* The slot engine's struct, shared by slot_plan.c (packing), slot.c (forward) and slot_backward.c. */
#ifndef RRL_MODEL_SLOT_PARTS_H
#define RRL_MODEL_SLOT_PARTS_H

#include "model/forward.h"
#include "model/slot.h"

/* All that the ops index by. One block, filled on the host and uploaded whole; the device's has the same
 * layout. Sequence 0 is the prompt, 1 .. n_seqs the completions. The last token of a completion has no row:
 * nothing follows. */
typedef struct {
    int32_t *token, *position, *row_seq;         /* [rows] */
    int32_t *seq_row;                            /* [seqs+1] */
    int32_t *adapter, *parent;                   /* [seqs] */
    int32_t *table;                              /* [seqs, stride] */
    int32_t *write_row, *write_block, *write_at; /* [writes] */
    int32_t *score_row, *target;                 /* [scores] row whose logits predict the token, the token */
    float *temperature;                          /* [scores] */
    uint32_t *seq_key, *seq_sample;              /* [seqs, 2], [seqs] dropout */
} rrl_slot_index;

/* Gradients of the residual and of what one layer computes. */
typedef struct {
    rrl_tensor scored; /* [hidden], a block of scores */
    rrl_tensor x, h;   /* [hidden] */
    rrl_tensor q, k, v, attended;
    rrl_tensor gate, up, act; /* a block of rows */
    rrl_tensor u; /* [r16] */
} rrl_slot_gradients;

struct rrl_slot_engine {
    rrl_model *m; /* borrowed */
    rrl_slot_limits most;
    int32_t stride;
    void *block, *lora_block; /* device */
    int32_t lora_r16;         /* of lora_block; 0 = none yet */
    rrl_slot_index host, device;
    char *host_block, *device_block;
    size_t index_bytes;
    rrl_activations a;
    rrl_kv_pool pool;                    /* one layer: filled and read by each layer in turn; f32, which
                                            holds rounded keys and values too */
    rrl_tensor scored, scratch;          /* of the scores at hand: [hidden], and as lm_score has it */
    float *logp, *lse, *entropy, *dlogp; /* [scores] */
    float *host_scores;                  /* log-probs, entropies and dlogp of a block of scores, one after the other */
    rrl_slot_gradients g;
    /* the slot at hand */
    rrl_forward forward;
    rrl_dropout dropout;
    rrl_parents parents;
    int32_t n_scores;
};

enum { RRL_PROMPT_SAMPLE = -1 }; /* as uint32: the dropout key's sample of a prompt computed once */

/** Rows the carved index block holds; NULL = only count. */
void rrl_slot_index_carve(rrl_slot_index *index, rrl_carver *carver, int32_t max_rows, int32_t max_seqs);
/** Blocks that any slot of these limits needs at most. */
int32_t rrl_slot_blocks(int32_t max_rows, int32_t max_seqs);
/** Block table columns. */
int32_t rrl_slot_stride(int32_t max_rows);
/** Gather the hidden rows of the next scores from `first` on into e->scored and make their log-probs, lse and entropies;
 *  returns how many in *n. keep: the scratch holds what lm_backward needs in place of x, for fewer scores at a time. */
rrl_status rrl_slot_score(int64_t *n, rrl_slot_engine *e, int64_t first, bool keep);
/** Embedding, layers and last norm of a slot; a NULL = the base. Borrows `a` until the next call. */
rrl_status rrl_slot_layers(rrl_slot_engine *e, const rrl_slot *s, rrl_adapter *const *a);
/** Check a slot against the engine and the model and fill e->host; sets the counts in e->forward and
 * e->n_scores. Errors: RRL_ERR_RANGE. */
rrl_status rrl_slot_pack(rrl_slot_engine *e, const rrl_slot *s, bool adapted);

#endif
