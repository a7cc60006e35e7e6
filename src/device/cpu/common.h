/* What every kernel table of the CPU shares. */
#ifndef RRL_DEVICE_CPU_COMMON_H
#define RRL_DEVICE_CPU_COMMON_H

#include "base/exactmath.h"
#include "base/random.h"
#include "device/scalar.h"

static inline int64_t rrl_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* The LoRA module of a row, NULL if it has none. */
static inline const rrl_lora *rrl_lora_of_row(const rrl_batch *b, const rrl_lora_args *args, int64_t row) {
    int32_t adapter = b->adapter[b->row_seq[row]];
    return adapter < 0 ? NULL : args->modules[adapter];
}

/* Numbers of a row of a_t: a rank below 16 is not padded to it, which would double what decode reads of it. */
static inline int64_t rrl_lora_stride(int32_t r) {
    return (r + 7) / 8 * 8;
}

static inline bool rrl_dropout_on(const rrl_lora_args *args) {
    return args->dropout && args->dropout->p > 0.0f;
}

#endif
