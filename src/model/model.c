/* The base model: weights from a Hugging Face folder checked, packed and kept; sizes for the memory plan. */
#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "model/model_parts.h"
#include "model/rope.h"

static const char *const PARENTS[] = {
#define X(id, parent, name) parent,
    RRL_MODULE_LIST(X)
#undef X
};
static const char *const NAMES[] = {
#define X(id, parent, name) name,
    RRL_MODULE_LIST(X)
#undef X
};

const char *rrl_module_parent(int module) {
    return PARENTS[module];
}

const char *rrl_module_name(int module) {
    return NAMES[module];
}

void rrl_module_shape(int64_t *n, int64_t *k, const rrl_model_config *c, int module) {
    const int64_t q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    const int64_t rows[RRL_MODULES] = {q, kv, kv, c->hidden, c->intermediate, c->intermediate, c->hidden};
    const int64_t cols[RRL_MODULES] = {c->hidden, c->hidden, c->hidden,      q,
                                       c->hidden, c->hidden, c->intermediate};
    *n = rows[module];
    *k = cols[module];
}

void *rrl_carve_bytes(rrl_carver *c, size_t bytes) {
    char *p = c->base ? c->base + c->used : NULL;
    c->used += (bytes + 63) / 64 * 64;
    return p;
}

rrl_tensor rrl_carve(rrl_carver *c, int64_t rows, int64_t cols) {
    return (rrl_tensor){rrl_carve_bytes(c, (size_t)rows * (size_t)cols * sizeof(float)), rows, cols};
}

/* --- reading tensors */

/* The open checkpoint and which of its tensors were used. */
typedef struct {
    rrl_safetensors *files;
    const char *dir;
    const rrl_st_tensor **used;
    int64_t n_used;
} checkpoint;

static const char *shape_text(char out[96], const rrl_st_tensor *t) {
    int at = snprintf(out, 96, "[");
    for (int i = 0; i < t->n_dims && at < 80; i++)
        at += snprintf(out + at, 96 - (size_t)at, i ? ",%lld" : "%lld", (long long)t->dims[i]);
    snprintf(out + at, 96 - (size_t)at, "]");
    return out;
}

static const char *float_type(rrl_st_dtype t, rrl_dtype *out) {
    *out = t == RRL_ST_BF16 ? RRL_BF16 : t == RRL_ST_F16 ? RRL_F16 : RRL_F32;
    return t == RRL_ST_F32 || t == RRL_ST_BF16 || t == RRL_ST_F16 ? "float" : NULL;
}

/* The tensor of this name, checked: n_dims 1 = [n], 2 = [n, k]. */
static rrl_status find_tensor(const rrl_st_tensor **out, checkpoint *ck, const char *name, int n_dims,
                              int64_t n, int64_t k) {
    const rrl_st_tensor *t = rrl_safetensors_find(ck->files, name);
    if (!t) return RRL_FAIL(RRL_ERR_DATA, "%s: the weights lack the tensor \"%s\"", ck->dir, name);
    rrl_dtype type;
    if (!float_type(t->dtype, &type))
        return RRL_FAIL(RRL_ERR_DATA, "%s: tensor \"%s\" is not of type F32, BF16 or F16", ck->dir, name);
    if (t->n_dims != n_dims || t->dims[0] != n || (n_dims == 2 && t->dims[1] != k)) {
        char found[96], wanted[64];
        snprintf(wanted, sizeof wanted, n_dims == 2 ? "[%lld,%lld]" : "[%lld]", (long long)n, (long long)k);
        return RRL_FAIL(RRL_ERR_DATA, "%s: tensor \"%s\" has the shape %s, expected %s by config.json",
                        ck->dir, name, shape_text(found, t), wanted);
    }
    ck->used[ck->n_used++] = t;
    *out = t;
    return RRL_OK;
}

/* In the model's room, which may be filled already, or in memory of its own. */
static rrl_status pack_matrix(rrl_weight **out, rrl_model *m, const void *src, rrl_dtype type, int64_t n, int64_t k) {
    rrl_device *d = m->device;
    if (!m->room.base) return d->ops->weight_pack(d, out, src, type, n, k);
    RRL_TRY(d->ops->weight_view(d, out, rrl_carve_bytes(&m->room, d->ops->weight_bytes(d, n, k)), n, k));
    return m->room_filled ? RRL_OK : d->ops->weight_fill(d, *out, src, type);
}

