/* Stands in for what needs libraries that a bare machine lacks. A model folder is one of the names below, its config a
 * row of a table, its weights random numbers in memory; digests, which decide nothing here, are short sums. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "device/scalar.h"
#include "model/model_parts.h"

static const rrl_model_config SHAPES[] = {
    [RRL_GPU_TINY] = {.family = "qwen2", .hidden = 96, .layers = 2, .heads = 6, .kv_heads = 2, .head_dim = 16,
                      .intermediate = 160, .vocab = 1100, .max_positions = 256, .rms_eps = 1e-6f, .rope_theta = 1e4,
                      .tied = true, .qkv_bias = true},
    [RRL_GPU_QWEN_05B] = {.family = "qwen2", .hidden = 896, .layers = 24, .heads = 14, .kv_heads = 2, .head_dim = 64,
                          .intermediate = 4864, .vocab = 151936, .max_positions = 2048, .rms_eps = 1e-6f,
                          .rope_theta = 1e6, .tied = true, .qkv_bias = true},
};
static const char *const NAMES[] = {[RRL_GPU_TINY] = "tiny", [RRL_GPU_QWEN_05B] = "qwen2.5-0.5b"};

const char *rrl_gpu_model(rrl_gpu_shape shape) { return NAMES[shape]; }

static const rrl_model_config *shape_of(const char *dir) {
    return strcmp(dir, NAMES[RRL_GPU_TINY]) == 0 ? &SHAPES[RRL_GPU_TINY] : &SHAPES[RRL_GPU_QWEN_05B];
}

/* No end token: completions have the length asked for. */
rrl_status rrl_model_config_read(rrl_model_config *out, const char *dir) {
    *out = *shape_of(dir);
    return RRL_OK;
}

/* --- weights */

enum { NAME_CHARS = 96 };

struct rrl_safetensors {
    rrl_st_tensor *tensors;
    char (*names)[NAME_CHARS];
    int64_t n;
    uint16_t *values; /* of all, one after the other */
    uint64_t state;   /* of the random numbers */
};

static void add(rrl_safetensors *s, int n_dims, int64_t rows, int64_t cols, const char *name) {
    snprintf(s->names[s->n], NAME_CHARS, "%s", name);
    s->tensors[s->n] = (rrl_st_tensor){.name = s->names[s->n], .dtype = RRL_ST_BF16, .n_dims = n_dims,
                                       .dims = {rows, cols}, .n_elements = n_dims == 1 ? rows : rows * cols};
    s->n++;
}

static void add_layer(rrl_safetensors *s, const rrl_model_config *c, int layer) {
    char name[NAME_CHARS];
    for (int module = 0; module < RRL_MODULES; module++) {
        const char *parent = rrl_module_parent(module), *own = rrl_module_name(module);
        int64_t n, k;
        rrl_module_shape(&n, &k, c, module);
        snprintf(name, sizeof name, "model.layers.%d.%s.%s.weight", layer, parent, own);
        add(s, 2, n, k, name);
        if (!c->qkv_bias || module > RRL_MODULE_V) continue;
        snprintf(name, sizeof name, "model.layers.%d.%s.%s.bias", layer, parent, own);
        add(s, 1, n, 0, name);
    }
    snprintf(name, sizeof name, "model.layers.%d.input_layernorm.weight", layer);
    add(s, 1, c->hidden, 0, name);
    snprintf(name, sizeof name, "model.layers.%d.post_attention_layernorm.weight", layer);
    add(s, 1, c->hidden, 0, name);
}

static float uniform(rrl_safetensors *s) {
    s->state ^= s->state << 13;
    s->state ^= s->state >> 7;
    s->state ^= s->state << 17;
    return (float)(int32_t)(s->state >> 32) * 0x1p-31f; /* [-1, 1) */
}

