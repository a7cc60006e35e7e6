/* bf16 and v16: pairs of packed weights, rounding, numbers stored as bf16. Every function gives the same bits on all
 * instruction sets. */
#ifndef RRL_DEVICE_CPU_VEC_BF16_H
#define RRL_DEVICE_CPU_VEC_BF16_H

#include "device/cpu/bf16.h"
#include "device/cpu/vec.h"

/* v16_even, v16_odd: of 16 pairs of bf16 the even ones, the odd ones. v16_rounded: the nearest bf16 values, as
 * rrl_bf16_of. v16_widen, v16_narrow: 16 numbers stored as bf16; what is stored must be rounded. */
#if defined(RRL_ISA_avx512)
RRL_INLINE v16 v16_even(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
}
RRL_INLINE v16 v16_odd(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32((int)0xffff0000u)));
}
RRL_INLINE v16 v16_rounded(v16 x) {
    __m512i u = _mm512_castps_si512(x), high = _mm512_set1_epi32((int)0xffff0000u);
    __m512i tie = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i r = _mm512_and_si512(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), tie), high);
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    r = _mm512_mask_or_epi32(r, nan, _mm512_and_si512(u, high), _mm512_set1_epi32(0x400000));
    __mmask16 tiny = _mm512_testn_epi32_mask(u, _mm512_set1_epi32(0x7f800000));
    return _mm512_castsi512_ps(_mm512_mask_and_epi32(r, tiny, u, _mm512_set1_epi32((int)0x80000000u)));
}
RRL_INLINE v16 v16_widen(const uint16_t *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
RRL_INLINE void v16_narrow(uint16_t *p, v16 a) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(a), 16)));
}
#elif defined(RRL_ISA_avx2)
RRL_INLINE __m256 v16_half_pairs(const uint16_t *p, const bool odd) {
    __m256i u = _mm256_loadu_si256((const __m256i *)p);
    return _mm256_castsi256_ps(odd ? _mm256_and_si256(u, _mm256_set1_epi32((int)0xffff0000u))
                                   : _mm256_slli_epi32(u, 16));
}
RRL_INLINE v16 v16_even(const uint16_t *p) {
    return (v16){v16_half_pairs(p, false), v16_half_pairs(p + 16, false)};
}
RRL_INLINE v16 v16_odd(const uint16_t *p) {
    return (v16){v16_half_pairs(p, true), v16_half_pairs(p + 16, true)};
}
RRL_INLINE __m256 v16_half_rounded(__m256 x) {
    __m256i u = _mm256_castps_si256(x), high = _mm256_set1_epi32((int)0xffff0000u);
    __m256i tie = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i r = _mm256_and_si256(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), tie), high);
    __m256i quiet = _mm256_or_si256(_mm256_and_si256(u, high), _mm256_set1_epi32(0x400000));
    r = _mm256_blendv_epi8(r, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
    __m256i exponent = _mm256_and_si256(u, _mm256_set1_epi32(0x7f800000));
    __m256i zero = _mm256_and_si256(u, _mm256_set1_epi32((int)0x80000000u));
    return _mm256_castsi256_ps(_mm256_blendv_epi8(r, zero, _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256())));
}
RRL_INLINE v16 v16_rounded(v16 x) {
    return (v16){v16_half_rounded(x.lo), v16_half_rounded(x.hi)};
}
RRL_INLINE __m256 v16_half_widen(const uint16_t *p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
RRL_INLINE v16 v16_widen(const uint16_t *p) {
    return (v16){v16_half_widen(p), v16_half_widen(p + 8)};
}
RRL_INLINE void v16_narrow(uint16_t *p, v16 a) {
    __m256i lo = _mm256_srli_epi32(_mm256_castps_si256(a.lo), 16), hi = _mm256_srli_epi32(_mm256_castps_si256(a.hi), 16);
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(_mm256_packus_epi32(lo, hi), 0xd8));
}
#else
RRL_INLINE v16 v16_even(const uint16_t *p) {
    float x[RRL_LANES];
    for (int l = 0; l < RRL_LANES; ++l) x[l] = rrl_bf16_value(p[2 * l]);
    return v16_load(x);
}
RRL_INLINE v16 v16_odd(const uint16_t *p) {
    return v16_even(p + 1);
}
RRL_INLINE v16 v16_rounded(v16 x) {
    float r[RRL_LANES];
    v16_store(r, x);
    for (int l = 0; l < RRL_LANES; ++l) r[l] = rrl_bf16_value(rrl_bf16_of(r[l]));
    return v16_load(r);
}
RRL_INLINE v16 v16_widen(const uint16_t *p) {
    float x[RRL_LANES];
    for (int l = 0; l < RRL_LANES; ++l) x[l] = rrl_bf16_value(p[l]);
    return v16_load(x);
}
RRL_INLINE void v16_narrow(uint16_t *p, v16 a) {
    float x[RRL_LANES];
    v16_store(x, a);
    for (int l = 0; l < RRL_LANES; ++l) p[l] = rrl_bf16_of(x[l]);
}
#endif

/* The same for the first `left` numbers; nothing beyond them is touched. */
RRL_INLINE v16 v16_widen_left(const uint16_t *p, int left) {
    if (left == RRL_LANES) return v16_widen(p);
    uint16_t all[RRL_LANES] = {0};
    memcpy(all, p, (size_t)left * sizeof *p);
    return v16_widen(all);
}
RRL_INLINE void v16_narrow_left(uint16_t *p, v16 a, int left) {
    uint16_t all[RRL_LANES];
    if (left == RRL_LANES) {
        v16_narrow(p, a);
        return;
    }
    v16_narrow(all, a);
    memcpy(p, all, (size_t)left * sizeof *p);
}

#endif
