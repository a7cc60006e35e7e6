/* v16: sixteen f32 lanes. One zmm (avx512), two ymm (avx2) or a plain struct (portable); every function gives
 * the same bits on all three. Kernels are written once on top of this. Define RRL_ISA and RRL_ISA_<isa>
 * before including. */
#ifndef RRL_DEVICE_CPU_VEC_H
#define RRL_DEVICE_CPU_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "device/cpu/common.h"

#define RRL_INLINE static inline __attribute__((always_inline, unused))
/* name_<isa>, so that the tables of all instruction sets live in one program */
#define RRL_PASTE2(a, b) a##_##b
#define RRL_PASTE(a, b)  RRL_PASTE2(a, b)
#define RRL_KERNEL(name) RRL_PASTE(rrl_##name, RRL_ISA)

/* Per instruction set: load, store (64 bytes, any alignment); load_n, store_n (first n lanes, 0 elsewhere, n
 * <= 16, memory beyond is not touched); arithmetic by lane; max as a > b ? a : b; pick_n: lanes below n of a,
 * then of b; ge_mask: bit l set where a >= b; low/high half sums. */
#if defined(RRL_ISA_avx512)

#include <immintrin.h>
typedef __m512 v16;

RRL_INLINE __mmask16 v16_first(int n) {
    return (__mmask16)((1u << n) - 1u);
}
RRL_INLINE v16 v16_zero(void) {
    return _mm512_setzero_ps();
}
RRL_INLINE v16 v16_set1(float x) {
    return _mm512_set1_ps(x);
}
RRL_INLINE v16 v16_load(const float *p) {
    return _mm512_loadu_ps(p);
}
RRL_INLINE v16 v16_load_n(const float *p, int n) {
    return _mm512_maskz_loadu_ps(v16_first(n), p);
}
RRL_INLINE void v16_store(float *p, v16 a) {
    _mm512_storeu_ps(p, a);
}
RRL_INLINE void v16_store_n(float *p, v16 a, int n) {
    _mm512_mask_storeu_ps(p, v16_first(n), a);
}
RRL_INLINE v16 v16_add(v16 a, v16 b) {
    return _mm512_add_ps(a, b);
}
RRL_INLINE v16 v16_sub(v16 a, v16 b) {
    return _mm512_sub_ps(a, b);
}
RRL_INLINE v16 v16_mul(v16 a, v16 b) {
    return _mm512_mul_ps(a, b);
}
RRL_INLINE v16 v16_div(v16 a, v16 b) {
    return _mm512_div_ps(a, b);
}
RRL_INLINE v16 v16_fma(v16 a, v16 b, v16 c) {
    return _mm512_fmadd_ps(a, b, c);
}
RRL_INLINE v16 v16_max(v16 a, v16 b) {
    return _mm512_max_ps(a, b);
}
RRL_INLINE v16 v16_pick_n(v16 a, v16 b, int n) {
    return _mm512_mask_mov_ps(b, v16_first(n), a);
}
RRL_INLINE unsigned v16_ge_mask(v16 a, v16 b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}

RRL_INLINE __m256 v16_low(v16 a) {
    return _mm512_castps512_ps256(a);
}
RRL_INLINE __m256 v16_high(v16 a) {
    return _mm512_extractf32x8_ps(a, 1);
}

