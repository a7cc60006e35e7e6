/* Models on bf16 products: near the golden logits as far as bf16 lets them be; what a rollout records is what training
 * computes, bit for bit; completions, log-probs and gradients are the same on every instruction set, for any threads. */
#include <math.h>

#include "base/memory.h"
#include "base/random.h"
#include "check.h"
#include "data/safetensors.h"
#include "device/cpu/bf16.h"
#include "given_loss.h"
#include "model_runner.h"
#include "rollout_world.h"

#define GOLDEN RRL_SOURCE_DIR "/tests/golden/"

static const char *const ISAS[] = {"reference", "portable", "avx2", "avx512", "amx"};
enum { N_ISAS = sizeof ISAS / sizeof ISAS[0] };

static int open_world(world *w, const char *family, rrl_dtype kv, const char *isa, int threads) {
    char dir[1024];
    snprintf(dir, sizeof dir, GOLDEN "%s/model", family);
    rrl_device *d = NULL;
    if (rrl_cpu_open_dtype(&d, RRL_BF16, isa, 1) != RRL_OK) return 0; /* this machine lacks it */
    rrl_device_close(&d);
    return CHECK_OK(world_open_in(w, (world_numbers){RRL_BF16, kv}, dir, family, isa, threads));
}

/* --- golden logits */

/* How far bf16 may move logits depends on the model, whose attention and norms amplify errors. So it is measured: an f32
 * engine whose weights alone are rounded to bf16. The other factor of each product, the activation, is rounded as
 * coarsely, which is an independent error of the same size: together sqrt(2) times as much, rms. Twice is allowed. */
static const rrl_device_ops *real_ops;

static rrl_status rounding_fill(rrl_device *d, const rrl_weight *w, const void *src, rrl_dtype type) {
    float *rounded = NULL;
    const int64_t n = rrl_weight_rows(w) * rrl_weight_cols(w);
    RRL_TRY(rrl_alloc(&rounded, (size_t)n, sizeof *rounded, "rounded weights"));
    for (int64_t i = 0; i < n; i++) rounded[i] = rrl_bf16_value(rrl_bf16_of(((const float *)src)[i]));
    rrl_status rc = real_ops->weight_fill(d, w, rounded, RRL_F32);
    free(rounded);
    return rc;
}

static double st_float(const rrl_st_tensor *t, int64_t i) {
    float v;
    memcpy(&v, (const char *)t->data + 4 * i, sizeof v);
    return (double)v;
}

static int64_t st_int(const rrl_st_tensor *t, int64_t i) {
    int64_t v;
    memcpy(&v, (const char *)t->data + 8 * i, sizeof v);
    return v;
}

/* Root mean square of logits - golden over all tokens of all sequences; adapted: with the golden adapter. */
static double distance(rrl_model *m, rrl_adapter *a, const rrl_safetensors *file, int adapted) {
    runner r = {0};
    const rrl_st_tensor *ids = rrl_safetensors_find(file, "input_ids"), *mask = rrl_safetensors_find(file, "attention_mask");
    const rrl_st_tensor *want = rrl_safetensors_find(file, adapted ? "logits_adapter" : "logits");
    const int64_t vocab = rrl_model_dims(m)->vocab, width = ids->dims[1];
    float *logits = malloc((size_t)(RUNNER_ROWS * vocab) * sizeof *logits);
    double sum = 0, count = 0;
    CHECK_OK(runner_open(&r, m, &a, 1));
    for (int64_t i = 0; i < ids->dims[0]; i++) {
        int32_t tokens[RUNNER_ROWS], n = 0, seq = 0;
        for (; n < width && st_int(mask, i * width + n); n++) tokens[n] = (int32_t)st_int(ids, i * width + n);
        runner_clear(&r);
        r.adapter[0] = adapted - 1;
        if (!CHECK_OK(runner_step(&r, logits, &seq, &n, 1, tokens))) break;
        for (int64_t v = 0; v < n * vocab; v++, count++) {
            const double off = (double)logits[v] - st_float(want, i * width * vocab + v);
            sum += off * off;
        }
    }
    free(logits);
    runner_close(&r);
    return sqrt(sum / count);
}

