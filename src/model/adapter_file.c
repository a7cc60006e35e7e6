/* PEFT folders: adapter_config.json and adapter_model.safetensors, read strictly and written as PEFT 0.18
 * does. */
#include "model/adapter.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "data/safetensors.h"
#include "model/adapter_parts.h"

enum { CONFIG_BYTES = 1 << 20 };

/* --- reading the config */

/* Keys that are read below, or that change no number here. Any other key must be unset (null, false, empty):
 * PEFT grows options with each version, and one that this program does not know would change the adapter's
 * maths. */
static const char *const KNOWN_KEYS[] = {"peft_type",      "task_type",         "r",
                                         "lora_alpha",     "lora_dropout",      "target_modules",
                                         "bias",           "auto_mapping",      "base_model_name_or_path",
                                         "inference_mode", "init_lora_weights", "megatron_core",
                                         "peft_version",   "qalora_group_size", "revision"};

static bool is_unset(const cJSON *item) {
    if (cJSON_IsNull(item) || cJSON_IsFalse(item)) return true;
    return (cJSON_IsArray(item) || cJSON_IsObject(item)) && !item->child;
}

static rrl_status refuse_options(const cJSON *root, const char *where) {
    for (const cJSON *item = root->child; item; item = item->next) {
        bool known = false;
        for (size_t i = 0; i < sizeof KNOWN_KEYS / sizeof *KNOWN_KEYS && !known; i++)
            known = strcmp(item->string, KNOWN_KEYS[i]) == 0;
        if (!known && !is_unset(item))
            return RRL_FAIL(RRL_ERR_DATA,
                            "%s: \"%s\" is set, which is not supported; only plain LoRA adapters can "
                            "be loaded",
                            where, item->string);
    }
    return RRL_OK;
}

static rrl_status want_text(const cJSON *root, const char *key, const char *wanted, bool optional,
                            const char *where) {
    const char *found = wanted;
    RRL_TRY(rrl_json_string(&found, root, key, optional, where));
    if (strcmp(found, wanted) != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" is \"%s\", expected \"%s\"", where, key, found, wanted);
    return RRL_OK;
}

/* Ways to initialise that also change the base weights (pissa, olora, corda, loftq) make an adapter that fits
 * only that changed base. */
static rrl_status check_init(const cJSON *root, const char *where) {
    const cJSON *init = NULL;
    RRL_TRY(rrl_json_get(&init, root, "init_lora_weights", true, where));
    if (!init || cJSON_IsNull(init) || cJSON_IsBool(init)) return RRL_OK;
    const char *text = cJSON_IsString(init) ? init->valuestring : "?";
    if (strcmp(text, "gaussian") == 0 || strcmp(text, "orthogonal") == 0) return RRL_OK;
    return RRL_FAIL(RRL_ERR_DATA,
                    "%s: \"init_lora_weights\" is \"%s\", which may change the base weights; expected "
                    "true, false, \"gaussian\" or \"orthogonal\"",
                    where, text);
}

/* Names borrowed from the document; the caller frees *names. No list, but "all-linear" = n 0. */
static rrl_status read_targets(const char ***names, int32_t *n, const cJSON *root, const char *where) {
    const cJSON *targets = NULL, *item = NULL;
    RRL_TRY(rrl_json_get(&targets, root, "target_modules", false, where));
    if (cJSON_IsString(targets) && strcmp(targets->valuestring, "all-linear") == 0) return RRL_OK;
    if (!cJSON_IsArray(targets) || !targets->child)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: \"target_modules\" must be a list of module names or \"all-linear\" "
                        "(patterns are not supported)",
                        where);
    RRL_TRY(rrl_alloc(names, (size_t)cJSON_GetArraySize(targets), sizeof **names, "target modules"));
    cJSON_ArrayForEach(item, targets) {
        if (!cJSON_IsString(item))
            return RRL_FAIL(RRL_ERR_DATA, "%s: \"target_modules\" must be a list of module names", where);
        (*names)[(*n)++] = item->valuestring;
    }
    return RRL_OK;
}

