/* A cuda_runtime.h for the tests: the kernels of src/device/cuda compiled by a C++ compiler and run on the processor, a
 * fiber for every CUDA thread (emulator.cpp). It has what those files use and no more.
 *
 * What it finds: a barrier or shuffle that some threads never reach, or reach at another line; a missing barrier (the
 * threads run one after the other up to the next barrier, in ascending or descending order: one of them reads stale
 * numbers); reads of shared or global memory never written (both start as NaN); accesses beyond an allocation (under
 * the address sanitizer); host code that touches device memory (it is not accessible but inside kernels and copies). */
#ifndef RRL_TESTS_CUDA_HOST_CUDA_RUNTIME_H
#define RRL_TESTS_CUDA_HOST_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)

/* --- the runtime's functions */

#define EMULATED_ERRORS(X)                                                                                             \
    X(cudaSuccess, 0, "no error")                                                                                      \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                                    \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                                                   \
    X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")                        \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")
typedef enum {
#define X(name, code, text) name = code,
    EMULATED_ERRORS(X)
#undef X
} cudaError_t;
typedef enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost } cudaMemcpyKind;
typedef enum { cudaFuncAttributeMaxDynamicSharedMemorySize } cudaFuncAttribute;
enum { cudaStreamNonBlocking = 1 };
typedef struct emulated_stream *cudaStream_t;
typedef struct {
    char name[256];
    int major, minor;
    struct {
        char bytes[16];
    } uuid;
} cudaDeviceProp;
struct dim3 {
    unsigned x, y, z;
    explicit dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1) : x(width), y(height), z(depth) {
    }
};

extern "C" {
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);
cudaError_t cudaGetLastError(void);
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value);
const char *cudaGetErrorString(cudaError_t e);
}

/* --- inside a kernel */

/* Where the running fiber is. */
struct emulated_place {
    dim3 thread, block, threads, blocks;
};
extern emulated_place emulated;
#define threadIdx (emulated.thread)
#define blockIdx  (emulated.block)
#define blockDim  (emulated.threads)
#define gridDim   (emulated.blocks)

unsigned char *emulated_shared(void);
/* All threads of the block meet; true if any of them brings true. */
bool emulated_barrier(bool any, int line);
/* All 32 lanes of the warp meet; the values they bring, by lane. */
const uint64_t *emulated_exchange(unsigned mask, uint64_t value, int line);
int emulated_lane(void);

inline void __syncthreads(int line = __builtin_LINE()) {
    emulated_barrier(false, line);
}
inline int __syncthreads_or(int any, int line = __builtin_LINE()) {
    return emulated_barrier(any != 0, line);
}

template <class T> T emulated_shuffle(unsigned mask, T v, int source, int line) {
    uint64_t bits = 0;
    static_assert(sizeof v <= sizeof bits, "a shuffle moves up to eight bytes");
    memcpy(&bits, &v, sizeof v);
    bits = emulated_exchange(mask, bits, line)[source];
    memcpy(&v, &bits, sizeof v);
    return v;
}
template <class T> T __shfl_sync(unsigned mask, T v, int source, int width = 32, int line = __builtin_LINE()) {
    return emulated_shuffle(mask, v, emulated_lane() / width * width + source % width, line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32, int line = __builtin_LINE()) {
    const int lane = emulated_lane(), source = lane ^ bits;
    return emulated_shuffle(mask, v, source / width == lane / width ? source : lane, line);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, int by, int width = 32, int line = __builtin_LINE()) {
    const int lane = emulated_lane(), source = lane + by;
    return emulated_shuffle(mask, v, source / width == lane / width ? source : lane, line);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, int by, int width = 32, int line = __builtin_LINE()) {
    const int lane = emulated_lane(), source = lane - by;
    return emulated_shuffle(mask, v, source >= lane / width * width ? source : lane, line);
}
inline unsigned __ballot_sync(unsigned mask, bool yes, int line = __builtin_LINE()) {
    const uint64_t *all = emulated_exchange(mask, yes, line);
    unsigned votes = 0;
    for (int lane = 0; lane < 32; ++lane) votes |= (unsigned)all[lane] << lane;
    return votes;
}
inline int __ffs(unsigned bits) {
    return __builtin_ffs((int)bits);
}

/* One fiber runs at a time, so nothing more is needed. */
template <class T> T atomicAdd(T *p, T v) {
    const T old = *p;
    *p = old + v;
    return old;
}
inline unsigned atomicOr(unsigned *p, unsigned v) {
    const unsigned old = *p;
    *p = old | v;
    return old;
}

/* Denormal numbers and results count as 0. */
inline float emulated_flush(float x) {
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}
inline float emulated_fma_ftz(float a, float b, float c) {
    return emulated_flush(fmaf(emulated_flush(a), emulated_flush(b), emulated_flush(c)));
}
inline float emulated_add_ftz(float a, float b) {
    return emulated_flush(emulated_flush(a) + emulated_flush(b));
}

/* --- what cuda_common.cuh asks for */

typedef struct {
    void (*thread)(void *call); /* runs one CUDA thread of the kernel */
    void *call;
} emulated_kernel;
void emulated_run(const char *name, dim3 blocks, unsigned threads, size_t shared, emulated_kernel kernel);
/* Work of the stream: done at once, or kept while a graph is recorded (graph_host.cpp). */
void emulated_submit(std::function<void()> work);

/* kernel<<<...>>> with its arguments still to come. */
template <class... P> struct emulated_start {
    void (*kernel)(P...);
    dim3 blocks;
    unsigned threads;
    size_t shared;
    void operator()(P... args) const {
        emulated_submit([start = *this, args...]() {
            auto call = [&]() { start.kernel(args...); };
            emulated_run("kernel", start.blocks, start.threads, start.shared,
                         {[](void *c) { (*(decltype(call) *)c)(); }, &call});
        });
    }
};
template <class... P>
emulated_start<P...> emulated_start_of(void (*kernel)(P...), dim3 blocks, unsigned threads, size_t shared,
                                       cudaStream_t) {
    return {kernel, blocks, threads, shared};
}

#define RRL_CUDA_START(kernel, grid, threads, shared, stream) emulated_start_of(kernel, grid, threads, shared, stream)
#define RRL_CUDA_SHARED(name)                                 unsigned char *name = emulated_shared()
#define RRL_CUDA_FMA_FTZ(a, b, c)                             emulated_fma_ftz(a, b, c)
#define RRL_CUDA_ADD_FTZ(a, b)                                emulated_add_ftz(a, b)

#endif
