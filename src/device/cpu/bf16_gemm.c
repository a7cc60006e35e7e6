/* The driver of bf16 products: rounds activations, cuts the work into units of a panel and a chunk of rows, and lets
 * threads claim units one ahead, so that each knows what to fetch while it computes. */
#include <stdatomic.h>

#include "device/cpu/bf16.h"
#include "device/cpu/common.h"

/* Below this many multiply-adds waking a thread costs more than it brings. */
static const double ALONE = 1e6;
/* Reading a weight from memory takes the time of about as many multiply-adds. */
enum { READ = 12 };
/* Rows of a chunk stay in the second cache while its panels pass; OWN_BLOCKS a thread make chunks of its own. */
enum { CHUNK_BLOCKS = 8, CHUNK_BYTES = 1 << 20, FAR_BYTES = 1 << 21, LINES = 32, OWN_BLOCKS = 2 };

static int64_t block_bytes(const rrl_bf16_engine *e, int64_t steps) {
    return steps * RRL_BF16_BLOCK * RRL_BF16_STEP * e->kernels->width;
}

static int64_t blocks_of(int64_t rows) {
    return (rows + RRL_BF16_BLOCK - 1) / RRL_BF16_BLOCK;
}

/* Pieces of a job, each with this thread set up for products. */
typedef struct {
    const rrl_bf16_engine *e;
    void (*piece)(const void *job, int64_t begin, int64_t end);
    const void *job;
} setup;

static void with_setup(const void *job, int64_t begin, int64_t end) {
    const setup *s = job;
    unsigned state = s->e->kernels->begin();
    s->piece(s->job, begin, end);
    s->e->kernels->end(state);
}

static void run(const rrl_bf16_engine *e, void (*piece)(const void *job, int64_t begin, int64_t end), const void *job,
                int64_t n, int64_t grain, double work) {
    const setup s = {e, piece, job};
    if (!e->pool || e->threads == 1 || work < ALONE)
        with_setup(&s, 0, n);
    else
        rrl_pool_run(e->pool, with_setup, &s, n, grain);
}

/* --- activations */

size_t rrl_bf16_rows_bytes(const rrl_bf16_engine *e, int64_t rows, int64_t k) {
    return (size_t)(blocks_of(rows) * block_bytes(e, (k + RRL_BF16_STEP - 1) / RRL_BF16_STEP));
}

typedef struct {
    const rrl_bf16_engine *e;
    rrl_bf16_rows to;
    const float *x;
    int64_t ld;
} round_job;

/* unit: block */
static void round_blocks(const void *job, int64_t begin, int64_t end) {
    const round_job *j = job;
    for (int64_t i = begin; i < end; ++i) {
        int64_t row = i * RRL_BF16_BLOCK;
        j->e->kernels->round(j->to.t + i * block_bytes(j->e, j->to.steps), j->x + row * j->ld, j->ld,
                             rrl_min(RRL_BF16_BLOCK, j->to.rows - row), j->to.k);
    }
}

rrl_bf16_rows rrl_bf16_round(const rrl_bf16_engine *e, void *room, const float *x, int64_t ld, int64_t rows, int64_t k) {
    const rrl_bf16_rows to = {.rows = rows,
                              .k = k,
                              .blocks = blocks_of(rows),
                              .steps = (k + RRL_BF16_STEP - 1) / RRL_BF16_STEP,
                              .t = room};
    const round_job job = {e, to, x, ld};
    run(e, round_blocks, &job, to.blocks, 1 + to.blocks / (4 * e->threads), 20.0 * (double)rows * (double)k);
    return to;
}

rrl_bf16_rows rrl_bf16_rows_part(const rrl_bf16_engine *e, const rrl_bf16_rows *x, int64_t row, int64_t rows) {
    rrl_bf16_rows part = *x;
    part.rows = rows;
    part.blocks = blocks_of(rows);
    part.t += row * x->steps * RRL_BF16_STEP * e->kernels->width;
    return part;
}

/* --- weights of W^T */

typedef struct {
    const rrl_bf16_engine *e;
    rrl_bf16_weight to;
    const rrl_bf16_weight *from;
    int64_t first;
} transpose_job;

/* unit: panel of W^T, whose steps are the panels of W */
static void transpose_panels(const void *job, int64_t begin, int64_t end) {
    const transpose_job *j = job;
    for (int64_t p = begin; p < end; ++p)
        for (int64_t q = 0; q < j->to.steps; ++q)
            j->e->kernels->transpose(j->to.t + (p * j->to.steps + q) * 2 * RRL_BF16_TILE,
                                     j->from->t + (q * j->from->steps + j->first + p) * 2 * RRL_BF16_TILE);
}

rrl_bf16_weight rrl_bf16_transpose(const rrl_bf16_engine *e, void *room, const rrl_bf16_weight *w, int64_t p,
                                   int64_t count) {
    rrl_bf16_weight to = rrl_bf16_shape(rrl_min(w->k - p * RRL_BF16_PANEL, count * RRL_BF16_PANEL), w->n);
    to.t = room;
    const transpose_job job = {e, to, w, p};
    run(e, transpose_panels, &job, to.panels, 1, 100.0 * (double)to.n * (double)to.k);
    return to;
}

/* --- the product */

typedef struct {
    const rrl_bf16_engine *e;
    rrl_bf16_target y;
    const rrl_bf16_rows *x;
    const rrl_bf16_weight *w, *then; /* NULL = what is multiplied next is not known */
    int64_t chunk, units;            /* blocks of rows a chunk; unit = chunk * panels + panel */
    rrl_bf16_claims *claims;         /* [threads] */
} gemm_job;