static rrl_status load_matrix(rrl_weight **out, rrl_model *m, checkpoint *ck, const char *name, int64_t n,
                              int64_t k) {
    rrl_status rc = RRL_OK;
    const rrl_st_tensor *t = NULL;
    void *copy = NULL;
    RRL_TRY(find_tensor(&t, ck, name, 2, n, k));
    rrl_dtype type;
    float_type(t->dtype, &type);
    const size_t width = type == RRL_F32 ? 4 : 2;
    if ((uintptr_t)t->data % width != 0) { /* a header of odd length leaves the tensors unaligned */
        RRL_GOTO(rrl_alloc(&copy, (size_t)t->n_elements, width, name));
        memcpy(copy, t->data, (size_t)t->n_elements * width);
    }
    RRL_GOTO(pack_matrix(out, m, copy ? copy : t->data, type, n, k));
    rrl_safetensors_let_go(t);
done:
    free(copy);
    return rc;
}

rrl_status rrl_model_dtype(rrl_dtype *out, const char *dir) {
    rrl_safetensors *files = NULL;
    RRL_TRY(rrl_safetensors_open_model(&files, dir));
    const rrl_st_tensor *embedding = rrl_safetensors_find(files, "model.embed_tokens.weight");
    rrl_dtype type = RRL_F32;
    if (embedding) float_type(embedding->dtype, &type);
    for (int64_t i = 0; i < rrl_safetensors_count(files); i++) {
        const rrl_st_tensor *t = rrl_safetensors_at(files, i);
        if (t->n_dims == 2 && t->dtype == RRL_ST_F32) type = RRL_F32;
    }
    rrl_safetensors_close(&files);
    *out = type;
    return RRL_OK;
}

static rrl_status load_vector(float *to, rrl_model *m, checkpoint *ck, const char *name, int64_t n) {
    const rrl_st_tensor *t = NULL;
    float *host = NULL;
    RRL_TRY(find_tensor(&t, ck, name, 1, n, 0));
    RRL_TRY(rrl_alloc(&host, (size_t)n, sizeof *host, name));
    rrl_status rc = rrl_safetensors_to_f32(host, t);
    if (rc == RRL_OK) rc = m->device->ops->upload(m->device, to, host, (size_t)n * sizeof *host);
    free(host);
    return rc;
}

/* --- the parts of a model */

/* The start of a room. */
typedef struct {
    char digest[65]; /* of the weight files: who finds them packed need not read them */
} room_head;

static bool has_bias(const rrl_model_config *c, int module) {
    return c->qkv_bias && module <= RRL_MODULE_V;
}

/* Places of norms and biases in the block of vectors; the layers' pointers are set when there is a block. */
static void carve_vectors(rrl_carver *v, const rrl_model_config *c, rrl_layer *layers, float **norm_final) {
    for (int32_t i = 0; i < c->layers; i++) {
        float *norm_in = rrl_carve(v, 1, c->hidden).data, *norm_post = rrl_carve(v, 1, c->hidden).data;
        if (layers) layers[i].norm_in = norm_in, layers[i].norm_post = norm_post;
        for (int module = 0; module < RRL_MODULES; module++) {
            int64_t n, k;
            rrl_module_shape(&n, &k, c, module);
            float *bias = has_bias(c, module) ? rrl_carve(v, 1, n).data : NULL;
            if (layers) layers[i].bias[module] = bias;
        }
    }
    float *last = rrl_carve(v, 1, c->hidden).data;
    if (norm_final) *norm_final = last;
}

/* Both tables of the rotary embedding, one after the other. */
static size_t rope_floats(const rrl_model_config *c) {
    return (size_t)c->max_positions * (size_t)(c->head_dim / 2);
}

typedef size_t bytes_of(const rrl_device *d, int64_t n, int64_t k);

static size_t bytes_f32(const rrl_device *d, int64_t n, int64_t k) {
    return rrl_cpu_weight_bytes(n, k);
}

