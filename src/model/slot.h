/* A training slot: one prompt, computed once, and its completions; the unit of gradient sums. */
#ifndef RRL_MODEL_SLOT_H
#define RRL_MODEL_SLOT_H

#include "model/model.h"

typedef struct {
    const int32_t *prompt; /* host */
    int32_t n_prompt;
    int32_t n_seqs;
    const int32_t *tokens;   /* host, completion after completion */
    const int32_t *n_tokens; /* [n_seqs], each >= 1 */
    float temperature;       /* log-probs of logits / temperature */
    /* dropout of the LoRA input; p = 0: none */
    float dropout;
    uint32_t iteration;
    uint64_t seed;
    uint32_t step;
    uint64_t question;        /* rrl_rng_question */
    const uint32_t *samples;  /* [n_seqs] sample numbers */
} rrl_slot;

/* Memory of the activations of a slot unless said otherwise. */
enum { RRL_SLOT_MIB = 1280 };

/* What an engine has room for, and how it uses it: none of this is visible in a bit. */
typedef struct {
    int32_t max_rows, max_seqs; /* prompt + completion tokens, and completions, of the largest slot */
    int32_t again;              /* layers, from the first, that keep their input alone: the rest of them is computed
                                   again in the backward pass */
    int32_t block_rows;         /* rows whose feed-forward part or logits are made at a time; 0 = RRL_BLOCK_ROWS */
} rrl_slot_limits;

/* Holds activations of one slot. The widest buffers (feed-forward, head) are for some rows only. Of a layer that is
 * computed again a row keeps hidden floats; of another all but what norms and SwiGLU give again. */
typedef struct rrl_slot_engine rrl_slot_engine;
rrl_status rrl_slot_engine_open(rrl_slot_engine **out, rrl_model *m, const rrl_slot_limits *most);
void rrl_slot_engine_close(rrl_slot_engine **e);
const rrl_slot_limits *rrl_slot_engine_limits(const rrl_slot_engine *e);
/** Bytes it holds once it has seen an adapter of this rank; 0 = none yet. */
size_t rrl_slot_engine_bytes(const rrl_model_config *c, const rrl_slot_limits *most, int32_t rank);

/** most->again: the fewest layers computed again so that an engine takes at most `bytes` with an adapter of this rank;
 *  all layers where even that is more. */
void rrl_slot_fit(rrl_slot_limits *most, const rrl_model_config *c, int32_t rank, size_t bytes);

/** logp and entropy (nats; may be NULL) of every completion token, host [sum n_tokens], natural log at the slot's
 *  temperature. a NULL = the base. Equal bits to what rollout recorded for the same adapter and no dropout. */
rrl_status rrl_slot_forward(rrl_slot_engine *e, float *logp, float *entropy, const rrl_slot *s, rrl_adapter *a);

/* The loss of a slot: dlogp of its tokens [first, first + n), counted completion after completion, from their log-probs
 * and entropies; [n] each, host. It is asked for one stretch of tokens after the other. */
typedef struct {
    void (*dlogp)(void *context, float *dlogp, const float *logp, const float *entropy, int64_t first, int64_t n);
    void *context;
} rrl_slot_loss;
/** gradient += d(sum dlogp * logp)/d(adapter), gradient [adapter size] in device memory. The loss sees what
 *  rrl_slot_forward would give. Where the device keeps logits those of a stretch serve its score and its gradient. */
rrl_status rrl_slot_gradient(rrl_slot_engine *e, float *gradient, const rrl_slot *s, rrl_adapter *a,
                             const rrl_slot_loss *loss);

#endif
