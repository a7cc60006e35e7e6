/* The language-model head in training: logits by blocks of RRL_VOCAB_BLOCK ids in the caller's scratch, reduced at once
 * to log-sum-exp, chosen log-prob and entropy; rows x vocabulary are never held. Blocks join in ascending order, as the
 * CPU's and as sampling's (sampling.cu) do. */
#include "device/cuda/vocab.cuh"

#include "device/cuda/cuda_ops.cuh"
#include "device/cuda/gemm.cuh"

/* What is known of a row after some blocks. */
typedef struct {
    rrl_lse total;
    float z_target;
} score_state;

/* Half a warp a row: join block [v0, v0 + n) of scaled logits. */
__global__ void score_kernel(score_state *state, const float *logits, int64_t rows, int64_t v0, int n,
                             const int32_t *target, const float *temperature) {
    const int64_t row = rrl_cuda_first() / RRL_LANES;
    const bool in = row < rows;
    const float t = in ? rrl_score_temperature(temperature[row]) : 1.0f;
    const float *z = logits + row * RRL_VOCAB_BLOCK;
    const rrl_lse block = rrl_lse_of_block(z, in ? n : 0, t);
    if (!in || threadIdx.x % RRL_LANES != 0) return;
    score_state s = v0 == 0 ? score_state{} : state[row];
    rrl_lse_join(&s.total, block);
    if (target[row] >= v0 && target[row] < v0 + n) s.z_target = z[target[row] - v0] / t;
    state[row] = s;
}

__global__ void score_end_kernel(float *logp, float *lse, float *entropy, const score_state *state, int64_t rows) {
    for (int64_t i = rrl_cuda_first(); i < rows; i += rrl_cuda_step()) {
        logp[i] = rrl_lse_logp(state[i].total, state[i].z_target);
        if (lse) lse[i] = rrl_lse_value(state[i].total);
        if (entropy) entropy[i] = rrl_lse_entropy(state[i].total);
    }
}

/* The product of rows x with ids [v0, v0 + n), into the scratch. */
static rrl_cuda_gemm logits_of(rrl_tensor x, int64_t row, int64_t rows, const rrl_weight *w, int64_t v0, int64_t n,
                             float *scratch) {
    return rrl_cuda_gemm{scratch, RRL_VOCAB_BLOCK, x.data + row * x.cols, x.cols, rows, w, v0, n, false, false, NULL};
}

static int64_t block_size(const rrl_weight *w, int64_t v0) {
    return w->n - v0 < RRL_VOCAB_BLOCK ? w->n - v0 : (int64_t)RRL_VOCAB_BLOCK;
}

/* States lie at the end of the working room, rounded activations of the products at its beginning. */
static int64_t state_rows(const rrl_cuda *c) {
    return (int64_t)((c->room_bytes - rrl_cuda_front_bytes(c)) / sizeof(score_state));
}

rrl_status rrl_cuda_lm_score(rrl_device *d, float *logp, float *lse, float *entropy, rrl_tensor x, const rrl_weight *w,
                             const int32_t *target, const float *temperature, rrl_tensor scratch) {
    rrl_cuda *c = rrl_cuda_of(d);
    const int64_t most = state_rows(c);
    score_state *state = (score_state *)(c->room + c->room_bytes) - most;
    RRL_TRY(rrl_cuda_check(x.cols == w->k, "lm_score's input"));
    RRL_TRY(rrl_cuda_check(scratch.rows >= x.rows && scratch.cols == RRL_VOCAB_BLOCK, "lm_score's scratch"));
    for (int64_t row = 0; row < x.rows; row += most) {
        const int64_t rows = x.rows - row < most ? x.rows - row : most;
        const dim3 grid((unsigned)rrl_blocks(rows * RRL_LANES, RRL_CUDA_THREADS));
        for (int64_t v0 = 0; v0 < w->n; v0 += RRL_VOCAB_BLOCK) {
            const int64_t n = block_size(w, v0);
            const rrl_cuda_gemm p = logits_of(x, row, rows, w, v0, n, scratch.data);
            RRL_TRY(rrl_cuda_products(c, &p, 1));
            const rrl_cuda_rounded rounded = c->rounded;
            RRL_TRY(RRL_LAUNCH(c, score_kernel, grid, RRL_CUDA_THREADS, 0, state, scratch.data, rows, v0, (int)n,
                               target + row, temperature + row));
            c->rounded = rounded; /* it touches neither x nor the front of the room */
        }
        RRL_TRY(RRL_LAUNCH(c, score_end_kernel, rrl_cuda_grid(rows), RRL_CUDA_THREADS, 0, logp + row,
                           lse ? lse + row : NULL, entropy ? entropy + row : NULL, state, rows));
    }
    return RRL_OK;
}

/* logits become their gradients */
__global__ void dlogits_kernel(float *logits, int64_t rows, int64_t v0, int n, const int32_t *target,
                               const float *temperature, const float *lse, const float *dlogp) {
    for (int64_t i = rrl_cuda_first(); i < rows * n; i += rrl_cuda_step()) {
        const int64_t row = i / n, v = v0 + i % n;
        float *z = &logits[row * RRL_VOCAB_BLOCK + i % n];
        const float t = rrl_score_temperature(temperature[row]), p = rrl_exp_f32(*z / t - lse[row]);
        *z = dlogp[row] * ((v == target[row] ? 1.0f : 0.0f) - p) / t;
    }
}

rrl_status rrl_cuda_lm_backward(rrl_device *d, rrl_tensor dx, rrl_tensor x, const rrl_weight *w, const int32_t *target,
                                const float *temperature, const float *lse, const float *dlogp, rrl_tensor scratch) {
    rrl_cuda *c = rrl_cuda_of(d);
    RRL_TRY(rrl_cuda_check(x.cols == w->k && rrl_same_shape(dx, x), "lm_backward's operands"));
    RRL_TRY(rrl_cuda_check(scratch.rows >= x.rows && scratch.cols == RRL_VOCAB_BLOCK, "lm_backward's scratch"));
    for (int64_t v0 = 0; v0 < w->n; v0 += RRL_VOCAB_BLOCK) {
        const int64_t n = block_size(w, v0);
        const rrl_cuda_gemm logits = logits_of(x, 0, x.rows, w, v0, n, scratch.data);
        const rrl_cuda_gemm back = {dx.data, dx.cols, scratch.data, RRL_VOCAB_BLOCK, x.rows, w,
                                  v0,      n,       true,         v0 > 0,          NULL};
        RRL_TRY(rrl_cuda_products(c, &logits, 1));
        RRL_TRY(RRL_LAUNCH(c, dlogits_kernel, rrl_cuda_grid(x.rows * n), RRL_CUDA_THREADS, 0, scratch.data, x.rows, v0,
                           (int)n, target, temperature, lse, dlogp));
        RRL_TRY(rrl_cuda_products(c, &back, 1));
    }
    return RRL_OK;
}
