/* The language-model head in training: logits by blocks of RRL_VOCAB_BLOCK ids, or all of them at once, in the caller's
 * scratch, reduced to log-sum-exp, chosen log-prob and entropy. Blocks join in ascending order, as the CPU's and as
 * sampling's (sampling.cu) do. Where the scratch holds all logits they stay as they are for the gradient. */
#include "device/cuda/vocab.cuh"

#include "device/cuda/cuda_ops.cuh"
#include "device/cuda/gemm.cuh"

/* What is known of some rows, at the end of the working room; rounded activations of the products lie at its front. */
typedef struct {
    rrl_lse *block;  /* [rows, n_blocks] of logits / temperature */
    float *z_target; /* [rows] the target's logit / temperature */
    int64_t n_blocks;
} scores;

/* Ids [v0, v0 + n) of some rows, in the scratch. */
typedef struct {
    float *logits; /* [rows, ld] */
    int64_t ld, rows, v0, n;
} some_logits;

/* Half a warp a block of a row. */
__global__ void score_kernel(scores s, some_logits z, const int32_t *target, const float *temperature) {
    const int64_t unit = rrl_cuda_first() / RRL_LANES, n_blocks = (z.n + RRL_VOCAB_BLOCK - 1) / RRL_VOCAB_BLOCK;
    const int64_t row = unit / n_blocks, v = unit % n_blocks * RRL_VOCAB_BLOCK;
    const bool in = row < z.rows;
    const int n = !in ? 0 : z.n - v < RRL_VOCAB_BLOCK ? (int)(z.n - v) : RRL_VOCAB_BLOCK;
    const float t = in ? rrl_score_temperature(temperature[row]) : 1.0f;
    const float *logits = z.logits + row * z.ld + v;
    const rrl_lse block = rrl_lse_of_block(logits, n, t);
    if (!in || threadIdx.x % RRL_LANES != 0) return;
    s.block[row * s.n_blocks + (z.v0 + v) / RRL_VOCAB_BLOCK] = block;
    const int64_t at = target[row] - z.v0 - v;
    if (at >= 0 && at < n) s.z_target[row] = logits[at] / t;
}

/* A warp a row. */
__global__ void score_end_kernel(float *logp, float *lse, float *entropy, scores s, int64_t rows) {
    const int64_t row = rrl_cuda_first() / RRL_WARP;
    if (row >= rows) return;
    const rrl_lse *block = s.block + row * s.n_blocks;
    const rrl_lse total = rrl_lse_of_blocks([block](int64_t i) { return block[i]; }, s.n_blocks);
    if (threadIdx.x % RRL_WARP != 0) return;
    logp[row] = rrl_lse_logp(total, s.z_target[row]);
    if (lse) lse[row] = rrl_lse_value(total);
    if (entropy) entropy[row] = rrl_lse_entropy(total);
}

/* As device.h says of it: a block of ids, or room for all of them. */
static bool scratch_fits(rrl_tensor scratch, int64_t rows, const rrl_weight *w) {
    return scratch.rows >= rows && (scratch.cols == RRL_VOCAB_BLOCK || scratch.cols >= w->n);
}

/* Ids from v0 on that the scratch has room for, of rows from `row` on. */
static some_logits logits_at(rrl_tensor scratch, int64_t row, int64_t rows, const rrl_weight *w, int64_t v0) {
    const int64_t left = w->n - v0;
    return some_logits{scratch.data + row * scratch.cols, scratch.cols, rows, v0,
                       left < scratch.cols ? left : scratch.cols};
}

static rrl_status make_logits(rrl_cuda *c, const some_logits *z, const float *x, const rrl_weight *w) {
    const rrl_cuda_gemm p = {z->logits, z->ld, x, w->k, z->rows, w, z->v0, z->n, false, false, NULL};
    return rrl_cuda_products(c, &p, 1);
}

static rrl_status score_rows(rrl_cuda *c, scores s, some_logits z, const float *x, const rrl_weight *w,
                             const int32_t *target, const float *temperature) {
    const int64_t units = z.rows * rrl_blocks(z.n, RRL_VOCAB_BLOCK);
    RRL_TRY(make_logits(c, &z, x, w));
    const rrl_cuda_rounded rounded = c->rounded;
    RRL_TRY(RRL_LAUNCH(c, score_kernel, dim3((unsigned)rrl_blocks(units * RRL_LANES, RRL_CUDA_THREADS)),
                       RRL_CUDA_THREADS, 0, s, z, target, temperature));
    c->rounded = rounded; /* it touches neither x nor the front of the room */
    return RRL_OK;
}

