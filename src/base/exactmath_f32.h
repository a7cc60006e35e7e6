/* The float32 functions of exactmath.h and the block function of random.h as inline bodies, which code for an
 * accelerator needs; everything else calls the functions. One copy for both. */
#ifndef RRL_BASE_EXACTMATH_F32_H
#define RRL_BASE_EXACTMATH_F32_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Inline on the host and, where a CUDA compiler reads it, on the device. */
#ifdef __CUDACC__
#define RRL_ANYWHERE __host__ __device__ static inline
#else
#define RRL_ANYWHERE static inline
#endif

RRL_ANYWHERE uint32_t rrl_float_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

RRL_ANYWHERE float rrl_bits_float(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

RRL_ANYWHERE float rrl_exp_f32(float x) {
    if (x > 88.7228394f) return INFINITY;
    if (x < -104.0f) return 0.0f;
    if (x != x) return x;
    /* adding it rounds to the nearest integer, which then lies in the low bits */
    const float magic = 0x1.8p23f;
    float t = fmaf(x, 0x1.715476p+0f, magic);
    int32_t n = (int32_t)(rrl_float_bits(t) - rrl_float_bits(magic));
    float nf = t - magic;
    float r = fmaf(nf, -0x1.62e430p-1f, x);
    r = fmaf(nf, 0x1.05c610p-29f, r);
    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    float y = fmaf(p, r * r, r) + 1.0f;
    /* 2^n in two factors, so that n = 128 does not overflow and subnormal results round once */
    int32_t half = n >> 1;
    float s1 = rrl_bits_float((uint32_t)(half + 127) << 23);
    float s2 = rrl_bits_float((uint32_t)(n - half + 127) << 23);
    return (y * s1) * s2;
}

RRL_ANYWHERE float rrl_log_f32(float x) {
    if (!(x > 0.0f)) return x == 0.0f ? -INFINITY : x != x ? x : NAN;
    if (x == INFINITY) return x;
    int32_t e = 0;
    if (x < 0x1p-126f) {
        x *= 0x1p23f;
        e = -23;
    }
    /* x = m 2^e with m in [sqrt(1/2), sqrt(2)) */
    int32_t ix = (int32_t)(rrl_float_bits(x) - 0x3f3504f3u);
    e += ix >> 23;
    float m = rrl_bits_float(((uint32_t)ix & 0x7fffffu) + 0x3f3504f3u);
    float ef = (float)e, f = m - 1.0f, z = f * f;
    float p = 7.0376836292e-2f;
    p = fmaf(p, f, -1.1514610310e-1f);
    p = fmaf(p, f, 1.1676998740e-1f);
    p = fmaf(p, f, -1.2420140846e-1f);
    p = fmaf(p, f, 1.4249322787e-1f);
    p = fmaf(p, f, -1.6668057665e-1f);
    p = fmaf(p, f, 2.0000714765e-1f);
    p = fmaf(p, f, -2.4999993993e-1f);
    p = fmaf(p, f, 3.3333331174e-1f);
    float y = (p * f) * z;
    y = fmaf(ef, -2.12194440e-4f, y);
    y = fmaf(z, -0.5f, y);
    return fmaf(ef, 0.693359375f, f + y);
}

/* Philox4x32-10 (Salmon et al., SC'11, table 2); the keys grow by the golden ratio and sqrt(3) - 1. */
RRL_ANYWHERE void rrl_philox_block(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

#endif
