/* The definition of every op: plain loops, one order of operations for each number. Nothing here is fast. */
#include <math.h>
#include <string.h>

#include "device/cpu/bf16.h"
#include "device/cpu/common.h"
#include "device/cpu/reference.h"

float rrl_reference_tree(const float lane[RRL_LANES]) {
    float t[RRL_LANES];
    memcpy(t, lane, sizeof t);
    for (int half = RRL_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) t[l] += t[l + half];
    return t[0];
}

static void embed(const rrl_embed_job *j, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
        for (int64_t c = 0; c < j->y.cols; ++c)
            j->y.data[i * j->y.cols + c] = rrl_packed_at(j->w, j->b->token[i], c);
}

static void rms_norm(const rrl_rms_norm_job *j, int64_t begin, int64_t end) {
    int64_t n = j->x.cols;
    for (int64_t i = begin; i < end; ++i) {
        const float *x = j->x.data + i * n;
        float *y = j->y.data + i * n;
        float r = rrl_reference_rms_factor(x, n, j->eps);
        for (int64_t c = 0; c < n; ++c) y[c] = (x[c] * r) * j->w[c];
    }
}

float rrl_reference_rms_factor(const float *x, int64_t n, float eps) {
    float lane[RRL_LANES] = {0};
    for (int64_t c = 0; c < n; ++c) lane[c % RRL_LANES] = fmaf(x[c], x[c], lane[c % RRL_LANES]);
    return 1.0f / sqrtf(rrl_reference_tree(lane) / (float)n + eps);
}

static void linear(const rrl_linear_job *j, int64_t begin, int64_t end) {
    int64_t panels = rrl_panels(j->y.cols);
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t row0 = unit / panels * j->chunk, row1 = rrl_min(row0 + j->chunk, j->x.rows);
        int64_t n0 = unit % panels * RRL_PANEL, n1 = rrl_min(n0 + RRL_PANEL, j->y.cols);
        for (int64_t i = row0; i < row1; ++i) {
            const float *x = j->x.data + i * j->x.cols;
            for (int64_t n = n0; n < n1; ++n) {
                float *y = j->y.data + i * j->y.cols + n;
                float acc = j->accumulate ? *y : j->bias ? j->bias[n] : 0.0f;
                for (int64_t k = 0; k < j->x.cols; ++k)
                    acc = fmaf(x[k], j->turned ? rrl_packed_at(j->w, k, n) : rrl_packed_at(j->w, n, k), acc);
                *y = acc;
            }
        }
    }
}

float rrl_reference_dropped(float x, const rrl_lora_args *args, const rrl_batch *b, int64_t row, int64_t e) {
    if (!rrl_dropout_on(args)) return x;
    const rrl_dropout *d = args->dropout;
    int32_t s = b->row_seq[row];
    uint32_t counter[4] = {d->seq_sample[s], args->module + 65536u * d->iteration, (uint32_t)b->position[row],
                           (uint32_t)(e / 4)};
    uint32_t word[4];
    rrl_philox4x32(word, counter, d->seq_key + 2 * s);
    return x * ((double)word[e % 4] >= (double)d->p * 0x1p32 ? 1.0f / (1.0f - d->p) : 0.0f);
}

static void lora_row(const rrl_lora_job *j, int64_t row) {
    const rrl_lora *m = rrl_lora_of_row(j->b, j->args, row);
    const float *x = j->x.data + row * j->x.cols;
    float *us = j->u.data + row * j->u.cols, *y = j->y.data + row * j->y.cols;
    for (int64_t c = m ? m->r : 0; c < j->u.cols; ++c) us[c] = 0.0f;
    if (!m) return;
    for (int64_t c = 0; c < m->r; ++c) {
        float u = 0.0f;
        for (int64_t k = 0; k < m->k; ++k)
            u = fmaf(rrl_reference_dropped(x[k], j->args, j->b, row, k), m->a[c * m->k + k], u);
        us[c] = m->scale * u;
    }
    for (int64_t n = 0; n < m->n; ++n)
        for (int64_t c = 0; c < m->r; ++c) y[n] = fmaf(us[c], m->b[n * m->r + c], y[n]);
}

static void lora(const rrl_lora_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ROW_BLOCK, j->x.rows);
    for (int64_t row = begin * RRL_ROW_BLOCK; row < last; ++row) lora_row(j, row);
}

