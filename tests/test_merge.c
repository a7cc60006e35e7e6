/* Merging an adapter: the merged model's logits against those of PEFT's adapter, the bytes written, and each refusal. */
#include "check.h"

#include <stdint.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "data/safetensors.h"
#include "model/merge.h"

#define GOLDEN RRL_SOURCE_DIR "/tests/golden"
static char root[512]; /* what this test writes */
static rrl_device *device;

/* A golden base and adapter. */
typedef struct {
    char dir[512], model_dir[600];
    rrl_model *model;
    rrl_adapter *adapter;
    rrl_safetensors *weights, *adapter_file;
} pair;

static int pair_open(pair *p, const char *arch) {
    char path[700];
    *p = (pair){0};
    snprintf(p->dir, sizeof p->dir, "%s/%s", GOLDEN, arch);
    snprintf(p->model_dir, sizeof p->model_dir, "%s/model", p->dir);
    snprintf(path, sizeof path, "%s/adapter", p->dir);
    if (!CHECK_OK(rrl_model_open(&p->model, device, p->model_dir))) return 0;
    if (!CHECK_OK(rrl_adapter_load(&p->adapter, p->model, path))) return 0;
    snprintf(path, sizeof path, "%s/adapter/adapter_model.safetensors", p->dir);
    return CHECK_OK(rrl_safetensors_open_model(&p->weights, p->model_dir)) &&
           CHECK_OK(rrl_safetensors_open(&p->adapter_file, path));
}

static void pair_close(pair *p) {
    rrl_safetensors_close(&p->adapter_file);
    rrl_safetensors_close(&p->weights);
    rrl_adapter_close(&p->adapter);
    rrl_model_close(&p->model);
}

