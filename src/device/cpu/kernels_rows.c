/* Norms, rotations and element-wise ops. Loops without lanes are left to the compiler: no contraction is
 * allowed, fmaf is written out, so it may vectorise but not change a bit. */
#include "device/cpu/gemm.h"
#include "device/cpu/vec_bf16.h"

void RRL_KERNEL(embed)(const rrl_embed_job *j, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const int64_t token = j->b->token[i];
        const float *from = j->w->panels + token / RRL_PANEL * j->w->k * RRL_PANEL + token % RRL_PANEL;
        float *to = j->y.data + i * j->y.cols;
        for (int64_t c = 0; c < j->y.cols; ++c) to[c] = from[c * RRL_PANEL];
    }
}

RRL_INLINE float rms_factor(const float *x, int64_t n, float eps) {
    v16 sum = v16_zero();
    for (int64_t c = 0; c < n; c += RRL_LANES) {
        v16 a = v16_load_left(x + c, v16_left(c, n));
        sum = v16_fma(a, a, sum);
    }
    return 1.0f / sqrtf(v16_sum(sum) / (float)n + eps);
}

void RRL_KERNEL(rms_norm)(const rrl_rms_norm_job *j, int64_t begin, int64_t end) {
    int64_t n = j->x.cols;
    for (int64_t i = begin; i < end; ++i) {
        const float *x = j->x.data + i * n;
        v16 r = v16_set1(rms_factor(x, n, j->eps));
        for (int64_t c = 0; c < n; c += RRL_LANES) {
            int left = v16_left(c, n);
            v16 a = v16_mul(v16_load_left(x + c, left), r);
            v16_store_left(j->y.data + i * n + c, v16_mul(a, v16_load_left(j->w + c, left)), left);
        }
    }
}

void RRL_KERNEL(rms_norm_backward)(const rrl_rms_norm_backward_job *j, int64_t begin, int64_t end) {
    int64_t n = j->x.cols;
    for (int64_t i = begin; i < end; ++i) {
        const float *x = j->x.data + i * n, *dy = j->dy.data + i * n;
        float *dx = j->dx.data + i * n;
        v16 r = v16_set1(rms_factor(x, n, j->eps)), sum = v16_zero();
        for (int64_t c = 0; c < n; c += RRL_LANES) {
            int left = v16_left(c, n);
            v16 g = v16_mul(v16_load_left(dy + c, left), v16_load_left(j->w + c, left));
            sum = v16_fma(g, v16_mul(v16_load_left(x + c, left), r), sum);
        }
        v16 mean = v16_set1(v16_sum(sum) / (float)n);
        for (int64_t c = 0; c < n; c += RRL_LANES) {
            int left = v16_left(c, n);
            v16 g = v16_mul(v16_load_left(dy + c, left), v16_load_left(j->w + c, left));
            v16 xh = v16_mul(v16_load_left(x + c, left), r);
            v16 d = v16_mul(
                r, v16_fma(v16_sub(v16_set1(-0.0f), xh), mean, g)); /* -0 - xh is the exact negation */
            if (j->accumulate) d = v16_add(v16_load_left(dx + c, left), d);
            v16_store_left(dx + c, d, left);
        }
    }
}

void RRL_KERNEL(rope)(const rrl_rope_job *j, int64_t begin, int64_t end) {
    int32_t half = j->head_dim / 2;
    float sign = j->inverse ? -1.0f : 1.0f;
    for (int64_t i = begin; i < end; ++i) {
        const float *restrict cosine = j->cos + (int64_t)j->b->position[i] * half;
        const float *restrict sine = j->sin + (int64_t)j->b->position[i] * half;
        for (int32_t h = 0; h < j->n_heads; ++h) {
            float *restrict x = j->x.data + i * j->x.cols + h * j->head_dim;
            for (int32_t d = 0; d < half; ++d) {
                float s = sign * sine[d], a = x[d], b = x[half + d];
                x[d] = fmaf(a, cosine[d], -(b * s));
                x[half + d] = fmaf(b, cosine[d], a * s);
            }
        }
    }
}

void RRL_KERNEL(swiglu)(const rrl_swiglu_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ELEMENT_BLOCK, j->n);
    const v16 one = v16_set1(1.0f), zero = v16_set1(-0.0f);
    for (int64_t i = begin * RRL_ELEMENT_BLOCK; i < last; i += RRL_LANES) {
        int left = v16_left(i, last);
        v16 g = v16_load_left(j->gate + i, left);
        v16 y = v16_div(g, v16_add(one, v16_exp(v16_sub(zero, g))));
        v16_store_left(j->y + i, v16_mul(y, v16_load_left(j->up + i, left)), left);
    }
}

