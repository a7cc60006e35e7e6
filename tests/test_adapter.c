/* LoRA adapters: names and sizes, keyed start values, PEFT folders there and back, and each refusal. */
#include "check.h"

#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/random.h"
#include "data/safetensors.h"
#include "model/model.h"
#include "model_runner.h"

#define GOLDEN RRL_SOURCE_DIR "/tests/golden/llama"
static char dir[512];
static rrl_device *device;
static rrl_model *model;

static float *download(rrl_adapter *a) {
    const size_t bytes = (size_t)rrl_adapter_size(a) * sizeof(float);
    float *host = malloc(bytes);
    CHECK_OK(device->ops->download(device, host, rrl_adapter_data(a), bytes));
    return host;
}

/* --- start values */

static void names_and_sizes(void) {
    const rrl_adapter_spec spec = {.r = 8, .alpha = 16, .dropout = 0.05};
    rrl_adapter *a = NULL;
    if (!CHECK_OK(rrl_adapter_open(&a, model, &spec, 42))) return;
    /* 2 layers of hidden 64, kv 32, intermediate 112 at r 8: r (in + out) a module */
    const int64_t want = 2 * 8 * ((64 + 64) + 2 * (64 + 32) + (64 + 64) + 3 * (64 + 112));
    CHECK_EQ_INT(rrl_adapter_size(a), want);
    CHECK_EQ_INT(rrl_adapter_size_of(model, &spec), want);
    CHECK_EQ_INT(rrl_config_adapter_size(rrl_model_dims(model), &spec), want);
    CHECK_EQ_INT(rrl_adapter_count(a), 2 * 7 * 2);
    CHECK_EQ_STR(rrl_adapter_tensors(a)[0].name,
                 "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
    CHECK_EQ_STR(rrl_adapter_tensors(a)[27].name,
                 "base_model.model.model.layers.1.mlp.down_proj.lora_B.weight");
    CHECK_EQ_INT(rrl_adapter_tensors(a)[27].rows, 64);
    CHECK_EQ_INT(rrl_adapter_tensors(a)[27].cols, 8);
    int64_t offset = 0;
    for (int32_t i = 0; i < rrl_adapter_count(a); i++) {
        CHECK_EQ_INT(rrl_adapter_tensors(a)[i].offset, offset);
        offset += rrl_adapter_tensors(a)[i].rows * rrl_adapter_tensors(a)[i].cols;
    }
    CHECK_EQ_INT(offset, want);
    CHECK_EQ_INT(rrl_adapter_rank(a), 8);
    CHECK(rrl_adapter_alpha(a) == 16.0 && rrl_adapter_dropout(a) == 0.05);
    CHECK(rrl_adapter_module(a, 13)->scale == 2.0f && rrl_adapter_module(a, 13)->k == 112);
    CHECK(rrl_adapter_module(a, 14) == NULL && rrl_adapter_module(a, -1) == NULL);
    rrl_adapter_close(&a);
    /* the published size of Qwen2.5-0.5B at r 8 */
    const rrl_model_config qwen = {.hidden = 896,
                                   .layers = 24,
                                   .heads = 14,
                                   .kv_heads = 2,
                                   .head_dim = 64,
                                   .intermediate = 4864,
                                   .vocab = 151936,
                                   .max_positions = 32768};
    CHECK_EQ_INT(rrl_config_adapter_size(&qwen, &spec), 4399104);
}

static void start_values(void) {
    const rrl_adapter_spec spec = {.r = 8, .alpha = 16};
    rrl_adapter *a = NULL, *same = NULL, *other = NULL;
    CHECK_OK(rrl_adapter_open(&a, model, &spec, 42));
    CHECK_OK(rrl_adapter_open(&same, model, &spec, 42));
    CHECK_OK(rrl_adapter_open(&other, model, &spec, 43));
    if (!a || !same || !other) return;
    float *x = download(a), *y = download(same), *z = download(other);
    const size_t bytes = (size_t)rrl_adapter_size(a) * sizeof *x;
    CHECK(memcmp(x, y, bytes) == 0);
    CHECK(memcmp(x, z, bytes) != 0);
    double sum = 0, squares = 0;
    int64_t n = 0;
    for (int32_t t = 0; t < rrl_adapter_count(a); t++) {
        const rrl_trainable *tensor = &rrl_adapter_tensors(a)[t];
        const rrl_rng_key key = {.seed = 42, .purpose = RRL_RNG_INIT, .step = (uint32_t)t};
        const double bound = 1 / sqrt((double)tensor->cols);
        int bad = 0;
        for (int64_t i = 0; i < tensor->rows * tensor->cols; i++) {
            const float v = x[tensor->offset + i];
            if (t % 2) {
                bad += v != 0;
                continue;
            }
            bad += v != (float)((2 * rrl_rng_uniform(&key, (uint32_t)i) - 1) * bound) || !(fabs(v) <= bound);
            sum += v / bound;
            squares += (v / bound) * (v / bound);
            n++;
        }
        CHECK_EQ_INT(bad, 0);
    }
    /* uniform on [-1, 1]: mean 0, variance 1/3; five standard errors */
    CHECK_NEAR(sum / (double)n, 0, 5 * sqrt(1.0 / 3 / (double)n));
    CHECK_NEAR(squares / (double)n, 1.0 / 3, 5 * sqrt(4.0 / 45 / (double)n));
    free(x), free(y), free(z);
    rrl_adapter_close(&a);
    rrl_adapter_close(&same);
    rrl_adapter_close(&other);
}

static void specs(void) {
    static const char *const SOME[] = {"v_proj", "q_proj"}, *const WRONG[] = {"q_prj"};
    rrl_adapter *a = NULL;
    rrl_adapter_spec spec = {.r = 4, .alpha = 4, .targets = SOME, .n_targets = 2};
    if (CHECK_OK(rrl_adapter_open(&a, model, &spec, 1))) {
        CHECK_EQ_INT(rrl_adapter_count(a), 8);
        CHECK_EQ_INT(rrl_adapter_size(a), 2 * 4 * (64 + 64 + 64 + 32));
        CHECK(rrl_adapter_module(a, 0) && !rrl_adapter_module(a, 1) && rrl_adapter_module(a, 2));
        CHECK(!rrl_adapter_module(a, 6) && rrl_adapter_module(a, 7)->scale == 1.0f);
    }
    rrl_adapter_close(&a);
    spec.targets = WRONG;
    spec.n_targets = 1;
    CHECK_STATUS(rrl_adapter_open(&a, model, &spec, 1), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "q_proj") != NULL);
    CHECK_STATUS(rrl_adapter_open(&a, model, &(rrl_adapter_spec){.r = 0, .alpha = 1}, 1), RRL_ERR_CONFIG);
    CHECK_STATUS(rrl_adapter_open(&a, model, &(rrl_adapter_spec){.r = 257, .alpha = 1}, 1), RRL_ERR_CONFIG);
    CHECK_STATUS(rrl_adapter_open(&a, model, &(rrl_adapter_spec){.r = 8, .alpha = NAN}, 1), RRL_ERR_CONFIG);
    CHECK_STATUS(rrl_adapter_open(&a, model, &(rrl_adapter_spec){.r = 8, .alpha = 1, .dropout = 1}, 1),
                 RRL_ERR_CONFIG);
    CHECK(a == NULL);
}

