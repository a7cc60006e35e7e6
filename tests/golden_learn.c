/* Feeds TRL's batch of two groups to the learner and compares. */
#include "golden_learn.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "data/safetensors.h"
#include "learn/learner.h"
#include "learn/row_report.h"

enum { GROUPS = 2, G = 4, ROWS = GROUPS * G, MAX_PATH = 4096, EOS = 2 };

typedef struct {
    rrl_model *model;
    rrl_adapter *adapter;
    rrl_learner *learner;
    rrl_safetensors *inputs;
    rrl_group *groups[GROUPS];
    rrl_prompt_view prompts[GROUPS];
    int32_t prompt_ids[GROUPS][64];
    int64_t max_tokens;
} bench;

static int failures;

static void compare(const char *what, double got, double want, double tolerance) {
    if (fabs(got - want) <= tolerance) return;
    failures++;
    fprintf(stderr, "%s: got %.9g, golden %.9g, tolerance %.2g\n", what, got, want, tolerance);
}

static int64_t int_at(const rrl_st_tensor *t, int64_t i) {
    int64_t v;
    memcpy(&v, (const char *)t->data + i * 8, 8);
    return v;
}

static float float_at(const rrl_st_tensor *t, int64_t i) {
    float v;
    memcpy(&v, (const char *)t->data + i * 4, 4);
    return v;
}

static int64_t mask_sum(const rrl_st_tensor *mask, int64_t row) {
    int64_t sum = 0;
    for (int64_t i = 0; i < mask->dims[1]; i++) sum += int_at(mask, row * mask->dims[1] + i);
    return sum;
}

/* Prompts are left-padded, completions right-padded. */
static rrl_status load_group(bench *b, int g) {
    const rrl_st_tensor *pi = rrl_safetensors_find(b->inputs, "prompt_ids"), *pm = rrl_safetensors_find(b->inputs, "prompt_mask"),
                        *ci = rrl_safetensors_find(b->inputs, "completion_ids"),
                        *cm = rrl_safetensors_find(b->inputs, "completion_mask"),
                        *adv = rrl_safetensors_find(b->inputs, "advantages"),
                        *old = rrl_safetensors_find(b->inputs, "old_per_token_logps");
    int64_t row0 = (int64_t)g * G, p = pi->dims[1], c = ci->dims[1], n_prompt = mask_sum(pm, row0), all = 0;
    for (int i = 0; i < G; i++) all += mask_sum(cm, row0 + i);
    RRL_TRY(rrl_group_create(&b->groups[g], G, all));
    rrl_group *group = b->groups[g];
    for (int64_t i = 0; i < n_prompt; i++) b->prompt_ids[g][i] = (int32_t)int_at(pi, row0 * p + p - n_prompt + i);
    b->prompts[g] = (rrl_prompt_view){b->prompt_ids[g], (int32_t)n_prompt, 0};
    group->head.policy_version = -1; /* off policy: the recorded log-probs are the old ones */
    group->head.group_size = G;
    for (int64_t i = 0, t = 0; i < G; i++) {
        int64_t n = mask_sum(cm, row0 + i);
        rrl_completion *r = &group->rows[i];
        r->sample = (int32_t)i;
        r->n_tokens = (int32_t)n;
        r->advantage = float_at(adv, row0 + i);
        for (int64_t j = 0; j < n; j++, t++) {
            group->tokens[t] = (int32_t)int_at(ci, (row0 + i) * c + j);
            group->logprobs[t] = float_at(old, (row0 + i) * c + j);
        }
        r->finish = group->tokens[t - 1] == EOS ? RRL_FINISH_EOS : RRL_FINISH_LENGTH;
    }
    return RRL_OK;
}

