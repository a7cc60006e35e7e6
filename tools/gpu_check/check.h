/* A check of a GPU machine without MPI, HDF5 or CMake: what its parts share. tools/gpu_check.sh builds and runs it. */
#ifndef RRL_GPU_CHECK_H
#define RRL_GPU_CHECK_H

#include "base/memory.h"
#include "device/cuda_module.h"

typedef struct {
    const rrl_cuda_module *module;
    const char *module_path;
    int gpu;
    bool small;  /* shapes for a GPU that is emulated */
    int failed;
    rrl_buffer checks, figures; /* members of the two JSON arrays */
} rrl_gpu_check;

/** A result: one line on stdout and one entry in the JSON. outcome: "ok", "FAILED", "skipped" or "told" (decides
 *  nothing). Failed ones are counted. */
void rrl_gpu_say(rrl_gpu_check *c, const char *name, const char *outcome, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** The same of a call: what went wrong, if it did. */
void rrl_gpu_say_status(rrl_gpu_check *c, const char *name, rrl_status rc);

/** A device of the GPU that is checked. */
rrl_status rrl_gpu_open(rrl_device **out, const rrl_gpu_check *c, rrl_dtype dtype, rrl_determinism determinism);

/* The parts, each told in lines. */
void rrl_gpu_check_ops(rrl_gpu_check *c);
void rrl_gpu_check_step(rrl_gpu_check *c);
void rrl_gpu_check_ranks(rrl_gpu_check *c);
void rrl_gpu_measure(rrl_gpu_check *c);

/** The "folder" of a model with random weights, for rrl_model_open (bare.c). */
typedef enum { RRL_GPU_TINY, RRL_GPU_QWEN_05B } rrl_gpu_shape;
const char *rrl_gpu_model(rrl_gpu_shape shape);

/* What the GPU could do, for bounds (facts.cu, or facts_none.c where there is no CUDA runtime). */
typedef struct {
    char name[96];
    double read;  /* bytes a second of device memory */
    double peak;  /* bf16 operations a second of the tensor cores, dense */
} rrl_gpu_facts;
void rrl_gpu_facts_of(rrl_gpu_facts *out, int gpu);

double rrl_gpu_clock(void);

#endif