/* --- PEFT folders */

static void write_file(const char *name, const void *bytes, size_t n) {
    char path[640];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_OK(rrl_file_publish(path, bytes, n));
}

static void copy_golden(const char *name) {
    char *text = NULL, path[640];
    size_t len = 0;
    snprintf(path, sizeof path, GOLDEN "/adapter/%s", name);
    if (CHECK_OK(rrl_file_read(&text, &len, path, 1 << 24))) write_file(name, text, len);
    free(text);
}

static void there_and_back(void) {
    rrl_adapter *a = NULL, *b = NULL;
    rrl_safetensors *file = NULL;
    if (!CHECK_OK(rrl_adapter_load(&a, model, GOLDEN "/adapter"))) return;
    CHECK_OK(rrl_safetensors_open(&file, GOLDEN "/adapter/adapter_model.safetensors"));
    float *x = download(a);
    for (int32_t i = 0; i < rrl_adapter_count(a); i++) {
        const rrl_trainable *t = &rrl_adapter_tensors(a)[i];
        const rrl_st_tensor *want = rrl_safetensors_find(file, t->name);
        if (CHECK(want != NULL))
            CHECK(memcmp(x + t->offset, want->data, (size_t)(t->rows * t->cols) * sizeof *x) == 0);
    }
    CHECK_OK(rrl_adapter_save(a, dir, "some \"base\""));
    CHECK_OK(rrl_adapter_load(&b, model, dir));
    if (b) {
        float *y = download(b);
        CHECK(memcmp(x, y, (size_t)rrl_adapter_size(a) * sizeof *x) == 0);
        CHECK(rrl_adapter_alpha(b) == 16.0 && rrl_adapter_rank(b) == 8 && rrl_adapter_dropout(b) == 0);
        free(y);
    }
    free(x);
    rrl_safetensors_close(&file);
    rrl_adapter_close(&a);
    rrl_adapter_close(&b);
}

