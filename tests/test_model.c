/* The base model: golden files of torch and transformers on every instruction set, equal bits whatever shares
 * a batch and however the rows come, the ways weights may be stored, and memory as planned. */
#include "check.h"

#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "data/safetensors.h"
#include "golden_model.h"
#include "model/slot.h"
#include "model_runner.h"

#define GOLDEN RRL_SOURCE_DIR "/tests/golden"
enum { VOCAB = 272, N = 40 }; /* golden llama; tokens of the test sequence */

static void golden_files(void) {
    static const struct {
        const char *isa;
        int threads;
    } PATHS[] = {{"reference", 1}, {"portable", 1}, {"avx2", 2}, {"avx512", 1}, {"auto", 2}};
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        rrl_device *d = NULL;
        rrl_status rc = rrl_cpu_open(&d, PATHS[i].isa, PATHS[i].threads);
        if (rc == RRL_ERR_CONFIG)
            fprintf(stderr, "this machine lacks %s\n", PATHS[i].isa);
        else if (CHECK_OK(rc) && !CHECK_EQ_INT(golden_model_all(GOLDEN, d), 0))
            fprintf(stderr, "  on %s\n", PATHS[i].isa);
        rrl_device_close(&d);
    }
}

static int32_t token_of(int i) {
    return (i * 89 + 17) % VOCAB;
}

/* --- a row's bits depend on its own past alone */

static void alone_or_together(void) {
    rrl_device *d = NULL;
    rrl_model *m = NULL;
    rrl_adapter *adapters[2] = {NULL, NULL};
    runner r = {0};
    int32_t tokens[4 * N], seq = 0, count = N;
    float *want = calloc(N * VOCAB, sizeof *want), *got = calloc(4 * N * VOCAB, sizeof *got);
    CHECK_OK(rrl_cpu_open(&d, "auto", 2));
    CHECK_OK(rrl_model_open(&m, d, GOLDEN "/llama/model"));
    CHECK_OK(rrl_adapter_load(&adapters[1], m, GOLDEN "/llama/adapter"));
    CHECK_OK(rrl_adapter_open(&adapters[0], m, &(rrl_adapter_spec){.r = 20, .alpha = 3}, 1));
    if (!CHECK_OK(runner_open(&r, m, adapters, 2))) return;
    const size_t row = VOCAB * sizeof *want;
    for (int i = 0; i < 4 * N; i++) tokens[i] = token_of(i % N + i / N); /* others differ */
    r.adapter[0] = 1;
    CHECK_OK(runner_step(&r, want, &seq, &count, 1, tokens));

    runner_clear(&r); /* one by one, as in decode */
    for (int i = 0; i < N; i++) {
        count = 1;
        CHECK_OK(runner_step(&r, got, &seq, &count, 1, tokens + i));
        CHECK(memcmp(got, want + i * VOCAB, row) == 0);
    }
    runner_clear(&r); /* in two pieces */
    count = 33;
    CHECK_OK(runner_step(&r, got, &seq, &count, 1, tokens));
    CHECK(memcmp(got, want, 33 * row) == 0);
    count = N - 33;
    CHECK_OK(runner_step(&r, got, &seq, &count, 1, tokens + 33));
    CHECK(memcmp(got, want + 33 * VOCAB, (N - 33) * row) == 0);

    runner_clear(&r); /* last of four sequences of the base and of adapters of other ranks */
    const int32_t seqs[] = {5, 2, 9, 0}, counts[] = {N, N, N, N};
    int32_t mixed[4 * N];
    memcpy(mixed, tokens + N, 3 * N * sizeof *mixed);
    memcpy(mixed + 3 * N, tokens, N * sizeof *mixed);
    r.adapter[5] = -1;
    r.adapter[2] = 0;
    r.adapter[9] = 1;
    CHECK_OK(runner_step(&r, got, seqs, counts, 4, mixed));
    CHECK(memcmp(got + 3 * N * VOCAB, want, N * row) == 0);
    CHECK(memcmp(got, want, N * row) != 0);

    runner_close(&r);
    rrl_adapter_close(&adapters[0]);
    rrl_adapter_close(&adapters[1]);
    rrl_model_close(&m);
    rrl_device_close(&d);
    free(want), free(got);
}

