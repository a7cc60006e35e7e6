#include "device/cpu/weight.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static float of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* IEEE half to single, exact, subnormals included. */
static float of_half(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ffu;
    if (exponent == 31) return of_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0) return of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/* src is often a mapped file. */
float rrl_weight_element(const void *src, rrl_dtype dtype, int64_t i) {
    const char *bytes = src;
    if (dtype == RRL_F32) {
        float x;
        memcpy(&x, bytes + 4 * i, sizeof x);
        return x;
    }
    uint16_t h;
    memcpy(&h, bytes + 2 * i, sizeof h);
    return dtype == RRL_BF16 ? of_bits((uint32_t)h << 16) : of_half(h);
}

static rrl_status packed_alloc(rrl_packed *p, int64_t n, int64_t k) {
    p->n = n;
    p->k = k;
    return rrl_alloc_aligned(&p->data, (size_t)rrl_panels(n) * (size_t)k, RRL_PANEL * sizeof(float),
                             "packed weights");
}

rrl_status rrl_weight_pack_cpu(rrl_weight **out, const void *src, rrl_dtype dtype, int64_t n, int64_t k) {
    rrl_status rc = RRL_OK;
    rrl_weight *w = NULL;
    if (n < 1 || k < 1)
        return RRL_FAIL(RRL_ERR_RANGE, "a weight of %lld x %lld cannot be packed", (long long)n,
                        (long long)k);
    RRL_GOTO(rrl_alloc(&w, 1, sizeof *w, "weight"));
    w->n = n;
    w->k = k;
    RRL_GOTO(packed_alloc(&w->forward, n, k));
    RRL_GOTO(packed_alloc(&w->backward, k, n));
    for (int64_t i = 0; i < n; ++i) {
        float *f = w->forward.data + i / RRL_PANEL * k * RRL_PANEL + i % RRL_PANEL;
        float *b = w->backward.data + i * RRL_PANEL;
        for (int64_t j = 0; j < k; ++j) {
            float x = rrl_weight_element(src, dtype, i * k + j);
            f[j * RRL_PANEL] = x;
            b[j / RRL_PANEL * n * RRL_PANEL + j % RRL_PANEL] = x;
        }
    }
    *out = w;
    w = NULL;
done:
    rrl_weight_free_cpu(&w);
    return rc;
}

void rrl_weight_free_cpu(rrl_weight **w) {
    if (!w || !*w) return;
    free((*w)->forward.data);
    free((*w)->backward.data);
    free((*w)->tiles);
    free(*w);
    *w = NULL;
}

int64_t rrl_weight_rows(const rrl_weight *w) {
    return w->n;
}

int64_t rrl_weight_cols(const rrl_weight *w) {
    return w->k;
}

size_t rrl_cpu_weight_bytes(int64_t n, int64_t k) {
    return ((size_t)rrl_panels(n) * (size_t)k + (size_t)rrl_panels(k) * (size_t)n) * RRL_PANEL *
           sizeof(float);
}