static size_t bytes_bf16(const rrl_device *d, int64_t n, int64_t k) {
    return rrl_cpu_weight_bytes_bf16(n, k);
}

/* What opening carves from a room: what its filler tells the others, then each matrix. */
static size_t room_bytes(const rrl_model_config *c, const rrl_device *d, bytes_of *weight_bytes) {
    rrl_carver room = {0};
    rrl_carve_bytes(&room, sizeof(room_head));
    for (int i = 0; i < (c->tied ? 1 : 2); i++) rrl_carve_bytes(&room, weight_bytes(d, c->vocab, c->hidden));
    for (int module = 0; module < RRL_MODULES; module++) {
        int64_t n, k;
        rrl_module_shape(&n, &k, c, module);
        for (int32_t i = 0; i < c->layers; i++) rrl_carve_bytes(&room, weight_bytes(d, n, k));
    }
    return room.used;
}

size_t rrl_model_room_bytes(const rrl_device *d, const rrl_model_config *c) {
    return d->ops->weight_view ? room_bytes(c, d, d->ops->weight_bytes) : 0;
}

size_t rrl_model_shared_bytes(const rrl_model_config *c, rrl_dtype products) {
    return room_bytes(c, NULL, products == RRL_F32 ? bytes_f32 : bytes_bf16);
}

static size_t model_bytes(const rrl_model_config *c, rrl_dtype products) {
    rrl_carver vectors = {0};
    carve_vectors(&vectors, c, NULL, NULL);
    return vectors.used + 2 * rope_floats(c) * sizeof(float) + rrl_model_shared_bytes(c, products);
}

size_t rrl_model_bytes(const rrl_model_config *c) {
    return model_bytes(c, RRL_F32);
}

size_t rrl_model_bytes_bf16(const rrl_model_config *c) {
    return model_bytes(c, RRL_BF16);
}

size_t rrl_model_bytes_gpu(const rrl_model_config *c, rrl_dtype products) {
    rrl_carver vectors = {0};
    int64_t layer = 0;
    carve_vectors(&vectors, c, NULL, NULL);
    for (int module = 0; module < RRL_MODULES; module++) {
        int64_t n, k;
        rrl_module_shape(&n, &k, c, module);
        layer += n * k;
    }
    const int64_t numbers = c->layers * layer + (c->tied ? 1 : 2) * (int64_t)c->vocab * c->hidden;
    return vectors.used + 2 * rope_floats(c) * sizeof(float) + (size_t)numbers * (products == RRL_BF16 ? 2 : 4);
}

rrl_status rrl_model_room_name(char out[65], const rrl_device *d, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_safetensors *files = NULL;
    rrl_buffer state = {0};
    uint8_t digest[RRL_SHA256_BYTES];
    RRL_GOTO(rrl_safetensors_open_model(&files, dir));
    RRL_GOTO(rrl_buffer_printf(&state, "%s\n", rrl_device_numeric_path(d)));
    RRL_GOTO(rrl_safetensors_state(&state, files));
    RRL_GOTO(rrl_sha256_of(digest, state.data, state.len));
    rrl_sha256_hex(out, digest);
done:
    rrl_safetensors_close(&files);
    rrl_buffer_free(&state);
    return rc;
}

static rrl_status load_layer(rrl_model *m, checkpoint *ck, int32_t index) {
    rrl_layer *layer = &m->layers[index];
    char name[160];
    for (int module = 0; module < RRL_MODULES; module++) {
        int64_t n, k;
        rrl_module_shape(&n, &k, &m->config, module);
        snprintf(name, sizeof name, "model.layers.%d.%s.%s.weight", index, PARENTS[module], NAMES[module]);
        RRL_TRY(load_matrix(&layer->weight[module], m, ck, name, n, k));
        if (!layer->bias[module]) continue;
        snprintf(name, sizeof name, "model.layers.%d.%s.%s.bias", index, PARENTS[module], NAMES[module]);
        RRL_TRY(load_vector(layer->bias[module], m, ck, name, n));
    }
    snprintf(name, sizeof name, "model.layers.%d.input_layernorm.weight", index);
    RRL_TRY(load_vector(layer->norm_in, m, ck, name, m->config.hidden));
    snprintf(name, sizeof name, "model.layers.%d.post_attention_layernorm.weight", index);
    return load_vector(layer->norm_post, m, ck, name, m->config.hidden);
}

