/* bf16 products by f32 fma, on v16: the bits of the tile instruction on any machine. Compiled once an instruction set.
 * Activations are bf16 values held as f32, so that a broadcast needs no conversion. */
#include "device/cpu/common.h"
#include "device/cpu/vec_bf16.h"

/* The tile path borrows two functions of avx512. */
#if defined(RRL_ISA_avx512)
#define RRL_BF16_OWN
#else
#define RRL_BF16_OWN static
#endif

/* Rows of a group, whose even and odd chains of 16 outputs live in registers: 2 x 14 of 32 zmm, 2 x 3 x 2 of 16 ymm. */
#if defined(RRL_ISA_avx512)
enum { MAX_ROWS = 14, PAIRED_ROWS = 6 };
#elif defined(RRL_ISA_avx2)
enum { MAX_ROWS = 3, PAIRED_ROWS = 1 };
#else
enum { MAX_ROWS = 2, PAIRED_ROWS = 0 };
#endif
/* All groups of a block go through SLICE steps before the next ones: 8 KiB of weights, which stay in the first cache
 * meanwhile, and at most 7 KiB of activations a group, also where another thread of the core uses half of it. */
enum { SLICE = 4 };
/* Where groups are so low that unpacking the weights takes a quarter of the instructions, the steps of a slice are unpacked
 * once for all groups of a block, if there are WIDE_GROUPS. */
enum { WIDE = MAX_ROWS <= 3, WIDE_GROUPS = 3, WIDE_STEP = 2 * RRL_BF16_TILE };
/* Numbers are fetched so many steps before they are rounded. */
enum { STEPS_AHEAD = 4 };
/* Pairs of k between two looks at what is to be fetched; divides the 16 of a step. */
enum { STRIDE = 2, STRIDES = RRL_BF16_STEP / 2 / STRIDE };

/* A store to an aligned place that is not to be kept in the caches, where there is one. */
RRL_INLINE void v16_store_past(float *p, v16 a) {
#if defined(RRL_ISA_avx512)
    _mm512_stream_ps(p, a);
#else
    v16_store(p, a);
#endif
}

/* fma(x, w, acc) of bf16 x and w. Portable: the product of two 8-digit numbers is exact in double, and so is its sum with
 * acc, or else the smaller one is too small to bring the sum near a tie of f32; so one rounding, without a library call. */
#if defined(RRL_ISA_portable)
RRL_INLINE v16 v16_chain(v16 x, v16 w, v16 acc) {
    float a[RRL_LANES], b[RRL_LANES], c[RRL_LANES];
    v16_store(a, x);
    v16_store(b, w);
    v16_store(c, acc);
    for (int l = 0; l < RRL_LANES; ++l) c[l] = (float)((double)a[l] * (double)b[l] + (double)c[l]);
    return v16_load(c);
}
#else
RRL_INLINE v16 v16_chain(v16 x, v16 w, v16 acc) {
    return v16_fma(x, w, acc);
}
#endif

/* Groups of equal height; group g has rows [group_row(g), group_row(g + 1)). */
static int64_t groups_of(int64_t rows) {
    return (rows + MAX_ROWS - 1) / MAX_ROWS;
}
static int64_t group_row(int64_t rows, int64_t g) {
    return rows * g / groups_of(rows);
}

/* 32 numbers of a row, rounded, its pairs `stride` numbers apart; `left` of them are there, the others 0. Those that come
 * STEPS_AHEAD later are fetched. */
static void round_step(float *to, int64_t stride, const float *x, int64_t left) {
    float pairs[RRL_BF16_STEP];
    for (int c = 0; c < RRL_BF16_STEP; c += RRL_LANES) __builtin_prefetch(x + STEPS_AHEAD * RRL_BF16_STEP + c, 0, 3);
    for (int c = 0; c < RRL_BF16_STEP; c += RRL_LANES) {
        const int there = v16_left(c, left);
        v16_store(pairs + c, there > 0 ? v16_rounded(v16_load_left(x + c, there)) : v16_zero());
    }
    for (int c = 0; c < RRL_BF16_STEP; c += 2, to += stride) memcpy(to, pairs + c, 2 * sizeof *to);
}

/* [group][step][pair of k][row of the group][2], as it is read: from end to end, at short distances from one register */
static void round_rows(void *to, const float *x, int64_t ld, int64_t rows, int64_t k) {
    float *t = to;
    for (int64_t g = 0; g < groups_of(rows); ++g) {
        const int64_t row = group_row(rows, g), height = group_row(rows, g + 1) - row;
        for (int64_t at = 0; at < k; at += RRL_BF16_STEP, t += height * RRL_BF16_STEP)
            for (int64_t r = 0; r < height; ++r)
                round_step(t + 2 * r, 2 * height, x + (row + r) * ld + at, k - at);
    }
}

