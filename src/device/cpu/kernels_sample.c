/* Sampling: vector passes over the logits make masses and candidates, integers decide (select.c). */
#include "device/cpu/gemm.h"
#include "device/cpu/select.h"

/* z = logits / t becomes that of penalised logits; returns the maximum */
static float penalised(float *z, const float *logits, int64_t n, const rrl_sample_row *row, float t) {
    v16 top = v16_set1(-INFINITY);
    for (int32_t h = 0; h < row->n_history; ++h)
        z[row->history[h]] = rrl_penalised(logits[row->history[h]], row->repetition_penalty) / t;
    for (int64_t i = 0; i < n; i += RRL_LANES) {
        int left = v16_left(i, n);
        top = v16_max(v16_pick_n(v16_load_left(z + i, left), top, left), top);
    }
    return v16_hmax(top);
}

/* z becomes exp(z - max); returns the sum of the masses, which has no order */
static uint64_t weigh(float *z, int64_t n, float max) {
    v16 shift = v16_set1(max);
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i += RRL_LANES) {
        int left = v16_left(i, n);
        v16 p = v16_exp(v16_sub(v16_load_left(z + i, left), shift));
        if (left < RRL_LANES) p = v16_pick_n(p, v16_zero(), left);
        v16_store_left(z + i, p, left);
        total += v16_mass_sum(p);
    }
    return total;
}

/* Draw from all tokens: walk in stretches, then token by token. */
static int32_t draw_all(const float *p, int64_t n, uint64_t threshold) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i += RRL_LANES) {
        int left = v16_left(i, n);
        uint64_t stretch = v16_mass_sum(v16_load_left(p + i, left));
        if (sum + stretch > threshold)
            for (int l = 0; l < left; ++l)
                if ((sum += rrl_mass(p[i + l])) > threshold) return (int32_t)(i + l);
        sum += stretch;
    }
    return 0;
}

/* Tokens with p >= least and a mass, ids ascending */
static int64_t collect(rrl_candidate *c, const float *p, int64_t n, float least) {
    v16 bound = v16_set1(least);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += RRL_LANES) {
        int left = v16_left(i, n);
        unsigned mask = v16_ge_mask(v16_load_left(p + i, left), bound) & ((1u << left) - 1u);
        for (; mask; mask &= mask - 1) {
            int64_t id = i + __builtin_ctz(mask);
            uint64_t mass = rrl_mass(p[id]);
            if (mass) c[count++] = (rrl_candidate){.mass = mass, .id = (int32_t)id};
        }
    }
    return count;
}

static int32_t draw(const rrl_sample_row *row, const rrl_sample_scratch *s, int64_t n, float max,
                    uint64_t *kept) {
    uint64_t sum = weigh(s->z, n, max);
    if (row->top_k <= 0 && row->top_p >= 1.0f && !kept)
        return draw_all(s->z, n, rrl_draw_threshold(row, sum));
    /* Without top-k, tokens of mass at most (total - target) / n weigh together no more than top-p may leave
     * out, so the kept set lies above; a little less, since the bound is rounded to f32. */
    float least = 0.0f;
    if (row->top_k <= 0 && row->top_p < 1.0f)
        least = (float)((double)((sum - rrl_mass_target(row->top_p, sum)) / (uint64_t)n) * 0x1p-40 *
                        (1.0 - 0x1p-20));
    int64_t count = collect(s->a, s->z, n, least);
    if (row->top_k > 0) count = rrl_select_keep(s->a, count, row->top_k, UINT64_MAX, s->b, &sum);
    if (row->top_p < 1.0f)
        count = rrl_select_keep(s->a, count, INT64_MAX, rrl_mass_target(row->top_p, sum), s->b, &sum);
    for (int64_t i = 0; kept && i < count; ++i) kept[s->a[i].id] = s->a[i].mass;
    return rrl_select_draw(s->a, count, rrl_draw_threshold(row, sum));
}

static int32_t first_of(const float *z, int64_t n, float value) {
    for (int64_t i = 0; i < n; ++i)
        if (z[i] == value) return (int32_t)i;
    return 0;
}

void RRL_KERNEL(sample)(const rrl_sample_job *j, int64_t begin, int64_t end) {
    int64_t n = j->logits.cols;
    for (int64_t unit = begin; unit < end; ++unit)
        for (int64_t i = unit; i < j->logits.rows; i += j->n_units) {
            const rrl_sample_row *row = &j->rows[i];
            const rrl_sample_scratch *s = &j->scratch[unit];
            const float *logits = j->logits.data + i * n;
            const float t = rrl_score_temperature(row->temperature);
            const rrl_lse total = RRL_KERNEL(scaled_lse)(s->z, logits, n, t); /* before the penalty */
            const float max = row->repetition_penalty == 1.0f ? total.max : penalised(s->z, logits, n, row, t);
            j->token[i] = row->temperature > 0.0f ? draw(row, s, n, max, j->kept ? j->kept + i * n : NULL)
                                                  : first_of(s->z, n, max);
            j->logp[i] = rrl_lse_logp(total, logits[j->token[i]] / t);
        }
}
