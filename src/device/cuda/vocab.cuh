/* Log-sum-exp for scoring and for sampling: of a block of the vocabulary by half a warp, of all blocks by a warp. */
#ifndef RRL_DEVICE_CUDA_VOCAB_CUH
#define RRL_DEVICE_CUDA_VOCAB_CUH

#include "device/cuda/cuda_common.cuh"

/* Of logits / t, n of them (0: only take part in the shuffles); every lane has the result. */
__device__ static inline rrl_lse rrl_lse_of_block(const float *logits, int n, float t) {
    const int lane = threadIdx.x % RRL_LANES;
    float max = -INFINITY, sum = 0.0f, weighted = 0.0f;
    for (int i = lane; i < n; i += RRL_LANES) {
        const float z = logits[i] / t;
        max = z > max ? z : max;
    }
    max = rrl_max_of(max, RRL_LANES);
    for (int i = lane; i < n; i += RRL_LANES) {
        const float d = logits[i] / t - max, p = rrl_exp_f32(d);
        sum += p;
        weighted = fmaf(p, d, weighted);
    }
    return rrl_lse{max, rrl_tree16(sum), rrl_tree16(weighted)};
}

/* Blocks 0 .. n - 1 joined in ascending order: the bits of rrl_lse_join one by one. By a warp, all lanes have the
 * result. The maximum up to each block is known at once, so a lane makes the exponentials of a block, and only a few
 * products and additions a block wait for those before. block(i): the i-th; none of them has the sum 0. */
template <class B> __device__ static inline rrl_lse rrl_lse_of_blocks(B block, int64_t n) {
    const int lane = threadIdx.x % RRL_WARP;
    rrl_lse total = block(0);
    for (int64_t first = 1; first < n; first += RRL_WARP) {
        const int count = n - first < RRL_WARP ? (int)(n - first) : RRL_WARP;
        const rrl_lse b = lane < count ? block(first + lane) : rrl_lse{-INFINITY, 0.0f, 0.0f};
        float max = b.max;
        for (int by = 1; by < RRL_WARP; by *= 2) {
            const float other = __shfl_up_sync(RRL_ALL_LANES, max, by);
            if (lane >= by) max = max > other ? max : other;
        }
        max = max > total.max ? max : total.max;
        float before = __shfl_up_sync(RRL_ALL_LANES, max, 1);
        if (lane == 0) before = total.max;
        const float shift = before - max, block_shift = b.max - max;
        const float a = rrl_exp_f32(shift), f = rrl_exp_f32(block_shift);
        const float weighted = (b.weighted + b.sum * block_shift) * f, sum = b.sum * f;
        for (int i = 0; i < count; ++i) {
            const float s = __shfl_sync(RRL_ALL_LANES, shift, i), old = __shfl_sync(RRL_ALL_LANES, a, i);
            total.weighted = (total.weighted + total.sum * s) * old + __shfl_sync(RRL_ALL_LANES, weighted, i);
            total.sum = total.sum * old + __shfl_sync(RRL_ALL_LANES, sum, i);
        }
        total.max = __shfl_sync(RRL_ALL_LANES, max, count - 1);
    }
    return total;
}

#endif