/* Cache lines to be fetched, `lines` with every step over the weights and evenly: bursts fill the buffers and stall. */
typedef struct {
    const char *next;
    int lines, due; /* due: in parts of a line, STRIDES each */
} fetches;

/* What a step adds to 16 outputs of a row; the first step adds it to 0. */
RRL_INLINE void add_step(float *acc, v16 even, v16 odd, bool first) {
    v16_store(acc, v16_add(first ? v16_zero() : v16_load(acc), v16_add(even, odd)));
}

/* acc = (begins) or += `halves` times 16 outputs of a group over `steps` steps; it and `rows` are constants where this is
 * expanded. acc stays in the first cache: the chains fill the registers. */
RRL_INLINE void chains(float *acc, const float *x, const uint16_t *w, int64_t steps, bool begins, fetches *fetch,
                       const int rows, const int halves) {
    const char *next = fetch->next;
    const int lines = fetch->lines;
    int due = fetch->due;
    for (int64_t s = 0; s < steps; ++s, w += RRL_BF16_TILE) { /* past the other half's tile */
        v16 even[MAX_ROWS][2], odd[MAX_ROWS][2];
#pragma GCC unroll 14
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
            for (int h = 0; h < halves; ++h) even[r][h] = odd[r][h] = v16_zero();
        for (const uint16_t *end = w + RRL_BF16_TILE; w < end; w += STRIDE * 32, x += STRIDE * 2 * rows) {
            for (due += lines; due >= STRIDES; due -= STRIDES, next += 64) __builtin_prefetch(next, 0, 2);
#pragma GCC unroll 2
            for (int j = 0; j < STRIDE; ++j) {
                v16 we[2], wo[2];
#pragma GCC unroll 2
                for (int h = 0; h < halves; ++h) {
                    we[h] = v16_even(w + h * RRL_BF16_TILE + j * 32);
                    wo[h] = v16_odd(w + h * RRL_BF16_TILE + j * 32);
                }
#pragma GCC unroll 14
                for (int r = 0; r < rows; ++r) {
                    v16 xe = v16_set1(x[2 * (j * rows + r)]), xo = v16_set1(x[2 * (j * rows + r) + 1]);
#pragma GCC unroll 2
                    for (int h = 0; h < halves; ++h) {
                        even[r][h] = v16_chain(xe, we[h], even[r][h]);
                        odd[r][h] = v16_chain(xo, wo[h], odd[r][h]);
                    }
                }
            }
        }
        const bool first = begins && s == 0;
#pragma GCC unroll 14
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
            for (int h = 0; h < halves; ++h)
                add_step(acc + r * RRL_BF16_BLOCK + h * RRL_LANES, even[r][h], odd[r][h], first);
    }
    fetch->next = next;
    fetch->due = due;
}

/* Few rows take both halves at once: more chains, so that none waits for itself. */
static int halves_of(int rows) {
    return rows <= PAIRED_ROWS ? 2 : 1;
}

/* The halves of a panel for one group. */
RRL_INLINE void both_halves(float *acc, const float *x, const uint16_t *w, int64_t steps, bool begins, fetches *fetch,
                            const int rows) {
    const int halves = halves_of(rows);
    for (int h = 0; h < 2; h += halves)
        chains(acc + h * RRL_LANES, x, w + h * RRL_BF16_TILE, steps, begins, fetch, rows, halves);
}

static void group(float *acc, const float *x, int rows, const uint16_t *w, int64_t steps, bool begins, fetches *fetch) {
    switch (rows) {
#define CASE(m)                                                                                                        \
    case m:                                                                                                            \
        both_halves(acc, x, w, steps, begins, fetch, m);                                                               \
        break;
        CASE(1)
        CASE(2)
#if !defined(RRL_ISA_portable)
        CASE(3)
#endif
#if defined(RRL_ISA_avx512)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
        CASE(14)
#endif
#undef CASE
    }
}

static void block_packed(float *acc, const float *x, int64_t rows, const uint16_t *w, int64_t steps, const char *next,
                         int lines) {
    const int64_t groups = groups_of(rows);
    int passes = 0; /* over a step's weights, which share its lines */
    for (int64_t g = 0; g < groups; ++g) passes += 2 / halves_of((int)(group_row(rows, g + 1) - group_row(rows, g)));
    fetches fetch = {next, (lines + passes - 1) / passes, 0};
    for (int64_t s = 0; s < steps; s += SLICE)
        for (int64_t g = 0; g < groups; ++g) {
            const int64_t row = group_row(rows, g), height = group_row(rows, g + 1) - row;
            group(acc + row * RRL_BF16_BLOCK, x + (row * steps + s * height) * RRL_BF16_STEP, (int)height,
                  w + s * 2 * RRL_BF16_TILE, rrl_min(SLICE, steps - s), s == 0, &fetch);
        }
}