RRL_INLINE v16 v16_exp(v16 x) {
    const v16 magic = _mm512_set1_ps(0x1.8p23f);
    v16 t = _mm512_fmadd_ps(x, _mm512_set1_ps(0x1.715476p+0f), magic);
    __m512i n = _mm512_sub_epi32(_mm512_castps_si512(t), _mm512_castps_si512(magic));
    v16 nf = _mm512_sub_ps(t, magic);
    v16 r = _mm512_fmadd_ps(nf, _mm512_set1_ps(-0x1.62e430p-1f), x);
    r = _mm512_fmadd_ps(nf, _mm512_set1_ps(0x1.05c610p-29f), r);
    v16 p = _mm512_set1_ps(1.9875691500e-4f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
    v16 y = _mm512_add_ps(_mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1.0f));
    __m512i half = _mm512_srai_epi32(n, 1), bias = _mm512_set1_epi32(127);
    v16 s1 = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(half, bias), 23));
    v16 s2 = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(n, half), bias), 23));
    y = _mm512_mul_ps(_mm512_mul_ps(y, s1), s2);
    y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(88.7228394f), _CMP_GT_OQ),
                           _mm512_set1_ps(INFINITY));
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(-104.0f), _CMP_LT_OQ),
                              _mm512_setzero_ps());
}

/* Lane j of vector i and lane i of vector j change places. */
RRL_INLINE void v16_transpose(v16 r[RRL_LANES]) {
    v16 t[RRL_LANES];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4)