static const char *place(const char *name) {
    static char path[700];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static float *floats(const rrl_safetensors *s, const char *name, int64_t *n) {
    const rrl_st_tensor *t = rrl_safetensors_find(s, name);
    float *v = NULL;
    if (!CHECK(t != NULL)) exit(1);
    *n = t->n_elements;
    v = malloc((size_t)t->n_elements * sizeof *v);
    CHECK_OK(rrl_safetensors_to_f32(v, t));
    return v;
}

static int64_t integer(const rrl_st_tensor *t, int64_t i) {
    int64_t v;
    memcpy(&v, (const char *)t->data + 8 * i, sizeof v);
    return v;
}

/* --- logits */

/* Row `row` of the golden inputs: real tokens first, then padding. */
static int32_t sequence(int32_t *ids, const rrl_st_tensor *tokens, const rrl_st_tensor *mask, int64_t row) {
    const int64_t width = tokens->dims[1];
    int32_t n = 0;
    for (; n < width && integer(mask, row * width + n); n++) ids[n] = (int32_t)integer(tokens, row * width + n);
    return n;
}

/* Against torch, transformers and PEFT (tests/golden/README.md): f32 sums of about 100 terms, logits of size 5. */
static void logits_of(const char *arch, const char *dir) {
    pair p;
    char path[600];
    rrl_model *merged = NULL;
    rrl_safetensors *golden = NULL;
    snprintf(path, sizeof path, "%s/%s/forward.safetensors", GOLDEN, arch);
    if (!pair_open(&p, arch) || !CHECK_OK(rrl_model_open(&merged, device, dir)) ||
        !CHECK_OK(rrl_safetensors_open(&golden, path)))
        return;
    const rrl_st_tensor *ids = rrl_safetensors_find(golden, "input_ids"),
                        *mask = rrl_safetensors_find(golden, "attention_mask");
    const int32_t vocab = rrl_model_dims(merged)->vocab;
    int64_t n_want;
    float *want = floats(golden, "logits_adapter", &n_want), *got = malloc((size_t)64 * vocab * sizeof *got),
          *unmerged = malloc((size_t)64 * vocab * sizeof *got);
    rrl_merge_error e = {0};
    for (int64_t row = 0; row < ids->dims[0]; row++) {
        int32_t tokens[64];
        const int32_t n = sequence(tokens, ids, mask, row);
        double worst = 0;
        CHECK_OK(rrl_merge_logits(got, merged, NULL, tokens, n));
        CHECK_OK(rrl_merge_logits(unmerged, p.model, p.adapter, tokens, n));
        for (int64_t i = 0; i < (int64_t)n * vocab; i++) {
            const double d = fabs((double)got[i] - want[row * ids->dims[1] * vocab + i]);
            if (!(d <= worst)) worst = d; /* NaN sticks */
        }
        CHECK_NEAR(worst, 0, 1e-4);
        rrl_merge_compare(&e, got, unmerged, n, vocab);
    }
    CHECK(e.positions > 8 && e.other_argmax == 0);
    CHECK(e.largest > 0 && e.largest < 1e-4 && e.largest_rel > 0 && e.largest_rel < 1e-4);
    free(want), free(got), free(unmerged);
    rrl_safetensors_close(&golden);
    rrl_model_close(&merged);
    pair_close(&p);
}

/* --- weights */

/* W + (alpha / r) B A of a module in double, from the files. */
static double *merged_weight(const pair *p, const char *module, int64_t *count) {
    char name[160];
    int64_t n_w, n_a, n_b;
    const int64_t r = rrl_adapter_rank(p->adapter);
    const double scale = rrl_adapter_alpha(p->adapter) / (double)r;
    snprintf(name, sizeof name, "%s.weight", module);
    float *w = floats(p->weights, name, &n_w);
    snprintf(name, sizeof name, "base_model.model.%s.lora_A.weight", module);
    float *a = floats(p->adapter_file, name, &n_a);
    snprintf(name, sizeof name, "base_model.model.%s.lora_B.weight", module);
    float *b = floats(p->adapter_file, name, &n_b);
    const int64_t k = n_a / r, n = n_b / r;
    double *out = malloc((size_t)n_w * sizeof *out);
    CHECK_EQ_INT(n * k, n_w);
    for (int64_t i = 0; i < n * k; i++) {
        double sum = 0;
        for (int64_t j = 0; j < r; j++) sum += (double)b[i / k * r + j] * (double)a[j * k + i % k];
        out[i] = (double)w[i] + scale * sum;
    }
    free(w), free(a), free(b);
    *count = n_w;
    return out;
}

/* Every written weight is within `error` (relative) of the exact one; those that the adapter leaves alone are equal to
 * the rounded base. */
static void weights_of(const char *dir, rrl_st_dtype dtype, double error, double tiny) {
    pair p;
    rrl_safetensors *got = NULL;
    if (!pair_open(&p, "llama") || !CHECK_OK(rrl_safetensors_open_model(&got, dir))) return;
    CHECK_EQ_INT(rrl_safetensors_count(got), rrl_safetensors_count(p.weights));
    static const char *const MODULES[] = {"model.layers.0.self_attn.k_proj", "model.layers.1.mlp.down_proj"};
    for (int i = 0; i < 2; i++) {
        char name[160];
        int64_t n, n_got;
        double worst = 0;
        double *want = merged_weight(&p, MODULES[i], &n);
        snprintf(name, sizeof name, "%s.weight", MODULES[i]);
        float *v = floats(got, name, &n_got);
        CHECK_EQ_INT(n_got, n);
        CHECK_EQ_INT(rrl_safetensors_find(got, name)->dtype, dtype);
        for (int64_t j = 0; j < n; j++) worst = fmax(worst, (fabs(v[j] - want[j]) - tiny) / fabs(want[j]));
        CHECK_NEAR(worst, 0, error);
        free(want), free(v);
    }
    int64_t n;
    float *norm = floats(p.weights, "model.norm.weight", &n), *v = floats(got, "model.norm.weight", &n);
    for (int64_t j = 0; j < n; j++) CHECK_NEAR(v[j], norm[j], error * fabs((double)norm[j]));
    free(norm), free(v);
    rrl_safetensors_close(&got);
    pair_close(&p);
}

static void written(void) {
    static const struct {
        const char *name;
        rrl_merge_dtype dtype;
        rrl_st_dtype file;
        double error, tiny; /* half a unit of the last place, f32 sums included; half the smallest step (f16) */
    } CASES[] = {
        {"auto", RRL_MERGE_AUTO, RRL_ST_F32, 0x1p-20, 1e-8}, /* f32 sums of 8 products near 0: absolute */
        {"float32", RRL_MERGE_F32, RRL_ST_F32, 0x1p-20, 1e-8},
        {"bfloat16", RRL_MERGE_BF16, RRL_ST_BF16, 0x1p-8 * 1.01, 1e-8},
        {"float16", RRL_MERGE_F16, RRL_ST_F16, 0x1p-11 * 1.01, 0x1p-25},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        pair p;
        rrl_merge_report r = {0};
        rrl_merge_dtype dtype = RRL_MERGE_AUTO;
        if (!pair_open(&p, "llama")) return;
        CHECK_OK(rrl_merge_dtype_of(&dtype, CASES[i].name));
        CHECK_EQ_INT(dtype, CASES[i].dtype);
        CHECK_OK(rrl_merge_write(&r, p.adapter, p.model_dir, place(CASES[i].name), dtype));
        CHECK_EQ_INT(r.matrices, 14);
        CHECK_EQ_INT(r.weights, 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 112));
        CHECK(r.change > 1e-4 && r.change < 10);
        if (CASES[i].file == RRL_ST_F32) CHECK(r.rounding == 0 && r.rounding_rel == 0);
        else CHECK(r.rounding > 0 && r.rounding_rel > 0 && r.rounding < 0.02);
        if (CASES[i].file == RRL_ST_BF16) CHECK(r.rounding_rel <= 0x1p-8 && r.rounding_rel > 0x1p-10);
        weights_of(place(CASES[i].name), CASES[i].file, CASES[i].error, CASES[i].tiny);
        CHECK_STATUS(rrl_merge_write(&r, p.adapter, p.model_dir, place(CASES[i].name), dtype), RRL_ERR_USAGE);
        pair_close(&p);
    }
    logits_of("llama", place("auto"));
    rrl_merge_dtype dtype;
    CHECK_STATUS(rrl_merge_dtype_of(&dtype, "float8"), RRL_ERR_USAGE);
}

