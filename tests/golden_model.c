#include "golden_model.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/memory.h"
#include "check.h"
#include "data/safetensors.h"
#include "given_loss.h"
#include "model_runner.h"

static const double TOLERANCE = 1e-4; /* f32 forward of 2-3 layers: about 64 terms a sum, logits of size 5 */

/* One architecture's folder, opened. */
typedef struct {
    const char *dir, *arch;
    char path[512];
    rrl_device *d;
    rrl_model *m;
    rrl_adapter *a;
} golden;

static char *at(golden *g, const char *name) {
    snprintf(g->path, sizeof g->path, "%s/%s/%s", g->dir, g->arch, name);
    return g->path;
}

/* One comparison, with the file of inputs and values it is about, if it is one. Returns the failed checks; a set-up that fails is one. */
static int compare(const char *what, const char *dir, const char *arch, rrl_device *d, const char *name,
                   rrl_status (*run)(golden *g, const rrl_safetensors *file)) {
    rrl_status rc = RRL_OK;
    const int before = check_failures;
    golden g = {.dir = dir, .arch = arch, .d = d};
    rrl_safetensors *file = NULL;
    RRL_GOTO(rrl_model_open(&g.m, d, at(&g, "model")));
    RRL_GOTO(rrl_adapter_load(&g.a, g.m, at(&g, "adapter")));
    if (name) RRL_GOTO(rrl_safetensors_open(&file, at(&g, name)));
    RRL_GOTO(run(&g, file));
done:
    if (rc != RRL_OK) fprintf(stderr, "%s %s: %s (%s)\n", what, arch, rrl_error_message(), rrl_error_place());
    rrl_safetensors_close(&file);
    rrl_adapter_close(&g.a);
    rrl_model_close(&g.m);
    return check_failures - before + (rc != RRL_OK);
}

static rrl_status alloc_logits(float **out, const golden *g) {
    return rrl_alloc(out, (size_t)RUNNER_ROWS * (size_t)rrl_model_dims(g->m)->vocab, sizeof **out, "logits");
}

static int64_t st_int(const rrl_st_tensor *t, int64_t i) {
    int64_t v;
    memcpy(&v, (const char *)t->data + 8 * i, sizeof v);
    return v;
}

static float st_float(const rrl_st_tensor *t, int64_t i) {
    float v;
    memcpy(&v, (const char *)t->data + 4 * i, sizeof v);
    return v;
}

static rrl_status tensor(const rrl_st_tensor **out, const rrl_safetensors *s, const char *name) {
    *out = rrl_safetensors_find(s, name);
    return *out ? RRL_OK : RRL_FAIL(RRL_ERR_DATA, "no tensor %s", name);
}

/* --- logits */

static void compare_logits(const float *got, const rrl_st_tensor *want, int64_t row, int64_t length,
                           int64_t width, const char *name) {
    const int64_t vocab = want->dims[2];
    double worst = 0;
    for (int64_t i = 0; i < length * vocab; i++) {
        double d = fabs((double)got[i] - st_float(want, row * width * vocab + i));
        if (!(d <= worst)) worst = d; /* NaN sticks */
    }
    if (!CHECK(worst <= TOLERANCE)) fprintf(stderr, "  %s, row %lld: %g\n", name, (long long)row, worst);
}

