/* Writing the merged model: tensor by tensor from the base's files through f32 to the new one. */
#include "model/merge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "model/adapter_parts.h"

enum { CONFIG_BYTES = 1 << 20, TEXT_BYTES = 1 << 28 };

static const struct {
    const char *name;
    rrl_st_dtype dtype;
} DTYPES[] = {
    [RRL_MERGE_AUTO] = {"auto", RRL_ST_OTHER},
    [RRL_MERGE_F32] = {"float32", RRL_ST_F32},
    [RRL_MERGE_BF16] = {"bfloat16", RRL_ST_BF16},
    [RRL_MERGE_F16] = {"float16", RRL_ST_F16},
};
enum { N_DTYPES = sizeof DTYPES / sizeof DTYPES[0] };

rrl_status rrl_merge_dtype_of(rrl_merge_dtype *out, const char *name) {
    for (int i = 0; i < N_DTYPES; i++)
        if (strcmp(name, DTYPES[i].name) == 0) {
            *out = (rrl_merge_dtype)i;
            return RRL_OK;
        }
    return RRL_FAIL(RRL_ERR_USAGE, "--dtype %s: expected auto, float32, bfloat16 or float16", name);
}

static bool is_float(rrl_st_dtype t) {
    return t == RRL_ST_F32 || t == RRL_ST_BF16 || t == RRL_ST_F16;
}

/* --- rounding to nearest, ties to even; infinite where the type ends */

static uint16_t to_bf16(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t to_f16(float v) {
    uint32_t bits, size;
    memcpy(&bits, &v, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    size = bits & 0x7fffffff;
    if (size >= 0x47800000) return sign | 0x7c00;                                            /* 2^16 and more */
    if (size < 0x38800000) return (uint16_t)(sign | (uint32_t)lrintf(fabsf(v) * 0x1p24f)); /* denormal, below 2^-14 */
    size += 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | ((size >> 13) - (112 << 10)));
}

/* --- one tensor */

typedef struct {
    const rrl_adapter *adapter;
    const float *host; /* the adapter's flat vector */
    const rrl_safetensors *base;
    const rrl_st_tensor *heads; /* what is written */
    float *value, *back;        /* [largest tensor] the merged values; what their written form reads back as */
    float *change;              /* [largest row] a row of scale B A */
    uint16_t *half;             /* [largest tensor] the written form, where it is no f32 */
    rrl_merge_report *report;
} merge;

/* The adapter's part of a tensor; NULL if it has none. */
static const rrl_lora *lora_of(const rrl_adapter *a, const char *name) {
    int layer = -1, at = 0;
    if (sscanf(name, "model.layers.%d.%n", &layer, &at) != 1 || at == 0 || layer < 0 || layer >= a->layers) return NULL;
    for (int module = 0; module < RRL_MODULES; module++) {
        char wanted[96];
        snprintf(wanted, sizeof wanted, "%s.%s.weight", rrl_module_parent(module), rrl_module_name(module));
        if (strcmp(name + at, wanted) == 0) return rrl_adapter_module(a, layer * RRL_MODULES + module);
    }
    return NULL;
}

/* value [n,k] += scale B A */
static void add_lora(merge *m, const rrl_lora *l) {
    const float *a = m->host + (l->a - m->adapter->data), *b = m->host + (l->b - m->adapter->data);
    for (int64_t n = 0; n < l->n; n++) {
        float *row = m->value + n * l->k;
        memset(m->change, 0, (size_t)l->k * sizeof *m->change);
        for (int32_t j = 0; j < l->r; j++)
            for (int64_t k = 0; k < l->k; k++) m->change[k] += b[n * l->r + j] * a[j * (int64_t)l->k + k];
        for (int64_t k = 0; k < l->k; k++) {
            const float change = l->scale * m->change[k];
            m->report->change = fmax(m->report->change, fabs((double)change));
            row[k] += change;
        }
    }
    m->report->matrices++;
    m->report->weights += (int64_t)l->n * l->k;
}

/* The written form of value, and what it lost. */
static rrl_status round_values(const void **bytes, merge *m, const rrl_st_tensor *head, int64_t n) {
    rrl_merge_report *r = m->report;
    for (int64_t i = 0; i < n; i++)
        if (head->dtype == RRL_ST_BF16) m->half[i] = to_bf16(m->value[i]);
        else if (head->dtype == RRL_ST_F16) m->half[i] = to_f16(m->value[i]);
    *bytes = head->dtype == RRL_ST_F32 ? (const void *)m->value : m->half;
    rrl_st_tensor written = *head;
    written.data = *bytes;
    written.n_elements = n;
    RRL_TRY(rrl_safetensors_to_f32(m->back, &written));
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(m->back[i]) || !isfinite(m->value[i]))
            return RRL_FAIL(RRL_ERR_NONFINITE, "tensor %s: element %lld is %g, which cannot be written as %s; try "
                            "--dtype float32", head->name, (long long)i, (double)m->value[i],
                            head->dtype == RRL_ST_F16 ? "float16" : head->dtype == RRL_ST_BF16 ? "bfloat16" : "float32");
        const double error = fabs((double)m->back[i] - (double)m->value[i]);
        r->rounding = fmax(r->rounding, error);
        if (m->value[i] != 0) r->rounding_rel = fmax(r->rounding_rel, error / fabs((double)m->value[i]));
    }
    return RRL_OK;
}