void RRL_KERNEL(swiglu_backward)(const rrl_swiglu_backward_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ELEMENT_BLOCK, j->n);
    const v16 one = v16_set1(1.0f), zero = v16_set1(-0.0f);
    for (int64_t i = begin * RRL_ELEMENT_BLOCK; i < last; i += RRL_LANES) {
        int left = v16_left(i, last);
        v16 g = v16_load_left(j->gate + i, left), dy = v16_load_left(j->dy + i, left);
        v16 up = v16_load_left(j->up + i, left);
        v16 sigmoid = v16_div(one, v16_add(one, v16_exp(v16_sub(zero, g))));
        v16 slope = v16_mul(sigmoid, v16_fma(g, v16_sub(one, sigmoid), one));
        v16_store_left(j->dup + i, v16_mul(dy, v16_mul(g, sigmoid)), left);
        v16_store_left(j->dgate + i, v16_mul(v16_mul(dy, up), slope), left);
    }
}

void RRL_KERNEL(axpy)(const rrl_axpy_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ELEMENT_BLOCK, j->n);
    const v16 a = v16_set1(j->a);
    for (int64_t i = begin * RRL_ELEMENT_BLOCK; i < last; i += RRL_LANES) {
        int left = v16_left(i, last);
        v16_store_left(j->y + i, v16_fma(a, v16_load_left(j->x + i, left), v16_load_left(j->y + i, left)),
                       left);
    }
}

void RRL_KERNEL(adamw)(const rrl_adamw_job *j, int64_t begin, int64_t end) {
    int64_t last = rrl_min(end * RRL_ELEMENT_BLOCK, j->n);
    float *restrict p = j->p, *restrict m = j->m, *restrict v = j->v;
    for (int64_t i = begin * RRL_ELEMENT_BLOCK; i < last; ++i) {
        double g = (double)j->g[i] * j->clip;
        double first = (double)m[i] * j->beta1 + g * (1.0 - j->beta1);
        double second = (double)v[i] * j->beta2 + g * g * (1.0 - j->beta2);
        m[i] = (float)first;
        v[i] = (float)second;
        p[i] =
            (float)((double)p[i] * j->decay - j->step_size * first / (sqrt(second) * j->root_scale + j->eps));
    }
}

void RRL_KERNEL(sum_squares)(const rrl_sum_squares_job *j, int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
        double lane[RRL_LANES] = {0};
        int64_t i = block * RRL_SQUARES_BLOCK, last = rrl_min(i + RRL_SQUARES_BLOCK, j->n);
        for (; i < last; i += RRL_LANES) {
            int left = v16_left(i, last);
            for (int l = 0; l < left; ++l) lane[l] += (double)j->x[i + l] * (double)j->x[i + l];
        }
        for (int half = RRL_LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
        *j->out += lane[0];
    }
}

void RRL_KERNEL(round)(const rrl_round_job *j, int64_t begin, int64_t end) {
    int64_t last = end * j->x.cols;
    for (int64_t i = begin * j->x.cols; i < last; i += RRL_LANES) {
        int left = v16_left(i, last);
        v16_store_left(j->x.data + i, v16_rounded(v16_load_left(j->x.data + i, left)), left);
    }
}

/* Column `at` of a K tile and row `at` of the V tile behind it. */
static void put_f32(float *k, int64_t at, const float *key, const float *value, int32_t dim) {
    for (int32_t d = 0; d < dim; ++d) k[d * RRL_KV_BLOCK + at] = key[d];
    memcpy(k + dim * RRL_KV_BLOCK + at * dim, value, (size_t)dim * sizeof(float));
}

static void put_bf16(uint16_t *k, int64_t at, const float *key, const float *value, int32_t dim) {
    uint16_t *v = k + dim * RRL_KV_BLOCK + at * dim, column[RRL_LANES];
    for (int32_t d = 0; d < dim; d += RRL_LANES) {
        int left = v16_left(d, dim);
        v16_narrow(column, v16_rounded(v16_load_left(key + d, left)));
        for (int l = 0; l < left; ++l) k[(d + l) * RRL_KV_BLOCK + at] = column[l];
        v16_narrow_left(v + d, v16_rounded(v16_load_left(value + d, left)), left);
    }
}

void RRL_KERNEL(kv_write)(const rrl_kv_write_job *j, int64_t begin, int64_t end) {
    int32_t dim = j->pool->head_dim;
    for (int64_t i = begin; i < end; ++i)
        for (int32_t h = 0; h < j->pool->n_kv_heads; ++h) {
            int64_t at = j->writes->at[i], from = j->writes->row[i] * j->k.cols + h * dim;
            void *tile = rrl_kv_tile(j->pool, j->layer, j->writes->block[i], h);
            if (j->pool->dtype == RRL_BF16)
                put_bf16(tile, at, j->k.data + from, j->v.data + from, dim);
            else
                put_f32(tile, at, j->k.data + from, j->v.data + from, dim);
        }
}
