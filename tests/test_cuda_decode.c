/* Decoding on the emulated GPU: how many kernels a step takes, steps recorded as graphs and repeated, and one wait of
 * the host a step; memory as planned. Times mean nothing here; counts do. */
#include "check.h"
#include "cuda_host/emulator.h"
#include "device/cuda_module.h"
#include "model/slot.h"
#include "model_runner.h"
#include "rollout_world.h"

extern const rrl_cuda_module rrl_cuda_module_table;

#define GOLDEN RRL_SOURCE_DIR "/tests/golden/qwen2/model"
#ifdef __SANITIZE_ADDRESS__
enum { NEW = 8, ALL = 0 }; /* everything takes ten times as long */
#else
enum { NEW = 10, ALL = 1 };
#endif
enum { PROMPT = 5, COUNT = 6, CONTEXT = 32 };

static bool open_world(world *w, const char *dir, rrl_dtype dtype, rrl_determinism determinism) {
    rrl_device *d = NULL;
    const rrl_cuda_options o = {.dtype = dtype, .determinism = determinism, .room_bytes = 1 << 20};
    if (!CHECK_OK(rrl_cuda_module_table.open(&d, &o))) return false;
    d->kv_dtype = dtype;
    return CHECK_OK(world_open_on(w, d, dir, "qwen2"));
}

/* --- launches of a step: docs/performance.md counts them so */

/* By layer: 2 norms, keys and values, attention, SwiGLU; 7 products, which are 4 launches where our kernel takes q, k,
 * v and gate, up together; 1 for the adapters of each of the 4 inputs. Beside them: embedding and the last norm. */
static int64_t launches_of_forward(int64_t layers, rrl_determinism determinism, bool adapted) {
    return 2 + layers * (5 + (determinism == RRL_DETERMINISM_EXACT ? 4 : 7) + (adapted ? 4 : 0));
}

static void count_launches(rrl_dtype dtype, rrl_determinism determinism, bool adapted) {
    static const int32_t seq[COUNT] = {0, 1, 2, 3, 4, 5}, one[COUNT] = {1, 1, 1, 1, 1, 1};
    static const int32_t token[COUNT] = {5, 6, 7, 8, 9, 10};
    world w;
    runner r;
    if (!open_world(&w, GOLDEN, dtype, determinism)) return;
    CHECK_OK(runner_open(&r, w.model, w.adapters + 1, adapted ? 1 : 0)); /* all-linear */
    for (int s = 0; adapted && s < COUNT; s++) r.adapter[s] = 0;
    for (int step = 0; step < 2; step++) {
        const int64_t before = emulator_launches();
        CHECK_OK(runner_step(&r, NULL, seq, one, COUNT, token));
        CHECK_EQ_INT(emulator_launches() - before,
                     launches_of_forward(rrl_model_dims(w.model)->layers, determinism, adapted));
    }
    runner_close(&r);
    world_close(&w);
}

/* --- graphs */

/* What repeat.h says of these completions: the steps that are recorded, and those that are repeated. */
typedef struct {
    int64_t steps, recorded, repeated;
} expected;

/* Samples of one prompt start together; in step t those decode that have more than t tokens. */
static expected expected_of(const result *x) {
    expected e = {0};
    int seen[COUNT + 1] = {0};
    for (int32_t t = 1;; t++) {
        int32_t rows = 0;
        for (int32_t i = 0; i < x->count; i++) rows += x->n_tokens[i] > t;
        if (rows == 0) return e;
        seen[rows]++;
        e.steps++;
        e.recorded += seen[rows] == 2;
        e.repeated += seen[rows] > 2;
    }
}

static void roll(result *out, rrl_rollout_counters *counters, rrl_rollout *r, const world *w, int32_t adapter) {
    static const int32_t prompt[PROMPT] = {3, 40, 77, 114, 151};
    int64_t index = 0;
    collector k = {.results = out};
    const rrl_request q = {.prompt = prompt,
                           .n_prompt = PROMPT,
                           .count = COUNT,
                           .adapter = adapter < 0 ? -1 : 0,
                           .sampling = {1.0, 0.95, 1.1, 0, NEW},
                           .key = {.seed = 6, .purpose = RRL_RNG_TRAIN},
                           .user = &index};
    CHECK_OK(rrl_rollout_run(r, w->adapters + (adapter < 0 ? 0 : adapter), 1, &q, 1, collect, &k, NULL));
    *counters = *rrl_rollout_counts(r);
}

