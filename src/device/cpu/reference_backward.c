/* The definition of the gradients and of the optimiser: plain loops. */
#include <math.h>
#include <string.h>

#include "device/cpu/common.h"
#include "device/cpu/reference.h"

void rrl_reference_rms_norm_backward(const rrl_rms_norm_backward_job *j, int64_t begin, int64_t end) {
    int64_t n = j->x.cols;
    for (int64_t i = begin; i < end; ++i) {
        const float *x = j->x.data + i * n, *dy = j->dy.data + i * n;
        float *dx = j->dx.data + i * n, r = rrl_reference_rms_factor(x, n, j->eps);
        float lane[RRL_LANES] = {0};
        for (int64_t c = 0; c < n; ++c)
            lane[c % RRL_LANES] = fmaf(dy[c] * j->w[c], x[c] * r, lane[c % RRL_LANES]);
        float mean = rrl_reference_tree(lane) / (float)n;
        for (int64_t c = 0; c < n; ++c) {
            float d = r * fmaf(-(x[c] * r), mean, dy[c] * j->w[c]);
            dx[c] = j->accumulate ? dx[c] + d : d;
        }
    }
}

/* The rows that lora_backward looks at. */
static bool trained(const rrl_batch *b, int64_t row) {
    return b->adapter[b->row_seq[row]] == 0;
}

void rrl_reference_lora_backward_rows(const rrl_lora_backward_job *j, int64_t begin, int64_t end) {
    const rrl_lora *m = j->m;
    int64_t last = rrl_min(end * RRL_ROW_BLOCK, j->x.rows);
    for (int64_t i = begin * RRL_ROW_BLOCK; i < last; ++i) {
        if (!trained(j->b, i)) continue;
        const float *dy = j->dy.data + i * j->dy.cols;
        float *du = j->du.data + i * j->du.cols, *dx = j->dx.data + i * j->dx.cols;
        for (int64_t c = 0; c < j->du.cols; ++c) du[c] = 0.0f;
        for (int64_t c = 0; c < m->r; ++c) {
            for (int64_t n = 0; n < m->n; ++n) du[c] = fmaf(dy[n], m->b[n * m->r + c], du[c]);
            du[c] *= m->scale;
        }
        for (int64_t k = 0; k < m->k; ++k) {
            float t = 0.0f;
            for (int64_t c = 0; c < m->r; ++c) t = fmaf(du[c], m->a[c * m->k + k], t);
            dx[k] += rrl_reference_dropped(t, j->args, j->b, i, k);
        }
    }
}

void rrl_reference_lora_backward_a(const rrl_lora_backward_job *j, int64_t begin, int64_t end) {
    const rrl_lora *m = j->m;
    int64_t last = rrl_min(end * RRL_COLUMN_BLOCK, m->k);
    for (int64_t k = begin * RRL_COLUMN_BLOCK; k < last; ++k)
        for (int64_t i = 0; i < j->x.rows; ++i) {
            if (!trained(j->b, i)) continue;
            float x = rrl_reference_dropped(j->x.data[i * j->x.cols + k], j->args, j->b, i, k);
            for (int64_t c = 0; c < m->r; ++c)
                j->da[c * m->k + k] = fmaf(j->du.data[i * j->du.cols + c], x, j->da[c * m->k + k]);
        }
}

void rrl_reference_lora_backward_b(const rrl_lora_backward_job *j, int64_t begin, int64_t end) {
    const rrl_lora *m = j->m;
    int64_t last = rrl_min(end * RRL_COLUMN_BLOCK, m->n);
    for (int64_t n = begin * RRL_COLUMN_BLOCK; n < last; ++n)
        for (int64_t i = 0; i < j->dy.rows; ++i) {
            if (!trained(j->b, i)) continue;
            for (int64_t c = 0; c < m->r; ++c)
                j->db[n * m->r + c] =
                    fmaf(j->dy.data[i * j->dy.cols + n], j->us.data[i * j->us.cols + c], j->db[n * m->r + c]);
        }
}

static float chain(const float *a, const float *b, int32_t n) {
    float acc = 0.0f;
    for (int32_t d = 0; d < n; ++d) acc = fmaf(a[d], b[d], acc);
    return acc;
}

