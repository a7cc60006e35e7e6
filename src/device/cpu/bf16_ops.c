/* Ops of the bf16 path: products in bf16, everything between them as in f32. */
#include "device/cpu/bf16_ops.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/common.h"
#include "device/cpu/cpu.h"

static rrl_cpu *cpu_of(const rrl_device *d) {
    return d->state;
}

static const rrl_bf16_engine *engine_of(const rrl_device *d) {
    return &cpu_of(d)->bf16.engine;
}

static rrl_bf16_weight tiles_of(const rrl_weight *w) {
    rrl_bf16_weight tiles = rrl_bf16_shape(w->n, w->k);
    tiles.t = w->tiles;
    return tiles;
}

static rrl_status check(bool fits, const char *what) {
    return fits ? RRL_OK : RRL_FAIL(RRL_ERR_INTERNAL, "device op: the shape of %s does not fit", what);
}

/* Like the scratch of sampling, an exception to "an op never allocates": sizes settle in the first steps. */
static rrl_status reserve(rrl_bf16_room *r, size_t bytes, const char *what) {
    if (bytes <= r->bytes) return RRL_OK;
    free(r->data);
    *r = (rrl_bf16_room){0};
    RRL_TRY(rrl_alloc_aligned(&r->data, bytes, 1, what));
    r->bytes = bytes;
    return RRL_OK;
}

rrl_status rrl_bf16_open(rrl_bf16_state *s, rrl_pool *pool, int threads) {
    rrl_bf16_engine *e = &s->engine;
    e->pool = pool;
    e->threads = threads;
    return threads == 1 ? RRL_OK : rrl_alloc_aligned(&e->claims, (size_t)threads, sizeof *e->claims, "units of products");
}

void rrl_bf16_close(rrl_bf16_state *s) {
    free(s->engine.claims);
    free(s->rows.data);
    free(s->gradients.data);
    free(s->panels.data);
    for (int i = 0; i < RRL_BF16_TURNED; ++i) free(s->turned[i].room.data);
    *s = (rrl_bf16_state){0};
}

static size_t weight_bytes(const rrl_device *d, int64_t n, int64_t k) {
    return rrl_cpu_weight_bytes_bf16(n, k);
}

/* Another weight may come to lie where one was that is gone. */
static void forget_turned(rrl_device *d) {
    for (int i = 0; i < RRL_BF16_TURNED; ++i) cpu_of(d)->bf16.turned[i].of = NULL;
}

static rrl_status weight_view(rrl_device *d, rrl_weight **out, void *room, int64_t n, int64_t k) {
    forget_turned(d);
    return rrl_bf16_view(out, room, n, k);
}

static rrl_status weight_fill(rrl_device *d, const rrl_weight *w, const void *src, rrl_dtype dtype) {
    forget_turned(d);
    rrl_bf16_fill(w, cpu_of(d)->pool, src, dtype);
    return RRL_OK;
}

static rrl_status embed(rrl_device *d, rrl_tensor y, const rrl_weight *w, const rrl_batch *b) {
    RRL_TRY(check(y.cols == w->k && y.rows == b->n_rows, "embed's output"));
    const rrl_bf16_weight tiles = tiles_of(w);
    for (int64_t i = 0; i < y.rows; ++i) rrl_bf16_row(y.data + i * y.cols, &tiles, b->token[i]);
    return RRL_OK;
}

/* x rounded, in the state's room. */
static rrl_status rounded(rrl_bf16_rows *out, rrl_device *d, rrl_tensor x) {
    rrl_bf16_state *s = &cpu_of(d)->bf16;
    RRL_TRY(reserve(&s->rows, rrl_bf16_rows_bytes(&s->engine, x.rows, x.cols), "rounded activations"));
    *out = rrl_bf16_round(&s->engine, s->rows.data, x.data, x.cols, x.rows, x.cols);
    return RRL_OK;
}

static rrl_status linear(rrl_device *d, rrl_tensor x, const rrl_product *products, int32_t n, const rrl_weight *then) {
    rrl_bf16_rows rows;
    for (int32_t i = 0; i < n; ++i) RRL_TRY(check(rrl_product_fits(&products[i], x), "linear's input or output"));
    RRL_TRY(rounded(&rows, d, x));
    for (int32_t i = 0; i < n; ++i) {
        const rrl_product *p = &products[i];
        const rrl_weight *after = i + 1 < n ? products[i + 1].w : then;
        const rrl_bf16_weight tiles = tiles_of(p->w), next = after ? tiles_of(after) : tiles;
        rrl_bf16_gemm(engine_of(d), (rrl_bf16_target){.y = p->y.data, .ld = p->y.cols, .bias = p->bias}, &rows, &tiles,
                      after ? &next : NULL);
    }
    return RRL_OK;
}