static void golden_logits(const char *family) {
    world w;
    char path[1024];
    rrl_safetensors *file = NULL;
    rrl_device *f32 = NULL;
    rrl_model *rounded = NULL;
    rrl_adapter *a = NULL;
    snprintf(path, sizeof path, GOLDEN "%s/forward.safetensors", family);
    if (!CHECK(open_world(&w, family, RRL_F32, "auto", 2)) || !CHECK_OK(rrl_safetensors_open(&file, path))) return;
    CHECK_OK(rrl_cpu_open(&f32, "auto", 2));
    real_ops = f32->ops;
    rrl_device_ops ops = *f32->ops;
    ops.weight_fill = rounding_fill;
    rrl_device with_rounding = {.ops = &ops, .state = f32->state};
    snprintf(path, sizeof path, GOLDEN "%s/model", family);
    CHECK_OK(rrl_model_open(&rounded, &with_rounding, path));
    snprintf(path, sizeof path, GOLDEN "%s/adapter", family);
    CHECK_OK(rrl_adapter_load(&a, rounded, path));
    for (int adapted = 0; adapted < 2; adapted++) {
        const double weights = distance(rounded, a, file, adapted);
        const double all = distance(w.model, w.adapters[0], file, adapted);
        CHECK(weights > 1e-3 && all < 2 * weights && all > weights / 2);
        printf("%s%s: logits off by %.4f rms, weights alone %.4f\n", family, adapted ? ", adapter" : "", all, weights);
    }
    rrl_adapter_close(&a);
    rrl_model_close(&rounded);
    rrl_device_close(&f32);
    rrl_safetensors_close(&file);
    world_close(&w);
}

/* --- rollout and training */

enum { N_REQUESTS = 5, PROMPT = 70, CONTEXT = 128 };
static const struct {
    int32_t n_prompt, count, adapter;
    rrl_sampling sampling; /* temperature, top_p, penalty, top_k, max_tokens */
} MIX[N_REQUESTS] = {{31, 4, 0, {1.0, 1.0, 1.0, 0, 37}},
                     {33, 3, -1, {0.7, 0.95, 1.0, 0, 20}},
                     {64, 2, 1, {1.3, 0.9, 1.0, 20, 33}},
                     {1, 9, 0, {0.7, 0.95, 1.1, 0, 24}},
                     {70, 1, 0, {0.0, 1.0, 1.0, 0, 30}}};

typedef struct {
    int32_t prompts[N_REQUESTS][PROMPT];
    int64_t index[N_REQUESTS];
    rrl_request requests[N_REQUESTS];
} mix;

static void mix_make(mix *x) {
    for (int i = 0; i < N_REQUESTS; i++) {
        const rrl_rng_key ids = {.seed = 4, .purpose = RRL_RNG_FIXTURE, .sample = (uint32_t)i};
        for (int k = 0; k < PROMPT; k++) x->prompts[i][k] = (int32_t)(rrl_rng_uniform(&ids, (uint32_t)k) * 272);
        x->index[i] = i;
        x->requests[i] = (rrl_request){.prompt = x->prompts[i],
                                       .n_prompt = MIX[i].n_prompt,
                                       .count = MIX[i].count,
                                       .adapter = MIX[i].adapter,
                                       .sampling = MIX[i].sampling,
                                       .key = {.seed = 42, .purpose = RRL_RNG_TRAIN, .step = 7, .question = (uint64_t)i},
                                       .user = &x->index[i]};
    }
}