/* Gradients through the weight of one key for one query head. */
static void attention_backward_key(const rrl_attention_backward_job *j, int64_t row, int32_t head,
                                   int64_t key, float delta) {
    int32_t dim = j->head_dim, kv_head = head / (j->n_heads / (int32_t)(j->k.cols / dim));
    int64_t at_q = row * j->q.cols + head * dim, at_k = key * j->k.cols + kv_head * dim;
    const float *q = j->q.data + at_q, *dout = j->dout.data + at_q, *k = j->k.data + at_k,
                *v = j->v.data + at_k;
    float p = rrl_expf(chain(q, k, dim) * j->scale - j->lse.data[row * j->lse.cols + head]);
    float ds = p * (chain(dout, v, dim) - delta) * j->scale;
    for (int32_t d = 0; d < dim; ++d) {
        j->dq.data[at_q + d] = fmaf(ds, k[d], j->dq.data[at_q + d]);
        j->dk.data[at_k + d] = fmaf(ds, q[d], j->dk.data[at_k + d]);
        j->dv.data[at_k + d] = fmaf(p, dout[d], j->dv.data[at_k + d]);
    }
}

/* One head of sequence s against the keys of `from`: its parent or, causal, itself. */
static void attention_backward_head(const rrl_attention_backward_job *j, int32_t s, int32_t from, int32_t head) {
    const int32_t *seq_row = j->b->seq_row;
    int32_t dim = j->head_dim;
    for (int64_t i = seq_row[s]; i < seq_row[s + 1]; ++i) {
        float lane[RRL_LANES] = {0};
        for (int32_t d = 0; d < dim; ++d) {
            int64_t at = i * j->q.cols + head * dim + d;
            lane[d % RRL_LANES] = fmaf(j->dout.data[at], j->out.data[at], lane[d % RRL_LANES]);
        }
        float delta = rrl_reference_tree(lane);
        for (int64_t key = seq_row[from]; key < (from == s ? i + 1 : seq_row[from + 1]); ++key)
            attention_backward_key(j, i, head, key, delta);
    }
}

static void zero_heads(rrl_tensor t, int64_t row0, int64_t row1, int64_t col, int64_t n) {
    for (int64_t i = row0; i < row1; ++i) memset(t.data + i * t.cols + col, 0, (size_t)n * sizeof(float));
}

void rrl_reference_attention_backward(const rrl_attention_backward_job *j, int64_t begin, int64_t end) {
    int32_t dim = j->head_dim, kv_heads = (int32_t)(j->k.cols / dim), group = j->n_heads / kv_heads;
    const int32_t *parent = j->parents->parent, *seq_row = j->b->seq_row;
    for (int64_t unit = begin; unit < end; ++unit) {
        const int32_t seq = (int32_t)(unit / kv_heads);
        const int32_t kv_head = (int32_t)(unit % kv_heads), head = kv_head * group;
        if (j->own) {
            for (int32_t h = head; parent[seq] >= 0 && h < head + group; ++h) attention_backward_head(j, seq, seq, h);
            continue;
        }
        if (parent[seq] >= 0) continue; /* done with its parent */
        for (int32_t s = 0; s < j->b->n_seqs; ++s)
            if (s == seq || parent[s] == seq) {
                zero_heads(j->dq, seq_row[s], seq_row[s + 1], head * dim, group * dim);
                zero_heads(j->dk, seq_row[s], seq_row[s + 1], kv_head * dim, dim);
                zero_heads(j->dv, seq_row[s], seq_row[s + 1], kv_head * dim, dim);
            }
        for (int32_t h = head; h < head + group; ++h)
            for (int32_t s = 0; s < j->b->n_seqs; ++s)
                if (s == seq || parent[s] == seq) attention_backward_head(j, s, seq, h);
    }
}

