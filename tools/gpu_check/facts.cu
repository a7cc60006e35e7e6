/* Bandwidth and tensor-core peak from the clocks that the driver reports. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

extern "C" {
#include "check.h"
}

static double attribute(cudaDeviceAttr which, int gpu) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, gpu) == cudaSuccess ? value : 0;
}

/* Operations of a multiprocessor in a clock, dense bf16 with f32 sums, by compute capability: A100 312, H100 989, B200
 * 2250 TFLOP/s at their boost clocks; half of A100's in workstation GPUs. */
static double per_clock(int major, int minor) {
    return major >= 10 ? 8192 : major == 9 ? 4096 : major == 8 && minor == 0 ? 2048 : 1024;
}

extern "C" void rrl_gpu_facts_of(rrl_gpu_facts *out, int gpu) {
    cudaDeviceProp p;
    memset(out, 0, sizeof *out);
    if (cudaGetDeviceProperties(&p, gpu) != cudaSuccess) return;
    snprintf(out->name, sizeof out->name, "%.90s", p.name);
    /* kHz; two transfers a clock */
    out->read = 2e3 * attribute(cudaDevAttrMemoryClockRate, gpu) * attribute(cudaDevAttrGlobalMemoryBusWidth, gpu) / 8;
    out->peak = 1e3 * attribute(cudaDevAttrClockRate, gpu) * p.multiProcessorCount * per_clock(p.major, p.minor);
}