static rrl_status open_bench(bench *b, const char *dir, const char *arch, rrl_device *d, rrl_loss_type type) {
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%s/model", dir, arch);
    RRL_TRY(rrl_model_open(&b->model, d, path));
    snprintf(path, sizeof path, "%s/%s/adapter", dir, arch);
    RRL_TRY(rrl_adapter_load(&b->adapter, b->model, path));
    snprintf(path, sizeof path, "%s/%s/grpo_inputs.safetensors", dir, arch);
    RRL_TRY(rrl_safetensors_open(&b->inputs, path));
    b->max_tokens = rrl_safetensors_find(b->inputs, "completion_ids")->dims[1];
    for (int g = 0; g < GROUPS; g++) RRL_TRY(load_group(b, g));
    rrl_learner_settings s = {.grpo = {.type = type, .epsilon = 0.2, .epsilon_high = 0.2, .beta = 0.04,
                                       .kl_on_flat_groups = true, .micro_rows = G, .accumulation = 2,
                                       .max_tokens = b->max_tokens},
                              .group_size = G, .slot_rows = G, .groups = GROUPS, .temperature = 0.7f,
                              .max_grad_norm = 1.0, .max_rows = 64 + G * (int32_t)b->max_tokens};
    return rrl_learner_open(&b->learner, b->model, b->adapter, &s);
}

static void close_bench(bench *b) {
    rrl_learner_close(&b->learner);
    rrl_adapter_close(&b->adapter);
    rrl_model_close(&b->model);
    rrl_safetensors_close(&b->inputs);
    for (int g = 0; g < GROUPS; g++) rrl_group_free(&b->groups[g]);
}

/* |difference|_2 <= 1e-4 |golden|_2 for every tensor. */
static rrl_status compare_gradient(bench *b, const char *path, rrl_device *d) {
    rrl_status rc = RRL_OK;
    rrl_safetensors *want = NULL;
    float *got = NULL, *golden = NULL;
    int64_t size = rrl_adapter_size(b->adapter);
    const rrl_trainable *t = rrl_adapter_tensors(b->adapter);
    RRL_GOTO(rrl_safetensors_open(&want, path));
    RRL_GOTO(rrl_alloc(&got, (size_t)size, sizeof *got, "gradient"));
    RRL_GOTO(rrl_alloc(&golden, (size_t)size, sizeof *golden, "gradient"));
    RRL_GOTO(d->ops->download(d, got, rrl_learner_gradient_data(b->learner), (size_t)size * sizeof *got));
    for (int32_t i = 0; i < rrl_adapter_count(b->adapter); i++) {
        const rrl_st_tensor *g = rrl_safetensors_find(want, t[i].name);
        double diff = 0, norm = 0;
        if (!g) {
            failures++;
            fprintf(stderr, "%s: no tensor %s\n", path, t[i].name);
            continue;
        }
        RRL_GOTO(rrl_safetensors_to_f32(golden, g));
        for (int64_t k = 0; k < g->n_elements; k++) {
            double x = (double)got[t[i].offset + k] - (double)golden[k];
            diff += x * x;
            norm += (double)golden[k] * (double)golden[k];
        }
        compare(t[i].name, sqrt(diff), 0, 1e-4 * sqrt(norm));
    }
done:
    free(got);
    free(golden);
    rrl_safetensors_close(&want);
    return rc;
}

static double number(const cJSON *o, const char *key, int i) {
    const cJSON *x = cJSON_GetObjectItemCaseSensitive(o, key);
    return (i < 0 ? x : cJSON_GetArrayItem(x, i))->valuedouble;
}

static void compare_losses(const cJSON *want, const bench *b, const rrl_row_stats *stats, const char *what) {
    const cJSON *metrics = cJSON_GetObjectItemCaseSensitive(want, "metrics_per_micro_batch");
    double sum = 0;
    for (int g = 0; g < GROUPS; g++) {
        double loss = 0, kl = 0, entropy = 0, low = 0, high = 0;
        for (int i = 0; i < G; i++) {
            const rrl_row_stats *s = &stats[g * G + i];
            loss += s->loss_policy + s->loss_kl;
            kl += s->kl_sum;
            entropy += s->entropy_sum;
            low += s->clip_low;
            high += s->clip_high;
        }
        double tokens = (double)b->groups[g]->head.n_tokens, golden = number(want, "loss_per_micro_batch", g);
        compare(what, loss, golden, 1e-6 + 1e-4 * fabs(golden));
        compare("kl", kl / tokens, number(metrics, "kl", g), 1e-5);
        compare("entropy", entropy / tokens, number(metrics, "entropy", g), 1e-4);
        compare("clip low", low / tokens, number(metrics, "clip_ratio/low_mean", g), 1e-6);
        compare("clip high", high / tokens, number(metrics, "clip_ratio/high_mean", g), 1e-6);
        sum += loss;
    }
    compare(what, sum, number(want, "loss", -1), 1e-6 + 1e-4 * fabs(number(want, "loss", -1)));
}

