/* The ops that the bf16 path replaces, and their room. */
#ifndef RRL_DEVICE_CPU_BF16_OPS_H
#define RRL_DEVICE_CPU_BF16_OPS_H

#include "device/cpu/bf16.h"

/* Room that grows when a larger matrix or batch comes. */
typedef struct {
    void *data;
    size_t bytes;
} rrl_bf16_room;

typedef struct {
    rrl_bf16_engine engine; /* kernels NULL = the f32 path */
    rrl_bf16_room rows, gradients, turned; /* rounded activations, rounded gradients of logits, W^T */
} rrl_bf16_state;

/** Put the bf16 ops in place of those of the table. */
void rrl_bf16_install(rrl_device_ops *ops);
void rrl_bf16_close(rrl_bf16_state *s);

#endif