/* --- storage: the golden llama model written again in other ways */

static char dir[512];

typedef enum { AS_F32, AS_BF16, AS_F16, AS_INT } storage;

typedef struct {
    storage type;
    int round;                          /* to 1 = bf16, 2 = f16 before it is stored */
    int shards;                         /* 0 = one file */
    int untied;                         /* lm_head = 2 * embedding */
    int odd_header;                     /* tensors start at an odd byte */
    const char *without, *extra, *flat; /* names of a tensor left out, added [64], stored as a vector */
} form;

static float rounded(float v, int round) {
    uint32_t u;
    if (round == 2) return (float)(_Float16)v;
    if (round == 0) return v;
    memcpy(&u, &v, sizeof u);
    u &= 0xffff0000u; /* truncation is a rounding too */
    memcpy(&v, &u, sizeof v);
    return v;
}

static rrl_status put_value(rrl_buffer *data, float v, storage type) {
    uint32_t u;
    _Float16 h = (_Float16)v;
    memcpy(&u, &v, sizeof u);
    const uint16_t top = (uint16_t)(u >> 16);
    if (type == AS_BF16) return rrl_buffer_put(data, &top, 2);
    if (type == AS_F16) return rrl_buffer_put(data, &h, 2);
    return rrl_buffer_put(data, &v, 4);
}

/* One tensor into a header and its data. */
static rrl_status put_tensor(rrl_buffer *header, rrl_buffer *data, const char *name, const rrl_st_tensor *t,
                             float scale, const form *f) {
    static const char *const NAMES[] = {"F32", "BF16", "F16", "I32"};
    const size_t begin = data->len;
    for (int64_t i = 0; i < t->n_elements; i++) {
        float v;
        memcpy(&v, (const char *)t->data + 4 * i, sizeof v);
        RRL_TRY(put_value(data, scale * rounded(v, f->round), f->type));
    }
    RRL_TRY(rrl_buffer_printf(header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", header->len > 1 ? "," : "",
                              name, NAMES[f->type]));
    if (t->n_dims == 2 && !(f->flat && strcmp(f->flat, name) == 0))
        RRL_TRY(rrl_buffer_printf(header, "%lld,%lld", (long long)t->dims[0], (long long)t->dims[1]));
    else
        RRL_TRY(rrl_buffer_printf(header, "%lld", (long long)t->n_elements));
    return rrl_buffer_printf(header, "],\"data_offsets\":[%zu,%zu]}", begin, data->len);
}

static rrl_status publish(const char *name, rrl_buffer *header, rrl_buffer *data, const form *f) {
    char path[640];
    rrl_buffer file = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    RRL_TRY(rrl_buffer_puts(header, "}"));
    while (header->len % 8 != (f->odd_header ? 3 : 0)) RRL_TRY(rrl_buffer_puts(header, " "));
    const uint64_t len = header->len;
    rrl_status rc = rrl_buffer_put(&file, &len, sizeof len);
    if (rc == RRL_OK) rc = rrl_buffer_put(&file, header->data, header->len);
    if (rc == RRL_OK) rc = rrl_buffer_put(&file, data->data, data->len);
    if (rc == RRL_OK) rc = rrl_file_publish(path, file.data, file.len);
    rrl_buffer_free(&file);
    return rc;
}

