/* A fleet of conditions decoding in one batch against the same conditions one after the other. */
#include <stdlib.h>

#include "bench/works.h"

enum { MOST_CONDITIONS = 16, PROMPTS = 2 };

typedef struct {
    rrl_bench_measure m;
    rrl_rollout *rollout;
    rrl_adapter *adapters[MOST_CONDITIONS];
    int32_t *prompts;
    rrl_request requests[MOST_CONDITIONS * PROMPTS]; /* condition after condition */
    int32_t conditions;
} fleet;

static rrl_status drop(void *context, const rrl_request *request, const rrl_completions *c) { return RRL_OK; }

static rrl_status generate(fleet *f, int32_t first, int32_t conditions) {
    return rrl_rollout_run(f->rollout, f->adapters, f->conditions, f->requests + first * PROMPTS,
                           conditions * PROMPTS, drop, NULL, NULL);
}

static rrl_status together(void *context) {
    fleet *f = context;
    const rrl_rollout_counters *count = rrl_rollout_counts(f->rollout);
    const int64_t drawn = count->decode_rows;
    RRL_TRY(generate(f, 0, f->conditions));
    f->m.amount = (double)(count->decode_rows - drawn);
    return RRL_OK;
}

static rrl_status one_by_one(void *context) {
    fleet *f = context;
    for (int32_t i = 0; i < f->conditions; i++) RRL_TRY(generate(f, i, 1));
    return RRL_OK;
}

static rrl_status prepare(fleet *f, const rrl_bench *b, int32_t conditions) {
    const int32_t prompt = rrl_bench_prompt_tokens(b), sequences = conditions * PROMPTS * RRL_BENCH_GROUP;
    f->conditions = conditions;
    RRL_TRY(rrl_bench_prompts(&f->prompts, b, conditions * PROMPTS, prompt));
    for (int32_t i = 0; i < conditions; i++) RRL_TRY(rrl_bench_adapter(&f->adapters[i], b, (uint64_t)i));
    for (int32_t i = 0; i < conditions * PROMPTS; i++)
        f->requests[i] = rrl_bench_request(b, f->prompts + i * prompt, prompt, RRL_BENCH_GROUP, i / PROMPTS, i);
    return rrl_rollout_open(&f->rollout, b->model, sequences, prompt + rrl_bench_new_tokens(b));
}

rrl_status rrl_bench_fleet(rrl_bench *b, const char *name, int32_t size) {
    rrl_status rc = RRL_OK;
    fleet f = {0};
    const int32_t prompt = rrl_bench_prompt_tokens(b), tokens = rrl_bench_new_tokens(b);
    RRL_GOTO(prepare(&f, b, size));
    f.m = (rrl_bench_measure){.name = name, .unit = "tokens/s", .n_cases = 2, .n_needs = 2, .against = 1,
                              .context = &f};
    f.m.cases[0] = (rrl_bench_case){"together", together, 1};
    f.m.cases[1] = (rrl_bench_case){"one by one", one_by_one, 0};
    f.m.need[0] = rrl_bench_prefill_need(b, size * PROMPTS, prompt, true);
    f.m.need[1] = rrl_bench_decode_need(b, size * PROMPTS * RRL_BENCH_GROUP, prompt, tokens, RRL_BENCH_GROUP, true);
    f.m.pass_bytes = f.m.need[1].bytes / (tokens - 1);
    RRL_GOTO(rrl_bench_add(b, &f.m));
done:
    rrl_rollout_close(&f.rollout);
    for (int32_t i = 0; i < size; i++) rrl_adapter_close(&f.adapters[i]);
    free(f.prompts);
    return rc;
}