static rrl_status logits_run(golden *g, const rrl_safetensors *file) {
    rrl_status rc = RRL_OK;
    runner r = {0};
    float *logits = NULL;
    const rrl_st_tensor *ids, *mask, *want[2];
    RRL_GOTO(tensor(&ids, file, "input_ids"));
    RRL_GOTO(tensor(&mask, file, "attention_mask"));
    RRL_GOTO(tensor(&want[0], file, "logits"));
    RRL_GOTO(tensor(&want[1], file, "logits_adapter"));
    RRL_GOTO(alloc_logits(&logits, g));
    RRL_GOTO(runner_open(&r, g->m, &g->a, 1));
    for (int adapted = 0; adapted < 2; adapted++) {
        int32_t seq[RUNNER_SEQS], count[RUNNER_SEQS] = {0}, tokens[RUNNER_ROWS], n = 0;
        runner_clear(&r);
        for (int32_t i = 0; i < ids->dims[0]; i++) {
            seq[i] = i;
            r.adapter[i] = adapted - 1;
            for (int64_t t = 0; t < ids->dims[1] && st_int(mask, i * ids->dims[1] + t); t++, count[i]++)
                tokens[n++] = (int32_t)st_int(ids, i * ids->dims[1] + t);
        }
        RRL_GOTO(runner_step(&r, logits, seq, count, (int32_t)ids->dims[0], tokens));
        const float *row = logits;
        for (int32_t i = 0; i < ids->dims[0]; row += (int64_t)count[i] * want[0]->dims[2], i++)
            compare_logits(row, want[adapted], i, count[i], ids->dims[1],
                           adapted ? "logits_adapter" : "logits");
    }
done:
    free(logits);
    runner_close(&r);
    return rc;
}

int golden_model_logits(const char *dir, const char *arch, rrl_device *d) {
    return compare("logits", dir, arch, d, "forward.safetensors", logits_run);
}

/* --- log-probs of whole sequences: the first token is the prompt, the rest a completion */

static void compare_logps(const float *got, const rrl_st_tensor *want, int64_t from, int64_t n,
                          const char *name) {
    for (int64_t t = 0; t < n; t++)
        if (!CHECK_NEAR(got[t], st_float(want, from + t), TOLERANCE))
            fprintf(stderr, "  %s[%lld]\n", name, (long long)(from + t));
}

static rrl_status logps_at(rrl_slot_engine *e, const rrl_safetensors *file, float temperature, rrl_adapter *a) {
    char name[64];
    const rrl_st_tensor *ids, *mask, *want;
    snprintf(name, sizeof name, "logps_t%.1f%s", (double)temperature, a ? "_adapter" : "");
    RRL_TRY(tensor(&ids, file, "input_ids"));
    RRL_TRY(tensor(&mask, file, "attention_mask"));
    RRL_TRY(tensor(&want, file, name));
    const int64_t width = ids->dims[1];
    for (int64_t i = 0; i < ids->dims[0]; i++) {
        int32_t tokens[64], n = 0;
        float logp[64];
        for (; n < width && st_int(mask, i * width + n); n++) tokens[n] = (int32_t)st_int(ids, i * width + n);
        if (n < 2) continue;
        const int32_t n_completion = n - 1;
        const rrl_slot s = {.prompt = tokens,
                            .n_prompt = 1,
                            .n_seqs = 1,
                            .tokens = tokens + 1,
                            .n_tokens = &n_completion,
                            .temperature = temperature};
        RRL_TRY(rrl_slot_forward(e, logp, NULL, &s, a));
        compare_logps(logp, want, i * (width - 1), n_completion, name);
    }
    return RRL_OK;
}

static rrl_status logps_run(golden *g, const rrl_safetensors *file) {
    rrl_status rc;
    rrl_slot_engine *e = NULL;
    RRL_GOTO(rrl_slot_engine_open(&e, g->m, &(rrl_slot_limits){.max_rows = 64, .max_seqs = 1}));
    RRL_GOTO(logps_at(e, file, 1.0f, NULL));
    RRL_GOTO(logps_at(e, file, 0.7f, NULL));
    RRL_GOTO(logps_at(e, file, 1.0f, g->a));
    RRL_GOTO(logps_at(e, file, 0.7f, g->a));
done:
    rrl_slot_engine_close(&e);
    return rc;
}

int golden_model_logps(const char *dir, const char *arch, rrl_device *d) {
    return compare("log-probs", dir, arch, d, "forward.safetensors", logps_run);
}

/* --- greedy */