static rrl_status write_weights(const rrl_safetensors *from, const form *f) {
    rrl_status rc = RRL_OK;
    rrl_buffer header[2] = {0}, data[2] = {0}, index = {0};
    const int files = f->shards ? 2 : 1;
    for (int i = 0; i < files; i++) RRL_GOTO(rrl_buffer_puts(&header[i], "{"));
    RRL_GOTO(rrl_buffer_puts(&index, "{\"metadata\":{},\"weight_map\":{"));
    for (int64_t i = 0; i < rrl_safetensors_count(from); i++) {
        const rrl_st_tensor *t = rrl_safetensors_at(from, i);
        const int file = (int)i % files;
        if (f->without && strcmp(f->without, t->name) == 0) continue;
        RRL_GOTO(put_tensor(&header[file], &data[file], t->name, t, 1, f));
        RRL_GOTO(rrl_buffer_printf(&index, "%s\"%s\":\"model-%d.safetensors\"", i ? "," : "", t->name, file));
    }
    if (f->untied)
        RRL_GOTO(put_tensor(&header[0], &data[0], "lm_head.weight",
                            rrl_safetensors_find(from, "model.embed_tokens.weight"), 2, f));
    if (f->extra)
        RRL_GOTO(put_tensor(&header[0], &data[0], f->extra, rrl_safetensors_find(from, "model.norm.weight"),
                            1, f));
    RRL_GOTO(rrl_buffer_puts(&index, "}}"));
    if (!f->shards) {
        RRL_GOTO(publish("model.safetensors", &header[0], &data[0], f));
        goto done;
    }
    RRL_GOTO(publish("model-0.safetensors", &header[0], &data[0], f));
    RRL_GOTO(publish("model-1.safetensors", &header[1], &data[1], f));
    char path[640];
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", dir);
    RRL_GOTO(rrl_file_publish(path, index.data, index.len));
done:
    for (int i = 0; i < 2; i++) rrl_buffer_free(&header[i]), rrl_buffer_free(&data[i]);
    rrl_buffer_free(&index);
    return rc;
}

static void clear_dir(void) {
    char **names = NULL, path[800];
    size_t n = 0;
    CHECK_OK(rrl_dir_list(&names, &n, dir));
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rrl_names_free(&names, n);
}

static rrl_status write_model(const form *f) {
    rrl_status rc = RRL_OK;
    rrl_safetensors *from = NULL;
    cJSON *config = NULL;
    char *text = NULL, path[640];
    clear_dir();
    RRL_GOTO(rrl_safetensors_open_model(&from, GOLDEN "/llama/model"));
    RRL_GOTO(rrl_json_file(&config, GOLDEN "/llama/model/config.json", 1 << 20));
    cJSON_ReplaceItemInObjectCaseSensitive(config, "tie_word_embeddings", cJSON_CreateBool(!f->untied));
    text = cJSON_Print(config);
    snprintf(path, sizeof path, "%s/config.json", dir);
    RRL_GOTO(rrl_file_publish(path, text, strlen(text)));
    RRL_GOTO(write_weights(from, f));
done:
    cJSON_free(text);
    cJSON_Delete(config);
    rrl_safetensors_close(&from);
    return rc;
}

/* Logits of N tokens of the model in dir; digest [65] may be NULL. */
static rrl_status logits_of(float *out, char *digest, rrl_device *d) {
    rrl_status rc = RRL_OK;
    rrl_model *m = NULL;
    runner r = {0};
    int32_t tokens[N], seq = 0, count = N;
    for (int i = 0; i < N; i++) tokens[i] = token_of(i);
    RRL_GOTO(rrl_model_open(&m, d, dir));
    RRL_GOTO(runner_open(&r, m, NULL, 0));
    RRL_GOTO(runner_step(&r, out, &seq, &count, 1, tokens));
    if (digest) strcpy(digest, rrl_model_digest(m));
done:
    if (m) runner_close(&r);
    rrl_model_close(&m);
    return rc;
}