#pragma GCC unroll 2
        for (int h = 0; h < 2; ++h) {
            __m512d a = _mm512_castps_pd(t[i + h]), b = _mm512_castps_pd(t[i + h + 2]);
            r[i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            r[i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) { /* r[4g + i]: lanes 4g .. 4g + 3 of the results i, i + 4, i + 8, i + 12 */
        v16 a = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88), b = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
        v16 c = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd), d = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
        t[i] = _mm512_shuffle_f32x4(a, b, 0x88);
        t[i + 8] = _mm512_shuffle_f32x4(a, b, 0xdd);
        t[i + 4] = _mm512_shuffle_f32x4(c, d, 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(c, d, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = t[i];
}

/* Sum of the integer masses of the lanes, see rrl_mass. */
RRL_INLINE uint64_t v16_mass_sum(v16 p) {
    const __m512d scale = _mm512_set1_pd(0x1p40), shift = _mm512_set1_pd(0x1p52);
    __m512d a = _mm512_add_pd(_mm512_mul_pd(_mm512_cvtps_pd(v16_low(p)), scale), shift);
    __m512d b = _mm512_add_pd(_mm512_mul_pd(_mm512_cvtps_pd(v16_high(p)), scale), shift);
    const __m512i mantissa = _mm512_set1_epi64(0xfffffffffffff);
    __m512i sum = _mm512_add_epi64(_mm512_and_si512(_mm512_castpd_si512(a), mantissa),
                                   _mm512_and_si512(_mm512_castpd_si512(b), mantissa));
    return (uint64_t)_mm512_reduce_add_epi64(sum);
}

#elif defined(RRL_ISA_avx2)

#include <immintrin.h>
typedef struct {
    __m256 lo, hi;
} v16;

/* lanes below n of a half; a negative n is 0, more than 8 is all */
RRL_INLINE __m256i v16_half_first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
RRL_INLINE v16 v16_zero(void) {
    return (v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
RRL_INLINE v16 v16_set1(float x) {
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
RRL_INLINE v16 v16_load(const float *p) {
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
RRL_INLINE v16 v16_load_n(const float *p, int n) {
    return (v16){_mm256_maskload_ps(p, v16_half_first(n)), _mm256_maskload_ps(p + 8, v16_half_first(n - 8))};
}
RRL_INLINE void v16_store(float *p, v16 a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
RRL_INLINE void v16_store_n(float *p, v16 a, int n) {
    _mm256_maskstore_ps(p, v16_half_first(n), a.lo);
    _mm256_maskstore_ps(p + 8, v16_half_first(n - 8), a.hi);
}
RRL_INLINE v16 v16_add(v16 a, v16 b) {
    return (v16){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
RRL_INLINE v16 v16_sub(v16 a, v16 b) {
    return (v16){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
RRL_INLINE v16 v16_mul(v16 a, v16 b) {
    return (v16){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
RRL_INLINE v16 v16_div(v16 a, v16 b) {
    return (v16){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
RRL_INLINE v16 v16_fma(v16 a, v16 b, v16 c) {
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
RRL_INLINE v16 v16_max(v16 a, v16 b) {
    return (v16){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
RRL_INLINE v16 v16_pick_n(v16 a, v16 b, int n) {
    return (v16){_mm256_blendv_ps(b.lo, a.lo, _mm256_castsi256_ps(v16_half_first(n))),
                 _mm256_blendv_ps(b.hi, a.hi, _mm256_castsi256_ps(v16_half_first(n - 8)))};
}
RRL_INLINE unsigned v16_ge_mask(v16 a, v16 b) {
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_GE_OQ)) |
           (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_GE_OQ)) << 8;
}
RRL_INLINE __m256 v16_low(v16 a) {
    return a.lo;
}
RRL_INLINE __m256 v16_high(v16 a) {
    return a.hi;
}

RRL_INLINE __m256 v16_half_exp(__m256 x) {
    const __m256 magic = _mm256_set1_ps(0x1.8p23f);
    __m256 t = _mm256_fmadd_ps(x, _mm256_set1_ps(0x1.715476p+0f), magic);
    __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(magic));
    __m256 nf = _mm256_sub_ps(t, magic);
    __m256 r = _mm256_fmadd_ps(nf, _mm256_set1_ps(-0x1.62e430p-1f), x);
    r = _mm256_fmadd_ps(nf, _mm256_set1_ps(0x1.05c610p-29f), r);
    __m256 p = _mm256_set1_ps(1.9875691500e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
    __m256 y = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
    __m256i half = _mm256_srai_epi32(n, 1), bias = _mm256_set1_epi32(127);
    __m256 s1 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    __m256 s2 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23));
    y = _mm256_mul_ps(_mm256_mul_ps(y, s1), s2);
    y = _mm256_blendv_ps(y, _mm256_set1_ps(INFINITY),
                         _mm256_cmp_ps(x, _mm256_set1_ps(88.7228394f), _CMP_GT_OQ));
    return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(-104.0f), _CMP_LT_OQ), y);
}
RRL_INLINE v16 v16_exp(v16 x) {
    return (v16){v16_half_exp(x.lo), v16_half_exp(x.hi)};
}

RRL_INLINE __m256i v16_quarter_mass(__m128 p) {
    __m256d a =
        _mm256_add_pd(_mm256_mul_pd(_mm256_cvtps_pd(p), _mm256_set1_pd(0x1p40)), _mm256_set1_pd(0x1p52));
    return _mm256_and_si256(_mm256_castpd_si256(a), _mm256_set1_epi64x(0xfffffffffffff));
}
RRL_INLINE uint64_t v16_mass_sum(v16 p) {
    __m256i lo = _mm256_add_epi64(v16_quarter_mass(_mm256_castps256_ps128(p.lo)),
                                  v16_quarter_mass(_mm256_extractf128_ps(p.lo, 1)));
    __m256i hi = _mm256_add_epi64(v16_quarter_mass(_mm256_castps256_ps128(p.hi)),
                                  v16_quarter_mass(_mm256_extractf128_ps(p.hi, 1)));
    uint64_t lane[4];
    _mm256_storeu_si256((__m256i *)lane, _mm256_add_epi64(lo, hi));
    return lane[0] + lane[1] + lane[2] + lane[3];
}

#else /* portable */

/* A vector of the compiler's own kind; it makes of it what the machine has. */
typedef float v16 __attribute__((vector_size(64)));

#define RRL_EACH_LANE(expression)                                                                            \
    v16 r_ = {0};                                                                                            \
    _Pragma("GCC unroll 16") for (int l = 0; l < RRL_LANES; ++l) r_[l] = (expression);                       \
    return r_

RRL_INLINE v16 v16_set1(float x) {
    return (v16){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}
RRL_INLINE v16 v16_zero(void) {
    return (v16){0};
}
RRL_INLINE v16 v16_load(const float *p) {
    v16 r;
    memcpy(&r, p, sizeof r);
    return r;
}
RRL_INLINE v16 v16_load_n(const float *p, int n) {
    v16 r = {0};
    memcpy(&r, p, (size_t)n * sizeof(float));
    return r;
}
RRL_INLINE void v16_store(float *p, v16 a) {
    memcpy(p, &a, sizeof a);
}
RRL_INLINE void v16_store_n(float *p, v16 a, int n) {
    memcpy(p, &a, (size_t)n * sizeof(float));
}
RRL_INLINE v16 v16_add(v16 a, v16 b) {
    return a + b;
}
RRL_INLINE v16 v16_sub(v16 a, v16 b) {
    return a - b;
}
RRL_INLINE v16 v16_mul(v16 a, v16 b) {
    return a * b;
}
RRL_INLINE v16 v16_div(v16 a, v16 b) {
    return a / b;
}
RRL_INLINE v16 v16_fma(v16 a, v16 b, v16 c) {
    RRL_EACH_LANE(fmaf(a[l], b[l], c[l]));
}
RRL_INLINE v16 v16_max(v16 a, v16 b) {
    RRL_EACH_LANE(a[l] > b[l] ? a[l] : b[l]);
}
RRL_INLINE v16 v16_pick_n(v16 a, v16 b, int n) {
    RRL_EACH_LANE(l < n ? a[l] : b[l]);
}
RRL_INLINE v16 v16_exp(v16 x) {
    RRL_EACH_LANE(rrl_expf(x[l]));
}
RRL_INLINE unsigned v16_ge_mask(v16 a, v16 b) {
    unsigned mask = 0;
    for (int l = 0; l < RRL_LANES; ++l) mask |= (unsigned)(a[l] >= b[l]) << l;
    return mask;
}
RRL_INLINE uint64_t v16_mass_sum(v16 p) {
    uint64_t sum = 0;
    for (int l = 0; l < RRL_LANES; ++l) sum += rrl_mass(p[l]);
    return sum;
}
RRL_INLINE float v16_sum(v16 a) {
    for (int half = RRL_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) a[l] += a[l + half];
    return a[0];
}
RRL_INLINE float v16_hmax(v16 a) {
    for (int half = RRL_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) a[l] = a[l] > a[l + half] ? a[l] : a[l + half];
    return a[0];
}

#endif

#if defined(RRL_ISA_avx512) || defined(RRL_ISA_avx2)
/* l += l+8, +4, +2, +1 */
RRL_INLINE float v16_sum(v16 a) {
    __m256 s8 = _mm256_add_ps(v16_low(a), v16_high(a));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}
RRL_INLINE float v16_hmax(v16 a) {
    __m256 s8 = _mm256_max_ps(v16_low(a), v16_high(a));
    __m128 s4 = _mm_max_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_max_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_max_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}
#endif

#if !defined(RRL_ISA_avx512)
/* Lane j of vector i and lane i of vector j change places. */
RRL_INLINE void v16_transpose(v16 r[RRL_LANES]) {
    float from[RRL_LANES][RRL_LANES], to[RRL_LANES][RRL_LANES];
    for (int i = 0; i < RRL_LANES; ++i) v16_store(from[i], r[i]);
    for (int i = 0; i < RRL_LANES; ++i)
        for (int l = 0; l < RRL_LANES; ++l) to[i][l] = from[l][i];
    for (int i = 0; i < RRL_LANES; ++i) r[i] = v16_load(to[i]);
}
#endif

/* Lanes left at i of n, at most 16 */
RRL_INLINE int v16_left(int64_t i, int64_t n) {
    return n - i < RRL_LANES ? (int)(n - i) : RRL_LANES;
}
RRL_INLINE v16 v16_load_left(const float *p, int left) {
    return left == RRL_LANES ? v16_load(p) : v16_load_n(p, left);
}
RRL_INLINE void v16_store_left(float *p, v16 a, int left) {
    if (left == RRL_LANES)
        v16_store(p, a);
    else
        v16_store_n(p, a, left);
}

#endif
