/* bf16 products: frozen weights in bf16, activations rounded to bf16 at the input of a product, f32 sums.
 *
 * One packed layout serves every path. W [n,k] is cut into panels of 32 outputs; a panel is a list of steps of 32 k; a
 * step is two tiles of 16 outputs; a tile is 16 rows of 16 pairs, row j holding W[n][2j], W[n][2j+1] for its 16 outputs:
 *     t[panel][step][2][16 pairs][16 n][2]      1 KiB a tile, read strictly forward, zeros beyond n and k
 * Activations are rounded once, in blocks of 32 rows, each path in the layout its micro-kernel reads forward: bf16 for the
 * tile instruction, the same values as f32 for the others; zeros beyond k.
 *
 * One order, that of the instruction TDPBF16PS, so that all paths give the same bits: acc starts at 0; per step of 32 k
 * e = fma chain over even k from 0, o = fma chain over odd k from 0, acc = acc + (e + o). Numbers and results that are
 * denormal count as 0: begin() sets that for the thread, end() restores it. An output depends on its own row and on k,
 * so its bits do not depend on the batch, the row's place or threads. Then y = acc, acc + bias or y + acc. */
#ifndef RRL_DEVICE_CPU_BF16_H
#define RRL_DEVICE_CPU_BF16_H

#include <stdatomic.h>

#include "device/cpu/pool.h"
#include "device/scalar.h"

enum {
    RRL_BF16_PANEL = 32, /* outputs */
    RRL_BF16_STEP = 32,  /* k */
    RRL_BF16_TILE = 512, /* elements of a tile */
    RRL_BF16_BLOCK = 32, /* rows and outputs of a block of results */
};

/* Packed weights, or a stretch of panels of them. */
typedef struct {
    int64_t n, k, panels, steps;
    uint16_t *t;
} rrl_bf16_weight;

/* Rounded activations of one path: blocks of 32 rows. */
typedef struct {
    int64_t rows, k, blocks, steps;
    char *t;
} rrl_bf16_rows;

/* Where results go: y = acc (+ bias, or + y) for rows x cols of a block. */
typedef struct {
    float *y;
    int64_t ld;
    const float *bias; /* at the block's first output; NULL = none */
    bool accumulate;   /* + y; without bias */
    bool past_caches;  /* y is large and aligned: do not keep it */
} rrl_bf16_target;

/* A path: an instruction set's micro-kernel and what stands around it. Called between begin and end. */
typedef struct {
    const char *isa;
    int64_t width; /* bytes of a rounded activation */
    /* this thread computes as the products want it; end gets what begin returned */
    unsigned (*begin)(void);
    void (*end)(unsigned state);
    /* a block of `rows` <= 32 rows; the layout is a function of rows */
    void (*round)(void *to, const float *x, int64_t ld, int64_t rows, int64_t k);
    /* acc [32][32] of a block of activations times one panel; rows beyond are undefined. Meanwhile `lines` cache
     * lines a step are fetched from `next`. */
    void (*block)(float *acc, const void *x, int64_t rows, const uint16_t *w, int64_t steps, const void *next, int lines);
    void (*put)(const rrl_bf16_target *y, const float *acc, int64_t rows, int64_t cols);
    /* a step of W's panel, 32 n x 32 k, as a step of a panel of W^T */
    void (*transpose)(uint16_t *to, const uint16_t *from);
} rrl_bf16_kernels;

extern const rrl_bf16_kernels rrl_bf16_reference, rrl_bf16_portable;
#if defined(__x86_64__)
extern const rrl_bf16_kernels rrl_bf16_avx2, rrl_bf16_avx512, rrl_bf16_amx;
/** Does this machine have the tile instructions, does the system let us use them (asked once for the process, before
 *  threads), and do they give the right bits? *why says what is missing, if anything, as the
 *  end of a message. */
bool rrl_bf16_amx_works(const char **why);
/* what the tile path borrows */
void rrl_bf16_put_avx512(const rrl_bf16_target *y, const float *acc, int64_t rows, int64_t cols);
void rrl_bf16_transpose_avx512(uint16_t *to, const uint16_t *from);
#endif

/** Denormals are 0 in this thread's arithmetic from now on; the state before. */
unsigned rrl_bf16_flush_begin(void);
void rrl_bf16_flush_end(unsigned state);

/* packing (bf16_pack.c) ------------------------------------------------------------------------------------------ */

/** Element [n,k], for embeddings and the reference. */
static inline uint16_t *rrl_bf16_at(const rrl_bf16_weight *w, int64_t n, int64_t k) {
    int64_t step = n / RRL_BF16_PANEL * w->steps + k / RRL_BF16_STEP;
    return w->t + (step * 2 + n % RRL_BF16_PANEL / 16) * RRL_BF16_TILE + k % RRL_BF16_STEP / 2 * 32 + n % 16 * 2 + k % 2;
}
/** Panels, steps and so the size of an [n,k] matrix; t is left NULL. */
rrl_bf16_weight rrl_bf16_shape(int64_t n, int64_t k);
size_t rrl_bf16_bytes(const rrl_bf16_weight *w);
/** Panels [p, p + count) of w as a matrix of its own. */
rrl_bf16_weight rrl_bf16_panels(const rrl_bf16_weight *w, int64_t p, int64_t count);
/** As rrl_weight_view_cpu and rrl_weight_fill_cpu; room of rrl_bf16_bytes. Padding must be zero already. */
rrl_status rrl_bf16_view(rrl_weight **out, void *room, int64_t n, int64_t k);
void rrl_bf16_fill(const rrl_weight *w, rrl_pool *pool, const void *src, rrl_dtype dtype);
/** y[0..k) = row n, exact. */
void rrl_bf16_row(float *y, const rrl_bf16_weight *w, int64_t n);

/* products (bf16_gemm.c) ----------------------------------------------------------------------------------------- */

/* Units of a product that a share has not begun: each of them on a cache line of its own. */
typedef struct {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} rrl_bf16_claims;

/* A path and the threads that share its work. pool NULL: the caller alone. */
typedef struct {
    const rrl_bf16_kernels *kernels;
    rrl_pool *pool;
    int threads;
    rrl_bf16_claims *claims; /* [threads] room of the product at hand; NULL where there is one thread */
} rrl_bf16_engine;

/** Bytes of the rounded form of rows x k. */
size_t rrl_bf16_rows_bytes(const rrl_bf16_engine *e, int64_t rows, int64_t k);
/** x [rows,k] of row stride ld rounded into `room`. */
rrl_bf16_rows rrl_bf16_round(const rrl_bf16_engine *e, void *room, const float *x, int64_t ld, int64_t rows, int64_t k);
/** Rows [row, row + rows) of x: whole blocks (the last one of x as it is); the reference also takes single rows. */
rrl_bf16_rows rrl_bf16_rows_part(const rrl_bf16_engine *e, const rrl_bf16_rows *x, int64_t row, int64_t rows);
/** Panels [p, p + count) of W^T into `room` of rrl_bf16_bytes of that shape. */
rrl_bf16_weight rrl_bf16_transpose(const rrl_bf16_engine *e, void *room, const rrl_bf16_weight *w, int64_t p,
                                   int64_t count);
/** y [x.rows, w.n] = product (+ bias [n], or + y). `then`: the weight that is multiplied next, whose first panels are
 *  fetched at the end; NULL = not known. */
void rrl_bf16_gemm(const rrl_bf16_engine *e, rrl_bf16_target y, const rrl_bf16_rows *x, const rrl_bf16_weight *w,
                   const rrl_bf16_weight *then);

#endif