/* W^T, made from the packed tiles by all threads unless it is there. */
static rrl_status turned_of(rrl_bf16_weight *out, rrl_device *d, const rrl_weight *w) {
    rrl_bf16_state *s = &cpu_of(d)->bf16;
    *out = rrl_bf16_shape(w->k, w->n);
    for (int i = 0; i < RRL_BF16_TURNED; ++i)
        if (s->turned[i].of == w) {
            out->t = s->turned[i].room.data;
            return RRL_OK;
        }
    rrl_bf16_turned *to = &s->turned[s->oldest];
    const rrl_bf16_weight tiles = tiles_of(w);
    to->of = NULL;
    RRL_TRY(reserve(&to->room, rrl_bf16_bytes(out), "transposed weights"));
    *out = rrl_bf16_transpose(&s->engine, to->room.data, &tiles, 0, out->panels);
    to->of = w;
    s->oldest = (s->oldest + 1) % RRL_BF16_TURNED;
    return RRL_OK;
}

static rrl_status linear_backward(rrl_device *d, rrl_tensor dx, rrl_tensor dy, const rrl_weight *w, bool accumulate) {
    rrl_bf16_rows rows;
    rrl_bf16_weight turned;
    RRL_TRY(check(dx.cols == w->k && dy.cols == w->n && dx.rows == dy.rows, "linear_backward's operands"));
    RRL_TRY(turned_of(&turned, d, w));
    RRL_TRY(rounded(&rows, d, dy));
    const rrl_bf16_target to = {.y = dx.data, .ld = dx.cols, .accumulate = accumulate};
    rrl_bf16_gemm(engine_of(d), to, &rows, &turned, NULL);
    return RRL_OK;
}

/* --- the head: the kernels that reduce blocks of logits are those of f32, the products are these */

typedef struct {
    rrl_head_product base; /* first: what the kernels know */
    rrl_bf16_engine alone;
    const rrl_bf16_rows *x;
    rrl_bf16_weight w;
    void *gradients, *turned; /* room of this share: rounded gradients of logits, a panel of W^T */
} head;

static void head_logits(const rrl_head_product *product, float *logits, int64_t ld, int64_t row, int64_t rows,
                        int64_t v, int64_t n) {
    const head *h = (const head *)product;
    const rrl_bf16_rows x = rrl_bf16_rows_part(&h->alone, h->x, row, rows);
    const rrl_bf16_weight w = rrl_bf16_panels(&h->w, v / RRL_BF16_PANEL, (n + RRL_BF16_PANEL - 1) / RRL_BF16_PANEL);
    rrl_bf16_gemm(&h->alone, (rrl_bf16_target){.y = logits, .ld = ld}, &x, &w, NULL);
}

static void head_gradient(const rrl_head_product *product, float *dx, const float *dlogits, int64_t ld, int64_t rows,
                          int64_t v, int64_t n) {
    const head *h = (const head *)product;
    const int64_t hidden = h->w.k;
    const rrl_bf16_rows x = rrl_bf16_round(&h->alone, h->gradients, dlogits, ld, rows, n);
    const rrl_bf16_weight w = rrl_bf16_panels(&h->w, v / RRL_BF16_PANEL, (n + RRL_BF16_PANEL - 1) / RRL_BF16_PANEL);
    for (int64_t p = 0; p < h->w.steps; ++p) {
        const rrl_bf16_weight turned = rrl_bf16_transpose(&h->alone, h->turned, &w, p, 1);
        rrl_bf16_gemm(&h->alone,
                      (rrl_bf16_target){.y = dx + p * RRL_BF16_PANEL, .ld = hidden, .accumulate = v > 0}, &x, &turned,
                      NULL);
    }
}

/* Rows a unit: each chunk reads all weights, so as large as leaves every thread one; whole blocks of rows. */
static int64_t head_chunk(const rrl_device *d, int64_t rows) {
    int64_t threads = cpu_of(d)->threads, chunk = (rows + threads - 1) / threads;
    chunk = (chunk + RRL_BF16_BLOCK - 1) / RRL_BF16_BLOCK * RRL_BF16_BLOCK;
    return chunk > RRL_SCORE_ROWS ? RRL_SCORE_ROWS : chunk;
}

static int64_t chunks_of(int64_t rows, int64_t chunk) {
    return (rows + chunk - 1) / chunk;
}

static head head_of(const rrl_device *d, const rrl_bf16_rows *x, const rrl_weight *w) {
    return (head){.base = {head_logits, head_gradient},
                  .alone = {.kernels = engine_of(d)->kernels, .threads = 1},
                  .x = x,
                  .w = tiles_of(w)};
}

