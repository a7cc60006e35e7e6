/* What the files of src/model share: the modules of a layer, the model's struct, and carving buffers from one
 * block. */
#ifndef RRL_MODEL_MODEL_PARTS_H
#define RRL_MODEL_MODEL_PARTS_H

#include "model/model.h"

/* The linear maps of a layer in module order: constant, parent in the checkpoint, name. */
#define RRL_MODULE_LIST(X)                                                                                   \
    X(RRL_MODULE_Q, "self_attn", "q_proj")                                                                   \
    X(RRL_MODULE_K, "self_attn", "k_proj")                                                                   \
    X(RRL_MODULE_V, "self_attn", "v_proj")                                                                   \
    X(RRL_MODULE_O, "self_attn", "o_proj")                                                                   \
    X(RRL_MODULE_GATE, "mlp", "gate_proj")                                                                   \
    X(RRL_MODULE_UP, "mlp", "up_proj")                                                                       \
    X(RRL_MODULE_DOWN, "mlp", "down_proj")
typedef enum {
#define X(id, parent, name) id,
    RRL_MODULE_LIST(X)
#undef X
        RRL_MODULES
} rrl_module;

/** "self_attn" or "mlp", "q_proj" ... */
const char *rrl_module_parent(int module);
const char *rrl_module_name(int module);
/** Shape of a module's weight [n, k]. */
void rrl_module_shape(int64_t *n, int64_t *k, const rrl_model_config *c, int module);

typedef struct {
    rrl_weight *weight[RRL_MODULES];
    float *bias[RRL_MODULES]; /* NULL = none */
    float *norm_in, *norm_post;
} rrl_layer;

/* Carves f32 buffers from one block of device memory. With base NULL it only counts, so that a plan and an
 * allocation come from the same code. */
typedef struct {
    char *base;
    size_t used; /* bytes */
} rrl_carver;
rrl_tensor rrl_carve(rrl_carver *c, int64_t rows, int64_t cols);
/** bytes, 64-byte aligned; NULL while counting. */
void *rrl_carve_bytes(rrl_carver *c, size_t bytes);

struct rrl_model {
    rrl_device *device; /* borrowed */
    rrl_model_config config;
    rrl_layer *layers;
    rrl_weight *embedding, *head; /* head == embedding when tied */
    float *vectors;               /* one block: norms and biases of all layers */
    float *norm_final;
    float *rope_cos, *rope_sin; /* one block, owned by rope_cos */
    char digest[65];
    rrl_carver room; /* base NULL: each matrix has memory of its own */
    bool room_filled;
    void *own_room; /* device; NULL: the room is the caller's, or there is none */
};

static inline int32_t rrl_round16(int32_t r) {
    return (r + 15) / 16 * 16;
}

#endif