/* Biases (Qwen2) stay; the config tells the type. */
static void other_family(void) {
    pair p;
    rrl_merge_report r;
    cJSON *config = NULL;
    const char *type = NULL;
    if (!pair_open(&p, "qwen2")) return;
    CHECK_OK(rrl_merge_write(&r, p.adapter, p.model_dir, place("qwen2"), RRL_MERGE_F32));
    pair_close(&p);
    logits_of("qwen2", place("qwen2"));
    CHECK_OK(rrl_json_file(&config, place("bfloat16/config.json"), 1 << 20));
    if (cJSON_GetObjectItem(config, "torch_dtype"))
        CHECK_OK(rrl_json_string(&type, config, "torch_dtype", false, "config.json"));
    else CHECK_OK(rrl_json_string(&type, config, "dtype", false, "config.json"));
    CHECK_EQ_STR(type, "bfloat16");
    cJSON_Delete(config);
}

/* --- rounding at the edges, through a model file that is all B = 0 but for what the base holds */

static const struct {
    float value;
    uint16_t bf16, f16; /* f16 0x7c00: too large */
} EDGES[] = {
    {0.0f, 0x0000, 0x0000},      {-0.0f, 0x8000, 0x8000},    {1.0f, 0x3f80, 0x3c00},
    {0x1.01p0f, 0x3f80, 0x3c04}, {0x1.03p0f, 0x3f82, 0x3c0c}, /* ties of bf16 go to even */
    {0x1.002p0f, 0x3f80, 0x3c00}, {0x1.006p0f, 0x3f80, 0x3c02}, /* ties of f16 */
    {0x1p-24f, 0x3380, 0x0001},  {0x1p-25f, 0x3300, 0x0000}, {0x1.8p-24f, 0x33c0, 0x0002}, /* denormals of f16 */
    {-0x1.ffcp-15f, 0xb880, 0x8400}, {65504.0f, 0x4780, 0x7bff},
};
enum { N_EDGES = sizeof EDGES / sizeof EDGES[0], SEEN = 64 };

/* The tiny base with EDGES in its final norm, as an own folder. */
typedef struct {
    const rrl_safetensors *base;
    float norm[SEEN];
} edge_model;

static rrl_status edge_source(const void **bytes, int64_t i, void *context) {
    edge_model *x = context;
    const rrl_st_tensor *t = rrl_safetensors_at(x->base, i);
    *bytes = strcmp(t->name, "model.norm.weight") == 0 ? (const void *)x->norm : t->data;
    return RRL_OK;
}

static void copy_config(const pair *p, const char *dir) {
    char from[800], to[800], *text = NULL;
    size_t n = 0;
    snprintf(from, sizeof from, "%s/config.json", p->model_dir);
    snprintf(to, sizeof to, "%s/config.json", dir);
    CHECK_OK(rrl_file_read(&text, &n, from, 1 << 20));
    CHECK_OK(rrl_file_publish(to, text, n));
    free(text);
}