/* --- a block with widened weights */

/* [step][pair of k][even, odd][32 outputs] as float32 */
static void widen(float *to, const uint16_t *w, int64_t steps) {
    for (int64_t s = 0; s < steps; ++s, w += 2 * RRL_BF16_TILE)
        for (int j = 0; j < RRL_BF16_STEP / 2; ++j, to += 2 * RRL_BF16_PANEL)
            for (int h = 0; h < 2; ++h) {
                const uint16_t *pairs = w + h * RRL_BF16_TILE + j * 32;
                v16_store(to + h * RRL_LANES, v16_even(pairs));
                v16_store(to + RRL_BF16_PANEL + h * RRL_LANES, v16_odd(pairs));
            }
}

/* acc = or += 16 outputs of a group over `steps` widened steps. All rows at even k, then all at odd k: then one vector of
 * weights is enough. */
RRL_INLINE void chains_wide(float *acc, const float *x, const float *w, int64_t steps, bool begins, const int rows) {
    for (int64_t s = 0; s < steps; ++s, x += rows * RRL_BF16_STEP, w += WIDE_STEP) {
        v16 sum[2][MAX_ROWS];
#pragma GCC unroll 3
        for (int r = 0; r < rows; ++r) sum[0][r] = sum[1][r] = v16_zero();
        for (int j = 0; j < RRL_BF16_STEP / 2; ++j)
#pragma GCC unroll 2
            for (int odd = 0; odd < 2; ++odd) {
                const v16 wj = v16_load(w + (2 * j + odd) * RRL_BF16_PANEL);
#pragma GCC unroll 3
                for (int r = 0; r < rows; ++r)
                    sum[odd][r] = v16_chain(v16_set1(x[2 * (j * rows + r) + odd]), wj, sum[odd][r]);
            }
#pragma GCC unroll 3
        for (int r = 0; r < rows; ++r) add_step(acc + r * RRL_BF16_BLOCK, sum[0][r], sum[1][r], begins && s == 0);
    }
}

static void group_wide(float *acc, const float *x, int64_t rows, const float *w, int64_t steps, bool begins) {
    for (int h = 0; h < 2; ++h, acc += RRL_LANES, w += RRL_LANES) switch (rows) {
        case 1:
            chains_wide(acc, x, w, steps, begins, 1);
            break;
        case 2:
            chains_wide(acc, x, w, steps, begins, 2);
            break;
        default:
            chains_wide(acc, x, w, steps, begins, MAX_ROWS);
        }
}

static void block_wide(float *acc, const float *x, int64_t rows, const uint16_t *w, int64_t steps, const char *next,
                       int lines) {
    const int64_t groups = groups_of(rows);
    _Alignas(64) float wide[SLICE * WIDE_STEP];
    for (int64_t s = 0; s < steps; s += SLICE, w += SLICE * 2 * RRL_BF16_TILE) {
        const int64_t n = rrl_min(SLICE, steps - s), all = n * lines;
        widen(wide, w, n);
        for (int64_t g = 0; g < groups; ++g) {
            const int64_t row = group_row(rows, g), height = group_row(rows, g + 1) - row;
            for (int64_t i = all * g / groups; i < all * (g + 1) / groups; ++i)
                __builtin_prefetch(next + i * 64, 0, 2);
            group_wide(acc + row * RRL_BF16_BLOCK, x + (row * steps + s * height) * RRL_BF16_STEP, height, wide, n,
                       s == 0);
        }
        next += all * 64;
    }
}

static void block(float *acc, const void *x, int64_t rows, const uint16_t *w, int64_t steps, const void *next,
                  int lines) {
    if (WIDE && groups_of(rows) >= WIDE_GROUPS)
        block_wide(acc, x, rows, w, steps, next, lines);
    else
        block_packed(acc, x, rows, w, steps, next, lines);
}

RRL_BF16_OWN void RRL_KERNEL(bf16_put)(const rrl_bf16_target *y, const float *acc, int64_t rows, int64_t cols) {
    for (int64_t c = 0; c < cols; c += RRL_LANES) {
        int left = v16_left(c, cols);
        v16 bias = y->bias ? v16_load_left(y->bias + c, left) : v16_zero();
        for (int64_t r = 0; r < rows; ++r) {
            float *to = y->y + r * y->ld + c;
            v16 a = v16_load(acc + r * RRL_BF16_BLOCK + c);
            if (y->accumulate) a = v16_add(v16_load_left(to, left), a);
            if (y->bias) a = v16_add(a, bias);
            if (y->past_caches && !y->accumulate)
                v16_store_past(to, a);
            else
                v16_store_left(to, a, left);
        }
    }
}