static rrl_status one_type(const char *dir, const char *arch, rrl_device *d, rrl_loss_type type, const char *name,
                           const cJSON *json) {
    rrl_status rc = RRL_OK;
    bench b = {0};
    char path[MAX_PATH];
    rrl_row_stats stats[ROWS] = {{0}};
    RRL_GOTO(open_bench(&b, dir, arch, d, type));
    RRL_GOTO(rrl_learner_gradient(b.learner, stats, b.groups, b.prompts, 0, GROUPS, 0));
    compare_losses(cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "losses"), name), &b, stats, name);
    snprintf(path, sizeof path, "%s/%s/grpo_grads_%s.safetensors", dir, arch, name);
    RRL_GOTO(compare_gradient(&b, path, d));
done:
    close_bench(&b);
    return rc;
}

static int end(rrl_status rc, const char *arch, int before) {
    if (rc != RRL_OK) {
        failures++;
        fprintf(stderr, "%s: %s\n", arch, rrl_error_message());
    }
    return failures - before;
}

int golden_learn_grpo(const char *dir, const char *arch, rrl_device *d) {
    rrl_status rc = RRL_OK;
    int before = failures;
    char path[MAX_PATH];
    cJSON *json = NULL;
    snprintf(path, sizeof path, "%s/%s/grpo.json", dir, arch);
    RRL_GOTO(rrl_json_file(&json, path, 1 << 20));
#define X(type, name) RRL_GOTO(one_type(dir, arch, d, type, name, json));
    RRL_LOSS_LIST(X)
#undef X
done:
    cJSON_Delete(json);
    return end(rc, arch, before);
}

/* The stored gradient of a loss type times a scale, where the learner keeps its own. */
static rrl_status put_gradient(bench *b, const char *dir, const char *arch, const char *type, double scale, rrl_device *d) {
    rrl_status rc = RRL_OK;
    char path[MAX_PATH];
    rrl_safetensors *st = NULL;
    float *host = NULL;
    int64_t size = rrl_adapter_size(b->adapter);
    const rrl_trainable *t = rrl_adapter_tensors(b->adapter);
    snprintf(path, sizeof path, "%s/%s/grpo_grads_%s.safetensors", dir, arch, type);
    RRL_GOTO(rrl_safetensors_open(&st, path));
    RRL_GOTO(rrl_alloc(&host, (size_t)size, sizeof *host, "gradient"));
    for (int32_t i = 0; i < rrl_adapter_count(b->adapter); i++)
        RRL_GOTO(rrl_safetensors_to_f32(host + t[i].offset, rrl_safetensors_find(st, t[i].name)));
    for (int64_t i = 0; i < size; i++) host[i] *= (float)scale;
    RRL_GOTO(d->ops->upload(d, rrl_learner_gradient_data(b->learner), host, (size_t)size * sizeof *host));
done:
    free(host);
    rrl_safetensors_close(&st);
    return rc;
}

/* The script that wrote adamw.safetensors kept a reference for wd0.01.step1, so that the file holds step 2 under that name
 * as well. Such a tensor says nothing about step 1 (test_learn has the closed form of that step). */
static bool holds_step2(const rrl_safetensors *want, const rrl_st_tensor *w, const char *name) {
    char other[512];
    snprintf(other, sizeof other, "%s", name);
    char *step = strstr(other, ".step1.");
    if (!step) return false;
    step[5] = '2';
    const rrl_st_tensor *t = rrl_safetensors_find(want, other);
    return t && memcmp(t->data, w->data, (size_t)w->n_elements * sizeof(float)) == 0;
}