static int32_t argmax(const float *logits, int32_t vocab) {
    int32_t best = 0;
    for (int32_t v = 1; v < vocab; v++)
        if (logits[v] > logits[best]) best = v;
    return best;
}

static int32_t ids_of(int32_t *out, const cJSON *list) {
    int32_t n = 0;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, list) out[n++] = (int32_t)item->valuedouble;
    return n;
}

/* Sequences 2i (base) and 2i + 1 (adapter) of case i all decode together. */
static rrl_status greedy_cases(golden *g, const cJSON *cases, float *logits) {
    rrl_status rc = RRL_OK;
    runner r = {0};
    const int32_t vocab = rrl_model_dims(g->m)->vocab, n_cases = cJSON_GetArraySize(cases), n = 2 * n_cases;
    int32_t seq[RUNNER_SEQS], count[RUNNER_SEQS], tokens[RUNNER_ROWS], want[RUNNER_SEQS][64], n_want = 0,
                                                                                              n_rows = 0;
    RRL_GOTO(runner_open(&r, g->m, &g->a, 1));
    for (int32_t i = 0; i < n; i++) {
        const cJSON *item = cJSON_GetArrayItem(cases, i / 2);
        seq[i] = i;
        r.adapter[i] = i % 2 - 1;
        count[i] = ids_of(tokens + n_rows, cJSON_GetObjectItem(item, "prompt_ids"));
        n_rows += count[i];
        n_want = ids_of(want[i], cJSON_GetObjectItem(item, i % 2 ? "output_ids_adapter" : "output_ids"));
    }
    for (int32_t step = 0; step < n_want; step++) {
        RRL_GOTO(runner_step(&r, logits, seq, count, n, tokens));
        int32_t last = -1;
        for (int32_t i = 0; i < n; i++) {
            last += count[i];
            tokens[i] = argmax(logits + (int64_t)last * vocab, vocab);
            if (!CHECK_EQ_INT(tokens[i], want[i][step]))
                fprintf(stderr, "  sequence %d, token %d\n", i, step);
            tokens[i] = want[i][step]; /* go on from the right one */
        }
        for (int32_t i = 0; i < n; i++) count[i] = 1;
    }
done:
    runner_close(&r);
    return rc;
}

static rrl_status greedy_run(golden *g, const rrl_safetensors *file) {
    rrl_status rc;
    cJSON *cases = NULL;
    float *logits = NULL;
    (void)file; /* its values are JSON */
    RRL_GOTO(rrl_json_file(&cases, at(g, "greedy.json"), 1 << 20));
    RRL_GOTO(alloc_logits(&logits, g));
    CHECK(cJSON_GetArraySize(cases) >= 4);
    RRL_GOTO(greedy_cases(g, cases, logits));
done:
    free(logits);
    cJSON_Delete(cases);
    return rc;
}

int golden_model_greedy(const char *dir, const char *arch, rrl_device *d) {
    return compare("greedy", dir, arch, d, NULL, greedy_run);
}

/* --- training slots */

enum { GROUP = 4, MOST = 64 };

/* Group `index` of grpo_inputs as a slot; row[i], column[i]: where token i stands in the [8, C] tensors. */
typedef struct {
    rrl_slot slot;
    int32_t prompt[MOST], tokens[GROUP * MOST], n_tokens[GROUP];
    int64_t place[GROUP * MOST];
    int32_t row[GROUP * MOST], n;
} group;

