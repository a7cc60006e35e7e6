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

/* Holds activations of one slot; max_rows = prompt + completion tokens of the largest slot. */
typedef struct rrl_slot_engine rrl_slot_engine;
rrl_status rrl_slot_engine_open(rrl_slot_engine **out, rrl_model *m, int32_t max_rows, int32_t max_seqs);
void rrl_slot_engine_close(rrl_slot_engine **e);
size_t rrl_slot_engine_bytes(const rrl_model_config *c, int32_t max_rows, int32_t max_seqs, int32_t rank);

/** logp and entropy (nats; may be NULL) of every completion token, host [sum n_tokens], natural log at the slot's
 *  temperature. a NULL = the base. Equal bits to what rollout recorded for the same adapter and no dropout. */
rrl_status rrl_slot_forward(rrl_slot_engine *e, float *logp, float *entropy, const rrl_slot *s, rrl_adapter *a);
/** After rrl_slot_forward with an adapter: gradient += d(sum dlogp * logp)/d(adapter), gradient [adapter size] in
 *  device memory; dlogp host [sum n_tokens]. */
rrl_status rrl_slot_backward(rrl_slot_engine *e, float *gradient, const float *dlogp);

#endif