static rrl_status merged_tensor(const void **bytes, int64_t i, void *context) {
    merge *m = context;
    const rrl_st_tensor *from = rrl_safetensors_at(m->base, i);
    const rrl_lora *lora = lora_of(m->adapter, from->name);
    if (!lora && from->dtype == m->heads[i].dtype) {
        *bytes = from->data;
        return RRL_OK;
    }
    RRL_TRY(rrl_safetensors_to_f32(m->value, from));
    if (lora) {
        if (from->n_dims != 2 || from->dims[0] != lora->n || from->dims[1] != lora->k)
            return RRL_FAIL(RRL_ERR_DATA, "tensor %s: its shape is not the adapter's", from->name);
        add_lora(m, lora);
    }
    return round_values(bytes, m, &m->heads[i], from->n_elements);
}

/* --- the folder */

static rrl_status write_weights(merge *m, const char *path, rrl_merge_dtype dtype) {
    rrl_status rc = RRL_OK;
    rrl_st_tensor *heads = NULL;
    float *host = NULL;
    const rrl_adapter *a = m->adapter;
    const int64_t n = rrl_safetensors_count(m->base);
    int64_t largest = 0, widest = 0;
    RRL_GOTO(rrl_alloc(&heads, (size_t)n, sizeof *heads, "tensor list"));
    for (int64_t i = 0; i < n; i++) {
        heads[i] = *rrl_safetensors_at(m->base, i);
        if (dtype != RRL_MERGE_AUTO && is_float(heads[i].dtype)) heads[i].dtype = DTYPES[dtype].dtype;
        if (heads[i].n_elements > largest) largest = heads[i].n_elements;
        if (heads[i].n_dims == 2 && heads[i].dims[1] > widest) widest = heads[i].dims[1];
    }
    m->heads = heads;
    RRL_GOTO(rrl_alloc(&host, (size_t)a->size, sizeof *host, "adapter"));
    RRL_GOTO(a->device->ops->download(a->device, host, a->data, (size_t)a->size * sizeof *host));
    m->host = host;
    RRL_GOTO(rrl_alloc(&m->value, (size_t)largest, sizeof *m->value, "merged tensor"));
    RRL_GOTO(rrl_alloc(&m->back, (size_t)largest, sizeof *m->back, "merged tensor"));
    RRL_GOTO(rrl_alloc(&m->half, (size_t)largest, sizeof *m->half, "merged tensor"));
    RRL_GOTO(rrl_alloc(&m->change, (size_t)widest, sizeof *m->change, "row of a tensor"));
    RRL_GOTO(rrl_safetensors_stream(path, heads, n, merged_tensor, m));
done:
    free(m->change);
    free(m->half);
    free(m->back);
    free(m->value);
    free(host);
    free(heads);
    return rc;
}