static rrl_status group_of(group *x, const rrl_safetensors *file, int index) {
    const rrl_st_tensor *prompt, *prompt_mask, *ids, *mask;
    RRL_TRY(tensor(&prompt, file, "prompt_ids"));
    RRL_TRY(tensor(&prompt_mask, file, "prompt_mask"));
    RRL_TRY(tensor(&ids, file, "completion_ids"));
    RRL_TRY(tensor(&mask, file, "completion_mask"));
    memset(x, 0, sizeof *x);
    const int64_t p = prompt->dims[1], c = ids->dims[1];
    int32_t n_prompt = 0;
    for (int64_t i = 0; i < p; i++)
        if (st_int(prompt_mask, index * GROUP * p + i))
            x->prompt[n_prompt++] = (int32_t)st_int(prompt, index * GROUP * p + i);
    for (int32_t i = 0; i < GROUP; i++)
        for (int64_t t = 0; t < c && st_int(mask, (index * GROUP + i) * c + t); t++) {
            x->place[x->n] = (index * GROUP + i) * c + t;
            x->row[x->n] = index * GROUP + i;
            x->tokens[x->n++] = (int32_t)st_int(ids, (index * GROUP + i) * c + t);
            x->n_tokens[i]++;
        }
    x->slot = (rrl_slot){.prompt = x->prompt,
                         .n_prompt = n_prompt,
                         .n_seqs = GROUP,
                         .tokens = x->tokens,
                         .n_tokens = x->n_tokens,
                         .temperature = 0.7f};
    return RRL_OK;
}

static rrl_status compare_slots(golden *g, rrl_slot_engine *e, const rrl_safetensors *file) {
    static const char *const NAMES[] = {"ref_per_token_logps", "per_token_logps"};
    for (int index = 0; index < 2; index++) {
        group x;
        RRL_TRY(group_of(&x, file, index));
        for (int adapted = 0; adapted < 2; adapted++) {
            float logp[GROUP * MOST], entropy[GROUP * MOST];
            const rrl_st_tensor *want;
            RRL_TRY(tensor(&want, file, NAMES[adapted]));
            RRL_TRY(rrl_slot_forward(e, logp, entropy, &x.slot, adapted ? g->a : NULL));
            for (int32_t t = 0; t < x.n; t++) {
                CHECK_NEAR(logp[t], st_float(want, x.place[t]), TOLERANCE);
                CHECK(entropy[t] > 0 && entropy[t] <= logf((float)rrl_model_dims(g->m)->vocab) + 1e-5f);
            }
        }
    }
    return RRL_OK;
}

static rrl_status slots_run(golden *g, const rrl_safetensors *file) {
    rrl_slot_engine *e = NULL;
    RRL_TRY(rrl_slot_engine_open(&e, g->m, &(rrl_slot_limits){.max_rows = 256, .max_seqs = GROUP}));
    rrl_status rc = compare_slots(g, e, file);
    rrl_slot_engine_close(&e);
    return rc;
}

int golden_model_slots(const char *dir, const char *arch, rrl_device *d) {
    return compare("slots", dir, arch, d, "grpo_inputs.safetensors", slots_run);
}

/* --- gradients */

/* d(token loss)/d(logp) of -min(rho A, clip(rho) A) + beta k3, in double. */
static double token_gradient(double logp, double old, double ref, double advantage, double beta, double eps) {
    double rho = exp(logp - old), clipped = rho < 1 - eps ? 1 - eps : rho > 1 + eps ? 1 + eps : rho;
    double policy = rho * advantage <= clipped * advantage ? -rho * advantage : 0;
    return policy + beta * (1 - exp(ref - logp));
}

static rrl_status put_gradients(golden *g, rrl_slot_engine *e, const rrl_safetensors *file, const cJSON *settings,
                                float *gradient) {
    const rrl_st_tensor *old, *ref, *advantage;
    double beta = 0, eps = 0, items = 0;
    RRL_TRY(rrl_json_double(&beta, settings, "beta", false, "grpo.json"));
    RRL_TRY(rrl_json_double(&eps, settings, "epsilon", false, "grpo.json"));
    RRL_TRY(rrl_json_double(&items, settings, "num_items_in_batch", false, "grpo.json"));
    RRL_TRY(tensor(&old, file, "old_per_token_logps"));
    RRL_TRY(tensor(&ref, file, "ref_per_token_logps"));
    RRL_TRY(tensor(&advantage, file, "advantages"));
    for (int index = 0; index < 2; index++) {
        group x;
        float logp[GROUP * MOST], dlogp[GROUP * MOST];
        RRL_TRY(group_of(&x, file, index));
        RRL_TRY(rrl_slot_forward(e, logp, NULL, &x.slot, g->a));
        for (int32_t t = 0; t < x.n; t++)
            dlogp[t] = (float)(token_gradient(logp[t], st_float(old, x.place[t]), st_float(ref, x.place[t]),
                                              st_float(advantage, x.row[t]), beta, eps) /
                               items);
        RRL_TRY(given_gradient(e, gradient, &x.slot, g->a, dlogp));
    }
    return RRL_OK;
}