static void rope(const rrl_rope_job *j, int64_t begin, int64_t end) {
    int32_t half = j->head_dim / 2;
    for (int64_t i = begin; i < end; ++i) {
        const float *cosine = j->cos + (int64_t)j->b->position[i] * half;
        const float *sine = j->sin + (int64_t)j->b->position[i] * half;
        for (int32_t h = 0; h < j->n_heads; ++h) {
            float *x0 = j->x.data + i * j->x.cols + h * j->head_dim, *x1 = x0 + half;
            for (int32_t d = 0; d < half; ++d) {
                float s = j->inverse ? -sine[d] : sine[d], a = x0[d], b = x1[d];
                x0[d] = fmaf(a, cosine[d], -(b * s));
                x1[d] = fmaf(b, cosine[d], a * s);
            }
        }
    }
}

static void round_rows(const rrl_round_job *j, int64_t begin, int64_t end) {
    for (int64_t i = begin * j->x.cols; i < end * j->x.cols; ++i)
        j->x.data[i] = rrl_bf16_value(rrl_bf16_of(j->x.data[i]));
}

/* Number i of a K tile and the V tile behind it. */
static void kv_put(const rrl_kv_pool *p, void *tile, int64_t i, float x) {
    if (p->dtype == RRL_BF16)
        ((uint16_t *)tile)[i] = rrl_bf16_of(x);
    else
        ((float *)tile)[i] = x;
}
static float kv_at(const rrl_kv_pool *p, const void *tile, int64_t i) {
    return p->dtype == RRL_BF16 ? rrl_bf16_value(((const uint16_t *)tile)[i]) : ((const float *)tile)[i];
}

static void kv_write(const rrl_kv_write_job *j, int64_t begin, int64_t end) {
    int32_t dim = j->pool->head_dim;
    for (int64_t i = begin; i < end; ++i)
        for (int32_t h = 0; h < j->pool->n_kv_heads; ++h) {
            void *tile = rrl_kv_tile(j->pool, j->layer, j->writes->block[i], h);
            int64_t at = j->writes->at[i], from = j->writes->row[i] * j->k.cols + h * dim;
            for (int32_t d = 0; d < dim; ++d) {
                kv_put(j->pool, tile, d * RRL_KV_BLOCK + at, j->k.data[from + d]);
                kv_put(j->pool, tile, dim * RRL_KV_BLOCK + at * dim + d, j->v.data[from + d]);
            }
        }
}

/* One query head against the cache. o [head_dim]. */
static void attention_row(const rrl_attention_job *j, int64_t row, int32_t head) {
    int32_t dim = j->pool->head_dim, kv_head = head / (j->n_heads / j->pool->n_kv_heads);
    const float *q = j->q.data + row * j->q.cols + head * dim;
    const int32_t *table = j->table->table + (int64_t)j->b->row_seq[row] * j->table->stride;
    int32_t n_keys = j->b->position[row] + 1;
    float o[RRL_MAX_HEAD_DIM] = {0}, lane[RRL_LANES] = {0}, m = -INFINITY;
    for (int32_t first = 0; first < n_keys; first += RRL_KV_BLOCK) {
        const void *tile = rrl_kv_tile(j->pool, j->layer, table[first / RRL_KV_BLOCK], kv_head);
        int n = (int)rrl_min(RRL_KV_BLOCK, n_keys - first);
        float p[RRL_KV_BLOCK], m_new = m;
        for (int i = 0; i < n; ++i) {
            float s = 0.0f;
            for (int32_t d = 0; d < dim; ++d) s = fmaf(q[d], kv_at(j->pool, tile, d * RRL_KV_BLOCK + i), s);
            p[i] = s * j->scale;
            m_new = p[i] > m_new ? p[i] : m_new;
        }
        float a = rrl_expf(m - m_new);
        for (int l = 0; l < RRL_LANES; ++l) lane[l] *= a;
        for (int i = 0; i < n; ++i) {
            p[i] = rrl_expf(p[i] - m_new);
            lane[i % RRL_LANES] += p[i];
        }
        for (int32_t d = 0; d < dim; ++d) {
            o[d] *= a;
            for (int i = 0; i < n; ++i)
                o[d] = fmaf(p[i], kv_at(j->pool, tile, dim * RRL_KV_BLOCK + i * dim + d), o[d]);
        }
        m = m_new;
    }
    float l = rrl_reference_tree(lane);
    for (int32_t d = 0; d < dim; ++d) j->out.data[row * j->out.cols + head * dim + d] = o[d] / l;
    if (j->lse.data) j->lse.data[row * j->lse.cols + head] = m + rrl_logf(l);
}

static void attention(const rrl_attention_job *j, int64_t begin, int64_t end) {
    int32_t kv_heads = j->pool->n_kv_heads, group = j->n_heads / kv_heads;
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t row0 = unit / kv_heads * RRL_ROW_BLOCK, row1 = rrl_min(row0 + RRL_ROW_BLOCK, j->q.rows);
        int32_t head0 = (int32_t)(unit % kv_heads) * group;
        for (int64_t row = row0; row < row1; ++row)
            for (int32_t head = head0; head < head0 + group; ++head) attention_row(j, row, head);
    }
}