rrl_status rrl_cuda_lm_score(rrl_device *d, float *logp, float *lse, float *entropy, rrl_tensor x, const rrl_weight *w,
                             const int32_t *target, const float *temperature, rrl_tensor scratch) {
    rrl_cuda *c = rrl_cuda_of(d);
    scores s = {NULL, NULL, rrl_blocks(w->n, RRL_VOCAB_BLOCK)};
    const size_t front = rrl_cuda_front_bytes(c), of_row = (size_t)s.n_blocks * sizeof *s.block + sizeof *s.z_target;
    const int64_t most = (int64_t)((c->room_bytes - front) / of_row);
    RRL_TRY(rrl_cuda_check(x.cols == w->k, "lm_score's input"));
    RRL_TRY(rrl_cuda_check(scratch_fits(scratch, x.rows, w), "lm_score's scratch"));
    RRL_TRY(rrl_cuda_check(most > 0, "lm_score's vocabulary (beyond the working room)"));
    s.block = (rrl_lse *)(c->room + front);
    s.z_target = (float *)(s.block + most * s.n_blocks);
    for (int64_t row = 0; row < x.rows; row += most) {
        const int64_t rows = x.rows - row < most ? x.rows - row : most;
        for (int64_t v0 = 0; v0 < w->n; v0 += scratch.cols)
            RRL_TRY(score_rows(c, s, logits_at(scratch, row, rows, w, v0), x.data + row * x.cols, w, target + row,
                               temperature + row));
        RRL_TRY(RRL_LAUNCH(c, score_end_kernel, dim3((unsigned)rrl_blocks(rows * RRL_WARP, RRL_CUDA_THREADS)),
                           RRL_CUDA_THREADS, 0, logp + row, lse ? lse + row : NULL, entropy ? entropy + row : NULL, s,
                           rows));
    }
    return RRL_OK;
}

/* logits become their gradients. Grid: (ids, rows). */
__global__ void dlogits_kernel(some_logits s, const int32_t *target, const float *temperature, const float *lse,
                               const float *dlogp) {
    for (int64_t row = blockIdx.y; row < s.rows; row += gridDim.y) {
        const float t = rrl_score_temperature(temperature[row]), shift = lse[row], factor = dlogp[row];
        const int64_t at = target[row] - s.v0;
        for (int64_t i = rrl_cuda_first(); i < s.n; i += rrl_cuda_step()) {
            float *z = &s.logits[row * s.ld + i];
            const float p = rrl_exp_f32(*z / t - shift);
            *z = factor * ((i == at ? 1.0f : 0.0f) - p) / t;
        }
    }
}

/* dx (+)= the gradients of logits times their weights: a block of ids after the other where the CPU's order is kept,
 * else as many at once as fit the room when they are rounded. */
static rrl_status gradients_back(rrl_cuda *c, rrl_tensor dx, const some_logits *z, const rrl_weight *w) {
    const int64_t fit = (int64_t)(rrl_cuda_front_bytes(c) / sizeof(uint16_t)) / RRL_VOCAB_BLOCK;
    const int64_t step = (c->blaslt && fit > 1 ? fit : 1) * RRL_VOCAB_BLOCK;
    for (int64_t v = 0; v < z->n; v += step) {
        const int64_t n = z->n - v < step ? z->n - v : step;
        const rrl_cuda_gemm p = {dx.data,   dx.cols, z->logits + v, z->ld,         z->rows, w,
                                 z->v0 + v, n,       true,          z->v0 + v > 0, NULL};
        RRL_TRY(rrl_cuda_products(c, &p, 1));
    }
    return RRL_OK;
}

rrl_status rrl_cuda_lm_backward(rrl_device *d, rrl_tensor dx, rrl_tensor x, const rrl_weight *w, const int32_t *target,
                                const float *temperature, const float *lse, const float *dlogp, rrl_tensor scratch) {
    rrl_cuda *c = rrl_cuda_of(d);
    const bool kept = !x.data;
    RRL_TRY(rrl_cuda_check(dx.cols == w->k && (kept || rrl_same_shape(dx, x)), "lm_backward's operands"));
    RRL_TRY(rrl_cuda_check(scratch_fits(scratch, dx.rows, w) && (!kept || scratch.cols >= w->n),
                           "lm_backward's scratch"));
    for (int64_t v0 = 0; v0 < w->n; v0 += scratch.cols) {
        const some_logits z = logits_at(scratch, 0, dx.rows, w, v0);
        const dim3 grid(rrl_cuda_grid(z.n).x, (unsigned)(z.rows < 65535 ? z.rows : 65535));
        if (!kept) RRL_TRY(make_logits(c, &z, x.data, w));
        RRL_TRY(RRL_LAUNCH(c, dlogits_kernel, grid, RRL_CUDA_THREADS, 0, z, target, temperature, lse, dlogp));
        RRL_TRY(gradients_back(c, dx, &z, w));
    }
    return RRL_OK;
}
