/* The language-model head without rows x vocabulary: blocks of the vocabulary are made, reduced and
 * forgotten. */
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

/* Logits of vocabulary [v, v + n) for `rows` rows, into scratch. */
static void logits_block(float *scratch, const float *x, int64_t hidden, int64_t rows, const rrl_weight *w,
                         int64_t v, int64_t n) {
    rrl_gemm g = {.y = scratch,
                  .ldy = RRL_VOCAB_BLOCK,
                  .x = x,
                  .ldx = hidden,
                  .rows = rows,
                  .w = w->panels + v * hidden, /* whole panels: a block is a multiple of 32 */
                  .n = n,
                  .k = hidden};
    RRL_KERNEL(gemm)(&g, 0, rrl_panels(n));
}

static void score_rows(const rrl_lm_score_job *j, int64_t row, int64_t rows) {
    float *scratch = j->scratch.data + row * RRL_VOCAB_BLOCK, z_target[RRL_SCORE_ROWS] = {0};
    rrl_lse total[RRL_SCORE_ROWS] = {{0}};
    for (int64_t v = 0; v < j->w->n; v += RRL_VOCAB_BLOCK) {
        int64_t n = rrl_min(RRL_VOCAB_BLOCK, j->w->n - v);
        if (j->product)
            j->product->logits(j->product, scratch, row, rows, v, n);
        else
            logits_block(scratch, j->x.data + row * j->x.cols, j->x.cols, rows, j->w, v, n);
        for (int64_t i = 0; i < rows; ++i) {
            float *z = scratch + i * RRL_VOCAB_BLOCK;
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

/* Logits of a row's block become gradients of the logits; target counts from the block's start. */
static void logit_gradients(float *logits, int64_t n, int64_t target, float t, float lse, float dlogp) {
    v16 divisor = v16_set1(t), shift = v16_set1(lse), factor = v16_set1(dlogp);
    bool here = target >= 0 && target < n;
    float z_target = here ? logits[target] / t : 0.0f;
    for (int64_t i = 0; i < n; i += RRL_LANES) {
        int left = v16_left(i, n);
        v16 p = v16_exp(v16_sub(v16_div(v16_load_left(logits + i, left), divisor), shift));
        v16_store_left(logits + i, v16_div(v16_mul(factor, v16_sub(v16_zero(), p)), divisor), left);
    }
    if (here) logits[target] = dlogp * (1.0f - rrl_expf(z_target - lse)) / t;
}

static void lm_backward_rows(const rrl_lm_backward_job *j, int64_t row, int64_t rows) {
    float *scratch = j->scratch.data + row * RRL_VOCAB_BLOCK;
    int64_t hidden = j->x.cols;
    for (int64_t v = 0; v < j->w->n; v += RRL_VOCAB_BLOCK) {
        int64_t n = rrl_min(RRL_VOCAB_BLOCK, j->w->n - v);
        if (j->product)
            j->product->logits(j->product, scratch, row, rows, v, n);
        else
            logits_block(scratch, j->x.data + row * hidden, hidden, rows, j->w, v, n);
        for (int64_t i = row; i < row + rows; ++i)
            logit_gradients(scratch + (i - row) * RRL_VOCAB_BLOCK, n, j->target[i] - v,
                            rrl_score_temperature(j->temperature[i]), j->lse[i], j->dlogp[i]);
        if (j->product) {
            j->product->gradient(j->product, j->dx.data + row * hidden, scratch, rows, v, n);
            continue;
        }
        rrl_gemm g = {.y = j->dx.data + row * hidden,
                      .ldy = hidden,
                      .x = scratch,
                      .ldx = RRL_VOCAB_BLOCK,
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
        lm_backward_rows(j, unit * j->chunk, rrl_min(j->chunk, j->x.rows - unit * j->chunk));
}
