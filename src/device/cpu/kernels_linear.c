/* Matrix products: blocks of rows x panels in registers, every output one ascending fma chain over k. Where the
 * product is with the transpose, a panel's block of k is turned first and then serves all rows: 1 move for each
 * `rows` multiply-adds, so no second copy of the weights is kept. */
#include "device/cpu/gemm.h"

/* Rows x vectors of 16 outputs held in registers: 14 x 2 of 32 zmm, 6 x 1 of two ymm each. */
#if defined(RRL_ISA_avx512)
enum { MAX_ROWS = 14, VECTORS = 2 };
#elif defined(RRL_ISA_avx2)
enum { MAX_ROWS = 6, VECTORS = 1 };
#else
enum { MAX_ROWS = 4, VECTORS = 1 };
#endif
/* k in blocks, so that a panel's block (32 KiB) stays in the first cache while all rows pass; results wait in
 * y. */
enum { K_BLOCK = 256 };

/* One block: `rows` and `vectors` are constants where this is expanded, so acc lives in registers. */
RRL_INLINE void block(const rrl_gemm *g, float *y, const float *x, const float *w, int64_t k, int64_t columns,
                      const float *bias, bool from_y, const int rows, const int vectors) {
    v16 acc[14][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int c = 0; c < vectors; ++c) {
            int left = v16_left(c * RRL_LANES, columns);
            if (left <= 0)
                acc[r][c] = v16_zero();
            else if (from_y)
                acc[r][c] = v16_load_left(y + r * g->ldy + c * RRL_LANES, left);
            else
                acc[r][c] = bias ? v16_load_left(bias + c * RRL_LANES, left) : v16_zero();
        }
    for (int64_t i = 0; i < k; ++i) {
        v16 b[2];
#pragma GCC unroll 2
        for (int c = 0; c < vectors; ++c) b[c] = v16_load(w + i * RRL_PANEL + c * RRL_LANES);
#pragma GCC unroll 14
        for (int r = 0; r < rows; ++r) {
            v16 a = v16_set1(x[r * g->ldx + i]);
#pragma GCC unroll 2
            for (int c = 0; c < vectors; ++c) acc[r][c] = v16_fma(a, b[c], acc[r][c]);
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int c = 0; c < vectors; ++c) {
            int left = v16_left(c * RRL_LANES, columns);
            if (left > 0) v16_store_left(y + r * g->ldy + c * RRL_LANES, acc[r][c], left);
        }
}

/* 8 x 8 numbers turned; rows of both are RRL_PANEL apart. */
typedef float v8 __attribute__((vector_size(32)));
RRL_INLINE void turn8(float *to, const float *from) {
    v8 r[8], s[8], t[8];
    for (int i = 0; i < 8; ++i) memcpy(&r[i], from + i * RRL_PANEL, sizeof r[i]);
    for (int i = 0; i < 8; i += 2) {
        s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int h = 0; h < 2; ++h) {
            t[i + 2 * h] = __builtin_shufflevector(s[i + h], s[i + 2 + h], 0, 1, 8, 9, 4, 5, 12, 13);
            t[i + 2 * h + 1] = __builtin_shufflevector(s[i + h], s[i + 2 + h], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; ++i) {
        v8 low = __builtin_shufflevector(t[i], t[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        v8 high = __builtin_shufflevector(t[i], t[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        memcpy(to + i * RRL_PANEL, &low, sizeof low);
        memcpy(to + (i + 4) * RRL_PANEL, &high, sizeof high);
    }
}

/* Numbers [k0, k1) of a panel of outputs, from the packing of the transpose: there its panels lie along k. */
static void turn(float *to, const rrl_gemm *g, int64_t panel, int64_t k0, int64_t k1) {
    const int64_t columns = rrl_min(RRL_PANEL, g->n - panel * RRL_PANEL), whole = columns / 8 * 8;
    for (int64_t k = k0; k < k1; k += RRL_PANEL, to += RRL_PANEL * RRL_PANEL) {
        const float *from = g->w + (k / RRL_PANEL * g->n + panel * RRL_PANEL) * RRL_PANEL; /* [column][32 of k] */
        for (int64_t c = 0; c < whole; c += 8)
            for (int64_t i = 0; i < RRL_PANEL; i += 8) turn8(to + i * RRL_PANEL + c, from + c * RRL_PANEL + i);
        for (int64_t c = whole; c < RRL_PANEL; ++c)
            for (int64_t i = 0; i < RRL_PANEL; ++i)
                to[i * RRL_PANEL + c] = c < columns ? from[c * RRL_PANEL + i] : 0.0f;
    }
}

/* Rows [row, row + rows) of one panel, one block of k; w at that block. */
static void rows_of_panel(const rrl_gemm *g, int64_t row, int rows, int64_t panel, const float *w_block, int64_t k0,
                          int64_t k1, bool from_y) {
    for (int64_t c = 0; c < RRL_PANEL && panel * RRL_PANEL + c < g->n; c += VECTORS * RRL_LANES) {
        int64_t n0 = panel * RRL_PANEL + c, columns = g->n - n0;
        float *y = g->y + row * g->ldy + n0;
        const float *x = g->x + row * g->ldx + k0;
        const float *w = w_block + c;
        const float *bias = g->bias ? g->bias + n0 : NULL;
        switch (rows) {
#define CASE(m)                                                                                              \
    case m:                                                                                                  \
        block(g, y, x, w, k1 - k0, columns, bias, from_y, m, VECTORS);                                       \
        break;
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
#if !defined(RRL_ISA_portable)
            CASE(5)
            CASE(6)
#endif
#if defined(RRL_ISA_avx512)
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
}

void RRL_KERNEL(gemm)(const rrl_gemm *g, int64_t panel0, int64_t panel1) {
    /* blocks of equal height: 16 rows are 8 + 8, not 14 + 2 */
    int64_t n_blocks = (g->rows + MAX_ROWS - 1) / MAX_ROWS;
    _Alignas(64) float turned[K_BLOCK * RRL_PANEL];
    for (int64_t panel = panel0; panel < panel1; ++panel)
        for (int64_t k0 = 0; k0 < g->k; k0 += K_BLOCK) {
            int64_t k1 = rrl_min(k0 + K_BLOCK, g->k);
            const float *w = g->turned ? turned : g->w + (panel * g->k + k0) * RRL_PANEL;
            if (g->turned) turn(turned, g, panel, k0, k1);
            for (int64_t i = 0; i < n_blocks; ++i) {
                int64_t row = g->rows * i / n_blocks, next = g->rows * (i + 1) / n_blocks;
                rows_of_panel(g, row, (int)(next - row), panel, w, k0, k1, k0 > 0 || g->accumulate);
            }
        }
}

void RRL_KERNEL(linear)(const rrl_linear_job *j, int64_t begin, int64_t end) {
    int64_t panels = rrl_panels(j->y.cols);
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t row = unit / panels * j->chunk;
        rrl_gemm g = {.y = j->y.data + row * j->y.cols,
                      .ldy = j->y.cols,
                      .x = j->x.data + row * j->x.cols,
                      .ldx = j->x.cols,
                      .rows = rrl_min(j->chunk, j->x.rows - row),
                      .w = j->w->panels,
                      .n = j->y.cols,
                      .k = j->x.cols,
                      .turned = j->turned,
                      .bias = j->bias,
                      .accumulate = j->accumulate};
        RRL_KERNEL(gemm)(&g, unit % panels, unit % panels + 1);
    }
}