/* spec->targets is allocated here and points into the document. */
static rrl_status read_config(rrl_adapter_spec *spec, const char ***names, const cJSON *root,
                              const char *where) {
    int64_t r = 0;
    if (!cJSON_IsObject(root)) return RRL_FAIL(RRL_ERR_DATA, "%s: expected an object", where);
    RRL_TRY(want_text(root, "peft_type", "LORA", false, where));
    RRL_TRY(want_text(root, "task_type", "CAUSAL_LM", true, where));
    RRL_TRY(want_text(root, "bias", "none", true, where));
    RRL_TRY(refuse_options(root, where));
    RRL_TRY(check_init(root, where));
    RRL_TRY(rrl_json_int(&r, root, "r", false, where));
    if (r < 1 || r > RRL_MAX_LORA_RANK)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"r\" is %lld, expected 1 to %d", where, (long long)r,
                        RRL_MAX_LORA_RANK);
    spec->r = (int32_t)r;
    RRL_TRY(rrl_json_double(&spec->alpha, root, "lora_alpha", false, where));
    RRL_TRY(rrl_json_double(&spec->dropout, root, "lora_dropout", true, where));
    RRL_TRY(read_targets(names, &spec->n_targets, root, where));
    spec->targets = *names;
    return RRL_OK;
}

/* --- reading the tensors */

static rrl_status read_tensor(float *host, const rrl_trainable *t, const rrl_safetensors *file,
                              const char *where) {
    const rrl_st_tensor *found = rrl_safetensors_find(file, t->name);
    if (!found) return RRL_FAIL(RRL_ERR_DATA, "%s: the tensor \"%s\" is missing", where, t->name);
    if (found->n_dims != 2 || found->dims[0] != t->rows || found->dims[1] != t->cols)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: tensor \"%s\" does not have the shape [%lld,%lld] that the model and r "
                        "ask for",
                        where, t->name, (long long)t->rows, (long long)t->cols);
    return rrl_safetensors_to_f32(host + t->offset, found);
}

static rrl_status read_tensors(rrl_adapter *a, const char *path) {
    rrl_status rc = RRL_OK;
    rrl_safetensors *file = NULL;
    float *host = NULL;
    RRL_GOTO(rrl_safetensors_open(&file, path));
    RRL_GOTO(rrl_alloc(&host, (size_t)a->size, sizeof *host, path));
    for (int32_t i = 0; i < a->count; i++) RRL_GOTO(read_tensor(host, &a->tensors[i], file, path));
    if (rrl_safetensors_count(file) != a->count) { /* all of ours are there, so some are not ours */
        rc = RRL_FAIL(RRL_ERR_DATA,
                      "%s: holds %lld tensors, expected %d: it adapts more than \"target_modules\" of "
                      "this model",
                      path, (long long)rrl_safetensors_count(file), a->count);
        goto done;
    }
    RRL_GOTO(a->device->ops->upload(a->device, a->data, host, (size_t)a->size * sizeof *host));
    RRL_GOTO(rrl_adapter_refresh(a));
done:
    free(host);
    rrl_safetensors_close(&file);
    return rc;
}

rrl_status rrl_adapter_load(rrl_adapter **out, const struct rrl_model *m, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_adapter *a = NULL;
    rrl_adapter_spec spec = {0};
    const char **names = NULL;
    char *config_path = NULL, *tensor_path = NULL;
    cJSON *root = NULL;
    RRL_GOTO(rrl_path_join(&config_path, dir, "adapter_config.json"));
    RRL_GOTO(rrl_path_join(&tensor_path, dir, "adapter_model.safetensors"));
    if (!rrl_file_exists(config_path) || !rrl_file_exists(tensor_path)) {
        rc = RRL_FAIL(RRL_ERR_DATA,
                      "%s: no PEFT adapter; expected adapter_config.json and adapter_model.safetensors", dir);
        goto done;
    }
    RRL_GOTO(rrl_json_file(&root, config_path, CONFIG_BYTES));
    RRL_GOTO(read_config(&spec, &names, root, config_path));
    RRL_GOTO(rrl_context(rrl_adapter_new(&a, m, &spec, RRL_ERR_DATA), "%s", config_path));
    RRL_GOTO(read_tensors(a, tensor_path));
    *out = a;
    a = NULL;
done:
    free(names);
    cJSON_Delete(root);
    free(config_path);
    free(tensor_path);
    rrl_adapter_close(&a);
    return rc;
}