/* A tensor that nobody asked for would silently change the maths (a bias, another layer), so it is refused.
 */
static rrl_status refuse_unused(const checkpoint *ck, const rrl_model_config *c) {
    for (int64_t i = 0; i < rrl_safetensors_count(ck->files); i++) {
        const rrl_st_tensor *t = rrl_safetensors_at(ck->files, i);
        bool used =
            (c->tied && strcmp(t->name, "lm_head.weight") == 0) || /* a copy that transformers ignores too */
            strstr(t->name, "rotary_emb.inv_freq") != NULL;
        for (int64_t j = 0; j < ck->n_used && !used; j++) used = ck->used[j] == t;
        if (!used)
            return RRL_FAIL(RRL_ERR_DATA,
                            "%s: the weights hold the tensor \"%s\", which a %s model of this "
                            "config.json does not have",
                            ck->dir, t->name, c->family);
    }
    return RRL_OK;
}

static rrl_status load_weights(rrl_model *m, const char *dir) {
    rrl_status rc = RRL_OK;
    checkpoint ck = {.dir = dir};
    const rrl_model_config *c = &m->config;
    room_head *head = m->room.base ? rrl_carve_bytes(&m->room, sizeof *head) : NULL;
    RRL_GOTO(rrl_safetensors_open_model(&ck.files, dir));
    RRL_GOTO(rrl_alloc(&ck.used, (size_t)c->layers * 12 + 4, sizeof *ck.used, "tensor list"));
    RRL_GOTO(load_matrix(&m->embedding, m, &ck, "model.embed_tokens.weight", c->vocab, c->hidden));
    if (c->tied)
        m->head = m->embedding;
    else
        RRL_GOTO(load_matrix(&m->head, m, &ck, "lm_head.weight", c->vocab, c->hidden));
    for (int32_t i = 0; i < c->layers; i++) RRL_GOTO(load_layer(m, &ck, i));
    RRL_GOTO(load_vector(m->norm_final, m, &ck, "model.norm.weight", c->hidden));
    RRL_GOTO(refuse_unused(&ck, c));
    if (m->room_filled) {
        memcpy(m->digest, head->digest, sizeof m->digest);
        goto done;
    }
    RRL_GOTO(rrl_safetensors_digest(m->digest, ck.files));
    if (head) memcpy(head->digest, m->digest, sizeof head->digest);
done:
    free(ck.used);
    rrl_safetensors_close(&ck.files);
    return rc;
}

static rrl_status make_rope(rrl_model *m) {
    rrl_status rc = RRL_OK;
    const size_t n = rope_floats(&m->config);
    float *host = NULL;
    RRL_GOTO(rrl_alloc(&host, 2 * n, sizeof *host, "rotary tables"));
    RRL_GOTO(rrl_rope_tables(host, host + n, &m->config));
    RRL_GOTO(m->device->ops->alloc(m->device, (void **)&m->rope_cos, 2 * n * sizeof *host, "rotary tables"));
    m->rope_sin = m->rope_cos + n;
    RRL_GOTO(m->device->ops->upload(m->device, m->rope_cos, host, 2 * n * sizeof *host));
done:
    free(host);
    return rc;
}

/* The weight files' digest, which load_weights left in m->digest, and config.json's bytes make the model's
 * digest. */
static rrl_status add_config_digest(rrl_model *m, const char *dir) {
    rrl_status rc = RRL_OK;
    char *path = NULL;
    uint8_t digest[RRL_SHA256_BYTES];
    char config[RRL_SHA256_HEX];
    RRL_GOTO(rrl_path_join(&path, dir, "config.json"));
    RRL_GOTO(rrl_sha256_file(digest, path));
    rrl_sha256_hex(config, digest);
    rrl_sha256_joined(digest, m->digest, config);
    rrl_sha256_hex(m->digest, digest);
done:
    free(path);
    return rc;
}

