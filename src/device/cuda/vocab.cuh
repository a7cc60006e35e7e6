/* Log-sum-exp of a block of the vocabulary by half a warp, for scoring and for sampling. */
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

#endif