/* --- writing */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys that PEFT needs; it takes its defaults, all "unset", for the others. */
static rrl_status write_config(const rrl_adapter *a, const char *path, const char *base) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    const char *names[RRL_MODULES];
    size_t n = 0;
    for (int module = 0; module < RRL_MODULES; module++)
        if (a->target[module]) names[n++] = rrl_module_name(module);
    qsort(names, n, sizeof *names, compare_names);
    RRL_GOTO(rrl_buffer_puts(&b, "{\n \"alpha_pattern\": {},\n \"auto_mapping\": null,\n "
                                 "\"base_model_name_or_path\": "));
    RRL_GOTO(rrl_json_quote(&b, base, strlen(base)));
    RRL_GOTO(rrl_buffer_puts(
        &b, ",\n \"bias\": \"none\",\n \"fan_in_fan_out\": false,\n \"inference_mode\": true,\n "
            "\"init_lora_weights\": true,\n \"layers_pattern\": null,\n "
            "\"layers_to_transform\": null,\n \"lora_alpha\": "));
    RRL_GOTO(rrl_json_number(&b, a->alpha));
    RRL_GOTO(rrl_buffer_puts(&b, ",\n \"lora_bias\": false,\n \"lora_dropout\": "));
    RRL_GOTO(rrl_json_number(&b, a->dropout));
    RRL_GOTO(rrl_buffer_printf(&b,
                               ",\n \"modules_to_save\": null,\n \"peft_type\": \"LORA\",\n "
                               "\"peft_version\": \"0.18.1\",\n \"r\": %d,\n \"rank_pattern\": {},\n "
                               "\"revision\": null,\n \"target_modules\": [",
                               a->r));
    for (size_t i = 0; i < n; i++) RRL_GOTO(rrl_buffer_printf(&b, "%s\n  \"%s\"", i ? "," : "", names[i]));
    RRL_GOTO(rrl_buffer_puts(&b, "\n ],\n \"task_type\": \"CAUSAL_LM\",\n \"use_dora\": false,\n "
                                 "\"use_rslora\": false\n}\n"));
    RRL_GOTO(rrl_file_publish(path, b.data, b.len));
done:
    rrl_buffer_free(&b);
    return rc;
}

static rrl_status write_tensors(const rrl_adapter *a, const char *path) {
    rrl_status rc = RRL_OK;
    float *host = NULL;
    rrl_st_write *list = NULL;
    RRL_GOTO(rrl_alloc(&host, (size_t)a->size, sizeof *host, path));
    RRL_GOTO(rrl_alloc(&list, (size_t)a->count, sizeof *list, path));
    RRL_GOTO(a->device->ops->download(a->device, host, a->data, (size_t)a->size * sizeof *host));
    for (int32_t i = 0; i < a->count; i++) {
        const rrl_trainable *t = &a->tensors[i];
        list[i] = (rrl_st_write){
            .name = t->name, .data = host + t->offset, .n_dims = 2, .dims = {t->rows, t->cols}};
    }
    RRL_GOTO(rrl_safetensors_publish(path, list, a->count));
done:
    free(list);
    free(host);
    return rc;
}

rrl_status rrl_adapter_save(const rrl_adapter *a, const char *dir, const char *base) {
    rrl_status rc = RRL_OK;
    char *config_path = NULL, *tensor_path = NULL;
    RRL_GOTO(rrl_dir_make(dir));
    RRL_GOTO(rrl_path_join(&config_path, dir, "adapter_config.json"));
    RRL_GOTO(rrl_path_join(&tensor_path, dir, "adapter_model.safetensors"));
    RRL_GOTO(write_tensors(a, tensor_path));
    RRL_GOTO(write_config(a, config_path, base)); /* last: a folder with a config is whole */
done:
    free(config_path);
    free(tensor_path);
    return rc;
}