#if defined(RRL_ISA_avx512)
/* 16 n x 32 k, a row of k after the other -> 8 rows of pairs of n in each of the two tiles of k. As 32-bit units the tile
 * of W is P[pair of k][n]; its transpose has row n with its 32 k; then the halves of rows n, n + 1 are interleaved. */
static void transpose_half(uint16_t *lo_tile, uint16_t *hi_tile, const uint16_t *from) {
    __m512i r[16], t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(from + i * 32);
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) { /* r[4g + i]: rows 4g .. 4g + 3 of columns i, i + 4, i + 8, i + 12 */
        __m512i a = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88), b = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
        __m512i c = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd), d = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
        t[i] = _mm512_shuffle_i32x4(a, b, 0x88);
        t[i + 8] = _mm512_shuffle_i32x4(a, b, 0xdd);
        t[i + 4] = _mm512_shuffle_i32x4(c, d, 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(c, d, 0xdd);
    }
    const __m512i lo = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                        5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i hi = _mm512_add_epi16(lo, _mm512_set1_epi16(16));
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
        _mm512_storeu_si512(lo_tile + i * 32, _mm512_permutex2var_epi16(t[2 * i], lo, t[2 * i + 1]));
        _mm512_storeu_si512(hi_tile + i * 32, _mm512_permutex2var_epi16(t[2 * i], hi, t[2 * i + 1]));
    }
}

void RRL_KERNEL(bf16_transpose)(uint16_t *to, const uint16_t *from) {
    for (int half = 0; half < 2; ++half)
        transpose_half(to + half * 256, to + RRL_BF16_TILE + half * 256, from + half * RRL_BF16_TILE);
}
#elif defined(RRL_ISA_avx2)
/* 8 n x 16 k of the same, from 8 rows of pairs: as 32-bit units an 8 x 8 transpose, then rows n, n + 1 interleaved. */
static void transpose_quarter(uint16_t *to, const uint16_t *from) {
    __m256i r[8], t[8];
    for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_si256((const __m256i *)(from + i * 32));
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int c = 0; c < 2; ++c) { /* r[i + 2c], r[i + 2c + 1]: rows i .. i + 3 of columns 2c and 2c + 1, and 4 more */
            r[i + 2 * c] = _mm256_unpacklo_epi64(t[i + c], t[i + c + 2]);
            r[i + 2 * c + 1] = _mm256_unpackhi_epi64(t[i + c], t[i + c + 2]);
        }
    for (int i = 0; i < 4; ++i) {
        t[i] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x31);
    }
    for (int i = 0; i < 8; i += 2, to += 32) {
        const __m256i lo = _mm256_unpacklo_epi16(t[i], t[i + 1]), hi = _mm256_unpackhi_epi16(t[i], t[i + 1]);
        _mm256_storeu_si256((__m256i *)to, _mm256_permute2x128_si256(lo, hi, 0x20));
        _mm256_storeu_si256((__m256i *)(to + 16), _mm256_permute2x128_si256(lo, hi, 0x31));
    }
}

static void RRL_KERNEL(bf16_transpose)(uint16_t *to, const uint16_t *from) {
    for (int n = 0; n < 32; n += 8)
        for (int tile = 0; tile < 2; ++tile)
            transpose_quarter(to + tile * RRL_BF16_TILE + n / 2 * 32,
                              from + n / 16 * RRL_BF16_TILE + n % 16 * 2 + tile * 8 * 32);
}
#else
/* A pair of k of output n -> output k, half of a pair of n. */
static void RRL_KERNEL(bf16_transpose)(uint16_t *to, const uint16_t *from) {
    for (int n = 0; n < 32; ++n) {
        const uint16_t *f = from + n / 16 * RRL_BF16_TILE + n % 16 * 2;
        uint16_t *t = to + n / 2 * 32 + n % 2;
        for (int k = 0; k < 32; ++k) t[k / 16 * RRL_BF16_TILE + k % 16 * 2] = f[k / 2 * 32 + k % 2];
    }
}
#endif

#define RRL_STRING2(a) #a
#define RRL_STRING(a)  RRL_STRING2(a)
const rrl_bf16_kernels RRL_PASTE(rrl_bf16, RRL_ISA) = {.isa = RRL_STRING(RRL_ISA),
                                                       .width = sizeof(float),
                                                       .begin = rrl_bf16_flush_begin,
                                                       .end = rrl_bf16_flush_end,
                                                       .round = round_rows,
                                                       .block = block,
                                                       .put = RRL_KERNEL(bf16_put),
                                                       .transpose = RRL_KERNEL(bf16_transpose)};
