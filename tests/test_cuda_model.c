/* Models, rollout and whole GRPO steps on the emulated GPU (cuda_host/), in both orders of threads: against the golden
 * files, as test_golden does on the CPU, and against the CPU's reference bit for bit under `exact`. Host code that
 * touches device memory, anywhere in model, rollout or learn, ends this test: the emulator's memory is not accessible
 * to it. */
#include "check.h"
#include "cuda_host/emulator.h"
#include "device/cuda_module.h"
#include "golden_learn.h"
#include "golden_model.h"
#include "learn/learner.h"
#include "model/slot.h"
#include "rollout_world.h"

extern const rrl_cuda_module rrl_cuda_module_table;

#define GOLDEN RRL_SOURCE_DIR "/tests/golden"
/* Everything takes ten times as long under the sanitizers: then only what covers each kernel once. */
#ifdef __SANITIZE_ADDRESS__
enum { ALL = 0 };
#else
enum { ALL = 1 };
#endif
enum { CONTEXT = 96, N_REQUESTS = 5, MOST = 512 };

static rrl_device *open_gpu(rrl_dtype dtype, rrl_determinism determinism) {
    rrl_device *d = NULL;
    const rrl_cuda_options o = {.dtype = dtype, .determinism = determinism, .room_bytes = 1 << 20};
    CHECK_OK(rrl_cuda_module_table.open(&d, &o));
    return d;
}

/* --- golden files */

static void golden(const char *arch, rrl_determinism determinism) {
    rrl_device *d = open_gpu(RRL_F32, determinism);
    CHECK_EQ_INT(golden_model_logits(GOLDEN, arch, d), 0);
    CHECK_EQ_INT(golden_model_greedy(GOLDEN, arch, d), 0);
    CHECK_EQ_INT(golden_model_slots(GOLDEN, arch, d), 0);
    CHECK_EQ_INT(golden_learn_grpo(GOLDEN, arch, d), 0);
    CHECK_EQ_INT(golden_learn_adamw(GOLDEN, arch, d), 0);
    rrl_device_close(&d);
}

/* --- rollout and learning, beside the CPU */

static const struct {
    int32_t n_prompt, count, adapter;
    rrl_sampling sampling; /* temperature, top_p, penalty, top_k, max_tokens */
    float dropout;
} MIX[N_REQUESTS] = {
    {5, 3, 0, {1.0, 1.0, 1.0, 0, 9}, 0},     {33, 2, 1, {0.7, 0.9, 1.3, 0, 6}, 0},
    {32, 2, -1, {1.3, 0.95, 1.0, 20, 5}, 0}, {17, 1, 0, {0.0, 1.0, 1.2, 0, 7}, 0},
    {40, 2, 1, {1.0, 0.5, 1.0, 0, 4}, 0.2f},
};

static void make_requests(rrl_request *q, int32_t prompt[][CONTEXT], int64_t *index) {
    for (int i = 0; i < N_REQUESTS; i++) {
        for (int k = 0; k < MIX[i].n_prompt; k++) prompt[i][k] = 3 + (i * 31 + k * 17) % 250;
        index[i] = i;
        q[i] = (rrl_request){.prompt = prompt[i],
                             .n_prompt = MIX[i].n_prompt,
                             .count = MIX[i].count,
                             .adapter = MIX[i].adapter,
                             .sampling = MIX[i].sampling,
                             .dropout = MIX[i].dropout,
                             .key = {.seed = 42, .purpose = RRL_RNG_TRAIN, .step = 7, .question = 100 + (uint64_t)i},
                             .user = &index[i]};
    }
}

static void roll(result *results, world *w) {
    rrl_request requests[N_REQUESTS];
    int32_t prompt[N_REQUESTS][CONTEXT];
    int64_t index[N_REQUESTS];
    collector k = {.results = results};
    make_requests(requests, prompt, index);
    CHECK_OK(generate(NULL, &k, w, requests, N_REQUESTS, 4, CONTEXT));
    CHECK_EQ_INT(k.calls, N_REQUESTS);
}

/* One GRPO step on the first request's completions: its log-probs and the adapter after the update. */
typedef struct {
    float logp[MOST], *adapter;
    int64_t n, size;
    double norm;
} learnt;