/* Each key that we write has the value that PEFT wrote for the same adapter. */
static void config_as_peft(void) {
    cJSON *ours = NULL, *theirs = NULL;
    char path[640];
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    CHECK_OK(rrl_json_file(&ours, path, 1 << 20));
    CHECK_OK(rrl_json_file(&theirs, GOLDEN "/adapter/adapter_config.json", 1 << 20));
    int n = 0;
    for (const cJSON *item = ours ? ours->child : NULL; item; item = item->next, n++) {
        const cJSON *want = cJSON_GetObjectItemCaseSensitive(theirs, item->string);
        if (strcmp(item->string, "base_model_name_or_path") == 0)
            CHECK_EQ_STR(item->valuestring, "some \"base\"");
        else if (!CHECK(want && cJSON_Compare(item, want, 1)))
            fprintf(stderr, "  %s\n", item->string);
    }
    CHECK(n >= 18);
    cJSON_Delete(ours);
    cJSON_Delete(theirs);
}

static const struct {
    const char *key, *value;
} REFUSED[] = {
    {"use_dora", "true"},
    {"use_rslora", "true"},
    {"use_qalora", "true"},
    {"bias", "\"all\""},
    {"lora_bias", "true"},
    {"bias", "\"lora_only\""},
    {"fan_in_fan_out", "true"},
    {"modules_to_save", "[\"lm_head\"]"},
    {"rank_pattern", "{\"q_proj\":4}"},
    {"alpha_pattern", "{\"q_proj\":4}"},
    {"layers_to_transform", "[0]"},
    {"layers_pattern", "\"layers\""},
    {"layer_replication", "[[0,1]]"},
    {"exclude_modules", "\"down_proj\""},
    {"target_parameters", "[\"x\"]"},
    {"trainable_token_indices", "[1]"},
    {"alora_invocation_tokens", "[1]"},
    {"arrow_config", "{\"top_k\":1}"},
    {"eva_config", "{\"rho\":1}"},
    {"corda_config", "{\"a\":1}"},
    {"loftq_config", "{\"loftq_bits\":4}"},
    {"megatron_config", "{\"a\":1}"},
    {"ensure_weight_tying", "true"},
    {"init_lora_weights", "\"pissa\""},
    {"init_lora_weights", "\"olora\""},
    {"some_future_option", "3"},
    {"peft_type", "\"IA3\""},
    {"task_type", "\"SEQ_CLS\""},
    {"r", "0"},
    {"r", "300"},
    {"r", "\"8\""},
    {"r", "null"},
    {"lora_alpha", "null"},
    {"lora_alpha", "\"x\""},
    {"lora_dropout", "1.5"},
    {"target_modules", "null"},
    {"target_modules", "[]"},
    {"target_modules", "\".*proj\""},
    {"target_modules", "[\"q_proj\",\"fc1\"]"},
    {"target_modules", "[3]"},
};

static void write_edited(const char *key, const char *value) {
    cJSON *root = NULL, *v = cJSON_Parse(value);
    if (!CHECK_OK(rrl_json_file(&root, GOLDEN "/adapter/adapter_config.json", 1 << 20))) return;
    cJSON_DeleteItemFromObjectCaseSensitive(root, key);
    cJSON_AddItemToObject(root, key, v);
    char *text = cJSON_Print(root);
    write_file("adapter_config.json", text, strlen(text));
    cJSON_free(text);
    cJSON_Delete(root);
}

