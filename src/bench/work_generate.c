/* Prefill and decode. Decode is what remains of a whole generation when one that stops at the first token is taken off:
 * a pass may hold prompts and decoding sequences together, so the two cannot be told apart inside. */
#include <stdlib.h>

#include "bench/works.h"

enum { LONGER = 2 }; /* times as long as the prompts of decode */

typedef struct {
    rrl_bench_measure m;
    rrl_rollout *rollout;
    rrl_adapter *adapter;
    int32_t *prompts;
    rrl_request *requests;
    int32_t n_requests, tokens;
} generation;

static rrl_status drop(void *context, const rrl_request *request, const rrl_completions *c) { return RRL_OK; }

/* Tokens drawn beyond the first of each sequence. */
static rrl_status generate(generation *g, int32_t tokens) {
    const rrl_rollout_counters *count = rrl_rollout_counts(g->rollout);
    const int64_t drawn = count->decode_rows, done = count->completions;
    for (int32_t i = 0; i < g->n_requests; i++) g->requests[i].sampling.max_tokens = tokens;
    RRL_TRY(rrl_rollout_run(g->rollout, &g->adapter, g->adapter != NULL, g->requests, g->n_requests, drop, NULL, NULL));
    if (tokens > 1) g->m.amount = (double)(count->decode_rows - drawn - (count->completions - done));
    return RRL_OK;
}

static rrl_status first_token(void *context) { return generate(context, 1); }
static rrl_status all_tokens(void *context) {
    generation *g = context;
    return generate(g, g->tokens);
}

/* n requests of `count` samples each. */
static rrl_status prepare(generation *g, const rrl_bench *b, int32_t n, int32_t count, int32_t prompt, int32_t tokens) {
    g->n_requests = n;
    g->tokens = tokens;
    g->m.context = g;
    g->m.against = RRL_BENCH_NO_CASE;
    RRL_TRY(rrl_bench_prompts(&g->prompts, b, n, prompt));
    RRL_TRY(rrl_alloc(&g->requests, (size_t)n, sizeof *g->requests, "requests"));
    for (int32_t i = 0; i < n; i++)
        g->requests[i] = rrl_bench_request(b, g->prompts + (size_t)i * (size_t)prompt, prompt, count,
                                           g->adapter ? 0 : -1, i);
    return rrl_rollout_open(&g->rollout, b->model, n * count, prompt + tokens);
}

static void release(generation *g) {
    rrl_rollout_close(&g->rollout);
    rrl_adapter_close(&g->adapter);
    free(g->requests);
    free(g->prompts);
}

rrl_status rrl_bench_prefill(rrl_bench *b, const char *name, int32_t size) {
    rrl_status rc = RRL_OK;
    generation g = {0};
    const int32_t prompt = LONGER * rrl_bench_prompt_tokens(b);
    RRL_GOTO(prepare(&g, b, size, 1, prompt, 1));
    g.m.name = name;
    g.m.unit = "tokens/s";
    g.m.amount = (double)size * prompt;
    g.m.cases[g.m.n_cases++] = (rrl_bench_case){"prefill", first_token, 1};
    g.m.need[g.m.n_needs++] = rrl_bench_prefill_need(b, size, prompt, false);
    g.m.pass_bytes = rrl_bench_weight_bytes(b);
    RRL_GOTO(rrl_bench_add(b, &g.m));
done:
    release(&g);
    return rc;
}

/* Decode of n prompts with `count` samples each. */
static rrl_status decode(rrl_bench *b, generation *g, const char *name, int32_t n, int32_t count) {
    const int32_t prompt = rrl_bench_prompt_tokens(b), tokens = rrl_bench_new_tokens(b);
    RRL_TRY(prepare(g, b, n, count, prompt, tokens));
    g->m.name = name;
    g->m.unit = "tokens/s";
    g->m.cases[g->m.n_cases++] = (rrl_bench_case){"with prompts", all_tokens, 1};
    g->m.cases[g->m.n_cases++] = (rrl_bench_case){"prompts", first_token, -1};
    g->m.need[g->m.n_needs++] = rrl_bench_decode_need(b, n * count, prompt, tokens, count, g->adapter != NULL);
    g->m.pass_bytes = g->m.need[0].bytes / (tokens - 1);
    return rrl_bench_add(b, &g->m);
}

rrl_status rrl_bench_decode(rrl_bench *b, const char *name, int32_t size) {
    generation g = {0};
    rrl_status rc = decode(b, &g, name, size, 1);
    release(&g);
    return rc;
}

rrl_status rrl_bench_groups(rrl_bench *b, const char *name, int32_t size) {
    rrl_status rc = RRL_OK;
    generation g = {0};
    RRL_GOTO(rrl_bench_adapter(&g.adapter, b, 1));
    RRL_GOTO(decode(b, &g, name, size / RRL_BENCH_GROUP, RRL_BENCH_GROUP));
done:
    release(&g);
    return rc;
}
