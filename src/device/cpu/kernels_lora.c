/* LoRA: two thin products a row and their gradients. Runs of rows with the same module are taken together. */
#include "device/cpu/gemm.h"

/* Rows and vectors of 16 columns in registers: SET x VECTORS; a row alone takes ALONE vectors, so that no chain waits.
 * Ranks of an outer product: OUTER x VECTORS. */
#if defined(RRL_ISA_avx512)
enum { SET = RRL_ROW_BLOCK, VECTORS = 2, ALONE = 4, OUTER = 8 };
#else
enum { SET = 4, VECTORS = 1, ALONE = 2, OUTER = 4 };
#endif
enum { K_CHUNK = 256, TILE_ROWS = 64 };

/* out[r][columns] of `vectors` vectors, the last of `left` lanes, over t in [0, n): fma(x[r][t], m[t][columns], .); m
 * is n rows of `ld`. It goes on from out or, with `add`, begins at 0 and is added to out. */
RRL_INLINE void thin(float *out, int64_t ld_out, const float *x, int64_t ld_x, const float *m, int64_t ld,
                     int64_t n, const int left, const bool add, const int rows, const int vectors) {
    v16 acc[SET][ALONE];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            acc[r][v] = add ? v16_zero()
                            : v16_load_left(out + r * ld_out + v * RRL_LANES, v + 1 < vectors ? RRL_LANES : left);
    for (int64_t t = 0; t < n; ++t) {
        v16 b[ALONE];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            b[v] = v16_load_left(m + t * ld + v * RRL_LANES, v + 1 < vectors ? RRL_LANES : left);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            v16 a = v16_set1(x[r * ld_x + t]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) acc[r][v] = v16_fma(a, b[v], acc[r][v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
            float *to = out + r * ld_out + v * RRL_LANES;
            const int lanes = v + 1 < vectors ? RRL_LANES : left;
            v16_store_left(to, add ? v16_add(v16_load_left(to, lanes), acc[r][v]) : acc[r][v], lanes);
        }
}

/* The same for any number of columns */
RRL_INLINE void thin_rows(float *out, int64_t ld_out, const float *x, int64_t ld_x, const float *m, int64_t ld,
                          int64_t n, int64_t columns, const bool add, const int rows) {
    const int vectors = rows == 1 ? ALONE : VECTORS;
    int64_t c = 0;
    for (; columns - c >= RRL_LANES * vectors; c += RRL_LANES * vectors)
        thin(out + c, ld_out, x, ld_x, m + c, ld, n, RRL_LANES, add, rows, vectors);
    for (; columns - c >= RRL_LANES; c += RRL_LANES)
        thin(out + c, ld_out, x, ld_x, m + c, ld, n, RRL_LANES, add, rows, 1);
    if (c < columns) thin(out + c, ld_out, x, ld_x, m + c, ld, n, (int)(columns - c), add, rows, 1);
}

/* and of rows */
RRL_INLINE void thin_sets(float *out, int64_t ld_out, const float *x, int64_t ld_x, const float *m, int64_t ld,
                          int64_t n, int64_t columns, const bool add, int rows) {
    for (int r = 0, step; r < rows; r += step) {
        float *o = out + r * ld_out;
        const float *a = x + r * ld_x;
        step = rows - r < SET ? rows - r : SET;
        switch (step) {
#define CASE(count)                                                                                          \
    case count:                                                                                              \
        thin_rows(o, ld_out, a, ld_x, m, ld, n, columns, add, count);                                        \
        break;
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
#if defined(RRL_ISA_avx512)
            CASE(5)
            CASE(6)
            CASE(7)
            CASE(8)
#endif
#undef CASE
        }
    }
}

static void thin_product(float *out, int64_t ld_out, const float *x, int64_t ld_x, const float *m, int64_t ld,
                         int64_t n, int64_t columns, int rows) {
    thin_sets(out, ld_out, x, ld_x, m, ld, n, columns, false, rows);
}

static void thin_addition(float *out, int64_t ld_out, const float *x, int64_t ld_x, const float *m, int64_t ld,
                          int64_t n, int64_t columns, int rows) {
    thin_sets(out, ld_out, x, ld_x, m, ld, n, columns, true, rows);
}

/* x [n columns from k on] of a row, after dropout */
static void dropped(float *to, const float *x, const rrl_lora_args *args, const rrl_batch *b, int64_t row,
                    int64_t k, int64_t n) {
    if (!rrl_dropout_on(args)) {
        memcpy(to, x + k, (size_t)n * sizeof(float));
        return;
    }
    RRL_KERNEL(dropout_mask)(to, args, b, row, k, n);
    for (int64_t i = 0; i < n; ++i) to[i] = x[k + i] * to[i];
}

static void scale_columns(float *u, int64_t n, float scale) {
    for (int64_t c = 0; c < n; ++c) u[c] = scale * u[c];
}

static void lora_run(const rrl_lora_job *j, const rrl_lora *m, int64_t row, int rows) {
    float *u = j->u.data + row * j->u.cols, tile[RRL_ROW_BLOCK][K_CHUNK];
    memset(u, 0, (size_t)rows * (size_t)j->u.cols * sizeof(float));
    if (!m) return;
    const int64_t ld_a = rrl_lora_stride(m->r);
    for (int64_t k = 0; k < m->k; k += K_CHUNK) {
        int64_t n = rrl_min(K_CHUNK, m->k - k), ld = j->x.cols;
        const float *x = j->x.data + row * ld + k;
        if (rrl_dropout_on(j->args)) {
            for (int i = 0; i < rows; ++i)
                dropped(tile[i], j->x.data + (row + i) * ld, j->args, j->b, row + i, k, n);
            x = tile[0];
            ld = K_CHUNK;
        }
        thin_product(u, j->u.cols, x, ld, m->a_t + k * ld_a, ld_a, n, m->r, rows);
    }
    for (int i = 0; i < rows; ++i) scale_columns(u + i * j->u.cols, m->r, m->scale);
    thin_product(j->y.data + row * j->y.cols, j->y.cols, u, j->u.cols, m->b_t, m->n, m->r, m->n, rows);
}

void RRL_KERNEL(lora)(const rrl_lora_job *j, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t row = unit * RRL_ROW_BLOCK, last = rrl_min(row + RRL_ROW_BLOCK, j->x.rows);
        while (row < last) {
            const rrl_lora *m = rrl_lora_of_row(j->b, j->args, row);
            int64_t next = row + 1;
            while (next < last && rrl_lora_of_row(j->b, j->args, next) == m) next++;
            lora_run(j, m, row, (int)(next - row));
            row = next;
        }
    }
}

/* The rows that lora_backward looks at. */
static bool trained(const rrl_batch *b, int64_t row) {
    return b->adapter[b->row_seq[row]] == 0;
}

/* dx of a run of rows: t = chain over the rank of du A, from 0, added after its mask */
static void input_gradients(const rrl_lora_backward_job *j, int64_t row, int rows) {
    const rrl_lora *m = j->m;
    const float *du = j->du.data + row * j->du.cols;
    float *dx = j->dx.data + row * j->dx.cols, t[RRL_ROW_BLOCK][K_CHUNK], keep[K_CHUNK];
    if (!rrl_dropout_on(j->args)) {
        thin_addition(dx, j->dx.cols, du, j->du.cols, m->a, m->k, m->r, m->k, rows);
        return;
    }
    for (int64_t k = 0; k < m->k; k += K_CHUNK) {
        int64_t n = rrl_min(K_CHUNK, m->k - k);
        memset(t, 0, (size_t)rows * sizeof t[0]);
        thin_product(t[0], K_CHUNK, du, j->du.cols, m->a + k, m->k, m->r, n, rows);
        for (int i = 0; i < rows; ++i) {
            RRL_KERNEL(dropout_mask)(keep, j->args, j->b, row + i, k, n);
            for (int64_t c = 0; c < n; ++c) dx[i * j->dx.cols + k + c] += t[i][c] * keep[c];
        }
    }
}

void RRL_KERNEL(lora_backward_rows)(const rrl_lora_backward_job *j, int64_t begin, int64_t end) {
    const rrl_lora *m = j->m;
    int64_t last = rrl_min(end * RRL_ROW_BLOCK, j->x.rows);
    for (int64_t row = begin * RRL_ROW_BLOCK; row < last;) {
        int64_t next = row;
        while (next < last && next < row + RRL_ROW_BLOCK && trained(j->b, next)) next++;
        if (next == row) {
            row++;
            continue;
        }
        int rows = (int)(next - row);
        float *du = j->du.data + row * j->du.cols;
        memset(du, 0, (size_t)rows * (size_t)j->du.cols * sizeof(float));
        thin_product(du, j->du.cols, j->dy.data + row * j->dy.cols, j->dy.cols, m->b, m->r, m->n, m->r, rows);
        for (int i = 0; i < rows; ++i) scale_columns(du + i * j->du.cols, m->r, m->scale);
        input_gradients(j, row, rows);
        row = next;
    }
}

/* A tile of rows: the numbers of `left` and, by pointer, where the columns at hand begin. */
typedef struct {
    int n;
    const float *left[TILE_ROWS], *right[TILE_ROWS];
} outer_rows;

/* acc[c][columns] of `vectors` vectors, the last of `last` lanes, continues over the rows: fma(left[row][c],
 * right[row][columns], .) */
RRL_INLINE void outer(float *acc, int64_t ld_acc, const outer_rows *rows, int64_t c0, int64_t k, const int last,
                      const int ranks, const int vectors) {
    v16 a[OUTER][2];
    const int left[2] = {vectors > 1 ? RRL_LANES : last, last};
#pragma GCC unroll 8
    for (int c = 0; c < ranks; ++c)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) a[c][v] = v16_load_left(acc + c * ld_acc + v * RRL_LANES, left[v]);
    for (int i = 0; i < rows->n; ++i) {
        const float *l = rows->left[i] + c0, *r = rows->right[i] + k;
        v16 b[2];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) b[v] = v16_load_left(r + v * RRL_LANES, left[v]);
#pragma GCC unroll 8
        for (int c = 0; c < ranks; ++c)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) a[c][v] = v16_fma(v16_set1(l[c]), b[v], a[c][v]);
    }
