/* Trainable vectors: AdamW and the gradient norm in double, as on the CPU, and sums. */
#include "device/cuda/cuda_ops.cuh"

extern "C" {
#include "base/exactmath.h"
}

typedef struct {
    double clip, beta1, beta2, eps;
    double decay, step_size, root_scale; /* 1 - lr wd; lr / (1 - beta1^t); 1 / sqrt(1 - beta2^t) */
} adamw_factors;

__global__ void adamw_kernel(float *p, float *m, float *v, const float *g, int64_t n, adamw_factors f) {
    for (int64_t i = rrl_cuda_first(); i < n; i += rrl_cuda_step()) {
        const double grad = (double)g[i] * f.clip;
        const double first = (double)m[i] * f.beta1 + grad * (1.0 - f.beta1);
        const double second = (double)v[i] * f.beta2 + grad * grad * (1.0 - f.beta2);
        m[i] = (float)first;
        v[i] = (float)second;
        p[i] = (float)((double)p[i] * f.decay - f.step_size * first / (sqrt(second) * f.root_scale + f.eps));
    }
}

rrl_status rrl_cuda_adamw(rrl_device *d, float *p, float *m, float *v, const float *g, int64_t n,
                          const rrl_adamw_args *a) {
    const double t = (double)a->step;
    const adamw_factors f = {a->clip,
                             a->beta1,
                             a->beta2,
                             a->eps,
                             1.0 - a->lr * a->weight_decay,
                             a->lr / (1.0 - rrl_pow(a->beta1, t)),
                             1.0 / sqrt(1.0 - rrl_pow(a->beta2, t))};
    return RRL_LAUNCH(rrl_cuda_of(d), adamw_kernel, rrl_cuda_grid(n), RRL_CUDA_THREADS, 0, p, m, v, g, n, f);
}

constexpr int SQUARES_BLOCK = 4096;

/* Half a warp a block of the vector: partial [blocks]. */
__global__ void squares_kernel(double *partial, const float *x, int64_t blocks, int64_t n) {
    const int64_t block = rrl_cuda_first() / RRL_LANES, first = block * SQUARES_BLOCK;
    const int64_t last = block >= blocks ? first : first + SQUARES_BLOCK < n ? first + SQUARES_BLOCK : n;
    const int lane = threadIdx.x % RRL_LANES;
    double sum = 0.0;
    for (int64_t i = first + lane; i < last; i += RRL_LANES) sum += (double)x[i] * (double)x[i];
    sum = rrl_tree16(sum);
    if (lane == 0 && block < blocks) partial[block] = sum;
}

/* One block: tiles of the partial sums come in together, one thread adds them in ascending order. */
__global__ void squares_sum_kernel(double *out, const double *partial, int64_t blocks, bool add) {
    RRL_CUDA_SHARED(raw);
    double *tile = (double *)raw; /* [blockDim.x] */
    double sum = add ? *out : 0.0;
    for (int64_t first = 0; first < blocks; first += blockDim.x) {
        const int64_t n = blocks - first < blockDim.x ? blocks - first : blockDim.x;
        if (threadIdx.x < n) tile[threadIdx.x] = partial[first + threadIdx.x];
        __syncthreads();
        for (int64_t i = 0; threadIdx.x == 0 && i < n; ++i) sum += tile[i];
        __syncthreads(); /* before the tile is written again */
    }
    if (threadIdx.x == 0) *out = sum;
}

rrl_status rrl_cuda_sum_squares(rrl_device *d, double *out, const float *x, int64_t n) {
    rrl_cuda *c = rrl_cuda_of(d);
    double *partial = (double *)c->room;
    const int64_t most = (int64_t)(c->room_bytes / sizeof *partial); /* blocks at a time */
    for (int64_t at = 0; at == 0 || at < n; at += most * SQUARES_BLOCK) {
        const int64_t left = n - at,
                      blocks = rrl_blocks(left < most * SQUARES_BLOCK ? left : most * SQUARES_BLOCK, SQUARES_BLOCK);
        RRL_TRY(RRL_LAUNCH(c, squares_kernel, dim3((unsigned)rrl_blocks(blocks * RRL_LANES, RRL_CUDA_THREADS)),
                           RRL_CUDA_THREADS, 0, partial, x + at, blocks, left));
        RRL_TRY(RRL_LAUNCH(c, squares_sum_kernel, dim3(1), RRL_CUDA_THREADS, RRL_CUDA_THREADS * sizeof *partial, out,
                           partial, blocks, at > 0));
    }
    return RRL_OK;
}

__global__ void axpy_kernel(float *y, const float *x, float a, int64_t n) {
    for (int64_t i = rrl_cuda_first(); i < n; i += rrl_cuda_step()) y[i] = fmaf(a, x[i], y[i]);
}

rrl_status rrl_cuda_axpy(rrl_device *d, float *y, const float *x, float a, int64_t n) {
    return RRL_LAUNCH(rrl_cuda_of(d), axpy_kernel, rrl_cuda_grid(n), RRL_CUDA_THREADS, 0, y, x, a, n);
}

rrl_status rrl_cuda_zero(rrl_device *d, float *y, int64_t n) {
    rrl_status rc = RRL_OK;
    if (n > 0) RRL_CUDA(cudaMemsetAsync(y, 0, (size_t)n * sizeof *y, rrl_cuda_of(d)->stream));
done:
    return rc;
}
