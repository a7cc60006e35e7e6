/* The ops that the bf16 path replaces, and their room. */
#ifndef RRL_DEVICE_CPU_BF16_OPS_H
#define RRL_DEVICE_CPU_BF16_OPS_H

#include "device/cpu/bf16.h"

/* Room that grows when a larger matrix or batch comes. */
typedef struct {
    void *data;
    size_t bytes;
} rrl_bf16_room;

/* W^T of one of the last RRL_BF16_TURNED weights, for the next rows of the same; all of them would double the weights. */
typedef struct {
    const rrl_weight *of; /* NULL = none */
    rrl_bf16_room room;
} rrl_bf16_turned;

typedef struct {
    rrl_bf16_engine engine; /* kernels NULL = the f32 path */
    rrl_bf16_room rows, gradients, panels; /* rounded activations, rounded gradients of logits, panels of the head's W^T */
    rrl_bf16_turned turned[RRL_BF16_TURNED];
    int oldest; /* of them */
} rrl_bf16_state;

/** The engine, whose kernels are chosen already, shares its work among the threads of the pool (borrowed). */
rrl_status rrl_bf16_open(rrl_bf16_state *s, rrl_pool *pool, int threads);
/** Put the bf16 ops in place of those of the table. */
void rrl_bf16_install(rrl_device_ops *ops);
void rrl_bf16_close(rrl_bf16_state *s);

#endif