static void refusals(void) {
    rrl_adapter *a = NULL;
    copy_golden("adapter_model.safetensors");
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        write_edited(REFUSED[i].key, REFUSED[i].value);
        /* the message names the key, or for target modules the module */
        int good = CHECK_STATUS(rrl_adapter_load(&a, model, dir), RRL_ERR_DATA) &&
                   CHECK(strstr(rrl_error_message(), REFUSED[i].key) || strstr(rrl_error_message(), "LoRA"));
        if (!good) fprintf(stderr, "  %s = %s: %s\n", REFUSED[i].key, REFUSED[i].value, rrl_error_message());
        rrl_adapter_close(&a);
    }
    write_edited("target_modules", "\"all-linear\"");
    CHECK_OK(rrl_adapter_load(&a, model, dir));
    rrl_adapter_close(&a);
    write_edited("some_future_option", "[]");
    CHECK_OK(rrl_adapter_load(&a, model, dir));
    rrl_adapter_close(&a);
    write_edited("r", "16"); /* not what the tensors have */
    CHECK_STATUS(rrl_adapter_load(&a, model, dir), RRL_ERR_DATA);
    write_edited("target_modules", "[\"q_proj\"]"); /* the file has more */
    CHECK_STATUS(rrl_adapter_load(&a, model, dir), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "target_modules") != NULL);
    copy_golden("adapter_config.json");
    const float zero[64 * 8] = {0};
    char path[640];
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", dir);
    CHECK_OK(rrl_safetensors_publish(
        path, &(rrl_st_write){.name = "x", .data = zero, .n_dims = 1, .dims = {8}}, 1));
    CHECK_STATUS(rrl_adapter_load(&a, model, dir), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "lora_A") != NULL);
    unlink(path);
    CHECK_STATUS(rrl_adapter_load(&a, model, dir), RRL_ERR_DATA);
    CHECK(a == NULL);
}

/* B = 0: the adapter changes no bit; after refresh a change of the flat vector shows. */
static void refresh(void) {
    static const int32_t TOKENS[] = {5, 9, 200, 17};
    const int32_t seq = 0, count = 4;
    const rrl_adapter_spec spec = {.r = 3, .alpha = 5};
    rrl_adapter *a = NULL;
    runner r = {0};
    float base[4 * 272], same[4 * 272], changed[4 * 272];
    CHECK_OK(rrl_adapter_open(&a, model, &spec, 7));
    if (!a || !CHECK_OK(runner_open(&r, model, &a, 1))) return;
    CHECK_OK(runner_step(&r, base, &seq, &count, 1, TOKENS));
    runner_clear(&r);
    r.adapter[0] = 0;
    CHECK_OK(runner_step(&r, same, &seq, &count, 1, TOKENS));
    CHECK(memcmp(base, same, sizeof base) == 0);
    float *x = download(a);
    for (int64_t i = 0; i < rrl_adapter_size(a); i++) x[i] = 0.01f * (float)(i % 7 - 3);
    CHECK_OK(device->ops->upload(device, rrl_adapter_data(a), x, (size_t)rrl_adapter_size(a) * sizeof *x));
    CHECK_OK(rrl_adapter_refresh(a));
    runner_clear(&r);
    CHECK_OK(runner_step(&r, changed, &seq, &count, 1, TOKENS));
    CHECK(memcmp(base, changed, sizeof base) != 0);
    free(x);
    runner_close(&r);
    rrl_adapter_close(&a);
}

int main(void) {
    snprintf(dir, sizeof dir, "%s/test_adapter.XXXXXX", RRL_BINARY_DIR);
    if (!mkdtemp(dir)) return 1;
    if (!CHECK_OK(rrl_cpu_open(&device, "auto", 1)) ||
        !CHECK_OK(rrl_model_open(&model, device, GOLDEN "/model")))
        return CHECK_DONE();
    names_and_sizes();
    start_values();
    specs();
    there_and_back();
    config_as_peft();
    refusals();
    refresh();
    char path[640];
    snprintf(path, sizeof path, "%s/adapter_config.json", dir);
    unlink(path);
    rmdir(dir);
    rrl_model_close(&model);
    rrl_device_close(&device);
    return CHECK_DONE();
}