static void storage_forms(rrl_device *d) {
    static const struct {
        const char *what;
        form a, b;
        float factor; /* logits of b = factor * those of a, exactly */
    } CASES[] = {
        {"bf16", {.round = 1}, {.type = AS_BF16}, 1},
        {"f16", {.round = 2}, {.type = AS_F16}, 1},
        {"shards", {0}, {.shards = 1}, 1},
        {"bf16 shards at odd bytes", {.round = 1}, {.type = AS_BF16, .shards = 1, .odd_header = 1}, 1},
        {"f32 at odd bytes", {0}, {.odd_header = 1}, 1},
        {"untied", {0}, {.untied = 1}, 2},
        {"a copy of a tied head", {0}, {.extra = "lm_head.weight"}, 1},
        {"stored frequencies", {0}, {.extra = "model.layers.0.self_attn.rotary_emb.inv_freq"}, 1},
    };
    float *a = calloc(N * VOCAB, sizeof *a), *b = calloc(N * VOCAB, sizeof *b);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char digest_a[65], digest_b[65];
        int good = CHECK_OK(write_model(&CASES[i].a)) && CHECK_OK(logits_of(a, digest_a, d)) &&
                   CHECK_OK(write_model(&CASES[i].b)) && CHECK_OK(logits_of(b, digest_b, d));
        int bad = 0;
        for (int j = 0; j < N * VOCAB; j++) bad += b[j] != CASES[i].factor * a[j];
        good = good && CHECK_EQ_INT(bad, 0) && CHECK(a[0] != 0 && strlen(digest_a) == 64) &&
               CHECK(strcmp(digest_a, digest_b) != 0);
        if (!good) fprintf(stderr, "  %s\n", CASES[i].what);
    }
    free(a), free(b);
}

