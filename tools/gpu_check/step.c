/* Two GRPO steps of a small model: on the GPU as on the CPU, twice alike, and trained on what was recorded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum { STEPS = 2 };
static const rrl_gpu_batch FULL = {.groups = 5, .group_size = 8, .prompt = 70, .tokens = 90, .rank = 8};
static const rrl_gpu_batch SMALL = {.groups = 2, .group_size = 2, .prompt = 33, .tokens = 4, .rank = 4};
static const double RATE = 1e-2, NEAR = 2e-3;

/* What the steps left: adapter, and the tokens and log-probs of the last rollout. */
typedef struct {
    float *adapter;
    int64_t size;
    int32_t *tokens;
    float *logprobs;
    int64_t n;
    double maxdiff; /* largest |recorded - trained| log-prob of any step */
} outcome;

static void forget(outcome *o) {
    free(o->adapter);
    free(o->tokens);
    free(o->logprobs);
    *o = (outcome){0};
}

static rrl_status keep_rollout(outcome *o, const rrl_gpu_world *w) {
    o->n = 0;
    for (int32_t g = 0; g < w->b.groups; g++) o->n += w->groups[g]->head.n_tokens;
    RRL_TRY(rrl_alloc(&o->tokens, (size_t)o->n, sizeof *o->tokens, "tokens"));
    RRL_TRY(rrl_alloc(&o->logprobs, (size_t)o->n, sizeof *o->logprobs, "log-probs"));
    int64_t at = 0;
    for (int32_t g = 0; g < w->b.groups; at += w->groups[g]->head.n_tokens, g++) {
        const rrl_group *x = w->groups[g];
        memcpy(o->tokens + at, x->tokens, (size_t)x->head.n_tokens * sizeof *x->tokens);
        memcpy(o->logprobs + at, x->logprobs, (size_t)x->head.n_tokens * sizeof *x->logprobs);
    }
    return RRL_OK;
}

static rrl_status steps_on(outcome *o, rrl_device *d, const rrl_gpu_batch *b) {
    rrl_status rc = RRL_OK;
    rrl_gpu_world w = {0};
    RRL_GOTO(rrl_gpu_world_open(&w, d, rrl_gpu_model(RRL_GPU_TINY), b));
    for (int step = 0; step < STEPS; step++) {
        RRL_GOTO(rrl_gpu_rollout(&w, step));
        RRL_GOTO(rrl_gpu_learn(&w, RATE));
        for (int32_t i = 0; i < b->groups * b->group_size; i++) o->maxdiff = fmax(o->maxdiff, w.stats[i].max_diff);
    }
    RRL_GOTO(keep_rollout(o, &w));
    o->size = rrl_adapter_size(w.adapter);
    RRL_GOTO(rrl_alloc(&o->adapter, (size_t)o->size, sizeof *o->adapter, "adapter"));
    RRL_GOTO(d->ops->download(d, o->adapter, rrl_adapter_data(w.adapter), (size_t)o->size * sizeof *o->adapter));
done:
    rrl_gpu_world_close(&w);
    return rc;
}

static rrl_status steps_gpu(outcome *o, const rrl_gpu_check *c, rrl_dtype dtype, rrl_determinism det, bool graphs) {
    rrl_device *d = NULL;
    RRL_TRY(rrl_gpu_open(&d, c, dtype, det));
    rrl_device_ops plain = *d->ops;
    plain.graph_begin = NULL;
    if (!graphs) d->ops = &plain;
    rrl_status rc = steps_on(o, d, c->small ? &SMALL : &FULL);
    rrl_device_close(&d);
    return rc;
}

static rrl_status steps_cpu(outcome *o, const rrl_gpu_check *c, rrl_dtype dtype) {
    rrl_device *d = NULL;
    RRL_TRY(rrl_cpu_open_dtype(&d, dtype, "auto", 1));
    rrl_status rc = steps_on(o, d, c->small ? &SMALL : &FULL);
    rrl_device_close(&d);
    return rc;
}

static int differ(const void *a, const void *b, int64_t n) { return memcmp(a, b, (size_t)n * 4) != 0; }

static bool same(const outcome *a, const outcome *b) {
    return a->n == b->n && a->size == b->size && !differ(a->tokens, b->tokens, a->n) &&
           !differ(a->logprobs, b->logprobs, a->n) && !differ(a->adapter, b->adapter, a->size);
}

static double apart(const float *a, const float *b, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, isfinite(a[i]) ? fabs((double)a[i] - b[i]) : INFINITY);
    return most;
}

/* `exact` against the CPU: tokens must be the same and numbers near; that all bits are the same is told. */
static void compare_cpu(rrl_gpu_check *c, const char *name, const outcome *gpu, const outcome *cpu) {
    if (same(gpu, cpu)) {
        rrl_gpu_say(c, name, "ok", "equal bits: tokens, log-probs, adapter after %d updates", STEPS);
        return;
    }
    const bool tokens = gpu->n == cpu->n && !differ(gpu->tokens, cpu->tokens, gpu->n);
    const double logp = gpu->n == cpu->n ? apart(gpu->logprobs, cpu->logprobs, gpu->n) : INFINITY;
    const double adapter = apart(gpu->adapter, cpu->adapter, gpu->size);
    rrl_gpu_say(c, name, tokens && logp < NEAR ? "ok" : "FAILED",
                "not the CPU's bits: tokens %s, log-probs within %.2g, adapter within %.2g",
                tokens ? "equal" : "differ", logp, adapter);
}

static void check_dtype(rrl_gpu_check *c, rrl_dtype dtype, const char *kind) {
    outcome cpu = {0}, exact = {0}, run = {0}, again = {0}, plain = {0};
    rrl_status rc = RRL_OK;
    char name[64];
    snprintf(name, sizeof name, "step, %s: exact against the CPU", kind);
    RRL_GOTO(steps_cpu(&cpu, c, dtype));
    RRL_GOTO(steps_gpu(&exact, c, dtype, RRL_DETERMINISM_EXACT, true));
    RRL_GOTO(steps_gpu(&run, c, dtype, RRL_DETERMINISM_RUN, true));
    RRL_GOTO(steps_gpu(&again, c, dtype, RRL_DETERMINISM_RUN, true));
    RRL_GOTO(steps_gpu(&plain, c, dtype, RRL_DETERMINISM_RUN, false));
    compare_cpu(c, name, &exact, &cpu);
    snprintf(name, sizeof name, "step, %s: exact, recorded = trained", kind);
    rrl_gpu_say(c, name, exact.maxdiff == 0 ? "ok" : "FAILED", "largest difference of a log-prob %g", exact.maxdiff);
    snprintf(name, sizeof name, "step, %s: run, the same again", kind);
    rrl_gpu_say(c, name, same(&run, &again) ? "ok" : "FAILED", "two runs, every bit");
    snprintf(name, sizeof name, "step, %s: run, without graphs", kind);
    rrl_gpu_say(c, name, same(&run, &plain) ? "ok" : "FAILED", "decode steps enqueued instead, every bit");
    snprintf(name, sizeof name, "step, %s: run, recorded against trained", kind);
    rrl_gpu_say(c, name, "told", "largest difference of a log-prob %g", run.maxdiff);
done:
    if (rc != RRL_OK) rrl_gpu_say_status(c, name, rc);
    forget(&cpu);
    forget(&exact);
    forget(&run);
    forget(&again);
    forget(&plain);
}

void rrl_gpu_check_step(rrl_gpu_check *c) {
    check_dtype(c, RRL_F32, "f32");
    check_dtype(c, RRL_BF16, "bf16");
}