void rrl_reference_swiglu_backward(const rrl_swiglu_backward_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ELEMENT_BLOCK, j->n);
    for (int64_t i = begin * RRL_ELEMENT_BLOCK; i < last; ++i) {
        float g = j->gate[i], dy = j->dy[i], up = j->up[i];
        float sigmoid = 1.0f / (1.0f + rrl_expf(-g));
        j->dup[i] = dy * (g * sigmoid);
        j->dgate[i] = (dy * up) * (sigmoid * fmaf(g, 1.0f - sigmoid, 1.0f));
    }
}

/* z, a row's logit of token v over the temperature, becomes its gradient. */
static float dlogit(const rrl_lm_backward_job *j, int64_t i, int64_t v, float z) {
    float p = rrl_expf(z - j->lse[i]);
    return j->dlogp[i] * ((v == j->target[i] ? 1.0f : 0.0f) - p) / rrl_score_temperature(j->temperature[i]);
}

/* The same by blocks of the vocabulary, with the products of another numeric path. */
static void lm_backward_row(const rrl_lm_backward_job *j, int64_t i) {
    const float t = rrl_score_temperature(j->temperature[i]);
    for (int64_t v0 = 0; v0 < j->w->n; v0 += RRL_VOCAB_BLOCK) {
        int64_t n = rrl_min(RRL_VOCAB_BLOCK, j->w->n - v0);
        float *z = rrl_head_scratch(j->scratch, i, v0);
        if (j->x.data) j->product->logits(j->product, z, j->scratch.cols, i, 1, v0, n);
        for (int64_t v = 0; v < n; ++v) z[v] = dlogit(j, i, v0 + v, j->x.data ? z[v] / t : z[v]);
        j->product->gradient(j->product, j->dx.data + i * j->dx.cols, z, j->scratch.cols, 1, v0, n);
    }
}

/* logit of token v over the temperature */
static float scaled_logit(const rrl_lm_backward_job *j, int64_t i, int64_t v) {
    float z = 0.0f;
    if (!j->x.data) return rrl_head_scratch(j->scratch, i, v / RRL_VOCAB_BLOCK * RRL_VOCAB_BLOCK)[v % RRL_VOCAB_BLOCK];
    for (int64_t k = 0; k < j->x.cols; ++k) z = fmaf(j->x.data[i * j->x.cols + k], rrl_packed_at(j->w, v, k), z);
    return z / rrl_score_temperature(j->temperature[i]);
}

void rrl_reference_lm_backward(const rrl_lm_backward_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * j->chunk, j->dx.rows), hidden = j->dx.cols;
    const rrl_weight *w = j->w;
    for (int64_t i = begin * j->chunk; i < last; ++i) {
        if (j->product) {
            lm_backward_row(j, i);
            continue;
        }
        float *dx = j->dx.data + i * hidden;
        memset(dx, 0, (size_t)hidden * sizeof(float));
        for (int64_t v = 0; v < w->n; ++v) {
            const float d = dlogit(j, i, v, scaled_logit(j, i, v));
            for (int64_t k = 0; k < hidden; ++k) dx[k] = fmaf(d, rrl_packed_at(w, v, k), dx[k]);
        }
    }
}

void rrl_reference_adamw(const rrl_adamw_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ELEMENT_BLOCK, j->n);
    for (int64_t i = begin * RRL_ELEMENT_BLOCK; i < last; ++i) {
        double g = (double)j->g[i] * j->clip;
        double m = (double)j->m[i] * j->beta1 + g * (1.0 - j->beta1);
        double v = (double)j->v[i] * j->beta2 + g * g * (1.0 - j->beta2);
        j->m[i] = (float)m;
        j->v[i] = (float)v;
        j->p[i] = (float)((double)j->p[i] * j->decay - j->step_size * m / (sqrt(v) * j->root_scale + j->eps));
    }
}

void rrl_reference_sum_squares(const rrl_sum_squares_job *j, int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
        double lane[RRL_LANES] = {0};
        int64_t first = block * RRL_SQUARES_BLOCK, n = rrl_min(RRL_SQUARES_BLOCK, j->n - first);
        for (int64_t i = 0; i < n; ++i) {
            double x = j->x[first + i];
            lane[i % RRL_LANES] += x * x;
        }
        for (int half = RRL_LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
        *j->out += lane[0];
    }
}