static void storage_refusals(rrl_device *d) {
    static const struct {
        form f;
        const char *names;
    } CASES[] = {
        {{.without = "model.layers.1.mlp.up_proj.weight"}, "model.layers.1.mlp.up_proj.weight"},
        {{.without = "model.norm.weight"}, "model.norm.weight"},
        {{.extra = "model.layers.0.self_attn.q_proj.bias"}, "model.layers.0.self_attn.q_proj.bias"},
        {{.extra = "model.layers.2.input_layernorm.weight"}, "model.layers.2.input_layernorm.weight"},
        {{.flat = "model.layers.0.mlp.down_proj.weight"}, "[64,112]"},
        {{.type = AS_INT}, "F32"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        rrl_model *m = NULL;
        CHECK_OK(write_model(&CASES[i].f));
        if (!CHECK_STATUS(rrl_model_open(&m, d, dir), RRL_ERR_DATA) ||
            !CHECK(strstr(rrl_error_message(), CASES[i].names) != NULL))
            fprintf(stderr, "  %s: %s\n", CASES[i].names, rrl_error_message());
        rrl_model_close(&m);
    }
    rrl_model *m = NULL;
    clear_dir();
    CHECK_STATUS(rrl_model_open(&m, d, dir), RRL_ERR_DATA);
    CHECK(m == NULL);
}

/* --- memory: a device that counts what it is asked for */

static size_t counted;
static const rrl_device_ops *real_ops;

static rrl_status counting_alloc(rrl_device *d, void **out, size_t bytes, const char *what) {
    counted += bytes;
    return real_ops->alloc(d, out, bytes, what);
}

static rrl_status counting_pack(rrl_device *d, rrl_weight **out, const void *src, rrl_dtype type, int64_t n,
                                int64_t k) {
    counted += rrl_cpu_weight_bytes(n, k);
    return real_ops->weight_pack(d, out, src, type, n, k);
}

static size_t take(void) {
    const size_t bytes = counted;
    counted = 0;
    return bytes;
}

static void memory_of(rrl_device *counting, const char *arch) {
    char path[512];
    rrl_model *m = NULL;
    rrl_adapter *a = NULL;
    rrl_workspace *w = NULL;
    rrl_kv_pool pool = {0};
    rrl_slot_engine *e = NULL;
    const rrl_adapter_spec spec = {.r = 5, .alpha = 5};
    float logp[8];
    size_t bytes[8];
    take();
    snprintf(path, sizeof path, GOLDEN "/%s/model", arch);
    if (!CHECK_OK(rrl_model_open(&m, counting, path))) return;
    const rrl_model_config *c = rrl_model_dims(m);
    CHECK_EQ_INT(take(), rrl_model_bytes(c));
    CHECK_OK(rrl_adapter_open(&a, m, &spec, 1));
    CHECK_EQ_INT(take(), rrl_config_adapter_bytes(c, &spec));
    CHECK_OK(rrl_workspace_open(&w, m, 77));
    CHECK_EQ_INT(take(), rrl_workspace_bytes(c, 77));
    CHECK_OK(rrl_kv_pool_open(&pool, m, 9));
    CHECK_EQ_INT(take(), 9 * rrl_kv_block_bytes(c, RRL_F32));
    for (int32_t again = 0; again <= c->layers; again++) {
        const rrl_slot_limits most = {.max_rows = 90, .max_seqs = 3, .again = again, .block_rows = 40};
        const int32_t tokens[] = {3, 4, 5}, n = 2;
        const rrl_slot s = {
            .prompt = tokens, .n_prompt = 1, .n_seqs = 1, .tokens = tokens + 1, .n_tokens = &n, .temperature = 1};
        CHECK_OK(rrl_slot_engine_open(&e, m, &most));
        CHECK_OK(rrl_slot_forward(e, logp, NULL, &s, NULL));
        CHECK_EQ_INT(counted, rrl_slot_engine_bytes(c, &most, 0));
        for (int i = 0; i < 2; i++) CHECK_OK(rrl_slot_forward(e, logp, logp + 4, &s, a));
        bytes[again] = take();
        CHECK_EQ_INT(bytes[again], rrl_slot_engine_bytes(c, &most, 5));
        rrl_slot_engine_close(&e);
    }
    for (int32_t again = 1; again <= c->layers; again++) { /* the fewest that fit */
        rrl_slot_limits most = {.max_rows = 90, .max_seqs = 3, .block_rows = 40};
        CHECK(again == 1 || bytes[again] < bytes[again - 1]); /* the first needs a set of buffers that all share */
        rrl_slot_fit(&most, c, 5, bytes[again]);
        CHECK(rrl_slot_engine_bytes(c, &most, 5) <= bytes[again] && most.again <= again);
        rrl_slot_fit(&most, c, 5, bytes[c->layers] - 1);
        CHECK_EQ_INT(most.again, c->layers);
    }
    rrl_kv_pool_close(&pool, m);
    rrl_workspace_close(&w);
    rrl_adapter_close(&a);
    rrl_model_close(&m);
}

static void memory(rrl_device *d) {
    rrl_device_ops ops = *d->ops;
    rrl_device counting = {.ops = &ops, .state = d->state};
    real_ops = d->ops;
    ops.alloc = counting_alloc;
    ops.weight_pack = counting_pack;
    memory_of(&counting, "llama");
    memory_of(&counting, "qwen2");
}

/* The model that comes with the program; its README gives the sizes. */
static void embedded(rrl_device *d) {
    rrl_model *m = NULL;
    const rrl_adapter_spec spec = {.r = 8, .alpha = 16};
    if (!CHECK_OK(rrl_model_open(&m, d, RRL_SOURCE_DIR "/data/tiny"))) return;
    const rrl_model_config *c = rrl_model_dims(m);
    CHECK(c->hidden == 128 && c->layers == 4 && c->vocab == 562 && c->head_dim == 32 && c->tied);
    CHECK(c->n_eos == 1 && c->eos[0] == 2);
    /* r (in + out): q 256, k and v 192, o 256, gate, up, down 384 */
    CHECK_EQ_INT(rrl_adapter_size_of(m, &spec), 4 * 8 * (256 + 2 * 192 + 256 + 3 * 384));
    rrl_model_close(&m);
}

int main(void) {
    rrl_device *d = NULL;
    golden_files();
    alone_or_together();
    snprintf(dir, sizeof dir, "%s/test_model.XXXXXX", RRL_BINARY_DIR);
    if (!mkdtemp(dir) || !CHECK_OK(rrl_cpu_open(&d, "auto", 1))) return 1;
    storage_forms(d);
    storage_refusals(d);
    rmdir(dir);
    memory(d);
    embedded(d);
    rrl_device_close(&d);
    return CHECK_DONE();
}