/* Norms near 1, matrices as wide as 1 / sqrt(inputs) asks for, so that hidden states neither die nor grow. */
static void fill(rrl_safetensors *s, rrl_st_tensor *t, uint16_t *values) {
    const bool norm = strstr(t->name, "norm") != NULL;
    const float width = t->n_dims == 2 ? sqrtf(3.0f / (float)t->dims[1]) : norm ? 0.1f : 0.5f;
    for (int64_t i = 0; i < t->n_elements; i++) values[i] = rrl_bf16_of((norm ? 1.0f : 0.0f) + width * uniform(s));
    t->data = values;
}

rrl_status rrl_safetensors_open_model(rrl_safetensors **out, const char *dir) {
    const rrl_model_config *c = shape_of(dir);
    const size_t most = (size_t)c->layers * (RRL_MODULES + 5) + 2;
    rrl_status rc = RRL_OK;
    rrl_safetensors *s = NULL;
    int64_t all = 0;
    RRL_GOTO(rrl_alloc(&s, 1, sizeof *s, "random weights"));
    s->state = 88172645463325252u;
    RRL_GOTO(rrl_alloc(&s->tensors, most, sizeof *s->tensors, "random weights"));
    RRL_GOTO(rrl_alloc(&s->names, most, sizeof *s->names, "random weights"));
    add(s, 2, c->vocab, c->hidden, "model.embed_tokens.weight");
    for (int i = 0; i < c->layers; i++) add_layer(s, c, i);
    add(s, 1, c->hidden, 0, "model.norm.weight");
    for (int64_t i = 0; i < s->n; i++) all += s->tensors[i].n_elements;
    RRL_GOTO(rrl_alloc(&s->values, (size_t)all, sizeof *s->values, "random weights"));
    all = 0;
    for (int64_t i = 0; i < s->n; all += s->tensors[i++].n_elements) fill(s, &s->tensors[i], s->values + all);
    *out = s;
    s = NULL;
done:
    rrl_safetensors_close(&s);
    return rc;
}

void rrl_safetensors_close(rrl_safetensors **s) {
    if (!*s) return;
    free((*s)->tensors);
    free((*s)->names);
    free((*s)->values);
    free(*s);
    *s = NULL;
}

int64_t rrl_safetensors_count(const rrl_safetensors *s) { return s->n; }
const rrl_st_tensor *rrl_safetensors_at(const rrl_safetensors *s, int64_t i) { return &s->tensors[i]; }

const rrl_st_tensor *rrl_safetensors_find(const rrl_safetensors *s, const char *name) {
    for (int64_t i = 0; i < s->n; i++)
        if (strcmp(s->tensors[i].name, name) == 0) return &s->tensors[i];
    return NULL;
}

rrl_status rrl_safetensors_to_f32(float *out, const rrl_st_tensor *t) {
    for (int64_t i = 0; i < t->n_elements; i++) out[i] = rrl_bf16_value(((const uint16_t *)t->data)[i]);
    return RRL_OK;
}

void rrl_safetensors_let_go(const rrl_st_tensor *t) {}
rrl_status rrl_safetensors_state(rrl_buffer *out, const rrl_safetensors *s) { return RRL_OK; }

rrl_status rrl_safetensors_digest(char out[65], const rrl_safetensors *s) {
    out[0] = '\0';
    return RRL_OK;
}

/* --- digests */

rrl_status rrl_sha256_of(uint8_t out[RRL_SHA256_BYTES], const void *bytes, size_t n) {
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) sum = (sum ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    memset(out, 0, RRL_SHA256_BYTES);
    memcpy(out, &sum, sizeof sum);
    return RRL_OK;
}

void rrl_sha256_joined(uint8_t out[RRL_SHA256_BYTES], const char *first, const char *second) {
    (void)rrl_sha256_of(out, first, strlen(first));
}

rrl_status rrl_sha256_file(uint8_t out[RRL_SHA256_BYTES], const char *path) {
    return rrl_sha256_of(out, path, strlen(path));
}

void rrl_sha256_hex(char out[RRL_SHA256_HEX], const uint8_t digest[RRL_SHA256_BYTES]) {
    for (int i = 0; i < RRL_SHA256_BYTES; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
