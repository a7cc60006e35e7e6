/* Tokens a second of decode and training, beside what memory and tensor cores allow. Qwen2.5-0.5B's shape, random
 * weights, bf16. Each sequence has a prompt of its own; the decode figure leaves the prompts out: it is the time of
 * completions of LAST tokens less that of completions of one. */
#include <stdio.h>
#include <stdlib.h>

#include "model/model_parts.h"
#include "world.h"

/* Numbers of a size of the work, and of a GPU that is emulated. */
typedef struct {
    rrl_gpu_shape shape;
    int32_t prompt, last, batches[4], n_batches; /* decode: the middle of a completion is at 400 tokens */
    rrl_gpu_batch train;                         /* 64 x 512 tokens */
} sizes;
static const sizes FULL = {RRL_GPU_QWEN_05B, 336, 129, {8, 64, 256, 1024}, 4,
                           {.groups = 8, .group_size = 8, .prompt = 64, .tokens = 448, .rank = 8}};
static const sizes SMALL = {RRL_GPU_TINY, 20, 5, {2, 3}, 2,
                            {.groups = 1, .group_size = 2, .prompt = 8, .tokens = 8, .rank = 4}};

static double elements(const rrl_model_config *c) {
    double all = (double)c->vocab * c->hidden; /* the head; reading an embedding is a row */
    for (int module = 0; module < RRL_MODULES; module++) {
        int64_t n, k;
        rrl_module_shape(&n, &k, c, module);
        all += (double)c->layers * (double)n * (double)k;
    }
    return all;
}

static void add_figure(rrl_gpu_check *c, const char *name, double rate, double bound) {
    (void)rrl_buffer_printf(&c->figures,
                            "%s\n  {\"name\": \"%s\", \"tokens_per_s\": %.6g, \"bound\": %.6g, \"ratio\": %.4g}",
                            c->figures.len ? "," : "", name, rate, bound, bound > 0 ? rate / bound : 0);
    if (bound > 0) rrl_gpu_say(c, name, "told", "%.0f tokens/s, %.2f of the bound %.0f", rate, rate / bound, bound);
    else rrl_gpu_say(c, name, "told", "%.0f tokens/s, bound unknown", rate);
}

/* --- decode */

static rrl_status drop(void *context, const rrl_request *q, const rrl_completions *done) {
    *(int64_t *)context += done->n_tokens[0];
    return RRL_OK;
}

/* Seconds to generate `tokens` tokens for each of n prompts. */
static rrl_status generate(double *seconds, rrl_rollout *r, const rrl_gpu_world *w, int32_t n, int32_t tokens) {
    rrl_status rc = RRL_OK;
    rrl_request *q = NULL;
    int64_t made = 0;
    rrl_adapter *adapter = w->adapter;
    RRL_GOTO(rrl_alloc(&q, (size_t)n, sizeof *q, "requests"));
    for (int32_t i = 0; i < n; i++)
        q[i] = (rrl_request){.prompt = w->prompts[i].ids, .n_prompt = w->prompts[i].n, .count = 1,
                             .sampling = {.temperature = 0.7, .top_p = 0.95, .repetition_penalty = 1,
                                          .max_tokens = tokens},
                             .key = {.seed = 3, .purpose = RRL_RNG_TRAIN, .question = w->prompts[i].question}};
    const double start = rrl_gpu_clock();
    RRL_GOTO(rrl_rollout_run(r, &adapter, 1, q, n, drop, &made, NULL));
    *seconds = rrl_gpu_clock() - start;
    if (made != (int64_t)n * tokens) rc = RRL_FAIL(RRL_ERR_INTERNAL, "%lld tokens were made", (long long)made);
done:
    free(q);
    return rc;
}

/* In a step each sequence's keys and values and, once for all, every weight is read. */
static double decode_bound(const rrl_gpu_facts *f, const rrl_model_config *c, int32_t n, double context) {
    const double kv = (double)rrl_kv_block_bytes(c, RRL_BF16) / RRL_KV_BLOCK;
    return n * f->read / (2 * elements(c) + n * context * kv);
}

