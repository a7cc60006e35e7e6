/* The language-model head by blocks of the vocabulary: they are made, reduced and, unless the scratch has room for all
 * of them, forgotten. */
#include "device/cpu/gemm.h"

/* One block of logits [n] of a row; z, which may be their own place, becomes logits / t. Division by t > 0 keeps the
 * order, so the maximum is scaled once. */
RRL_INLINE rrl_lse lse_block(float *z, const float *logits, int64_t n, float t, const bool want_entropy) {
    v16 top = v16_set1(-INFINITY), divisor = v16_set1(t);
    for (int64_t i = 0; i < n; i += RRL_LANES) {
        int left = v16_left(i, n);
        v16 x = v16_load_left(logits + i, left);
        top = v16_max(v16_pick_n(x, top, left), top);
        v16_store_left(z + i, v16_div(x, divisor), left);
    }
    rrl_lse b = {.max = v16_hmax(top) / t};
    v16 max = v16_set1(b.max), sum = v16_zero(), weighted = v16_zero();
    for (int64_t i = 0; i < n; i += RRL_LANES) {
        int left = v16_left(i, n);
        v16 d = v16_sub(v16_load_left(z + i, left), max), p = v16_exp(d);
        if (left < RRL_LANES) {
            p = v16_pick_n(p, v16_zero(), left);
            d = v16_pick_n(d, v16_zero(), left);
        }
        sum = v16_add(sum, p);
        if (want_entropy) weighted = v16_fma(p, d, weighted);
    }
    b.sum = v16_sum(sum);
    b.weighted = want_entropy ? v16_sum(weighted) : 0.0f;
    return b;
}

rrl_lse RRL_KERNEL(scaled_lse)(float *z, const float *logits, int64_t n, float t) {
    rrl_lse total = {0};
    for (int64_t v = 0; v < n; v += RRL_VOCAB_BLOCK)
        rrl_lse_join(&total, lse_block(z + v, logits + v, rrl_min(RRL_VOCAB_BLOCK, n - v), t, false));
    return total;
}

/* Logits of vocabulary [v, v + n) for rows from `row` on, into the scratch. */
static void logits_block(rrl_tensor scratch, const rrl_head_product *product, rrl_tensor x, int64_t row, int64_t rows,
                         const rrl_weight *w, int64_t v, int64_t n) {
    float *to = rrl_head_scratch(scratch, row, v);
    if (product) {
        product->logits(product, to, scratch.cols, row, rows, v, n);
        return;
    }
    rrl_gemm g = {.y = to,
                  .ldy = scratch.cols,
                  .x = x.data + row * x.cols,
                  .ldx = x.cols,
                  .rows = rows,
                  .w = w->panels + v * x.cols, /* whole panels: a block is a multiple of 32 */
                  .n = n,
                  .k = x.cols};
    RRL_KERNEL(gemm)(&g, 0, rrl_panels(n));
}

static void score_rows(const rrl_lm_score_job *j, int64_t row, int64_t rows) {
    float z_target[RRL_SCORE_ROWS] = {0};
    rrl_lse total[RRL_SCORE_ROWS] = {{0}};
    for (int64_t v = 0; v < j->w->n; v += RRL_VOCAB_BLOCK) {
        int64_t n = rrl_min(RRL_VOCAB_BLOCK, j->w->n - v);
        logits_block(j->scratch, j->product, j->x, row, rows, j->w, v, n);
        for (int64_t i = 0; i < rows; ++i) {
            float *z = rrl_head_scratch(j->scratch, row + i, v);
            float t = rrl_score_temperature(j->temperature[row + i]);
            rrl_lse_join(&total[i],
                         j->entropy ? lse_block(z, z, n, t, true) : lse_block(z, z, n, t, false));
            int64_t at = j->target[row + i] - v;
            if (at >= 0 && at < n) z_target[i] = z[at];
        }
    }
    for (int64_t i = 0; i < rows; ++i) {
        j->logp[row + i] = rrl_lse_logp(total[i], z_target[i]);
        if (j->lse) j->lse[row + i] = rrl_lse_value(total[i]);
        if (j->entropy) j->entropy[row + i] = rrl_lse_entropy(total[i]);
    }
}

void RRL_KERNEL(lm_score)(const rrl_lm_score_job *j, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
        score_rows(j, unit * j->chunk, rrl_min(j->chunk, j->x.rows - unit * j->chunk));
}

/* Logits of a row's block, or with `scaled` logits / t, become gradients of the logits; target counts from the block's
 * start. */
RRL_INLINE void logit_gradients(float *logits, int64_t n, int64_t target, float t, float lse, float dlogp,
                                const bool scaled) {
    v16 divisor = v16_set1(t), shift = v16_set1(lse), factor = v16_set1(dlogp);
    bool here = target >= 0 && target < n;
    float z_target = !here ? 0.0f : scaled ? logits[target] : logits[target] / t;
    for (int64_t i = 0; i < n; i += RRL_LANES) {
        int left = v16_left(i, n);
        v16 z = v16_load_left(logits + i, left);
        v16 p = v16_exp(v16_sub(scaled ? z : v16_div(z, divisor), shift));
        v16_store_left(logits + i, v16_div(v16_mul(factor, v16_sub(v16_zero(), p)), divisor), left);
    }
    if (here) logits[target] = dlogp * (1.0f - rrl_expf(z_target - lse)) / t;
}

static void lm_backward_rows(const rrl_lm_backward_job *j, int64_t row, int64_t rows) {
    const int64_t hidden = j->dx.cols;
    const bool scaled = !j->x.data;
    for (int64_t v = 0; v < j->w->n; v += RRL_VOCAB_BLOCK) {
        int64_t n = rrl_min(RRL_VOCAB_BLOCK, j->w->n - v);
        if (!scaled) logits_block(j->scratch, j->product, j->x, row, rows, j->w, v, n);
        for (int64_t i = row; i < row + rows; ++i) {
            float *logits = rrl_head_scratch(j->scratch, i, v), t = rrl_score_temperature(j->temperature[i]);
            if (scaled)
                logit_gradients(logits, n, j->target[i] - v, t, j->lse[i], j->dlogp[i], true);
            else
                logit_gradients(logits, n, j->target[i] - v, t, j->lse[i], j->dlogp[i], false);
        }
        const float *dlogits = rrl_head_scratch(j->scratch, row, v);
        if (j->product) {
            j->product->gradient(j->product, j->dx.data + row * hidden, dlogits, j->scratch.cols, rows, v, n);
            continue;
        }
        rrl_gemm g = {.y = j->dx.data + row * hidden,
                      .ldy = hidden,
                      .x = dlogits,
                      .ldx = j->scratch.cols,
                      .rows = rows,
                      .w = j->w->panels + v * hidden,
                      .n = hidden,
                      .k = n,
                      .turned = true,
                      .accumulate = v > 0};
        RRL_KERNEL(gemm)(&g, 0, rrl_panels(hidden));
    }
}

void RRL_KERNEL(lm_backward)(const rrl_lm_backward_job *j, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit)
        lm_backward_rows(j, unit * j->chunk, rrl_min(j->chunk, j->dx.rows - unit * j->chunk));
}