/* Both sides sum about 100 rows and 300 products in f32, each rounded to 6e-8 of its size: 300 * 6e-8 = 2e-5
 * of the tensor's largest gradient, and the log-probs' own error enters through rho. */
static rrl_status compare_gradients(const rrl_adapter *a, const float *got, const rrl_safetensors *file) {
    for (int32_t i = 0; i < rrl_adapter_count(a); i++) {
        const rrl_trainable *t = &rrl_adapter_tensors(a)[i];
        const rrl_st_tensor *want;
        double worst = 0, largest = 0;
        RRL_TRY(tensor(&want, file, t->name));
        for (int64_t j = 0; j < t->rows * t->cols; j++) {
            double d = fabs((double)got[t->offset + j] - st_float(want, j)),
                   v = fabs((double)st_float(want, j));
            if (!(d <= worst)) worst = d;
            if (v > largest) largest = v;
        }
        if (!CHECK(largest > 0 && worst <= 5e-5 * largest))
            fprintf(stderr, "  %s: off by %g of %g\n", t->name, worst, largest);
    }
    return RRL_OK;
}

static rrl_status gradients_run(golden *g, const rrl_safetensors *file) {
    rrl_status rc;
    rrl_safetensors *grads = NULL;
    cJSON *settings = NULL;
    rrl_slot_engine *e = NULL;
    float *gradient = NULL, *host = NULL;
    const size_t bytes = (size_t)rrl_adapter_size(g->a) * sizeof(float);
    RRL_GOTO(rrl_safetensors_open(&grads, at(g, "grpo_grads_dapo.safetensors")));
    RRL_GOTO(rrl_json_file(&settings, at(g, "grpo.json"), 1 << 20));
    RRL_GOTO(rrl_slot_engine_open(&e, g->m, &(rrl_slot_limits){.max_rows = 256, .max_seqs = GROUP}));
    RRL_GOTO(g->d->ops->alloc(g->d, (void **)&gradient, bytes, "gradient"));
    RRL_GOTO(put_gradients(g, e, file, settings, gradient));
    RRL_GOTO(rrl_alloc(&host, bytes, 1, "gradient"));
    RRL_GOTO(g->d->ops->download(g->d, host, gradient, bytes));
    RRL_GOTO(compare_gradients(g->a, host, grads));
done:
    free(host);
    if (gradient) g->d->ops->free(g->d, gradient);
    rrl_slot_engine_close(&e);
    cJSON_Delete(settings);
    rrl_safetensors_close(&grads);
    return rc;
}

int golden_model_gradients(const char *dir, const char *arch, rrl_device *d) {
    return compare("gradients", dir, arch, d, "grpo_inputs.safetensors", gradients_run);
}

int golden_model_all(const char *dir, rrl_device *d) {
    static const char *const ARCH[] = {"llama", "qwen2"};
    int failures = 0;
    for (int i = 0; i < 2; i++) {
        failures += golden_model_logits(dir, ARCH[i], d);
        failures += golden_model_logps(dir, ARCH[i], d);
        failures += golden_model_greedy(dir, ARCH[i], d);
        failures += golden_model_slots(dir, ARCH[i], d);
        failures += golden_model_gradients(dir, ARCH[i], d);
    }
    return failures;
}
