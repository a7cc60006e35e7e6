/* Short chains over few vectors, lanes along the output: values of attention and all of its gradients. */
#include "device/cpu/gemm.h"

#if defined(RRL_ISA_avx512)
enum { VECTORS = 2 };
#else
enum { VECTORS = 1 };
#endif

RRL_INLINE void one(v16 acc[2], const rrl_chains *c, int r, int t, int64_t d, const int left[2],
                    const int vectors) {
    v16 a = v16_set1(c->coef[r * c->coef_row + t * c->coef_t]);
    for (int v = 0; v < vectors; ++v)
        acc[v] = v16_fma(a, v16_load_left(c->vec + t * c->ld_vec + d + v * RRL_LANES, left[v]), acc[v]);
}

/* Columns [d, d + 16 vectors) of `rows` rows. Where all ranges overlap the rows share each vector; the ragged
 * ends come before and after, so that every chain stays ascending. */
RRL_INLINE void columns(const rrl_chains *c, int64_t d, int first, int last, const int rows,
                        const int vectors) {
    v16 acc[RRL_CHAIN_ROWS][2];
    int left[2] = {v16_left(d, c->dim), vectors > 1 ? v16_left(d + RRL_LANES, c->dim) : 0};
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            acc[r][v] = v16_load_left(c->out + r * c->ld_out + d + v * RRL_LANES, left[v]);
            if (c->scale) acc[r][v] = v16_mul(acc[r][v], v16_set1(c->scale[r]));
        }
        for (int t = c->begin[r]; t < first && t < c->end[r]; ++t) one(acc[r], c, r, t, d, left, vectors);
    }
    for (int t = first; t < last; ++t) {
        v16 b[2];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v)
            b[v] = v16_load_left(c->vec + t * c->ld_vec + d + v * RRL_LANES, left[v]);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
            v16 a = v16_set1(c->coef[r * c->coef_row + t * c->coef_t]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) acc[r][v] = v16_fma(a, b[v], acc[r][v]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
        for (int t = last > first ? last : first; t < c->end[r]; ++t) one(acc[r], c, r, t, d, left, vectors);
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v)
            v16_store_left(c->out + r * c->ld_out + d + v * RRL_LANES, acc[r][v], left[v]);
    }
}

RRL_INLINE void all_columns(const rrl_chains *c, int first, int last, const int rows) {
    int64_t d = 0;
    for (; VECTORS == 2 && d + RRL_LANES < c->dim; d += 2 * RRL_LANES) columns(c, d, first, last, rows, 2);
    for (; d < c->dim; d += RRL_LANES) columns(c, d, first, last, rows, 1);
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
