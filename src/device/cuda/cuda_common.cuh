/* What every file of the CUDA back end begins with: error checks, the launch, the state behind an rrl_device, and the
 * pieces of arithmetic that several kernels share.
 *
 * Numbers. A kernel follows the order of operations of device/cpu/reference*.c: the same chains, lanes, trees and
 * blocks, fma where fmaf stands and nowhere else (nvcc -fmad=false). So what it computes does not depend on the grid,
 * on other rows or on the tile, and in float32 it is the reference's bits. No float is added atomically. */
#ifndef RRL_DEVICE_CUDA_COMMON_CUH
#define RRL_DEVICE_CUDA_COMMON_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "device/cuda_module.h"
#include "device/device.h"
#include "device/scalar.h"
}

/* A checked call in a function with `rc` and `done:`; sticky errors are cleared. */
#define RRL_CUDA(call)                                                                                                 \
    do {                                                                                                               \
        cudaError_t e_ = (call);                                                                                       \
        if (e_ != cudaSuccess) {                                                                                       \
            (void)cudaGetLastError();                                                                                  \
            rc = RRL_FAIL(RRL_ERR_DEVICE, "%s: %s", #call, cudaGetErrorString(e_));                                    \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* The two things that are spelt in CUDA's own syntax; a test's cuda_runtime.h says them otherwise. */
#ifndef RRL_CUDA_START
#define RRL_CUDA_START(kernel, grid, threads, shared, stream) kernel<<<(grid), (threads), (shared), (stream)>>>
#define RRL_CUDA_SHARED(name)                                 extern __shared__ __align__(16) unsigned char name[]
#define RRL_CUDA_FMA_FTZ(a, b, c)                             rrl_ptx_fma_ftz(a, b, c)
#define RRL_CUDA_ADD_FTZ(a, b)                                rrl_ptx_add_ftz(a, b)
__device__ static inline float rrl_ptx_fma_ftz(float a, float b, float c) {
    float y;
    asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(a), "f"(b), "f"(c));
    return y;
}
__device__ static inline float rrl_ptx_add_ftz(float a, float b) {
    float y;
    asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
#endif

/* --- the state behind a device */

typedef struct rrl_blaslt rrl_blaslt; /* blaslt.h */

/* A tensor whose numbers the last launch left rounded to bf16 in the working room too: what a product that follows
 * would do first. Any other launch or copy makes it void; products of cuBLASLt read it or round anew, which is a launch.
 */
typedef struct {
    const float *x; /* NULL = none */
    int64_t rows, cols;
} rrl_cuda_rounded;

typedef struct {
    cudaStream_t stream; /* all work of the device, in order */
    int index;           /* of the GPU */
    rrl_dtype dtype;     /* of the products: RRL_F32 or RRL_BF16 */
    rrl_determinism determinism;
    rrl_blaslt *blaslt; /* NULL under RRL_DETERMINISM_EXACT */
    /* Working room of one op at a time, made at open: ops cut their rows into chunks that fit, and never allocate. */
    char *room;
    size_t room_bytes;
    rrl_cuda_rounded rounded;
    bool recording; /* a graph, see graph.cu */
    char isa[96];  /* "sm_90 NVIDIA H200" */
    char uuid[48]; /* "GPU-0a1b2c3d-..." */
} rrl_cuda;

/* A frozen matrix: row-major [n,k], f32 or bf16 as the device's dtype. n and k come first in every back end. */
struct rrl_weight {
    int64_t n, k;
    void *data;
};

/* The front of the working room, which products may use; an op that calls them keeps what it needs behind it. */
static inline size_t rrl_cuda_front_bytes(const rrl_cuda *c) {
    return c->room_bytes / 8 * 7;
}

static inline rrl_cuda *rrl_cuda_of(const rrl_device *d) {
    return (rrl_cuda *)d->state;
}

/* A shape that does not fit is the caller's mistake; `what` names the operand. */
static inline rrl_status rrl_cuda_check(bool fits, const char *what) {
    return fits ? RRL_OK : RRL_FAIL(RRL_ERR_INTERNAL, "device op: the shape of %s does not fit", what);
}

static inline bool rrl_same_shape(rrl_tensor a, rrl_tensor b) {
    return a.rows == b.rows && a.cols == b.cols;
}

static inline int64_t rrl_blocks(int64_t n, int64_t block) {
    return (n + block - 1) / block;
}

/* --- the launch */

constexpr int RRL_CUDA_THREADS = 256, RRL_CUDA_PLAIN_SHARED = 48 << 10, RRL_MAX_HEAD_DIM = 256;

/* Enqueue `grid` blocks of `threads`. More shared memory than every kernel has is asked for first. An empty grid is
 * nothing to do. */
template <class... P, class... A>
rrl_status rrl_cuda_launch(rrl_cuda *c, const char *name, void (*kernel)(P...), dim3 grid, unsigned threads,
                           size_t shared, A... args) {
    cudaError_t e = cudaSuccess;
    c->rounded.x = NULL;
    if (grid.x == 0 || grid.y == 0) return RRL_OK;
    if (shared > RRL_CUDA_PLAIN_SHARED)
        e = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (e == cudaSuccess) {
        RRL_CUDA_START(kernel, grid, threads, shared, c->stream)(static_cast<P>(args)...);
        e = cudaGetLastError();
    }
    return e == cudaSuccess ? RRL_OK : RRL_FAIL(RRL_ERR_DEVICE, "kernel %s: %s", name, cudaGetErrorString(e));
}
#define RRL_LAUNCH(c, kernel, ...) rrl_cuda_launch(c, #kernel, kernel, __VA_ARGS__)

/* Blocks of a loop over n elements by blocks of RRL_CUDA_THREADS: the loop strides over the grid. */
static inline dim3 rrl_cuda_grid(int64_t n) {
    int64_t blocks = rrl_blocks(n, RRL_CUDA_THREADS);
    return dim3((unsigned)(blocks < 65535 ? blocks : 65535));
}
/* This thread's first element, and the step to its next. */
__device__ static inline int64_t rrl_cuda_first(void) {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ static inline int64_t rrl_cuda_step(void) {
    return (int64_t)gridDim.x * blockDim.x;
}

/* --- numbers rounded beside a result */

/* Where a kernel also puts its result, rounded; rows of `ld`. data NULL = nowhere. */
typedef struct {
    uint16_t *data;
    int64_t ld;
} rrl_cuda_beside;

/* Stride of rounded rows: 16 bytes, what the fast algorithms of cuBLASLt ask of a row. */
static inline int64_t rrl_cuda_rounded_ld(int64_t cols) {
    return (cols + 7) / 8 * 8;
}
/* For a result that a product may read next; nowhere if products round for themselves or it does not fit. */
static inline rrl_cuda_beside rrl_cuda_beside_of(const rrl_cuda *c, rrl_tensor y) {
    const int64_t ld = rrl_cuda_rounded_ld(y.cols);
    const bool fits = (size_t)(y.rows * ld) * sizeof(uint16_t) <= rrl_cuda_front_bytes(c);
    return rrl_cuda_beside{c->blaslt && c->dtype == RRL_BF16 && fits ? (uint16_t *)c->room : NULL, ld};
}
/* Right after the launch that did so. */
static inline void rrl_cuda_was_rounded(rrl_cuda *c, rrl_cuda_beside beside, rrl_tensor y) {
    if (beside.data) c->rounded = rrl_cuda_rounded{y.data, y.rows, y.cols};
}
__device__ static inline void rrl_put_beside(const rrl_cuda_beside *b, int64_t row, int64_t col, float x) {
    if (b->data) b->data[row * b->ld + col] = rrl_bf16_of(x);
}

/* --- arithmetic */

#define RRL_WARP      32
#define RRL_ALL_LANES 0xffffffffu

/* The tree over 16 lanes: each half of the warp its own; every lane gets the sum. Addition commutes, so the lane that
 * adds l + (l + 8) and the one that adds (l + 8) + l have the same bits. */
__device__ static inline float rrl_tree16(float v) {
    for (int half = RRL_LANES / 2; half > 0; half /= 2) v += __shfl_xor_sync(RRL_ALL_LANES, v, half, RRL_LANES);
    return v;
}
__device__ static inline double rrl_tree16(double v) {
    for (int half = RRL_LANES / 2; half > 0; half /= 2) v += __shfl_xor_sync(RRL_ALL_LANES, v, half, RRL_LANES);
    return v;
}
/* The largest of a half warp, or of a warp (width). */
__device__ static inline float rrl_max_of(float v, int width) {
    for (int half = width / 2; half > 0; half /= 2) {
        float other = __shfl_xor_sync(RRL_ALL_LANES, v, half, width);
        v = other > v ? other : v;
    }
    return v;
}

#endif
