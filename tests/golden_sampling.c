#include "golden_sampling.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/safetensors.h"
#include "device/cpu/cpu.h"

typedef struct {
    rrl_device *device;
    const char *folder;
    int64_t rows, vocabulary;
    float *logits, *probs, *logp;
    uint64_t *kept;
    int32_t *token;
    rrl_sample_row *row;
    int failures, checks;
} golden;

static void fail(golden *g, const char *name, int64_t row, int64_t id, double got, double want) {
    g->failures++;
    fprintf(stderr, "%s/sampling.safetensors: %s, row %lld, token %lld: %.9g, expected %.9g\n", g->folder,
            name, (long long)row, (long long)id, got, want);
}

static void check_row(golden *g, const char *name, int64_t row) {
    const uint64_t *kept = g->kept + row * g->vocabulary;
    const float *probs = g->probs + row * g->vocabulary;
    double total = 0;
    for (int64_t v = 0; v < g->vocabulary; ++v) total += (double)kept[v];
    for (int64_t v = 0; v < g->vocabulary; ++v) {
        double got = (double)kept[v] / total, want = probs[v];
        g->checks++;
        /* a mass is an integer multiple of 2^-40 of the largest: what weighs less than that may have none */
        bool support = kept[v] ? want > 0 : want < 0x1p-40;
        if (!support || !(fabs(got - want) <= 1e-6)) fail(g, name, row, v, got, want);
    }
    g->checks++;
    if (!kept[g->token[row]]) fail(g, name, row, g->token[row], 0, 1);
}

static void check_tensor(golden *g, const rrl_st_tensor *t) {
    double temperature, top_p;
    int top_k;
    if (sscanf(t->name, "probs_t%lf_k%d_p%lf", &temperature, &top_k, &top_p) != 3) return;
    if (t->n_elements != g->rows * g->vocabulary || rrl_safetensors_to_f32(g->probs, t) != RRL_OK) {
        g->failures++;
        fprintf(stderr, "%s/sampling.safetensors: %s is not like the logits\n", g->folder, t->name);
        return;
    }
    for (int64_t i = 0; i < g->rows; ++i)
        g->row[i] = (rrl_sample_row){.temperature = (float)temperature,
                                     .top_p = (float)top_p,
                                     .top_k = top_k,
                                     .repetition_penalty = 1,
                                     .key = {1, 2},
                                     .sample = (uint32_t)i};
    rrl_tensor logits = {g->logits, g->rows, g->vocabulary};
    if (rrl_cpu_sample_kept(g->device, g->token, g->logp, g->kept, logits, g->row) != RRL_OK) {
        g->failures++;
        fprintf(stderr, "%s: %s\n", t->name, rrl_error_message());
        return;
    }
    for (int64_t i = 0; i < g->rows; ++i) check_row(g, t->name, i);
}

static void check_file(golden *g, const rrl_safetensors *file) {
    const rrl_st_tensor *t = rrl_safetensors_find(file, "logits");
    if (!t || t->n_dims != 2) {
        g->failures++;
        fprintf(stderr, "%s/sampling.safetensors: no logits [rows, vocabulary]\n", g->folder);
        return;
    }
    g->rows = t->dims[0];
    g->vocabulary = t->dims[1];
    size_t n = (size_t)t->n_elements, rows = (size_t)g->rows;
    g->logits = malloc(n * sizeof *g->logits);
    g->probs = malloc(n * sizeof *g->probs);
    g->kept = malloc(n * sizeof *g->kept);
    g->logp = malloc(rows * sizeof *g->logp);
    g->token = malloc(rows * sizeof *g->token);
    g->row = malloc(rows * sizeof *g->row);
    if (rrl_safetensors_to_f32(g->logits, t) != RRL_OK) g->failures++;
    for (int64_t i = 0; i < rrl_safetensors_count(file); ++i) check_tensor(g, rrl_safetensors_at(file, i));
    free(g->logits);
    free(g->probs);
    free(g->kept);
    free(g->logp);
    free(g->token);
    free(g->row);
}

int golden_sampling(int *checks, rrl_device *d, const char *folder) {
    golden g = {.device = d, .folder = folder};
    rrl_safetensors *file = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/sampling.safetensors", folder);
    if (rrl_safetensors_open(&file, path) != RRL_OK) {
        fprintf(stderr, "%s: %s\n", path, rrl_error_message());
        return 1;
    }
    check_file(&g, file);
    rrl_safetensors_close(&file);
    *checks += g.checks;
    return g.failures;
}