static void swiglu(const rrl_swiglu_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ELEMENT_BLOCK, j->n);
    for (int64_t i = begin * RRL_ELEMENT_BLOCK; i < last; ++i)
        j->y[i] = j->gate[i] / (1.0f + rrl_expf(-j->gate[i])) * j->up[i];
}

static void axpy(const rrl_axpy_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ELEMENT_BLOCK, j->n);
    for (int64_t i = begin * RRL_ELEMENT_BLOCK; i < last; ++i) j->y[i] = fmaf(j->a, j->x[i], j->y[i]);
}

/* z [n] of one vocabulary block */
static rrl_lse lse_block(const float *z, int64_t n) {
    rrl_lse b = {.max = z[0]};
    for (int64_t i = 1; i < n; ++i) b.max = z[i] > b.max ? z[i] : b.max;
    float sum[RRL_LANES] = {0}, weighted[RRL_LANES] = {0};
    for (int64_t i = 0; i < n; ++i) {
        float d = z[i] - b.max, p = rrl_expf(d);
        sum[i % RRL_LANES] += p;
        weighted[i % RRL_LANES] = fmaf(p, d, weighted[i % RRL_LANES]);
    }
    b.sum = rrl_reference_tree(sum);
    b.weighted = rrl_reference_tree(weighted);
    return b;
}

/* Scaled logits of vocabulary [v0, v1) for row i */
static void scaled_logits(float *z, const rrl_lm_score_job *j, int64_t i, int64_t v0, int64_t v1,
                          float temperature) {
    const float *x = j->x.data + i * j->x.cols;
    const rrl_weight *w = j->w;
    if (j->product) j->product->logits(j->product, z, j->scratch.cols, i, 1, v0, v1 - v0);
    for (int64_t v = v0; v < v1; ++v) {
        float acc = j->product ? z[v - v0] : 0.0f;
        for (int64_t k = 0; !j->product && k < w->k; ++k) acc = fmaf(x[k], rrl_packed_at(w, v, k), acc);
        z[v - v0] = acc / temperature;
    }
}

static void lm_score(const rrl_lm_score_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * j->chunk, j->x.rows), vocabulary = j->w->n;
    for (int64_t i = begin * j->chunk; i < last; ++i) {
        float t = rrl_score_temperature(j->temperature[i]), z_target = 0.0f;
        rrl_lse total = {0};
        for (int64_t v0 = 0; v0 < vocabulary; v0 += RRL_VOCAB_BLOCK) {
            int64_t v1 = rrl_min(v0 + RRL_VOCAB_BLOCK, vocabulary);
            float *z = rrl_head_scratch(j->scratch, i, v0);
            scaled_logits(z, j, i, v0, v1, t);
            rrl_lse_join(&total, lse_block(z, v1 - v0));
            if (j->target[i] >= v0 && j->target[i] < v1) z_target = z[j->target[i] - v0];
        }
        j->logp[i] = rrl_lse_logp(total, z_target);
        if (j->lse) j->lse[i] = rrl_lse_value(total);
        if (j->entropy) j->entropy[i] = rrl_lse_entropy(total);
    }
}

float rrl_reference_logp(const float *logits, int64_t n, float temperature, int32_t token) {
    float z[RRL_VOCAB_BLOCK];
    rrl_lse total = {0};
    for (int64_t v0 = 0; v0 < n; v0 += RRL_VOCAB_BLOCK) {
        int64_t v1 = rrl_min(v0 + RRL_VOCAB_BLOCK, n);
        for (int64_t v = v0; v < v1; ++v) z[v - v0] = logits[v] / temperature;
        rrl_lse_join(&total, lse_block(z, v1 - v0));
    }
    return rrl_lse_logp(total, logits[token] / temperature);
}

const rrl_kernels rrl_kernels_reference = {
    .isa = "reference",
    .embed = embed,
    .rms_norm = rms_norm,
    .linear = linear,
    .lora = lora,
    .rope = rope,
    .round = round_rows,
    .kv_write = kv_write,
    .attention = attention,
    .swiglu = swiglu,
    .axpy = axpy,
    .lm_score = lm_score,
    .sample = rrl_reference_sample,
    .rms_norm_backward = rrl_reference_rms_norm_backward,
    .lora_backward_rows = rrl_reference_lora_backward_rows,
    .lora_backward_a = rrl_reference_lora_backward_a,
    .lora_backward_b = rrl_reference_lora_backward_b,
    .attention_backward = rrl_reference_attention_backward,
    .swiglu_backward = rrl_reference_swiglu_backward,
    .lm_backward = rrl_reference_lm_backward,
    .adamw = rrl_reference_adamw,
    .sum_squares = rrl_reference_sum_squares,
};