rrl_status rrl_model_open(rrl_model **out, rrl_device *d, const char *dir) {
    return rrl_model_open_in(out, d, dir, NULL);
}

rrl_status rrl_model_open_in(rrl_model **out, rrl_device *d, const char *dir, const rrl_model_room *room) {
    rrl_status rc = RRL_OK;
    rrl_model *m = NULL;
    rrl_carver vectors = {0};
    RRL_GOTO(rrl_alloc(&m, 1, sizeof *m, "model"));
    m->device = d;
    RRL_GOTO(rrl_model_config_read(&m->config, dir));
    if (!room && d->ops->weight_view) { /* one room of its own: in large pages, read strictly forward */
        RRL_GOTO(d->ops->alloc(d, &m->own_room, rrl_model_room_bytes(d, &m->config), "packed weights"));
        m->room.base = m->own_room;
    }
    if (room) m->room.base = room->data;
    m->room_filled = room && room->filled;
    RRL_GOTO(rrl_alloc(&m->layers, (size_t)m->config.layers, sizeof *m->layers, "layers"));
    carve_vectors(&vectors, &m->config, NULL, NULL);
    RRL_GOTO(d->ops->alloc(d, (void **)&m->vectors, vectors.used, "norms and biases"));
    vectors = (rrl_carver){.base = (char *)m->vectors};
    carve_vectors(&vectors, &m->config, m->layers, &m->norm_final);
    RRL_GOTO(load_weights(m, dir));
    RRL_GOTO(make_rope(m));
    RRL_GOTO(add_config_digest(m, dir));
    RRL_GOTO(d->ops->sync(d));
    *out = m;
    m = NULL;
done:
    rrl_model_close(&m);
    return rc;
}

void rrl_model_close(rrl_model **m) {
    if (!m || !*m) return;
    rrl_model *model = *m;
    rrl_device *d = model->device;
    for (int32_t i = 0; model->layers && i < model->config.layers; i++)
        for (int module = 0; module < RRL_MODULES; module++)
            if (model->layers[i].weight[module]) d->ops->weight_free(d, &model->layers[i].weight[module]);
    if (model->head && model->head != model->embedding) d->ops->weight_free(d, &model->head);
    if (model->embedding) d->ops->weight_free(d, &model->embedding);
    if (model->own_room) d->ops->free(d, model->own_room);
    if (model->vectors) d->ops->free(d, model->vectors);
    if (model->rope_cos) d->ops->free(d, model->rope_cos);
    free(model->layers);
    free(model);
    *m = NULL;
}

const rrl_model_config *rrl_model_dims(const rrl_model *m) {
    return &m->config;
}

rrl_device *rrl_model_device(const rrl_model *m) {
    return m->device;
}

const char *rrl_model_digest(const rrl_model *m) {
    return m->digest;
}

/* --- cache */

size_t rrl_kv_block_bytes(const rrl_model_config *c, rrl_dtype dtype) {
    const size_t numbers = (size_t)c->layers * (size_t)c->kv_heads * 2 * (size_t)c->head_dim * RRL_KV_BLOCK;
    return numbers * (dtype == RRL_BF16 ? sizeof(uint16_t) : sizeof(float));
}

rrl_status rrl_kv_pool_open(rrl_kv_pool *out, const rrl_model *m, int32_t n_blocks) {
    const rrl_model_config *c = &m->config;
    rrl_kv_pool p = {
        .n_layers = c->layers, .n_blocks = n_blocks, .n_kv_heads = c->kv_heads, .head_dim = c->head_dim,
        .dtype = m->device->kv_dtype};
    if (n_blocks < 1) return RRL_FAIL(RRL_ERR_INTERNAL, "a cache of %d blocks", n_blocks);
    RRL_TRY(m->device->ops->alloc(m->device, &p.data, (size_t)n_blocks * rrl_kv_block_bytes(c, p.dtype),
                                  "keys and values"));
    *out = p;
    return RRL_OK;
}

void rrl_kv_pool_close(rrl_kv_pool *p, const rrl_model *m) {
    if (!p || !p->data) return;
    m->device->ops->free(m->device, p->data);
    p->data = NULL;
}