static rrl_status merge_edges(const pair *p, float last, rrl_merge_dtype dtype, const char *name) {
    rrl_merge_report r;
    edge_model x = {.base = p->weights};
    rrl_st_tensor *heads = malloc((size_t)rrl_safetensors_count(p->weights) * sizeof *heads);
    char dir[700], file[800];
    for (int i = 0; i < N_EDGES; i++) x.norm[i] = EDGES[i].value;
    x.norm[N_EDGES] = last;
    for (int64_t i = 0; i < rrl_safetensors_count(p->weights); i++) heads[i] = *rrl_safetensors_at(p->weights, i);
    snprintf(dir, sizeof dir, "%s", place("edges"));
    snprintf(file, sizeof file, "%s/model.safetensors", dir);
    CHECK_OK(rrl_dir_make(dir));
    CHECK_OK(rrl_safetensors_stream(file, heads, rrl_safetensors_count(p->weights), edge_source, &x));
    copy_config(p, dir);
    free(heads);
    return rrl_merge_write(&r, p->adapter, dir, place(name), dtype);
}

static void rounding(void) {
    pair p;
    rrl_safetensors *s = NULL;
    if (!pair_open(&p, "llama")) return;
    CHECK_EQ_INT(rrl_model_dims(p.model)->hidden, SEEN);
    CHECK_OK(merge_edges(&p, 0, RRL_MERGE_BF16, "edges-bf16"));
    CHECK_OK(merge_edges(&p, 0, RRL_MERGE_F16, "edges-f16"));
    for (int half = 0; half < 2; half++) {
        if (!CHECK_OK(rrl_safetensors_open_model(&s, place(half ? "edges-f16" : "edges-bf16")))) continue;
        const rrl_st_tensor *t = rrl_safetensors_find(s, "model.norm.weight");
        for (int i = 0; i < N_EDGES; i++) {
            uint16_t bits;
            memcpy(&bits, (const char *)t->data + 2 * i, sizeof bits);
            if (!CHECK_EQ_INT(bits, half ? EDGES[i].f16 : EDGES[i].bf16)) fprintf(stderr, "  edge %d\n", i);
        }
        rrl_safetensors_close(&s);
    }
    CHECK_STATUS(merge_edges(&p, 65520.0f, RRL_MERGE_F16, "too-large"), RRL_ERR_NONFINITE);
    CHECK(strstr(rrl_error_message(), "model.norm.weight") != NULL);
    CHECK(!rrl_file_exists(place("too-large/model.safetensors")) && !rrl_file_exists(place("too-large/config.json")));
    CHECK_OK(merge_edges(&p, 65519.0f, RRL_MERGE_F16, "too-large")); /* what a failed call left is no obstacle */
    CHECK_STATUS(merge_edges(&p, NAN, RRL_MERGE_BF16, "nan"), RRL_ERR_NONFINITE);
    pair_close(&p);
}

static void compare(void) {
    static const float A[] = {1, 2, 3, 3, 2, -4}, B[] = {1, 2.5f, 3, 2, 3, -4}, C[] = {1, NAN, 3};
    rrl_merge_error e = {0};
    rrl_merge_compare(&e, A, A, 2, 3);
    CHECK(e.positions == 2 && e.other_argmax == 0 && e.largest == 0 && e.largest_rel == 0);
    rrl_merge_compare(&e, A, B, 2, 3);
    CHECK_EQ_INT(e.positions, 4);
    CHECK_EQ_INT(e.other_argmax, 1);
    CHECK(e.largest == 1);
    CHECK_NEAR(e.largest_rel, 0.25, 1e-15); /* 1 of 4 in row 2; 0.5 of 3 in row 1 is less */
    rrl_merge_compare(&e, C, A, 1, 3);
    CHECK(isinf(e.largest));
}

int main(void) {
    char command[600];
    snprintf(root, sizeof root, "%s/merge_case", RRL_BINARY_DIR);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (!CHECK(system(command) == 0) || !CHECK_OK(rrl_cpu_open(&device, "auto", 2))) return CHECK_DONE();
    written();
    other_family();
    rounding();
    compare();
    rrl_device_close(&device);
    CHECK(system(command) == 0);
    return CHECK_DONE();
}
