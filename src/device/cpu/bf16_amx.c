/* bf16 products on AMX tiles, whose order of sums is the definition. Own asm: gcc 12's tile loads have no memory clobber
 * and its tile configuration names 8 of the 64 bytes it reads, so stores before them may vanish.
 *
 * Registers: 0-3 results of 2 x 2 tiles, 4-5 activations, 6-7 weights. The operand that is used again comes by a plain
 * load and may stay in the first cache, the one that streams is loaded past it, or it would push the first out. Tails
 * are padded, never short tiles: those save no time. */
#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/cpu/bf16.h"

#define TILE_LOAD(r, p)   __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #r ::"r"(p), "r"(64L) : "memory")
#define TILE_STREAM(r, p) __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #r ::"r"(p), "r"(64L) : "memory")
#define TILE_STORE(r, p)  __asm__ volatile("tilestored %%tmm" #r ", (%0,%1,1)" ::"r"(p), "r"(128L) : "memory")
#define TILE_ZERO(r)      __asm__ volatile("tilezero %%tmm" #r ::)
/* c += a b */
#define TILE_DOT(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)

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
    TILE_STORE(0, acc);
    TILE_STORE(1, acc + 16);
    TILE_STORE(2, acc + 16 * RRL_BF16_BLOCK);
    TILE_STORE(3, acc + 16 * RRL_BF16_BLOCK + 16);
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
    TILE_STORE(0, acc);
    TILE_STORE(1, acc + 16);
}

static void block(float *acc, const void *x, int64_t rows, const uint16_t *w, int64_t steps, const void *next,
                  int lines) {
    const bool two = rows > RRL_BF16_ROWS;
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

/* The conversion instruction is rrl_bf16_of: nearest even, quiet NaN, denormals 0, whatever the thread's state. */
static void round_rows(void *to, const float *x, int64_t ld, int64_t rows, int64_t k) {
    uint16_t *t = to;
    for (int64_t at = 0; at < k; at += RRL_BF16_STEP, t += RRL_BF16_TILE) {
        const __mmask32 here = k - at < 32 ? (__mmask32)((1u << (k - at)) - 1u) : 0xffffffffu;
        for (int64_t r = 0; r < rows; ++r) {
            const float *from = x + r * ld + at;
            __m512 lo = _mm512_maskz_loadu_ps((__mmask16)here, from);
            __m512 hi = _mm512_maskz_loadu_ps((__mmask16)(here >> 16), from + 16);
            _mm512_storeu_si512(t + r * 32, (__m512i)_mm512_cvtne2ps_pbh(hi, lo));
        }
        for (int64_t r = rows; r < RRL_BF16_ROWS; ++r) _mm512_storeu_si512(t + r * 32, _mm512_setzero_si512());
    }
}

/* Full rows of a large, aligned result go past the caches; others as avx512 does it. */
static void put(const rrl_bf16_target *y, const float *acc, int64_t rows, int64_t cols) {
    if (!y->past_caches || y->accumulate || y->bias) {
        rrl_bf16_put_avx512(y, acc, rows, cols);
        return;
    }
    for (int64_t r = 0; r < rows; ++r) {
        _mm512_stream_ps(y->y + r * y->ld, _mm512_load_ps(acc + r * RRL_BF16_BLOCK));
        _mm512_stream_ps(y->y + r * y->ld + 16, _mm512_load_ps(acc + r * RRL_BF16_BLOCK + 16));
    }
}

/* For each job anew: other libraries in the process release the tiles. */
static unsigned begin(void) {
    struct {
        uint8_t palette, start, pad[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; ++i) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
    return rrl_bf16_flush_begin();
}

static void end(unsigned state) {
    _mm_sfence(); /* what went past the caches is seen by the other threads */
    __asm__ volatile("tilerelease");
    rrl_bf16_flush_end(state);
}

const rrl_bf16_kernels rrl_bf16_amx = {.isa = "amx",
                                       .width = sizeof(uint16_t),
                                       .begin = begin,
                                       .end = end,
                                       .round = round_rows,
                                       .block = block,
                                       .put = put,
                                       .transpose = rrl_bf16_transpose_avx512};

/* --- may it be used */

/* A block whose exact sums tell every output apart, and one rounding that only the tile order gives. */
static bool right_bits(void) {
    _Alignas(64) float x[32 * 32], acc[32 * 32];
    _Alignas(64) uint16_t rounded[2 * RRL_BF16_TILE], w[2 * RRL_BF16_TILE];
    for (int i = 0; i < 32 * 32; ++i) {
        x[i] = (float)(i % 61 - 30) * 0x1p-3f;
        w[i] = rrl_bf16_of((float)(i % 53 - 26) * 0x1.04p-2f);
    }
    unsigned state = begin();
    round_rows(rounded, x, 32, 16, 32);
    round_rows(rounded + RRL_BF16_TILE, x + 16 * 32, 32, 16, 32);
    block(acc, rounded, 32, w, 1, w, 0);
    end(state);
    bool same = true;
    for (int r = 0; r < 32; ++r)
        for (int n = 0; n < 32; ++n) {
            float even = 0.0f, odd = 0.0f;
            for (int k = 0; k < 32; k += 2) {
                const uint16_t *pair = w + n / 16 * RRL_BF16_TILE + k / 2 * 32 + n % 16 * 2;
                even = __builtin_fmaf(rrl_bf16_value(rrl_bf16_of(x[r * 32 + k])), rrl_bf16_value(pair[0]), even);
                odd = __builtin_fmaf(rrl_bf16_value(rrl_bf16_of(x[r * 32 + k + 1])), rrl_bf16_value(pair[1]), odd);
            }
            same = same && acc[r * 32 + n] == even + odd;
        }
    return same;
}

bool rrl_bf16_amx_works(const char **why) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, TILE = 1 << 24, TILE_BF16 = 1 << 22, BF16 = 1 << 5 };
    unsigned a = 0, b = 0, c = 0, d = 0, a1 = 0;
    *why = "; this processor has no AMX with bf16";
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    if (!(d & TILE) || !(d & TILE_BF16)) return false;
    __asm__("cpuid" : "=a"(a1), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(1));
    if (!(a1 & BF16)) return false;
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) != 0) {
        /* also when a signal stack of the process is too small for the 8 KiB of tiles (AT_MINSIGSTKSZ) */
        *why = "; the system refuses AMX to this process";
        return false;
    }
    *why = "; AMX gives other bits than it should";
    return right_bits();
}
