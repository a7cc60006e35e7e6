/* Reading and arithmetic by instruction set. Results are returned so that no compiler drops the work. */
#include "bench/loops.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#include "device/cpu/bf16.h"
#endif

typedef uint64_t words __attribute__((vector_size(64))); /* a cache line */

static inline __attribute__((always_inline)) uint64_t read_lines(const uint64_t *p, int64_t n) {
    const words *line = (const words *)(const void *)p;
    words sum[4] = {{0}};
    for (int64_t i = 0; i < n / 8; i += 8) {
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++) sum[k % 4] += line[i + k];
    }
    sum[0] += sum[1] + sum[2] + sum[3];
    uint64_t all = 0;
    for (int k = 0; k < 8; k++) all += sum[0][k];
    return all;
}

/* acc = acc x 0.999 + 0.001 stays near 1: no denormals, no infinities. */
static const float FACTOR = 0.999f, TERM = 0.001f;

enum { SCALAR_CHAINS = 8 };
static float arithmetic_portable(int64_t iterations) {
    float acc[SCALAR_CHAINS], sum = 0;
    for (int k = 0; k < SCALAR_CHAINS; k++) acc[k] = (float)k;
    for (int64_t i = 0; i < iterations; i++)
        for (int k = 0; k < SCALAR_CHAINS; k++) acc[k] = fmaf(acc[k], FACTOR, TERM);
    for (int k = 0; k < SCALAR_CHAINS; k++) sum += acc[k];
    return sum;
}

static uint64_t read_portable(const uint64_t *p, int64_t n) { return read_lines(p, n); }

#if defined(__x86_64__)
enum { AVX2_CHAINS = 12, AVX512_CHAINS = 24 };

__attribute__((target("avx2,fma"))) static float arithmetic_avx2(int64_t iterations) {
    __m256 acc[AVX2_CHAINS], sum = _mm256_setzero_ps();
    const __m256 factor = _mm256_set1_ps(FACTOR), term = _mm256_set1_ps(TERM);
    for (int k = 0; k < AVX2_CHAINS; k++) acc[k] = _mm256_set1_ps((float)k);
    for (int64_t i = 0; i < iterations; i++) {
#pragma GCC unroll 12
        for (int k = 0; k < AVX2_CHAINS; k++) acc[k] = _mm256_fmadd_ps(acc[k], factor, term);
    }
    for (int k = 0; k < AVX2_CHAINS; k++) sum = _mm256_add_ps(sum, acc[k]);
    return _mm256_cvtss_f32(sum);
}

__attribute__((target("avx2"))) static uint64_t read_avx2(const uint64_t *p, int64_t n) { return read_lines(p, n); }

__attribute__((target("avx512f"))) static float arithmetic_avx512(int64_t iterations) {
    __m512 acc[AVX512_CHAINS], sum = _mm512_setzero_ps();
    const __m512 factor = _mm512_set1_ps(FACTOR), term = _mm512_set1_ps(TERM);
    for (int k = 0; k < AVX512_CHAINS; k++) acc[k] = _mm512_set1_ps((float)k);
    for (int64_t i = 0; i < iterations; i++) {
#pragma GCC unroll 24
        for (int k = 0; k < AVX512_CHAINS; k++) acc[k] = _mm512_fmadd_ps(acc[k], factor, term);
    }
    for (int k = 0; k < AVX512_CHAINS; k++) sum = _mm512_add_ps(sum, acc[k]);
    return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx512f"))) static uint64_t read_avx512(const uint64_t *p, int64_t n) {
    return read_lines(p, n);
}

/* The engine's own micro-kernel on blocks that lie in the first cache: there is no plainer loop of tiles. */
enum { TILE_STEPS = 8, TILE_ROWS = 32 };
static float arithmetic_amx(int64_t iterations) {
    static _Thread_local _Alignas(64) uint16_t x[TILE_STEPS * 2 * RRL_BF16_TILE], w[TILE_STEPS * 2 * RRL_BF16_TILE];
    static _Thread_local _Alignas(64) float acc[RRL_BF16_BLOCK * RRL_BF16_BLOCK];
    unsigned state = rrl_bf16_amx.begin();
    for (int64_t i = 0; i < iterations; i++) rrl_bf16_amx.block(acc, x, TILE_ROWS, w, TILE_STEPS, w, 0);
    rrl_bf16_amx.end(state);
    return acc[0];
}
#endif

static const rrl_bench_loops LOOPS[] = {
    {"portable", 2.0 * SCALAR_CHAINS, arithmetic_portable, read_portable},
#if defined(__x86_64__)
    {"avx2", 2.0 * 8 * AVX2_CHAINS, arithmetic_avx2, read_avx2},
    {"avx512", 2.0 * 16 * AVX512_CHAINS, arithmetic_avx512, read_avx512},
    {"amx", 2.0 * TILE_ROWS * RRL_BF16_PANEL * RRL_BF16_STEP * TILE_STEPS, arithmetic_amx, read_avx512},
#endif
};

const rrl_bench_loops *rrl_bench_loops_of(const char *isa) {
    for (size_t i = 0; i < sizeof LOOPS / sizeof LOOPS[0]; i++)
        if (strcmp(LOOPS[i].isa, isa) == 0) return &LOOPS[i];
    return &LOOPS[0];
}