/* Log-probs of a request's completions as training computes them, and the gradient of their weighted sum, in one array. */
static float *train(world *w, rrl_slot_engine *e, const rrl_request *q, const result *x, size_t *n) {
    uint32_t samples[16];
    float dlogp[512], *gradient = NULL;
    rrl_device *d = w->device;
    rrl_adapter *a = q->adapter < 0 ? NULL : w->adapters[q->adapter];
    const size_t size = a ? (size_t)rrl_adapter_size(a) : 0;
    float *out = calloc((size_t)x->total + size, sizeof *out);
    for (int32_t s = 0; s < q->count; s++) samples[s] = (uint32_t)s;
    for (int64_t i = 0; i < x->total; i++) dlogp[i] = 0.1f * (float)(i % 5 - 2);
    const rrl_slot slot = {.prompt = q->prompt,
                           .n_prompt = q->n_prompt,
                           .n_seqs = q->count,
                           .tokens = x->tokens,
                           .n_tokens = x->n_tokens,
                           .temperature = q->sampling.temperature == 0 ? 1.0f : (float)q->sampling.temperature,
                           .seed = 42,
                           .step = 7,
                           .question = q->key.question,
                           .samples = samples};
    CHECK_OK(rrl_slot_forward(e, out, NULL, &slot, a));
    if (a) {
        CHECK_OK(d->ops->alloc(d, (void **)&gradient, size * sizeof *gradient, "gradient"));
        CHECK_OK(given_gradient(e, gradient, &slot, a, dlogp));
        CHECK_OK(d->ops->download(d, out + x->total, gradient, size * sizeof *gradient));
        d->ops->free(d, gradient);
    }
    *n = (size_t)x->total + size;
    return out;
}

/* Generate and train in one world. trained[i] is kept for the first world, compared in the others. */
static void run(world *w, const mix *x, result *want, float **trained, int32_t batch_limit, const char *what) {
    result got[N_REQUESTS] = {0};
    collector k = {.results = got};
    rrl_slot_engine *e = NULL;
    const bool first = !want[0].tokens;
    if (!CHECK_OK(generate(NULL, &k, w, x->requests, N_REQUESTS, batch_limit, CONTEXT)) ||
        !CHECK_OK(rrl_slot_engine_open(&e, w->model, &(rrl_slot_limits){.max_rows = 512, .max_seqs = 16})))
        return;
    for (int i = 0; i < N_REQUESTS; i++) {
        size_t n = 0;
        float *now = train(w, e, &x->requests[i], &got[i], &n);
        if (!CHECK(memcmp(now, got[i].logprobs, (size_t)got[i].total * sizeof *now) == 0))
            fprintf(stderr, "  %s, request %d: recorded %.9g, trained %.9g\n", what, i, (double)got[i].logprobs[0],
                    (double)now[0]);
        if (first) {
            trained[i] = now;
            continue;
        }
        if (!CHECK(results_same(&want[i], &got[i])) || !CHECK(memcmp(trained[i], now, n * sizeof *now) == 0))
            fprintf(stderr, "  %s, request %d differs from the reference loops\n", what, i);
        free(now);
    }
    if (first) memcpy(want, got, sizeof got);
    else results_free(got, N_REQUESTS);
    rrl_slot_engine_close(&e);
}

static void recorded_is_trained(result want[N_REQUESTS], const char *family, rrl_dtype kv) {
    static mix x;
    float *trained[N_REQUESTS] = {0};
    int worlds = 0;
    mix_make(&x);
    for (int i = 0; i < N_ISAS; i++)
        for (int threads = 1; threads <= 2; threads++) {
            world w;
            char what[64];
            snprintf(what, sizeof what, "%s, kv %s, %s, %d threads", family, kv == RRL_BF16 ? "bf16" : "f32", ISAS[i],
                     threads);
            if (!open_world(&w, family, kv, ISAS[i], threads)) {
                if (threads == 1) printf("not tested here: %s\n", ISAS[i]);
                continue;
            }
            run(&w, &x, want, trained, threads == 1 ? 3 : 64, what);
            world_close(&w);
            worlds++;
        }
    CHECK(worlds >= 4);
    for (int i = 0; i < N_REQUESTS; i++) free(trained[i]);
}

int main(void) {
    golden_logits("llama");
    golden_logits("qwen2");
    result rounded[N_REQUESTS] = {0}, plain[N_REQUESTS] = {0};
    recorded_is_trained(rounded, "llama", RRL_BF16);
    recorded_is_trained(plain, "llama", RRL_F32);
    CHECK(!results_same(&rounded[1], &plain[1])); /* the rounding is there */
    results_free(rounded, N_REQUESTS);
    results_free(plain, N_REQUESTS);
    recorded_is_trained(rounded, "qwen2", RRL_BF16);
    results_free(rounded, N_REQUESTS);
    return CHECK_DONE();
}
