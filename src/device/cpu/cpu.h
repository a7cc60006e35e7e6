/* State of the CPU back end, for its own files and for tests of its insides. */
#ifndef RRL_DEVICE_CPU_CPU_H
#define RRL_DEVICE_CPU_CPU_H

#include "device/cpu/bf16_ops.h"
#include "device/cpu/kernels.h"
#include "device/cpu/pool.h"

typedef struct {
    const rrl_kernels *kernels;
    rrl_pool *pool;
    int threads;
    rrl_sample_scratch
        *scratch; /* [threads], each of scratch_vocabulary; grows when a larger vocabulary comes */
    int64_t scratch_vocabulary;
    rrl_bf16_state bf16;
    rrl_device_ops ops; /* those of f32, or with the bf16 products in place */
} rrl_cpu;

extern const rrl_device_ops rrl_cpu_ops;

/** As ops->sample, and writes the masses that survive top-k and top-p, 0 = removed: kept [rows, vocabulary].
 * Rows of temperature 0 are left as they are. For tests against other implementations. */
rrl_status rrl_cpu_sample_kept(rrl_device *d, int32_t *token, float *logp, uint64_t *kept, rrl_tensor logits,
                               const rrl_sample_row *rows);
void rrl_cpu_scratch_free(rrl_cpu *cpu);
/* of the op table (cpu_device.c) */
void rrl_cpu_close(rrl_device *d);
const char *rrl_cpu_numeric_path(const rrl_device *d);
const char *rrl_cpu_isa(const rrl_device *d);

#endif