static rrl_status compare_adapter(bench *b, const rrl_safetensors *want, const char *prefix, rrl_device *d) {
    rrl_status rc = RRL_OK;
    float *got = NULL;
    const rrl_trainable *t = rrl_adapter_tensors(b->adapter);
    RRL_GOTO(rrl_alloc(&got, (size_t)rrl_adapter_size(b->adapter), sizeof *got, "adapter"));
    RRL_GOTO(d->ops->download(d, got, rrl_adapter_data(b->adapter), (size_t)rrl_adapter_size(b->adapter) * sizeof *got));
    for (int32_t i = 0; i < rrl_adapter_count(b->adapter); i++) {
        char name[512];
        double worst = 0;
        snprintf(name, sizeof name, "%s.%s", prefix, t[i].name);
        const rrl_st_tensor *w = rrl_safetensors_find(want, name);
        if (!w || holds_step2(want, w, name)) continue;
        for (int64_t k = 0; k < w->n_elements; k++) worst = fmax(worst, fabs((double)got[t[i].offset + k] - (double)float_at(w, k)));
        compare(name, worst, 0, 1e-6);
    }
done:
    free(got);
    return rc;
}

static rrl_status adamw_run(const char *dir, const char *arch, rrl_device *d, double decay, const cJSON *json,
                            const rrl_safetensors *want) {
    rrl_status rc = RRL_OK;
    bench b = {0};
    RRL_GOTO(open_bench(&b, dir, arch, d, RRL_LOSS_GRPO));
    rrl_learner_close(&b.learner);
    rrl_learner_settings s = {.grpo = {.type = RRL_LOSS_GRPO, .micro_rows = G, .accumulation = 2, .max_tokens = b.max_tokens},
                              .group_size = G, .slot_rows = G, .groups = GROUPS, .temperature = 0.7f, .weight_decay = decay,
                              .max_grad_norm = 1.0, .max_rows = 64};
    RRL_GOTO(rrl_learner_open(&b.learner, b.model, b.adapter, &s));
    for (int step = 1; step <= 2; step++) {
        char key[64], prefix[64];
        double norm = 0;
        bool finite = false;
        snprintf(key, sizeof key, "step%d_scale", step);
        RRL_GOTO(put_gradient(&b, dir, arch, step == 1 ? "grpo" : "bnpo", number(json, key, -1), d));
        RRL_GOTO(rrl_learner_update(b.learner, &norm, &finite, number(json, "lr", -1), 0));
        compare("gradient norm", norm, step == 1 ? 2.5 : 0.5, 1e-5);
        snprintf(prefix, sizeof prefix, "wd%s.step%d", decay > 0 ? "0.01" : "0.0", step);
        RRL_GOTO(compare_adapter(&b, want, prefix, d));
    }
done:
    close_bench(&b);
    return rc;
}

int golden_learn_adamw(const char *dir, const char *arch, rrl_device *d) {
    rrl_status rc = RRL_OK;
    int before = failures;
    char path[MAX_PATH];
    cJSON *json = NULL;
    rrl_safetensors *want = NULL;
    snprintf(path, sizeof path, "%s/%s/adamw.json", dir, arch);
    RRL_GOTO(rrl_json_file(&json, path, 1 << 20));
    snprintf(path, sizeof path, "%s/%s/adamw.safetensors", dir, arch);
    RRL_GOTO(rrl_safetensors_open(&want, path));
    RRL_GOTO(adamw_run(dir, arch, d, 0, json, want));
    RRL_GOTO(adamw_run(dir, arch, d, 0.01, json, want));
done:
    cJSON_Delete(json);
    rrl_safetensors_close(&want);
    return end(rc, arch, before);
}

int golden_learn_all(const char *dir, rrl_device *d) {
    static const char *const archs[] = {"llama", "qwen2"};
    int n = 0;
    for (int i = 0; i < 2; i++) n += golden_learn_grpo(dir, archs[i], d) + golden_learn_adamw(dir, archs[i], d);
    return n;
}
