/* bf16 products on AMX tiles, whose order of sums is the definition.
 *
 * Registers: 0-3 results of 2 x 2 tiles, 4-5 activations, 6-7 weights. The operand that is used again comes by a plain
 * load and may stay in the first cache, the one that streams is loaded past it, or it would push the first out. Tails
 * are padded, never short tiles: those save no time. */
#include <immintrin.h>

#include "device/cpu/bf16.h"
#include "device/cpu/bf16_tiles.h"

enum { ROWS = 16 }; /* of a tile */

static inline __attribute__((always_inline)) void fetch(const char **next, const int lines) {
#pragma GCC unroll 32
    for (int i = 0; i < lines; ++i) _mm_prefetch(*next + i * 64, _MM_HINT_T1);
    *next += lines * 64;
}

/* Two tiles of rows: the weights are used again by the next rows, the activations stream. `lines` is a constant. */
static inline __attribute__((always_inline)) void two_tiles(float *acc, const uint16_t *x, const uint16_t *w,
                                                            int64_t steps, const char *next, const int lines) {
    const uint16_t *x1 = x + steps * RRL_BF16_TILE;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t s = 0; s < steps; ++s, x += RRL_BF16_TILE, x1 += RRL_BF16_TILE, w += 2 * RRL_BF16_TILE) {
        TILE_LOAD(6, w);
        TILE_STREAM(4, x);
        TILE_DOT(0, 4, 6);
        TILE_LOAD(7, w + RRL_BF16_TILE);
        TILE_DOT(1, 4, 7);
        TILE_STREAM(5, x1);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
        fetch(&next, lines);
    }
    TILE_STORE(0, acc, RRL_BF16_BLOCK * sizeof(float));
    TILE_STORE(1, acc + 16, RRL_BF16_BLOCK * sizeof(float));
    TILE_STORE(2, acc + 16 * RRL_BF16_BLOCK, RRL_BF16_BLOCK * sizeof(float));
    TILE_STORE(3, acc + 16 * RRL_BF16_BLOCK + 16, RRL_BF16_BLOCK * sizeof(float));
}

/* One tile of rows: the activations are used again by the next panel, the weights stream. */
static inline __attribute__((always_inline)) void one_tile(float *acc, const uint16_t *x, const uint16_t *w,
                                                           int64_t steps, const char *next, const int lines) {
    TILE_ZERO(0);
    TILE_ZERO(1);
    for (int64_t s = 0; s < steps; ++s, x += RRL_BF16_TILE, w += 2 * RRL_BF16_TILE) {
        TILE_LOAD(4, x);
        TILE_STREAM(6, w);
        TILE_DOT(0, 4, 6);
        TILE_STREAM(7, w + RRL_BF16_TILE);
        TILE_DOT(1, 4, 7);
        fetch(&next, lines);
    }
    TILE_STORE(0, acc, RRL_BF16_BLOCK * sizeof(float));
    TILE_STORE(1, acc + 16, RRL_BF16_BLOCK * sizeof(float));
}

static void block(float *acc, const void *x, int64_t rows, const uint16_t *w, int64_t steps, const void *next,
                  int lines) {
    const bool two = rows > ROWS;
    switch (lines) {
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        if (two)                                                                                                       \
            two_tiles(acc, x, w, steps, next, n);                                                                      \
        else                                                                                                           \
            one_tile(acc, x, w, steps, next, n);                                                                       \
        break;
        CASE(0)
        CASE(1)
        CASE(2)
        CASE(4)
        CASE(8)
        CASE(16)
        CASE(32)
#undef CASE
    }
}

/* One tile of rows, [steps][16][32]. */
static void round_tile(uint16_t *t, const float *x, int64_t ld, int64_t rows, int64_t k) {
    for (int64_t at = 0; at < k; at += RRL_BF16_STEP, t += RRL_BF16_TILE) {
        const __mmask32 here = k - at < 32 ? (__mmask32)((1u << (k - at)) - 1u) : 0xffffffffu;
        for (int64_t r = 0; r < rows; ++r) {
            const float *from = x + r * ld + at;
            __m512 lo = _mm512_maskz_loadu_ps((__mmask16)here, from);
            __m512 hi = _mm512_maskz_loadu_ps((__mmask16)(here >> 16), from + 16);
            _mm512_storeu_si512(t + r * 32, (__m512i)_mm512_cvtne2ps_pbh(hi, lo));
        }
        for (int64_t r = rows; r < ROWS; ++r) _mm512_storeu_si512(t + r * 32, _mm512_setzero_si512());
    }
}

/* Two tiles, the second only where it has rows. The conversion instruction is rrl_bf16_of: nearest even, quiet NaN,
 * denormals 0, whatever the thread's state. */
static void round_rows(void *to, const float *x, int64_t ld, int64_t rows, int64_t k) {
    const int64_t steps = (k + RRL_BF16_STEP - 1) / RRL_BF16_STEP;
    round_tile(to, x, ld, rows < ROWS ? rows : ROWS, k);
    if (rows > ROWS) round_tile((uint16_t *)to + steps * RRL_BF16_TILE, x + ROWS * ld, ld, rows - ROWS, k);
}

/* For each job anew: other libraries in the process release the tiles. */
static unsigned begin(void) {
    rrl_tile_config config = {.palette = 1};
    for (int i = 0; i < 8; ++i) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    TILE_CONFIGURE(config);
    return rrl_bf16_flush_begin();
}

static void end(unsigned state) {
    TILE_RELEASE();
    rrl_bf16_flush_end(state);
}

const rrl_bf16_kernels rrl_bf16_amx = {.isa = "amx",
                                       .width = sizeof(uint16_t),
                                       .begin = begin,
                                       .end = end,
                                       .round = round_rows,
                                       .block = block,
                                       .put = rrl_bf16_put_avx512,
                                       .transpose = rrl_bf16_transpose_avx512};