#pragma GCC unroll 8
    for (int c = 0; c < ranks; ++c)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) v16_store_left(acc + c * ld_acc + v * RRL_LANES, a[c][v], left[v]);
}

/* All ranks of one set of columns */
RRL_INLINE void outer_ranks(float *acc, int64_t ld_acc, const outer_rows *rows, int64_t k, const int last, int rank,
                            const int vectors) {
    int c = 0;
    for (; c + OUTER <= rank; c += OUTER) outer(acc + c * ld_acc, ld_acc, rows, c, k, last, OUTER, vectors);
    for (; c + 4 <= rank; c += 4) outer(acc + c * ld_acc, ld_acc, rows, c, k, last, 4, vectors);
    for (; c < rank; ++c) outer(acc + c * ld_acc, ld_acc, rows, c, k, last, 1, vectors);
}

/* and all columns */
static void outer_product(float *acc, int64_t ld_acc, const outer_rows *rows, int64_t columns, int rank) {
    int64_t k = 0;
    for (; VECTORS == 2 && columns - k >= 2 * RRL_LANES; k += 2 * RRL_LANES)
        outer_ranks(acc + k, ld_acc, rows, k, RRL_LANES, rank, 2);
    for (; columns - k >= RRL_LANES; k += RRL_LANES) outer_ranks(acc + k, ld_acc, rows, k, RRL_LANES, rank, 1);
    if (k < columns) outer_ranks(acc + k, ld_acc, rows, k, (int)(columns - k), rank, 1);
}

