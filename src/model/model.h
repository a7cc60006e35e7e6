/* The frozen base: a Llama or Qwen2 model from a Hugging Face folder, resident on a device, and its forward pass.
 *
 * One forward serves prefill, decode and training, so a log-probability is the same number wherever it is computed. */
#ifndef RRL_MODEL_MODEL_H
#define RRL_MODEL_MODEL_H

#include "data/safetensors.h"
#include "device/device.h"
#include "model/adapter.h"

typedef struct {
    char family[16]; /* "llama" or "qwen2" */
    int32_t hidden, layers, heads, kv_heads, head_dim, intermediate, vocab, max_positions;
    float rms_eps;
    double rope_theta;
    bool tied, qkv_bias;
    /* llama3 rope scaling; factor 0 = none */
    double rope_factor, rope_low_freq, rope_high_freq;
    int64_t rope_original_positions;
    int32_t n_eos, eos[16]; /* end tokens: generation_config.json, else config.json, else tokenizer_config.json */
} rrl_model_config;

/** Read config.json (+ generation_config.json, tokenizer_config.json for end tokens). Errors: RRL_ERR_DATA naming the
 *  key: unknown model_type, sizes that do not divide, unsupported rope scaling, activation other than silu. */
rrl_status rrl_model_config_read(rrl_model_config *out, const char *dir);

typedef struct rrl_model rrl_model;
/** Load and pack the weights; tensors are checked by name, type and shape. The device is borrowed. */
rrl_status rrl_model_open(rrl_model **out, rrl_device *d, const char *dir);
/* Memory of the caller's for all that is frozen and large - the packed matrices, the embedding too - so that processes can
 * share one copy. */
typedef struct {
    void *data;  /* rrl_model_room_bytes, 64-byte aligned; it outlives the model */
    bool filled; /* by a model opened in it under the same name: only read. Else zeroed, and filled by opening */
} rrl_model_room;
/** As rrl_model_open, with the packed weights in room (NULL: in memory of its own). */
rrl_status rrl_model_open_in(rrl_model **out, rrl_device *d, const char *dir, const rrl_model_room *room);
/** Bytes of such a room; 0 where the device has no memory that processes can share. */
size_t rrl_model_room_bytes(const rrl_device *d, const rrl_model_config *c);
/** Hex name of what a room holds: differs with the weight files (path, inode, size, times; they are not read) and with the
 *  way they are packed. Errors: RRL_ERR_DATA, RRL_ERR_IO. */
rrl_status rrl_model_room_name(char out[65], const rrl_device *d, const char *dir);
void rrl_model_close(rrl_model **m);
const rrl_model_config *rrl_model_dims(const rrl_model *m);
rrl_device *rrl_model_device(const rrl_model *m);
/** SHA-256 hex over the weight files and config.json. */
const char *rrl_model_digest(const rrl_model *m);
/** Type of the matrices in a folder: RRL_F32 where any is, else RRL_BF16 or RRL_F16, that of the embedding. Reads heads of
 *  files only. Errors: RRL_ERR_DATA, RRL_ERR_IO. */
rrl_status rrl_model_dtype(rrl_dtype *out, const char *dir);
/** Bytes of packed weights and tables, for the memory plan (from config alone): on a device of f32 or bf16 products. */
size_t rrl_model_bytes(const rrl_model_config *c);
size_t rrl_model_bytes_bf16(const rrl_model_config *c);
/** The same on a GPU, where matrices lie as they are. */
size_t rrl_model_bytes_gpu(const rrl_model_config *c, rrl_dtype products);
/** The part of these that the ranks of a node hold once between them (roles/node_memory.h); what is left, each rank has. */
size_t rrl_model_shared_bytes(const rrl_model_config *c, rrl_dtype products);
/** The same for an adapter: its trainable floats, and the bytes it holds on the device. 0 if a target is unknown. */
int64_t rrl_config_adapter_size(const rrl_model_config *c, const rrl_adapter_spec *spec);
size_t rrl_config_adapter_bytes(const rrl_model_config *c, const rrl_adapter_spec *spec);

/* Rows whose feed-forward part, or whose logits, are made at a time: it bounds the widest buffers, and never a bit. */
enum { RRL_BLOCK_ROWS = 1024 };

/* Buffers of one forward of at most max_rows rows; opened once. */
typedef struct rrl_workspace rrl_workspace;
rrl_status rrl_workspace_open(rrl_workspace **out, const rrl_model *m, int32_t max_rows);
void rrl_workspace_close(rrl_workspace **w);
size_t rrl_workspace_bytes(const rrl_model_config *c, int32_t max_rows);

/* A batch to run. Arrays as in device.h (device memory). */
typedef struct {
    rrl_batch batch;
    rrl_kv_table table;
    rrl_kv_writes writes;
    const rrl_kv_pool *pool;
    rrl_adapter *const *adapters; /* [n_adapters]; batch.adapter indexes it */
    int32_t n_adapters;
    const rrl_dropout *dropout; /* NULL = none */
} rrl_forward;

/** hidden [n_rows, hidden] of the workspace: the final norm's output of every row. Errors: RRL_ERR_DEVICE. */
rrl_status rrl_model_forward(rrl_tensor *hidden, rrl_model *m, rrl_workspace *w, const rrl_forward *f);
/** logits [n, vocab] of given hidden rows (row indices in device memory, n of them). */
rrl_status rrl_model_logits(rrl_model *m, rrl_workspace *w, rrl_tensor logits, rrl_tensor hidden, const int32_t *row);

/* KV pool of n_blocks blocks for all layers, of the device's kv_dtype. */
rrl_status rrl_kv_pool_open(rrl_kv_pool *out, const rrl_model *m, int32_t n_blocks);
void rrl_kv_pool_close(rrl_kv_pool *p, const rrl_model *m);
size_t rrl_kv_block_bytes(const rrl_model_config *c, rrl_dtype dtype);

#endif
