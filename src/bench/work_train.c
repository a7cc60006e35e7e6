/* Training: log-probs of packed completions and the gradient of a LoRA adapter, as a slot does it. */
#include <stdlib.h>

#include "bench/works.h"
#include "model/slot.h"

enum { TOKENS = 256, QUICK_TOKENS = 16, PROMPT = 1 };

typedef struct {
    rrl_bench_measure m;
    rrl_slot_engine *engine;
    rrl_adapter *adapter;
    rrl_slot slot;
    float *gradient; /* device memory */
    int32_t *tokens, *n_tokens;
    uint32_t *samples;
} training;

static void dlogp(void *context, float *out, const float *logp, const float *entropy, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = i % 3 ? 1e-3f : -1e-3f;
}

static rrl_status gradient(void *context) {
    training *t = context;
    return rrl_slot_gradient(t->engine, t->gradient, &t->slot, t->adapter, &(rrl_slot_loss){.dlogp = dlogp});
}

/* The tokens are those of prompts: text, as a completion is. */
static rrl_status prepare(training *t, const rrl_bench *b, int32_t n, int32_t tokens) {
    RRL_TRY(rrl_bench_adapter(&t->adapter, b, 1));
    RRL_TRY(rrl_bench_prompts(&t->tokens, b, n, tokens));
    RRL_TRY(rrl_alloc(&t->n_tokens, (size_t)n, sizeof *t->n_tokens, "lengths"));
    RRL_TRY(rrl_alloc(&t->samples, (size_t)n, sizeof *t->samples, "samples"));
    for (int32_t i = 0; i < n; i++) {
        t->n_tokens[i] = tokens;
        t->samples[i] = (uint32_t)i;
    }
    t->slot = (rrl_slot){.prompt = t->tokens, .n_prompt = PROMPT, .n_seqs = n, .tokens = t->tokens,
                         .n_tokens = t->n_tokens, .temperature = 0.7f, .seed = 1, .samples = t->samples};
    const size_t bytes = (size_t)rrl_adapter_size(t->adapter) * sizeof(float);
    RRL_TRY(b->device->ops->alloc(b->device, (void **)&t->gradient, bytes, "gradient"));
    const rrl_slot_limits most = {.max_rows = PROMPT + n * tokens, .max_seqs = n};
    return rrl_slot_engine_open(&t->engine, b->model, &most);
}

static void release(training *t, const rrl_bench *b) {
    rrl_slot_engine_close(&t->engine);
    if (t->gradient) b->device->ops->free(b->device, t->gradient);
    rrl_adapter_close(&t->adapter);
    free(t->tokens);
    free(t->n_tokens);
    free(t->samples);
}

rrl_status rrl_bench_train(rrl_bench *b, const char *name, int32_t size) {
    rrl_status rc = RRL_OK;
    training t = {0};
    const int32_t wanted = b->spec->quick ? QUICK_TOKENS : TOKENS, most = b->dims->max_positions - PROMPT;
    const int32_t tokens = wanted < most ? wanted : most;
    RRL_GOTO(prepare(&t, b, size, tokens));
    rrl_bench_rows rows = rrl_bench_completion_rows(size, PROMPT, tokens);
    rows.scored = (double)size * tokens;
    const double weights = rrl_bench_weight_bytes(b);
    t.m = (rrl_bench_measure){.name = name, .unit = "tokens/s", .amount = rows.scored, .n_cases = 1, .n_needs = 2,
                              .against = RRL_BENCH_NO_CASE, .pass_bytes = weights, .context = &t};
    t.m.cases[0] = (rrl_bench_case){"gradient", gradient, 1};
    t.m.need[0] = (rrl_bench_need){weights, rrl_bench_forward_flops(b, rows, true)};
    t.m.need[1] = (rrl_bench_need){weights, rrl_bench_backward_flops(b, rows)};
    RRL_GOTO(rrl_bench_add(b, &t.m));
done:
    release(&t, b);
    return rc;
}