/* One file of the base as it is; one that the base lacks is left out. */
static rrl_status copy_file(const char *from_dir, const char *to_dir, const char *name) {
    rrl_status rc = RRL_OK;
    char *from = NULL, *to = NULL, *text = NULL;
    size_t len = 0;
    RRL_GOTO(rrl_path_join(&from, from_dir, name));
    RRL_GOTO(rrl_path_join(&to, to_dir, name));
    if (!rrl_file_exists(from)) goto done;
    RRL_GOTO(rrl_file_read(&text, &len, from, TEXT_BYTES));
    RRL_GOTO(rrl_file_publish(to, text, len));
done:
    free(text);
    free(from);
    free(to);
    return rc;
}

/* config.json of the base with another "torch_dtype" ("dtype" since transformers 5); all else as it is. */
static rrl_status write_config(const char *base_dir, const char *path, const char *dtype) {
    static const char *const KEYS[] = {"torch_dtype", "dtype"};
    rrl_status rc = RRL_OK;
    char *from = NULL, *text = NULL;
    cJSON *root = NULL;
    RRL_GOTO(rrl_path_join(&from, base_dir, "config.json"));
    RRL_GOTO(rrl_json_file(&root, from, CONFIG_BYTES));
    for (int i = 0; i < 2; i++) {
        cJSON *name = cJSON_GetObjectItemCaseSensitive(root, KEYS[i]);
        if (name && !cJSON_ReplaceItemInObjectCaseSensitive(root, KEYS[i], cJSON_CreateString(dtype)))
            RRL_GOTO(RRL_FAIL(RRL_ERR_NOMEM, "%s", path));
    }
    text = cJSON_Print(root);
    if (!text) RRL_GOTO(RRL_FAIL(RRL_ERR_NOMEM, "%s", path));
    RRL_GOTO(rrl_file_publish(path, text, strlen(text)));
done:
    cJSON_free(text);
    cJSON_Delete(root);
    free(from);
    return rc;
}

rrl_status rrl_merge_write(rrl_merge_report *out, const rrl_adapter *a, const char *base_dir, const char *dir,
                           rrl_merge_dtype dtype) {
    static const char *const TEXTS[] = {"generation_config.json", "tokenizer.json", "tokenizer_config.json",
                                        "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
                                        "chat_template.jinja"};
    rrl_status rc = RRL_OK;
    rrl_merge_report report = {0};
    rrl_safetensors *base = NULL;
    char *weights = NULL, *config = NULL;
    RRL_GOTO(rrl_path_join(&weights, dir, "model.safetensors"));
    RRL_GOTO(rrl_path_join(&config, dir, "config.json"));
    if (rrl_file_exists(config))
        RRL_GOTO(RRL_FAIL(RRL_ERR_USAGE, "%s: holds a model; name another folder, or remove it", dir));
    RRL_GOTO(rrl_dir_make(dir));
    RRL_GOTO(rrl_safetensors_open_model(&base, base_dir));
    merge m = {.adapter = a, .base = base, .report = &report};
    RRL_GOTO(write_weights(&m, weights, dtype));
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) RRL_GOTO(copy_file(base_dir, dir, TEXTS[i]));
    if (dtype == RRL_MERGE_AUTO) RRL_GOTO(copy_file(base_dir, dir, "config.json"));
    else RRL_GOTO(write_config(base_dir, config, DTYPES[dtype].name));
    *out = report;
done:
    rrl_safetensors_close(&base);
    free(weights);
    free(config);
    return rc;
}
