/* One GRPO step in the engine's own terms: rollout, gradient, update. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

enum { SEED = 7, LIMIT = 1024 };

static rrl_learner_settings settings(const rrl_gpu_batch *b) {
    return (rrl_learner_settings){
        .grpo = {.type = RRL_LOSS_DAPO, .epsilon = 0.2, .epsilon_high = 0.2, .kl_on_flat_groups = true,
                 .micro_rows = b->groups * b->group_size, .accumulation = 1, .max_tokens = b->tokens},
        .group_size = b->group_size, .slot_rows = b->group_size, .groups = b->groups, .temperature = 0.9f,
        .max_grad_norm = 1, .seed = SEED, .max_rows = b->prompt + b->group_size * b->tokens};
}

static rrl_status make_prompts(rrl_gpu_world *w) {
    const rrl_gpu_batch *b = &w->b;
    const rrl_rng_key key = {.seed = SEED, .purpose = RRL_RNG_INIT};
    RRL_TRY(rrl_alloc(&w->ids, (size_t)b->groups * (size_t)b->prompt, sizeof *w->ids, "prompts"));
    RRL_TRY(rrl_alloc(&w->prompts, (size_t)b->groups, sizeof *w->prompts, "prompts"));
    for (int32_t i = 0; i < b->groups * b->prompt; i++)
        w->ids[i] = (int32_t)(rrl_rng_uniform(&key, (uint32_t)i) * rrl_model_dims(w->model)->vocab);
    for (int32_t g = 0; g < b->groups; g++)
        w->prompts[g] = (rrl_prompt_view){w->ids + g * b->prompt, b->prompt, (uint64_t)g * 977 + 13};
    return RRL_OK;
}

rrl_status rrl_gpu_world_open(rrl_gpu_world *w, rrl_device *d, const char *dir, const rrl_gpu_batch *b) {
    rrl_status rc = RRL_OK;
    const rrl_adapter_spec spec = {.r = b->rank, .alpha = 2.0 * b->rank};
    const rrl_learner_settings set = settings(b);
    *w = (rrl_gpu_world){.b = *b, .device = d};
    RRL_GOTO(rrl_model_open(&w->model, d, dir));
    RRL_GOTO(rrl_adapter_open(&w->adapter, w->model, &spec, SEED));
    RRL_GOTO(rrl_learner_open(&w->learner, w->model, w->adapter, &set));
    RRL_GOTO(rrl_alloc(&w->groups, (size_t)b->groups, sizeof *w->groups, "groups"));
    RRL_GOTO(rrl_alloc(&w->stats, (size_t)b->groups * (size_t)b->group_size, sizeof *w->stats, "row statistics"));
    RRL_GOTO(make_prompts(w));
done:
    if (rc != RRL_OK) rrl_gpu_world_close(w);
    return rc;
}

static void drop_groups(rrl_gpu_world *w) {
    for (int32_t g = 0; w->groups && g < w->b.groups; g++) rrl_group_free(&w->groups[g]);
}

void rrl_gpu_world_close(rrl_gpu_world *w) {
    drop_groups(w);
    free(w->groups);
    free(w->stats);
    free(w->prompts);
    free(w->ids);
    rrl_learner_close(&w->learner);
    rrl_adapter_close(&w->adapter);
    rrl_model_close(&w->model);
    memset(w, 0, sizeof *w);
}

/* Advantages of a group: -1.5, -0.5, 0.5, 1.5, again and again, turned by the group. */
static float advantage(int32_t group, int32_t i) { return (float)((i + group) % 4) - 1.5f; }

static rrl_status keep(void *context, const rrl_request *q, const rrl_completions *c) {
    rrl_gpu_world *w = context;
    rrl_group *g = NULL;
    const int32_t at = (int32_t)((const rrl_prompt_view *)q->user - w->prompts);
    int64_t n = 0;
    for (int32_t i = 0; i < q->count; i++) n += c->n_tokens[i];
    RRL_TRY(rrl_group_create(&g, q->count, n));
    w->groups[at] = g;
    memcpy(g->tokens, c->tokens, (size_t)n * sizeof *g->tokens);
    memcpy(g->logprobs, c->logprobs, (size_t)n * sizeof *g->logprobs);
    for (int32_t i = 0; i < q->count; i++) {
        g->rows[i].n_tokens = c->n_tokens[i];
        g->rows[i].finish = c->finish[i];
        g->rows[i].advantage = advantage(at, i);
    }
    g->head.group_size = q->count;
    g->head.step = q->key.step;
    g->head.policy_version = rrl_learner_updates(w->learner);
    return RRL_OK;
}

rrl_status rrl_gpu_rollout(rrl_gpu_world *w, int64_t step) {
    const rrl_gpu_batch *b = &w->b;
    rrl_status rc = RRL_OK;
    rrl_rollout *r = NULL;
    rrl_request *requests = NULL;
    const int32_t all = b->groups * b->group_size;
    drop_groups(w);
    RRL_GOTO(rrl_alloc(&requests, (size_t)b->groups, sizeof *requests, "requests"));
    for (int32_t g = 0; g < b->groups; g++)
        requests[g] = (rrl_request){
            .prompt = w->prompts[g].ids, .n_prompt = b->prompt, .count = b->group_size,
            .sampling = {.temperature = 0.9, .top_p = 0.95, .repetition_penalty = 1, .max_tokens = b->tokens},
            .key = {.seed = SEED, .purpose = RRL_RNG_TRAIN, .step = (uint32_t)step, .question = w->prompts[g].question},
            .user = &w->prompts[g]};
    RRL_GOTO(rrl_rollout_open(&r, w->model, all < LIMIT ? all : LIMIT, b->prompt + b->tokens));
    RRL_GOTO(rrl_rollout_run(r, &w->adapter, 1, requests, b->groups, keep, w, NULL));
done:
    rrl_rollout_close(&r);
    free(requests);
    return rc;
}

rrl_status rrl_gpu_learn(rrl_gpu_world *w, double learning_rate) {
    double norm = 0;
    bool finite = false;
    RRL_TRY(rrl_learner_gradient(w->learner, w->stats, w->groups, w->prompts, 0, w->b.groups, 0));
    RRL_TRY(rrl_learner_update(w->learner, &norm, &finite, learning_rate, 0));
    return finite ? RRL_OK : RRL_FAIL(RRL_ERR_NONFINITE, "the gradient is not finite (norm %g)", norm);
}
