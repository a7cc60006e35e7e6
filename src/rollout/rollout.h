/* Rollout: samples completions with continuous batching over a paged KV cache. Sees no config: every request carries
 * its adapter, key and sampling settings, so one batch may mix conditions. */
#ifndef RRL_ROLLOUT_ROLLOUT_H
#define RRL_ROLLOUT_ROLLOUT_H

#include "base/random.h"
#include "model/model.h"

typedef struct {
    double temperature, top_p, repetition_penalty;
    int32_t top_k;      /* 0 = all */
    int32_t max_tokens; /* new tokens at most */
} rrl_sampling;

/* A part of a group to generate. */
typedef struct {
    const int32_t *prompt; /* host, borrowed until the call returns */
    int32_t n_prompt;
    int32_t first, count;  /* samples first .. first + count - 1 */
    int32_t adapter;       /* index into the adapters given, -1 = base */
    rrl_sampling sampling;
    rrl_rng_key key;       /* sample is filled per sequence */
    float dropout;         /* LoRA dropout in rollout, keyed as in model/slot.h with iteration 0; 0 = none */
    void *user;            /* handed to the callback */
} rrl_request;

/* A finished part: count completions. Arrays belong to the call. */
typedef struct {
    const int32_t *tokens;   /* completion after completion */
    const float *logprobs;   /* natural log at the sampling temperature (1 when greedy), before penalty/top-k/top-p */
    const int32_t *n_tokens; /* [count] */
    const int32_t *finish;   /* [count] RRL_FINISH_* */
} rrl_completions;

/* What was computed since rrl_rollout_open. The first four are pure functions of the requests and their completions,
 * whatever the batch limit; decode_steps, peak_blocks are not. */
typedef struct {
    int64_t completions;
    int64_t prefill_tokens; /* prompt tokens computed: the sum over requests of n_prompt, however many the samples */
    int64_t decode_rows;    /* rows of the LM head, one a token drawn = sum of completion lengths */
    int64_t model_rows;     /* rows of the layers = prefill_tokens + decode_rows - completions: the first token comes
                               from the prompt's last row, and the last token of a completion is never fed */
    int64_t decode_steps;   /* steps in which a sequence moved on; prompts are computed in the same steps */
    int64_t pool_blocks, used_blocks, peak_blocks; /* of the KV pool: in all, in use now, most at a time */
    int64_t recorded, repeated; /* decode steps recorded, and repeated without enqueueing them anew (repeat.h) */
} rrl_rollout_counters;

typedef struct rrl_rollout rrl_rollout;
/** batch_limit sequences decode at once at most; max_positions = longest prompt + completion, at most the model's
 *  context (a larger one counts as the context). Borrowed model. */
rrl_status rrl_rollout_open(rrl_rollout **out, rrl_model *m, int32_t batch_limit, int32_t max_positions);
void rrl_rollout_close(rrl_rollout **r);
/** Bytes of cache and buffers, for the memory plan. kv: of keys and values. */
size_t rrl_rollout_bytes(const rrl_model_config *c, rrl_dtype kv, int32_t batch_limit, int32_t max_positions);

typedef rrl_status (*rrl_rollout_done)(void *context, const rrl_request *request, const rrl_completions *c);
/** Generate all requests; done(context, request, completions) is called on this thread for each request when its last
 *  sequence ends, in no fixed order; an error it returns ends the run. beat(context), if not NULL, is called at every
 *  step (heartbeat of the watchdog). The tokens and log-probs of a request depend on that request, its adapter and the
 *  model alone. max_tokens is never reduced: all requests are checked first, and nothing is generated if one is wrong.
 *  Errors: RRL_ERR_DATA (empty prompt, id outside the vocabulary, prompt + max_tokens beyond max_positions),
 *  RRL_ERR_RANGE (settings), RRL_ERR_NONFINITE (a log-prob), RRL_ERR_DEVICE. */
rrl_status rrl_rollout_run(rrl_rollout *r, rrl_adapter *const *adapters, int32_t n_adapters,
                           const rrl_request *requests, int64_t n, rrl_rollout_done done, void *context,
                           void (*beat)(void *context));
const rrl_rollout_counters *rrl_rollout_counts(const rrl_rollout *r);

#endif
