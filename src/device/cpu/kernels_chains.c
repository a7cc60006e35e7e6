/* Short chains over few vectors, lanes along the output: values of attention and all of its gradients. */
#include "device/cpu/gemm.h"

/* Vectors of a row that are in registers together. */
#if defined(RRL_ISA_avx512)
enum { VECTORS = 4 };
#else
enum { VECTORS = 1 };
#endif

/* `rows` rows of `vectors` vectors in registers, from row `row` on, go on over t in [begin, end); the last vector of a
 * row may be the rest of it, of `left` lanes. All three numbers are constants where this is expanded. */
RRL_INLINE void go_on(v16 (*acc)[VECTORS], const rrl_chains *c, int row, int64_t d, int begin, int end, const int left,
                      const int rows, const int vectors) {
    const int64_t coef_row = c->coef_row, coef_t = c->coef_t, ld_vec = c->ld_vec;
    const float *coef = c->coef + row * coef_row + begin * coef_t, *vec = c->vec + begin * ld_vec + d;
    for (int t = begin; t < end; ++t, coef += coef_t, vec += ld_vec) {
        v16 b[VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) b[v] = v16_load_left(vec + v * RRL_LANES, v + 1 < vectors ? RRL_LANES : left);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            v16 a = v16_set1(coef[r * coef_row]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) acc[row + r][v] = v16_fma(a, b[v], acc[row + r][v]);
        }
    }
}

/* Columns [d, d + 16 vectors) of `rows` rows. Where all ranges overlap the rows share each vector; the ragged
 * ends come before and after, so that every chain stays ascending. */
RRL_INLINE void columns(const rrl_chains *c, int64_t d, int first, int last, const int left, const int rows,
                        const int vectors) {
    v16 acc[RRL_CHAIN_ROWS][VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
            acc[r][v] = v16_load_left(c->out + r * c->ld_out + d + v * RRL_LANES, v + 1 < vectors ? RRL_LANES : left);
            if (c->scale) acc[r][v] = v16_mul(acc[r][v], v16_set1(c->scale[r]));
        }
        go_on(acc, c, r, d, c->begin[r], first < c->end[r] ? first : c->end[r], left, 1, vectors);
    }
    go_on(acc, c, 0, d, first, last, left, rows, vectors);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        go_on(acc, c, r, d, last > first ? last : first, c->end[r], left, 1, vectors);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            v16_store_left(c->out + r * c->ld_out + d + v * RRL_LANES, acc[r][v], v + 1 < vectors ? RRL_LANES : left);
    }
}

RRL_INLINE void all_columns(const rrl_chains *c, int first, int last, const int rows) {
    int64_t d = 0;
    for (; VECTORS > 1 && d + VECTORS * RRL_LANES <= c->dim; d += VECTORS * RRL_LANES)
        columns(c, d, first, last, RRL_LANES, rows, VECTORS);
    for (; VECTORS > 2 && d + 2 * RRL_LANES <= c->dim; d += 2 * RRL_LANES)
        columns(c, d, first, last, RRL_LANES, rows, 2);
    for (; d + RRL_LANES <= c->dim; d += RRL_LANES) columns(c, d, first, last, RRL_LANES, rows, 1);
    if (d < c->dim) columns(c, d, first, last, (int)(c->dim - d), rows, 1);
}

void RRL_KERNEL(chains)(const rrl_chains *c) {
    int first = c->begin[0], last = c->end[0];
    for (int r = 1; r < c->rows; ++r) {
        first = c->begin[r] > first ? c->begin[r] : first;
        last = c->end[r] < last ? c->end[r] : last;
    }
    switch (c->rows) {
    case 1:
        all_columns(c, first, last, 1);
        break;
    case 2:
        all_columns(c, first, last, 2);
        break;
    case 3:
        all_columns(c, first, last, 3);
        break;
    case 4:
        all_columns(c, first, last, 4);
        break;
    }
}