/* Two calls of one rollout with adapters that lie elsewhere, a third with those of the first. */
static void three_calls(result out[3], rrl_rollout_counters counters[3], world *w) {
    static const int32_t ADAPTER[3] = {0, 1, 0};
    rrl_rollout *r = NULL;
    if (!CHECK_OK(rrl_rollout_open(&r, w->model, COUNT, CONTEXT))) return;
    for (int i = 0; i < 3; i++) roll(&out[i], &counters[i], r, w, ADAPTER[i]);
    rrl_rollout_close(&r);
}

static void repeats_steps(rrl_dtype dtype, rrl_determinism determinism) {
    char dir[1024];
    world w;
    result want[3] = {{0}}, got[3] = {{0}}, failed[3] = {{0}};
    rrl_rollout_counters plain[3], counters[3];
    expected e = {0};
    if (!CHECK_OK(many_ends_make(dir, "qwen2")) || !open_world(&w, dir, dtype, determinism)) return;
    const rrl_device_ops *ops = w.device->ops;
    rrl_device_ops without = *ops;
    without.graph_begin = NULL;
    w.device->ops = &without;
    three_calls(want, plain, &w);
    w.device->ops = ops;
    CHECK_EQ_INT(plain[2].recorded + plain[2].repeated, 0);

    const int64_t graphs = emulator_graphs(), launched = emulator_graph_launches(), waits = emulator_waits();
    three_calls(got, counters, &w);
    for (int i = 0; i < 3; i++) {
        const expected x = expected_of(&got[i]);
        e = (expected){e.steps + x.steps, e.recorded + x.recorded, e.repeated + x.repeated};
        CHECK(results_same(&want[i], &got[i]));
        CHECK_EQ_INT(counters[i].recorded, e.recorded);
        CHECK_EQ_INT(counters[i].repeated, e.repeated);
    }
    CHECK(!results_same(&got[0], &got[1]) && results_same(&got[0], &got[2]));
    CHECK(e.recorded > 3 && e.repeated > 0); /* some sequences end before others */
    CHECK_EQ_INT(emulator_graphs() - graphs, e.recorded);
    CHECK_EQ_INT(emulator_graph_launches() - launched, e.recorded + e.repeated);
    CHECK_EQ_INT(emulator_waits() - waits, e.steps + 3); /* one a step, those of the prompts too */

    emulator_fail_graphs(1); /* then nothing is recorded any more, and nothing is lost */
    three_calls(failed, counters, &w);
    CHECK_EQ_INT(counters[2].recorded + counters[2].repeated, 0);
    for (int i = 0; i < 3; i++) CHECK(results_same(&want[i], &failed[i]));
    results_free(want, 3);
    results_free(got, 3);
    results_free(failed, 3);
    world_close(&w);
    many_ends_remove(dir);
}

/* --- memory: what `rrl validate` adds up for a GPU is what is asked for */

static size_t in_use(size_t *before) {
    const size_t now = emulator_bytes_in_use(), more = now - *before;
    *before = now;
    return more;
}