typedef struct {
    void (*kernel)(const rrl_lm_score_job *j, int64_t begin, int64_t end);
    rrl_lm_score_job job;
} score_call;

static void score_piece(const void *call, int64_t begin, int64_t end) {
    const score_call *c = call;
    c->kernel(&c->job, begin, end);
}

static rrl_status lm_score(rrl_device *d, float *logp, float *lse, float *entropy, rrl_tensor x, const rrl_weight *w,
                           const int32_t *target, const float *temperature, rrl_tensor scratch) {
    rrl_bf16_rows rows;
    RRL_TRY(check(x.cols == w->k, "lm_score's input"));
    RRL_TRY(check(rrl_head_scratch_fits(scratch, x.rows, w), "lm_score's scratch"));
    RRL_TRY(rounded(&rows, d, x));
    const head h = head_of(d, &rows, w);
    const score_call call = {cpu_of(d)->kernels->lm_score,
                             {logp, lse, entropy, x, w, target, temperature, scratch, head_chunk(d, x.rows), &h.base}};
    rrl_pool_run(cpu_of(d)->pool, score_piece, &call, chunks_of(x.rows, call.job.chunk), 1);
    return RRL_OK;
}

typedef struct {
    const rrl_device *d;
    const head *h;
    rrl_lm_backward_job job;
    int64_t chunks, gradient_bytes, turned_bytes; /* room of a share */
    _Atomic int64_t *next;
} backward_call;

/* unit: a thread's share, which has room of its own and claims chunks */
static void backward_share(const void *call, int64_t begin, int64_t end) {
    const backward_call *c = call;
    const rrl_cpu *cpu = cpu_of(c->d);
    head h = *c->h;
    h.gradients = (char *)cpu->bf16.gradients.data + begin * c->gradient_bytes;
    h.turned = (char *)cpu->bf16.panels.data + begin * c->turned_bytes;
    rrl_lm_backward_job job = c->job;
    job.product = &h.base;
    for (int64_t chunk; (chunk = atomic_fetch_add(c->next, 1)) < c->chunks;)
        cpu->kernels->lm_backward(&job, chunk, chunk + 1);
}

static rrl_status lm_backward(rrl_device *d, rrl_tensor dx, rrl_tensor x, const rrl_weight *w, const int32_t *target,
                              const float *temperature, const float *lse, const float *dlogp, rrl_tensor scratch) {
    rrl_bf16_state *s = &cpu_of(d)->bf16;
    const size_t threads = (size_t)cpu_of(d)->threads;
    const rrl_bf16_weight panel = rrl_bf16_shape(RRL_BF16_PANEL, RRL_VOCAB_BLOCK);
    rrl_bf16_rows rows = {0};
    _Atomic int64_t next = 0;
    RRL_TRY(check(dx.cols == w->k && (!x.data || (x.rows == dx.rows && x.cols == dx.cols)), "lm_backward's operands"));
    RRL_TRY(check(rrl_head_scratch_fits(scratch, dx.rows, w), "lm_backward's scratch"));
    const int64_t chunk = head_chunk(d, dx.rows);
    const size_t gradient_bytes = rrl_bf16_rows_bytes(&s->engine, chunk, RRL_VOCAB_BLOCK);
    RRL_TRY(reserve(&s->gradients, threads * gradient_bytes, "rounded gradients of logits"));
    RRL_TRY(reserve(&s->panels, threads * rrl_bf16_bytes(&panel), "transposed weights"));
    if (x.data) RRL_TRY(rounded(&rows, d, x));
    const head h = head_of(d, &rows, w);
    const backward_call call = {.d = d,
                                .h = &h,
                                .job = {dx, x, w, target, temperature, lse, dlogp, scratch, chunk, NULL},
                                .chunks = chunks_of(dx.rows, chunk),
                                .gradient_bytes = (int64_t)gradient_bytes,
                                .turned_bytes = (int64_t)rrl_bf16_bytes(&panel),
                                .next = &next};
    rrl_pool_run(cpu_of(d)->pool, backward_share, &call, (int64_t)threads, 1);
    return RRL_OK;
}

void rrl_bf16_install(rrl_device_ops *ops) {
    ops->near_rows = RRL_BF16_NEAR_ROWS;
    ops->weight_bytes = weight_bytes;
    ops->weight_view = weight_view;
    ops->weight_fill = weight_fill;
    ops->embed = embed;
    ops->linear = linear;
    ops->linear_backward = linear_backward;
    ops->lm_score = lm_score;
    ops->lm_backward = lm_backward;
}
