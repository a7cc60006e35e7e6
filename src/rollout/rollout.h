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
    float dropout;         /* LoRA dropout in rollout; 0 = none */
    void *user;            /* handed to the callback */
} rrl_request;

/* A finished part: count completions. Arrays belong to the call. */
typedef struct {
    const int32_t *tokens;   /* completion after completion */
    const float *logprobs;   /* natural log at the sampling temperature (1 when greedy), before penalty/top-k/top-p */
    const int32_t *n_tokens; /* [count] */
    const int32_t *finish;   /* [count] RRL_FINISH_* */
} rrl_completions;

typedef struct {
    int64_t prefill_tokens;   /* prompt tokens computed: the sum over requests of n_prompt */
    int64_t decode_rows;      /* rows of decode steps = sum of completion lengths */
    int64_t decode_steps;
    int64_t peak_blocks;
} rrl_rollout_counters;

typedef struct rrl_rollout rrl_rollout;
/** batch_limit sequences decode at once at most; max_positions = longest prompt + completion. Borrowed model. */
rrl_status rrl_rollout_open(rrl_rollout **out, rrl_model *m, int32_t batch_limit, int32_t max_positions);
void rrl_rollout_close(rrl_rollout **r);
/** Bytes of cache and buffers, for the memory plan. */
size_t rrl_rollout_bytes(const rrl_model_config *c, int32_t batch_limit, int32_t max_positions);
/** Generate all requests; done(user, request, completions) is called on this thread for each request when its last
 *  sequence ends. beat, if not NULL, is called at every decode step (heartbeat of the watchdog). */
typedef rrl_status (*rrl_rollout_done)(void *context, const rrl_request *request, const rrl_completions *c);
rrl_status rrl_rollout_run(rrl_rollout *r, rrl_adapter *const *adapters, int32_t n_adapters,
                           const rrl_request *requests, int64_t n, rrl_rollout_done done, void *context,
                           void (*beat)(void *context));
const rrl_rollout_counters *rrl_rollout_counts(const rrl_rollout *r);

#endif
