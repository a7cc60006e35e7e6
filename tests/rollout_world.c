#include "rollout_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/random.h"

static const char *const LINKED[] = {"config.json", "model.safetensors"};

/* B of a fresh adapter is 0, which would make it the base: fill all of it with small numbers of both signs.
 */
static rrl_status stir(rrl_device *d, rrl_adapter *a) {
    const int64_t n = rrl_adapter_size(a);
    const rrl_rng_key key = {.seed = 11, .purpose = RRL_RNG_INIT};
    float *values = NULL;
    RRL_TRY(rrl_alloc(&values, (size_t)n, sizeof *values, "adapter"));
    for (int64_t i = 0; i < n; i++) values[i] = (float)(0.2 * (rrl_rng_uniform(&key, (uint32_t)i) - 0.5));
    rrl_status rc = d->ops->upload(d, rrl_adapter_data(a), values, (size_t)n * sizeof *values);
    free(values);
    return rc == RRL_OK ? rrl_adapter_refresh(a) : rc;
}

rrl_status world_open_on(world *w, rrl_device *d, const char *model_dir, const char *family) {
    rrl_status rc;
    char adapter_dir[1024];
    const rrl_adapter_spec spec = {.r = 4, .alpha = 8};
    *w = (world){.device = d};
    snprintf(adapter_dir, sizeof adapter_dir, RRL_SOURCE_DIR "/tests/golden/%s/adapter", family);
    RRL_GOTO(rrl_model_open(&w->model, w->device, model_dir));
    RRL_GOTO(rrl_adapter_load(&w->adapters[0], w->model, adapter_dir));
    RRL_GOTO(rrl_adapter_open(&w->adapters[1], w->model, &spec, 5));
    RRL_GOTO(stir(w->device, w->adapters[1]));
done:
    if (rc != RRL_OK) world_close(w);
    return rc;
}

rrl_status world_open_in(world *w, world_numbers numbers, const char *model_dir, const char *family, const char *isa,
                         int threads) {
    rrl_device *d = NULL;
    RRL_TRY(rrl_cpu_open_dtype(&d, numbers.products, isa, threads));
    d->kv_dtype = numbers.kv;
    return world_open_on(w, d, model_dir, family);
}

rrl_status world_open(world *w, const char *model_dir, const char *family, const char *isa, int threads) {
    return world_open_in(w, (world_numbers){RRL_F32, RRL_F32}, model_dir, family, isa, threads);
}

void world_close(world *w) {
    rrl_adapter_close(&w->adapters[0]);
    rrl_adapter_close(&w->adapters[1]);
    rrl_model_close(&w->model);
    rrl_device_close(&w->device);
}

rrl_status many_ends_make(char dir[1024], const char *family) {
    static const char ENDS[] = "{\"eos_token_id\": [2, 182, 86, 5, 40, 41, 42, 43, 44, 45, 46, 47]}";
    char from[1200], to[1200];
    snprintf(dir, 1024, RRL_BINARY_DIR "/test_rollout.%ld.%s", (long)getpid(), family);
    RRL_TRY(rrl_dir_make(dir));
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, RRL_SOURCE_DIR "/tests/golden/%s/model/%s", family, LINKED[i]);
        snprintf(to, sizeof to, "%s/%s", dir, LINKED[i]);
        if (symlink(from, to) != 0) return RRL_FAIL(RRL_ERR_IO, "%s cannot be linked to", from);
    }
    snprintf(to, sizeof to, "%s/generation_config.json", dir);
    return rrl_file_publish(to, ENDS, sizeof ENDS - 1);
}

void many_ends_remove(const char *dir) {
    char path[1200];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, LINKED[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/generation_config.json", dir);
    unlink(path);
    rmdir(dir);
}

void results_free(result *x, int n) {
    for (int i = 0; i < n; i++) {
        free(x[i].tokens);
        free(x[i].logprobs);
        free(x[i].n_tokens);
        free(x[i].finish);
        x[i] = (result){0};
    }
}

bool results_same(const result *a, const result *b) {
    const size_t count = (size_t)a->count, total = (size_t)a->total;
    return a->tokens && b->tokens && a->count == b->count && a->total == b->total &&
           memcmp(a->n_tokens, b->n_tokens, count * sizeof *a->n_tokens) == 0 &&
           memcmp(a->finish, b->finish, count * sizeof *a->finish) == 0 &&
           memcmp(a->tokens, b->tokens, total * sizeof *a->tokens) == 0 &&
           memcmp(a->logprobs, b->logprobs, total * sizeof *a->logprobs) == 0;
}

static rrl_status copy(void *out, const void *from, size_t count, size_t size) {
    void *p = NULL;
    RRL_TRY(rrl_alloc(&p, count, size, "completions"));
    memcpy(p, from, count * size);
    memcpy(out, &p, sizeof p);
    return RRL_OK;
}

rrl_status collect(void *context, const rrl_request *q, const rrl_completions *c) {
    collector *k = context;
    result *x = &k->results[*(const int64_t *)q->user];
    const size_t count = (size_t)q->count;
    if (++k->calls == k->fail_at) return RRL_FAIL(RRL_ERR_COMM, "made to fail");
    *x = (result){.count = q->count};
    for (size_t i = 0; i < count; i++) x->total += c->n_tokens[i];
    RRL_TRY(copy(&x->tokens, c->tokens, (size_t)x->total, sizeof *x->tokens));
    RRL_TRY(copy(&x->logprobs, c->logprobs, (size_t)x->total, sizeof *x->logprobs));
    RRL_TRY(copy(&x->n_tokens, c->n_tokens, count, sizeof *x->n_tokens));
    return copy(&x->finish, c->finish, count, sizeof *x->finish);
}

void collect_beat(void *context) {
    ((collector *)context)->beats++;
}

rrl_status generate(rrl_rollout_counters *counters, collector *k, world *w, const rrl_request *requests,
                    int64_t n, int32_t batch_limit, int32_t context) {
    rrl_rollout *r = NULL;
    RRL_TRY(rrl_rollout_open(&r, w->model, batch_limit, context));
    rrl_status rc = rrl_rollout_run(r, w->adapters, 2, requests, n, collect, k, collect_beat);
    if (counters) *counters = *rrl_rollout_counts(r);
    rrl_rollout_close(&r);
    return rc;
}
