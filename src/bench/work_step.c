/* A whole GRPO step on one rank: two prompts of eight completions are generated, the learner makes the gradient with a
 * KL term to the base, and AdamW updates the adapter. Rewards are made up: judging costs nothing beside this. */
#include <stdlib.h>
#include <string.h>

#include "bench/works.h"
#include "learn/learner.h"

enum { PROMPTS = 2 };

typedef struct {
    rrl_bench_measure m;
    rrl_rollout *rollout;
    rrl_adapter *adapter;
    rrl_learner *learner;
    int32_t *prompts;
    rrl_request requests[PROMPTS];
    rrl_prompt_view views[PROMPTS];
    rrl_group *groups[PROMPTS];
    rrl_row_stats stats[PROMPTS * RRL_BENCH_GROUP];
} grpo_step;

/* The group of a finished request; advantages of half the rows are 1, of the others -1. */
static rrl_status keep_group(void *context, const rrl_request *request, const rrl_completions *c) {
    grpo_step *s = context;
    rrl_group **g = &s->groups[request - s->requests];
    int64_t n = 0;
    for (int32_t i = 0; i < request->count; i++) n += c->n_tokens[i];
    rrl_group_free(g);
    RRL_TRY(rrl_group_create(g, request->count, n));
    (*g)->head.group_size = request->count;
    (*g)->head.policy_version = rrl_learner_updates(s->learner);
    memcpy((*g)->tokens, c->tokens, (size_t)n * sizeof *c->tokens);
    memcpy((*g)->logprobs, c->logprobs, (size_t)n * sizeof *c->logprobs);
    for (int32_t i = 0; i < request->count; i++) {
        (*g)->rows[i].n_tokens = c->n_tokens[i];
        (*g)->rows[i].finish = c->finish[i];
        (*g)->rows[i].advantage = i % 2 ? 1.0f : -1.0f;
    }
    return RRL_OK;
}

static rrl_status generate(void *context) {
    grpo_step *s = context;
    return rrl_rollout_run(s->rollout, &s->adapter, 1, s->requests, PROMPTS, keep_group, s, NULL);
}

static rrl_status gradient(void *context) {
    grpo_step *s = context;
    return rrl_learner_gradient(s->learner, s->stats, s->groups, s->views, 0, rrl_learner_slots(s->learner), 0);
}

static rrl_status update(void *context) {
    grpo_step *s = context;
    double norm = 0;
    bool finite = false;
    RRL_TRY(rrl_learner_update(s->learner, &norm, &finite, 1e-6, 0));
    return finite ? RRL_OK : RRL_FAIL(RRL_ERR_NONFINITE, "rrl bench: gradient of norm %g", norm);
}

static rrl_status prepare(grpo_step *s, const rrl_bench *b, int32_t prompt, int32_t tokens) {
    const rrl_learner_settings set = {
        .grpo = {.type = RRL_LOSS_DAPO, .epsilon = 0.2, .epsilon_high = 0.2, .beta = 0.04, .kl_on_flat_groups = true,
                 .micro_rows = PROMPTS * RRL_BENCH_GROUP, .accumulation = 1, .max_tokens = tokens},
        .group_size = RRL_BENCH_GROUP, .slot_rows = RRL_BENCH_GROUP, .groups = PROMPTS, .temperature = 0.7f,
        .max_grad_norm = 1, .seed = 1, .max_rows = prompt + RRL_BENCH_GROUP * tokens};
    RRL_TRY(rrl_bench_adapter(&s->adapter, b, 1));
    RRL_TRY(rrl_bench_prompts(&s->prompts, b, PROMPTS, prompt));
    for (int32_t i = 0; i < PROMPTS; i++) {
        const int32_t *ids = s->prompts + i * prompt;
        s->requests[i] = rrl_bench_request(b, ids, prompt, RRL_BENCH_GROUP, 0, i);
        s->views[i] = (rrl_prompt_view){ids, prompt, (uint64_t)i};
    }
    RRL_TRY(rrl_learner_open(&s->learner, b->model, s->adapter, &set));
    return rrl_rollout_open(&s->rollout, b->model, PROMPTS * RRL_BENCH_GROUP, prompt + tokens);
}

/* Generation; the base's log-probs; forward and backward. */
static void set_needs(rrl_bench_measure *m, const rrl_bench *b, int32_t prompt, int32_t tokens) {
    const int32_t n = PROMPTS * RRL_BENCH_GROUP;
    const rrl_bench_rows prompts = rrl_bench_prompt_rows(PROMPTS, prompt);
    const rrl_bench_rows own = rrl_bench_completion_rows(n, prompt, tokens);
    const rrl_bench_rows all = {prompts.rows + own.rows, prompts.keys + own.keys, (double)n * tokens};
    m->need[0] = rrl_bench_prefill_need(b, PROMPTS, prompt, true);
    m->need[1] = rrl_bench_decode_need(b, n, prompt, tokens, RRL_BENCH_GROUP, true);
    m->need[2] = (rrl_bench_need){3 * rrl_bench_weight_bytes(b), rrl_bench_forward_flops(b, all, false) +
                                                                     rrl_bench_forward_flops(b, all, true) +
                                                                     rrl_bench_backward_flops(b, all)};
    m->n_needs = 3;
    m->pass_bytes = m->need[1].bytes / (tokens - 1);
}

rrl_status rrl_bench_step(rrl_bench *b, const char *name, int32_t size) {
    rrl_status rc = RRL_OK;
    grpo_step s = {0};
    const int32_t prompt = rrl_bench_prompt_tokens(b), tokens = rrl_bench_new_tokens(b);
    RRL_GOTO(prepare(&s, b, prompt, tokens));
    s.m = (rrl_bench_measure){.name = name, .unit = "steps/s", .amount = 1, .n_cases = 3, .against = RRL_BENCH_NO_CASE,
                              .context = &s};
    s.m.cases[0] = (rrl_bench_case){"generate", generate, 1};
    s.m.cases[1] = (rrl_bench_case){"gradient", gradient, 1};
    s.m.cases[2] = (rrl_bench_case){"update", update, 1};
    set_needs(&s.m, b, prompt, tokens);
    RRL_GOTO(rrl_bench_add(b, &s.m));
done:
    rrl_rollout_close(&s.rollout);
    rrl_learner_close(&s.learner);
    for (int32_t i = 0; i < PROMPTS; i++) rrl_group_free(&s.groups[i]);
    rrl_adapter_close(&s.adapter);
    free(s.prompts);
    return rc;
}