static void say_graphs(rrl_gpu_check *c, int32_t n, const rrl_rollout_counters *counts) {
    char name[48];
    snprintf(name, sizeof name, "decode, batch %d: graphs", n);
    rrl_gpu_say(c, name, counts->repeated > 0 ? "ok" : "FAILED", "of %lld steps %lld were recorded, %lld repeated",
                (long long)counts->decode_steps, (long long)counts->recorded, (long long)counts->repeated);
}

static rrl_status decode(rrl_gpu_check *c, const sizes *z, const rrl_gpu_facts *f, rrl_gpu_world *w, int32_t n) {
    rrl_status rc = RRL_OK;
    rrl_rollout *r = NULL;
    double one = 0, all = 0;
    char name[32];
    RRL_GOTO(rrl_rollout_open(&r, w->model, n, z->prompt + z->last));
    RRL_GOTO(generate(&one, r, w, n, 2)); /* warm: algorithms are chosen */
    RRL_GOTO(generate(&one, r, w, n, 1));
    RRL_GOTO(generate(&all, r, w, n, z->last));
    snprintf(name, sizeof name, "decode, batch %d", n);
    add_figure(c, name, n * (z->last - 1.0) / (all - one),
               decode_bound(f, rrl_model_dims(w->model), n, z->prompt + z->last / 2.0));
    say_graphs(c, n, rrl_rollout_counts(r));
done:
    rrl_rollout_close(&r);
    return rc;
}

static rrl_status decode_all(rrl_gpu_check *c, const sizes *z, const rrl_gpu_facts *f, rrl_device *d, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_gpu_world w = {0};
    /* the world's groups are the prompts; its learner is not used and small */
    const rrl_gpu_batch b = {.groups = z->batches[z->n_batches - 1], .group_size = 1, .prompt = z->prompt, .tokens = 1,
                             .rank = 8};
    RRL_GOTO(rrl_gpu_world_open(&w, d, dir, &b));
    for (int i = 0; i < z->n_batches; i++) RRL_GOTO(decode(c, z, f, &w, z->batches[i]));
done:
    rrl_gpu_world_close(&w);
    return rc;
}

/* --- training: forward and backward of a step, weights frozen: two products with every matrix each way */

static rrl_status train(rrl_gpu_check *c, const sizes *z, const rrl_gpu_facts *f, rrl_device *d, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_gpu_world w = {0};
    const rrl_gpu_batch *b = &z->train;
    const double tokens = (double)b->groups * (b->prompt + (double)b->group_size * b->tokens);
    RRL_GOTO(rrl_gpu_world_open(&w, d, dir, b));
    RRL_GOTO(rrl_gpu_rollout(&w, 0));
    RRL_GOTO(rrl_gpu_learn(&w, 1e-5)); /* warm */
    const double start = rrl_gpu_clock();
    RRL_GOTO(rrl_gpu_learn(&w, 1e-5));
    const double seconds = rrl_gpu_clock() - start;
    add_figure(c, "training, 64 completions", tokens / seconds, f->peak / (4 * elements(rrl_model_dims(w.model))));
done:
    rrl_gpu_world_close(&w);
    return rc;
}

static rrl_status measure(rrl_gpu_check *c, rrl_determinism determinism) {
    rrl_status rc = RRL_OK;
    rrl_device *d = NULL;
    rrl_gpu_facts f;
    const sizes *z = c->small ? &SMALL : &FULL;
    const char *dir = rrl_gpu_model(z->shape);
    rrl_gpu_facts_of(&f, c->gpu);
    RRL_GOTO(rrl_gpu_open(&d, c, RRL_BF16, determinism));
    d->kv_dtype = RRL_BF16;
    RRL_GOTO(decode_all(c, z, &f, d, dir));
    RRL_GOTO(train(c, z, &f, d, dir));
done:
    rrl_device_close(&d);
    return rc;
}

void rrl_gpu_measure(rrl_gpu_check *c) {
    rrl_gpu_facts f;
    rrl_gpu_facts_of(&f, c->gpu);
    rrl_gpu_say(c, "GPU", "told", "%s, %.0f GB/s, %.0f TFLOP/s bf16 by its clocks", f.name, f.read / 1e9,
                f.peak / 1e12);
    rrl_status rc = measure(c, RRL_DETERMINISM_RUN);
    if (rc != RRL_OK) rrl_gpu_say_status(c, "benchmark", rc);
}