/* What an outer product reads a tile after row `row` of columns [c, c + RRL_COLUMN_BLOCK) comes nearer: of the same columns
 * or, behind the last row, of the first rows of the next unit's, if it has one. */
static void fetch_ahead(rrl_tensor t, int64_t row, int64_t c, bool next_unit) {
    row += TILE_ROWS;
    if (row >= t.rows) {
        if (!next_unit) return;
        row -= t.rows;
        c += RRL_COLUMN_BLOCK;
    }
    if (row >= t.rows) return;
    const float *from = t.data + row * t.cols + c;
    for (int i = 0; i < RRL_COLUMN_BLOCK; i += RRL_LANES) __builtin_prefetch(from + i, 0, 3);
}

/* The next trained rows from *at on; returns how many. */
static int next_rows(int64_t row[TILE_ROWS], const rrl_batch *b, int64_t *at, int64_t last) {
    int n = 0;
    for (; *at < last && n < TILE_ROWS; ++*at)
        if (trained(b, *at)) row[n++] = *at;
    return n;
}

void RRL_KERNEL(lora_backward_a)(const rrl_lora_backward_job *j, int64_t begin, int64_t end) {
    const rrl_lora *m = j->m;
    float tile[TILE_ROWS][RRL_COLUMN_BLOCK];
    int64_t row[TILE_ROWS];
    outer_rows rows;
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t k = unit * RRL_COLUMN_BLOCK, columns = rrl_min(RRL_COLUMN_BLOCK, m->k - k), at = 0;
        while ((rows.n = next_rows(row, j->b, &at, j->x.rows)) > 0) {
            for (int i = 0; i < rows.n; ++i) {
                const float *x = j->x.data + row[i] * j->x.cols;
                rows.left[i] = j->du.data + row[i] * j->du.cols;
                rows.right[i] = rrl_dropout_on(j->args) ? tile[i] : x + k;
                fetch_ahead(j->x, row[i], k, unit + 1 < end);
                if (rrl_dropout_on(j->args)) dropped(tile[i], x, j->args, j->b, row[i], k, columns);
            }
            outer_product(j->da + k, m->k, &rows, columns, m->r);
        }
    }
}

void RRL_KERNEL(lora_backward_b)(const rrl_lora_backward_job *j, int64_t begin, int64_t end) {
    const rrl_lora *m = j->m;
    float acc[RRL_MAX_LORA_RANK][RRL_COLUMN_BLOCK];
    int64_t row[TILE_ROWS];
    outer_rows rows;
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t first = unit * RRL_COLUMN_BLOCK, columns = rrl_min(RRL_COLUMN_BLOCK, m->n - first), at = 0;
        float *db = j->db + first * m->r;
        for (int64_t i = 0; i < columns; ++i)
            for (int c = 0; c < m->r; ++c) acc[c][i] = db[i * m->r + c];
        while ((rows.n = next_rows(row, j->b, &at, j->dy.rows)) > 0) {
            for (int i = 0; i < rows.n; ++i) {
                rows.left[i] = j->us.data + row[i] * j->us.cols;
                rows.right[i] = j->dy.data + row[i] * j->dy.cols + first;
                fetch_ahead(j->dy, row[i], first, unit + 1 < end);
            }
            outer_product(acc[0], RRL_COLUMN_BLOCK, &rows, columns, m->r);
        }
        for (int64_t i = 0; i < columns; ++i)
            for (int c = 0; c < m->r; ++c) db[i * m->r + c] = acc[c][i];
    }
}