static const char *panel_of(const rrl_bf16_weight *w, int64_t panel) {
    return (const char *)(w->t + panel * w->steps * 2 * RRL_BF16_TILE);
}

/* The first of what share s has of `units`. */
static int64_t share_begin(const gemm_job *j, int64_t s, int64_t units) {
    return units * s / j->e->threads;
}

/* What share s reads after the unit at hand: the panel of unit `next` or, where there is none left, its first panel of the
 * weight that is multiplied then; NULL = not known. */
static const char *read_next(const gemm_job *j, int64_t s, int64_t next) {
    if (next < j->units) return panel_of(j->w, next % j->w->panels);
    return j->then ? panel_of(j->then, share_begin(j, s, j->then->panels)) : NULL;
}

/* Where results go comes nearer while they are computed, or storing them would wait for it. */
static void fetch_results(const rrl_bf16_target *y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; c += 16) __builtin_prefetch(y->y + r * y->ld + c, 1, 3);
}

/* All rows of a chunk against one panel; meanwhile what is at `next` comes nearer, a part with every block. */
static void unit(const gemm_job *j, int64_t at, const char *next) {
    const rrl_bf16_kernels *kernels = j->e->kernels;
    const int64_t steps = j->w->steps, panel = at % j->w->panels;
    const int64_t first = at / j->w->panels * j->chunk, blocks = rrl_min(j->chunk, j->x->blocks - first);
    const int64_t cols = rrl_min(RRL_BF16_PANEL, j->w->n - panel * RRL_BF16_PANEL);
    const uint16_t *w = (const uint16_t *)panel_of(j->w, panel);
    _Alignas(64) float acc[RRL_BF16_BLOCK * RRL_BF16_BLOCK];
    int lines = 1;
    while (lines * blocks < LINES) lines *= 2;
    for (int64_t i = 0; i < blocks; ++i) {
        const int64_t row = (first + i) * RRL_BF16_BLOCK, rows = rrl_min(RRL_BF16_BLOCK, j->x->rows - row);
        rrl_bf16_target y = j->y;
        y.y += row * y.ld + panel * RRL_BF16_PANEL;
        if (y.bias) y.bias += panel * RRL_BF16_PANEL;
        y.past_caches = y.past_caches && cols == RRL_BF16_PANEL;
        if (!y.past_caches) fetch_results(&y, rows, cols);
        kernels->block(acc, j->x->t + (first + i) * block_bytes(j->e, steps), rows, w, steps, next,
                       next && i * lines < LINES ? lines : 0);
        kernels->put(&y, acc, rows, cols);
        if (next) next += lines * steps * 64;
    }
}

/* Share s takes its own units in ascending order, then those that others have not begun; `units` = none is left. As the
 * pool shares pieces, but one ahead: a unit has to know what its thread reads next. */
static int64_t claim(const gemm_job *j, int64_t s) {
    for (int64_t i = 0; i < j->e->threads; ++i) {
        rrl_bf16_claims *c = &j->claims[(s + i) % j->e->threads];
        if (atomic_load_explicit(&c->next, memory_order_relaxed) >= c->end) continue;
        const int64_t at = atomic_fetch_add(&c->next, 1);
        if (at < c->end) return at;
    }
    return j->units;
}

/* A piece is a share. */
static void shares(const void *job, int64_t begin, int64_t end) {
    const gemm_job *j = job;
    for (int64_t s = begin; s < end; ++s)
        for (int64_t next, mine = claim(j, s); mine < j->units; mine = next) {
            next = claim(j, s);
            unit(j, mine, read_next(j, s, next));
        }
}

/* Blocks of a chunk. Where there are rows enough a thread has chunks of its own, which are the rows it has in the ops
 * around a product: then they do not move between caches. */
static int64_t chunk_of(const rrl_bf16_engine *e, const rrl_bf16_rows *x, const rrl_bf16_weight *w) {
    int64_t most = rrl_min(CHUNK_BLOCKS, CHUNK_BYTES / block_bytes(e, w->steps));
    if (x->blocks >= OWN_BLOCKS * e->threads) most = rrl_min(most, (x->blocks + e->threads - 1) / e->threads);
    if (most <= 1) return 1;
    const int64_t chunks = (x->blocks + most - 1) / most;
    return (x->blocks + chunks - 1) / chunks;
}

void rrl_bf16_gemm(const rrl_bf16_engine *e, rrl_bf16_target y, const rrl_bf16_rows *x, const rrl_bf16_weight *w,
                   const rrl_bf16_weight *then) {
    rrl_bf16_claims alone;
    y.past_caches = x->rows * w->n * (int64_t)sizeof(float) > FAR_BYTES && y.ld % 16 == 0 && ((uintptr_t)y.y & 63) == 0;
    gemm_job job = {.e = e, .y = y, .x = x, .w = w, .then = then, .claims = e->threads > 1 ? e->claims : &alone};
    job.chunk = chunk_of(e, x, w);
    job.units = (x->blocks + job.chunk - 1) / job.chunk * w->panels;
    for (int64_t s = 0; s < e->threads; ++s) {
        atomic_store_explicit(&job.claims[s].next, share_begin(&job, s, job.units), memory_order_relaxed);
        job.claims[s].end = share_begin(&job, s + 1, job.units);
    }
    run(e, shares, &job, e->threads, 1, (double)(x->rows + READ) * (double)w->n * (double)w->k);
}
