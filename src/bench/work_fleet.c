/* A fleet of conditions decoding in one batch against the same conditions one after the other: how much that brings
 * depends on how many completions each has, so there are several sizes. */
#include <stdlib.h>

#include "bench/works.h"

enum { CONDITIONS = 9, MOST_PROMPTS = 2 };

typedef struct {
    rrl_bench_measure m;
    rrl_rollout *rollout;
    rrl_adapter *adapters[CONDITIONS];
    int32_t *ids;
    int32_t prompts, group;                           /* of a condition; completions of a prompt */
    rrl_request requests[CONDITIONS * MOST_PROMPTS]; /* condition after condition */
} fleet;

static rrl_status drop(void *context, const rrl_request *request, const rrl_completions *c) { return RRL_OK; }

static rrl_status generate(fleet *f, int32_t first, int32_t conditions) {
    return rrl_rollout_run(f->rollout, f->adapters, CONDITIONS, f->requests + first * f->prompts,
                           conditions * f->prompts, drop, NULL, NULL);
}

static rrl_status together(void *context) {
    fleet *f = context;
    const rrl_rollout_counters *count = rrl_rollout_counts(f->rollout);
    const int64_t drawn = count->decode_rows;
    RRL_TRY(generate(f, 0, CONDITIONS));
    f->m.amount = (double)(count->decode_rows - drawn);
    return RRL_OK;
}

static rrl_status one_by_one(void *context) {
    fleet *f = context;
    for (int32_t i = 0; i < CONDITIONS; i++) RRL_TRY(generate(f, i, 1));
    return RRL_OK;
}

static rrl_status prepare(fleet *f, const rrl_bench *b, int32_t completions) {
    const int32_t prompt = rrl_bench_prompt_tokens(b);
    f->group = completions < RRL_BENCH_GROUP ? completions : RRL_BENCH_GROUP;
    f->prompts = completions / f->group;
    RRL_TRY(rrl_bench_prompts(&f->ids, b, CONDITIONS * f->prompts, prompt));
    for (int32_t i = 0; i < CONDITIONS; i++) RRL_TRY(rrl_bench_adapter(&f->adapters[i], b, (uint64_t)i));
    for (int32_t i = 0; i < CONDITIONS * f->prompts; i++)
        f->requests[i] = rrl_bench_request(b, f->ids + i * prompt, prompt, f->group, i / f->prompts, i);
    return rrl_rollout_open(&f->rollout, b->model, CONDITIONS * completions, prompt + rrl_bench_new_tokens(b));
}

rrl_status rrl_bench_fleet(rrl_bench *b, const char *name, int32_t completions) {
    rrl_status rc = RRL_OK;
    fleet f = {0};
    const int32_t prompt = rrl_bench_prompt_tokens(b), tokens = rrl_bench_new_tokens(b);
    RRL_GOTO(prepare(&f, b, completions));
    f.m = (rrl_bench_measure){.name = name, .unit = "tokens/s", .n_cases = 2, .n_needs = 2, .against = 1,
                              .context = &f};
    f.m.cases[0] = (rrl_bench_case){"together", together, 1};
    f.m.cases[1] = (rrl_bench_case){"one by one", one_by_one, 0};
    f.m.need[0] = rrl_bench_prefill_need(b, CONDITIONS * f.prompts, prompt, true);
    f.m.need[1] = rrl_bench_decode_need(b, CONDITIONS * completions, prompt, tokens, f.group, true);
    f.m.pass_bytes = f.m.need[1].bytes / (tokens - 1);
    RRL_GOTO(rrl_bench_add(b, &f.m));
done:
    rrl_rollout_close(&f.rollout);
    for (int32_t i = 0; i < CONDITIONS; i++) rrl_adapter_close(&f.adapters[i]);
    free(f.ids);
    return rc;
}