static void takes_what_is_planned(rrl_dtype dtype, rrl_determinism determinism) {
    const rrl_adapter_spec spec = {.r = 4, .alpha = 8};
    const rrl_slot_limits limits = {.max_rows = 70, .max_seqs = 3};
    rrl_device *d = NULL;
    rrl_model *m = NULL;
    rrl_adapter *a = NULL;
    rrl_rollout *r = NULL;
    rrl_slot_engine *e = NULL;
    size_t before = emulator_bytes_in_use();
    const rrl_cuda_options o = {.dtype = dtype, .determinism = determinism};
    if (!CHECK_OK(rrl_cuda_module_table.open(&d, &o))) return;
    d->kv_dtype = dtype;
    CHECK_EQ_INT(in_use(&before),
                 RRL_CUDA_ROOM_BYTES + (determinism == RRL_DETERMINISM_EXACT ? 0 : RRL_CUDA_BLASLT_BYTES));
    if (!CHECK_OK(rrl_model_open(&m, d, GOLDEN))) return;
    const rrl_model_config *c = rrl_model_dims(m);
    CHECK_EQ_INT(in_use(&before), rrl_model_bytes_gpu(c, dtype));
    CHECK_OK(rrl_adapter_open(&a, m, &spec, 1));
    CHECK_EQ_INT(in_use(&before), rrl_config_adapter_bytes(c, &spec));
    CHECK_OK(rrl_rollout_open(&r, m, 5, CONTEXT));
    CHECK_EQ_INT(in_use(&before), rrl_rollout_bytes(c, dtype, 5, CONTEXT));
    CHECK_OK(rrl_slot_engine_open(&e, m, &limits));
    CHECK_EQ_INT(in_use(&before), rrl_slot_engine_bytes(c, &limits, 0)); /* without us, which comes with an adapter */
    rrl_slot_engine_close(&e);
    rrl_rollout_close(&r);
    rrl_adapter_close(&a);
    rrl_model_close(&m);
    rrl_device_close(&d);
}

/* While a graph is recorded the device takes ops alone; an op that fails then leaves it as it was. */
static void refuses_while_recording(void) {
    rrl_device *d = NULL;
    rrl_graph *g = NULL;
    void *p = NULL;
    float x[4] = {1, 2, 3, 4}, back[4] = {0};
    const rrl_cuda_options o = {.dtype = RRL_F32, .determinism = RRL_DETERMINISM_RUN, .room_bytes = 1 << 20};
    if (!CHECK_OK(rrl_cuda_module_table.open(&d, &o))) return;
    CHECK_OK(d->ops->alloc(d, &p, sizeof x, "numbers"));
    CHECK_OK(d->ops->upload(d, p, x, sizeof x));
    CHECK_STATUS(d->ops->graph_end(d, &g), RRL_ERR_INTERNAL);
    CHECK_OK(d->ops->graph_begin(d));
    void *more = NULL;
    CHECK_STATUS(d->ops->graph_begin(d), RRL_ERR_INTERNAL);
    CHECK_STATUS(d->ops->alloc(d, &more, 8, "numbers"), RRL_ERR_INTERNAL);
    CHECK_STATUS(d->ops->upload(d, p, x, sizeof x), RRL_ERR_INTERNAL);
    CHECK_STATUS(d->ops->download(d, back, p, sizeof x), RRL_ERR_INTERNAL);
    CHECK_STATUS(d->ops->sync(d), RRL_ERR_INTERNAL);
    CHECK_OK(d->ops->axpy(d, p, p, 1.0f, 4));
    CHECK_OK(d->ops->graph_end(d, &g));
    CHECK_OK(d->ops->download(d, back, p, sizeof x));
    CHECK(back[3] == 4); /* recorded, not run */
    for (int i = 0; i < 2; i++) CHECK_OK(d->ops->graph_launch(d, g));
    CHECK_OK(d->ops->download(d, back, p, sizeof x));
    CHECK(back[3] == 16);
    d->ops->graph_free(d, &g);
    CHECK(g == NULL);
    CHECK_OK(d->ops->graph_begin(d));
    CHECK_OK(d->ops->graph_end(d, NULL)); /* dropped */
    d->ops->free(d, p);
    rrl_device_close(&d);
}

int main(void) {
    for (int adapted = 0; adapted < 2; adapted++) {
        count_launches(RRL_BF16, RRL_DETERMINISM_RUN, adapted);
        count_launches(RRL_BF16, RRL_DETERMINISM_EXACT, adapted);
        count_launches(RRL_F32, RRL_DETERMINISM_RUN, adapted);
    }
    if (ALL) repeats_steps(RRL_BF16, RRL_DETERMINISM_RUN);
    emulator_reverse(1);
    repeats_steps(RRL_F32, RRL_DETERMINISM_EXACT);
    refuses_while_recording();
    takes_what_is_planned(RRL_BF16, RRL_DETERMINISM_RUN);
    takes_what_is_planned(RRL_F32, RRL_DETERMINISM_EXACT);
    CHECK_EQ_INT(emulator_bytes_in_use(), 0);
    return CHECK_DONE();
}
