/* Small scalar pieces that every back end shares: they are the definition for all. Inline on the host and in CUDA code.
 */
#ifndef RRL_DEVICE_SCALAR_H
#define RRL_DEVICE_SCALAR_H

#include "base/exactmath_f32.h"
#include "device/device.h"

/* Log-sum-exp of a stretch of the vocabulary: max of z, sum of exp(z - max), sum of exp(z - max) (z - max). */
typedef struct {
    float max, sum, weighted;
} rrl_lse;

/* Join a block to the running total; an empty total has sum 0. */
RRL_ANYWHERE void rrl_lse_join(rrl_lse *total, rrl_lse block) {
    if (total->sum == 0.0f) {
        *total = block;
        return;
    }
    float max = block.max > total->max ? block.max : total->max;
    float shift = total->max - max, block_shift = block.max - max;
    float a = rrl_exp_f32(shift), b = rrl_exp_f32(block_shift);
    total->weighted = (total->weighted + total->sum * shift) * a + (block.weighted + block.sum * block_shift) * b;
    total->sum = total->sum * a + block.sum * b;
    total->max = max;
}

/* log-prob of a token with scaled logit z: max is taken off first, which keeps the small differences */
RRL_ANYWHERE float rrl_lse_logp(rrl_lse t, float z) {
    return (z - t.max) - rrl_log_f32(t.sum);
}
RRL_ANYWHERE float rrl_lse_value(rrl_lse t) {
    return t.max + rrl_log_f32(t.sum);
}
RRL_ANYWHERE float rrl_lse_entropy(rrl_lse t) {
    return rrl_log_f32(t.sum) - t.weighted / t.sum;
}

/* Log-probs of temperature 0 (argmax) are taken at temperature 1. */
RRL_ANYWHERE float rrl_score_temperature(float temperature) {
    return temperature > 0.0f ? temperature : 1.0f;
}

/* Logit of a token that the history holds. It reads the untouched logit, so a token is penalised once. */
RRL_ANYWHERE float rrl_penalised(float logit, float penalty) {
    return logit > 0.0f ? logit / penalty : logit * penalty;
}

/* Probability relative to the maximum -> integer mass round(p 2^40), ties to even: exact in double, any
 * instruction set. */
RRL_ANYWHERE uint64_t rrl_mass(float p) {
    double shifted = (double)p * 0x1p40 + 0x1p52;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return bits & 0xfffffffffffffu;
}

/* ceil(top_p * total) in integers; top_p in (0, 1). */
RRL_ANYWHERE uint64_t rrl_mass_target(float top_p, uint64_t total) {
    int exponent = 0;
    float scaled = top_p;
    while (scaled < 0x1p23f) {
        scaled *= 2.0f;
        exponent++;
    }
    if (exponent > 100) return 1; /* below 2^-77: any token reaches it */
    unsigned __int128 product = (unsigned __int128)(uint64_t)scaled * total;
    unsigned __int128 unit = (unsigned __int128)1 << exponent;
    uint64_t target = (uint64_t)((product + unit - 1) >> exponent);
    return target ? target : 1;
}

/* The running mass that the drawn token must exceed: floor(bits * kept / 2^64). */
RRL_ANYWHERE uint64_t rrl_draw_threshold(const rrl_sample_row *row, uint64_t kept) {
    uint32_t counter[4] = {row->sample, row->attempt, row->position, 0}, word[4];
    rrl_philox_block(word, counter, row->key);
    uint64_t bits = (uint64_t)word[1] << 32 | word[0];
    return (uint64_t)((unsigned __int128)bits * kept >> 64);
}

/* bf16: round to nearest, ties to even; NaN stays NaN; a denormal is 0, as the CPU's instructions have it. */
RRL_ANYWHERE uint16_t rrl_bf16_of(float x) {
    uint32_t u = rrl_float_bits(x);
    if ((u & 0x7f800000u) == 0) return (uint16_t)(u >> 16 & 0x8000u);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
RRL_ANYWHERE float rrl_bf16_value(uint16_t h) {
    return rrl_bits_float((uint32_t)h << 16);
}

/* IEEE half to single, exact, subnormals included. */
RRL_ANYWHERE float rrl_half_value(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ffu;
    if (exponent == 31) return rrl_bits_float(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0) return rrl_bits_float(sign | (exponent + 112) << 23 | mantissa << 13);
    float magnitude = (float)mantissa * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

/* Element i of src as f32, exact; src may have any alignment: it is often a mapped file. */
static inline float rrl_weight_element(const void *src, rrl_dtype dtype, int64_t i) {
    const char *bytes = (const char *)src;
    if (dtype == RRL_F32) {
        float x;
        memcpy(&x, bytes + 4 * i, sizeof x);
        return x;
    }
    uint16_t h;
    memcpy(&h, bytes + 2 * i, sizeof h);
    return dtype == RRL_BF16 ? rrl_bf16_value(h) : rrl_half_value(h);
}

/* The K tile of (layer, block, kv head) and the V tile, half of these bytes, behind it. */
RRL_ANYWHERE int64_t rrl_kv_tile_bytes(const rrl_kv_pool *p) {
    return 2 * (int64_t)p->head_dim * RRL_KV_BLOCK * (p->dtype == RRL_BF16 ? 2 : 4);
}
RRL_ANYWHERE void *rrl_kv_tile(const rrl_kv_pool *p, int32_t layer, int32_t block, int32_t head) {
    int64_t tile = ((int64_t)layer * p->n_blocks + block) * p->n_kv_heads + head;
    return (char *)p->data + tile * rrl_kv_tile_bytes(p);
}

#endif