static void learn(learnt *out, world *w, const result *r) {
    rrl_learner *l = NULL;
    rrl_group *g = NULL;
    rrl_row_stats stats[8] = {{0}};
    rrl_slot_engine *e = NULL;
    int32_t prompt[N_REQUESTS][CONTEXT];
    int64_t index[N_REQUESTS];
    rrl_request q[N_REQUESTS];
    uint32_t samples[8] = {0, 1, 2};
    bool finite = false;
    make_requests(q, prompt, index);
    const int32_t count = r->count;
    const rrl_slot slot = {.prompt = prompt[0],
                           .n_prompt = q[0].n_prompt,
                           .n_seqs = count,
                           .tokens = r->tokens,
                           .n_tokens = r->n_tokens,
                           .temperature = 1,
                           .samples = samples};
    out->n = r->total;
    CHECK_OK(rrl_slot_engine_open(&e, w->model, &(rrl_slot_limits){.max_rows = 128, .max_seqs = count}));
    CHECK_OK(rrl_slot_forward(e, out->logp, NULL, &slot, w->adapters[0]));
    rrl_slot_engine_close(&e);

    const rrl_learner_settings set = {.grpo = {.type = RRL_LOSS_DAPO,
                                               .epsilon = 0.2,
                                               .epsilon_high = 0.2,
                                               .beta = 0.04,
                                               .kl_on_flat_groups = true,
                                               .micro_rows = count,
                                               .accumulation = 1,
                                               .max_tokens = 9},
                                      .group_size = count,
                                      .slot_rows = count,
                                      .groups = 1,
                                      .temperature = 1,
                                      .dropout = 0.1f,
                                      .max_grad_norm = 1,
                                      .weight_decay = 0.01,
                                      .max_rows = 64};
    const rrl_prompt_view view = {prompt[0], q[0].n_prompt, 100};
    CHECK_OK(rrl_group_create(&g, count, r->total));
    memcpy(g->tokens, r->tokens, (size_t)r->total * sizeof *g->tokens);
    memcpy(g->logprobs, r->logprobs, (size_t)r->total * sizeof *g->logprobs);
    for (int32_t i = 0; i < count; i++)
        g->rows[i] = (rrl_completion){
            .sample = i, .n_tokens = r->n_tokens[i], .finish = r->finish[i], .advantage = i ? -0.5f : 1.0f};
    CHECK_OK(rrl_learner_open(&l, w->model, w->adapters[0], &set));
    CHECK_OK(rrl_learner_gradient(l, stats, &g, &view, 0, 1, 0));
    CHECK_OK(rrl_learner_update(l, &out->norm, &finite, 1e-3, 0));
    CHECK(finite && out->norm > 0);
    out->size = rrl_adapter_size(w->adapters[0]);
    out->adapter = malloc((size_t)out->size * sizeof(float));
    CHECK_OK(w->device->ops->download(w->device, out->adapter, rrl_adapter_data(w->adapters[0]),
                                      (size_t)out->size * sizeof(float)));
    rrl_learner_close(&l);
    rrl_group_free(&g);
}

/* Recorded = trained: the log-probs of rollout are those of the training forward, as stored arrays. */
static void check_recorded(const result *r, const learnt *l) {
    CHECK(memcmp(r->logprobs, l->logp, (size_t)l->n * sizeof *l->logp) == 0);
}

static void beside_cpu(const char *arch, rrl_dtype dtype, rrl_dtype kv) {
    char dir[512];
    world cpu, gpu;
    rrl_device *reference = NULL, *emulated = open_gpu(dtype, RRL_DETERMINISM_EXACT);
    result want[N_REQUESTS] = {{0}}, got[N_REQUESTS] = {{0}};
    learnt a = {0}, b = {0};
    snprintf(dir, sizeof dir, GOLDEN "/%s/model", arch);
    CHECK_OK(rrl_cpu_open_dtype(&reference, dtype, "auto", 1));
    if (!reference || !emulated) return;
    reference->kv_dtype = emulated->kv_dtype = kv;
    CHECK_OK(world_open_on(&cpu, reference, dir, arch));
    CHECK_OK(world_open_on(&gpu, emulated, dir, arch));
    roll(want, &cpu);
    roll(got, &gpu);
    for (int i = 0; i < N_REQUESTS; i++) CHECK(results_same(&want[i], &got[i]));
    learn(&a, &cpu, &want[0]);
    learn(&b, &gpu, &got[0]);
    check_recorded(&got[0], &b);
    CHECK(a.n == b.n && memcmp(a.logp, b.logp, (size_t)a.n * sizeof *a.logp) == 0);
    CHECK(a.norm == b.norm);
    CHECK(a.size == b.size && memcmp(a.adapter, b.adapter, (size_t)a.size * sizeof *a.adapter) == 0);
    free(a.adapter);
    free(b.adapter);
    results_free(want, N_REQUESTS);
    results_free(got, N_REQUESTS);
    world_close(&cpu);
    world_close(&gpu);
}

int main(void) {
    if (ALL) golden("llama", RRL_DETERMINISM_RUN);
    beside_cpu("llama", RRL_F32, RRL_F32);
    if (ALL) beside_cpu("qwen2", RRL_F32, RRL_F32);
    emulator_reverse(1);
    if (ALL) golden("qwen2", RRL_DETERMINISM_RUN);
    if (ALL) beside_cpu("llama", RRL_BF16, RRL_F32);
    beside_cpu("qwen2", RRL_BF16, RRL_BF16);
    CHECK_EQ_INT(emulator_bytes_in_use(), 0);
    return CHECK_DONE();
}
