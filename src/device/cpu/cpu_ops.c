/* The op table of the CPU back end: checks shapes, cuts the work into units, hands them to the pool. The
 * arithmetic is in the kernel tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/exactmath.h"
#include "base/memory.h"
#include "device/cpu/common.h"
#include "device/cpu/cpu.h"

static rrl_cpu *cpu_of(const rrl_device *d) {
    return d->state;
}

/* Waking threads costs microseconds: below this many multiply-adds (or as slow things) the caller works
 * alone. */
static const double SERIAL_WORK = 2e5;

/* Units a claim: about SERIAL_WORK / 4 of work, but every thread gets some. */
static int64_t grain_of(const rrl_device *d, int64_t units, double work) {
    double wanted = (double)units * SERIAL_WORK / 4 / work, most = (double)units / (2.0 * cpu_of(d)->threads);
    double grain = wanted < most ? wanted : most;
    return grain > 1.0 ? (int64_t)grain : 1;
}

/* A pool job: units [begin, end) of one kernel. The kernel's typed pointer travels inside the job. */
#define X(name, job_type)                                                                                    \
    typedef struct {                                                                                         \
        void (*kernel)(const job_type *j, int64_t begin, int64_t end);                                       \
        const job_type *job;                                                                                 \
    } name##_call;                                                                                           \
    static void name##_piece(const void *call, int64_t begin, int64_t end) {                                 \
        const name##_call *c = call;                                                                         \
        c->kernel(c->job, begin, end);                                                                       \
    }                                                                                                        \
    static void run_##name(const rrl_device *d, const job_type *job, int64_t units, double work) {           \
        name##_call call = {cpu_of(d)->kernels->name, job};                                                  \
        if (work < SERIAL_WORK)                                                                              \
            call.kernel(job, 0, units);                                                                      \
        else                                                                                                 \
            rrl_pool_run(cpu_of(d)->pool, name##_piece, &call, units, grain_of(d, units, work));             \
    }

RRL_KERNEL_LIST(X)
#undef X

static int64_t blocks_of(int64_t n, int64_t block) {
    return (n + block - 1) / block;
}

/* A shape that does not fit is the caller's mistake; `what` names the operand. */
static rrl_status check(bool fits, const char *what) {
    return fits ? RRL_OK : RRL_FAIL(RRL_ERR_INTERNAL, "device op: the shape of %s does not fit", what);
}

static bool same_shape(rrl_tensor a, rrl_tensor b) {
    return a.rows == b.rows && a.cols == b.cols;
}

/* memory */

static rrl_status op_alloc(rrl_device *d, void **out, size_t bytes, const char *what) {
    return rrl_alloc_aligned(out, bytes ? bytes : 1, 1, what);
}

static void op_free(rrl_device *d, void *p) {
    free(p);
}

static rrl_status op_copy(rrl_device *d, void *to, const void *from, size_t bytes) {
    if (bytes) memcpy(to, from, bytes);
    return RRL_OK;
}

static rrl_status op_sync(rrl_device *d) {
    return RRL_OK;
}

static size_t op_weight_bytes(const rrl_device *d, int64_t n, int64_t k) {
    return rrl_cpu_weight_bytes(n, k);
}

static rrl_status op_weight_view(rrl_device *d, rrl_weight **out, void *room, int64_t n, int64_t k) {
    return rrl_weight_view_cpu(out, room, n, k);
}

static rrl_status op_weight_fill(rrl_device *d, const rrl_weight *w, const void *src, rrl_dtype dtype) {
    rrl_weight_fill_cpu(w, cpu_of(d)->pool, src, dtype);
    return RRL_OK;
}

/* In room of its own; of either path. */
static rrl_status op_weight_pack(rrl_device *d, rrl_weight **out, const void *src, rrl_dtype dtype, int64_t n,
                                 int64_t k) {
    rrl_status rc = RRL_OK;
    void *room = NULL;
    rrl_weight *w = NULL;
    RRL_GOTO(rrl_alloc_aligned(&room, d->ops->weight_bytes(d, n, k), 1, "packed weights"));
    RRL_GOTO(d->ops->weight_view(d, &w, room, n, k));
    w->owned = room;
    room = NULL;
    RRL_GOTO(d->ops->weight_fill(d, w, src, dtype));
    *out = w;
    w = NULL;
done:
    free(room);
    rrl_weight_free_cpu(&w);
    return rc;
}

static void op_weight_free(rrl_device *d, rrl_weight **w) {
    rrl_weight_free_cpu(w);
}

/* forward */

static rrl_status op_embed(rrl_device *d, rrl_tensor y, const rrl_weight *w, const rrl_batch *b) {
    RRL_TRY(check(y.cols == w->k && y.rows == b->n_rows, "embed's output"));
    rrl_embed_job job = {y, w, b};
    run_embed(d, &job, y.rows, (double)y.rows * (double)y.cols);
    return RRL_OK;
}

static rrl_status op_rms_norm(rrl_device *d, rrl_tensor y, rrl_tensor x, const float *w, float eps) {
    RRL_TRY(check(same_shape(x, y), "rms_norm's output"));
    rrl_rms_norm_job job = {y, x, w, eps};
    run_rms_norm(d, &job, x.rows, (double)x.rows * (double)x.cols);
    return RRL_OK;
}

static rrl_status op_axpy(rrl_device *d, float *y, const float *x, float a, int64_t n) {
    rrl_axpy_job job = {y, x, a, n};
    run_axpy(d, &job, blocks_of(n, RRL_ELEMENT_BLOCK), (double)n);
    return RRL_OK;
}

static rrl_status op_add_rms_norm(rrl_device *d, rrl_tensor y, rrl_tensor x, rrl_tensor r, const float *w,
                                  float eps) {
    RRL_TRY(check(same_shape(x, r), "add_rms_norm's operands"));
    RRL_TRY(op_axpy(d, x.data, r.data, 1.0f, x.rows * x.cols)); /* fma(1, r, x) is x + r */
    return op_rms_norm(d, y, x, w, eps);
}

/* Rows in chunks, so that they stay in the second cache while the panels pass. */
enum { LINEAR_CHUNK = 256 };

static void linear(rrl_device *d, const rrl_linear_job *j) {
    int64_t units = blocks_of(j->x.rows, j->chunk) * rrl_panels(j->y.cols);
    run_linear(d, j, units, (double)j->x.rows * (double)j->w->n * (double)j->w->k);
}

static rrl_status op_linear(rrl_device *d, rrl_tensor x, const rrl_product *products, int32_t n,
                            const rrl_weight *then) {
    for (int32_t i = 0; i < n; ++i) {
        const rrl_product *p = &products[i];
        RRL_TRY(check(rrl_product_fits(p, x), "linear's input or output"));
        linear(d, &(rrl_linear_job){.y = p->y, .x = x, .w = p->w, .bias = p->bias, .chunk = LINEAR_CHUNK});
    }
    return RRL_OK;
}

static rrl_status op_lora(rrl_device *d, rrl_tensor x, const rrl_batch *b, const rrl_lora_product *products,
                          int32_t n) {
    for (int32_t i = 0; i < n; ++i) {
        const rrl_lora_product *p = &products[i];
        RRL_TRY(check(x.rows == p->y.rows && p->u.rows == x.rows && x.rows == b->n_rows, "lora's rows"));
        rrl_lora_job job = {p->y, p->u, x, b, &p->args};
        double work = (double)x.rows * (double)(x.cols + p->y.cols) * 16;
        run_lora(d, &job, blocks_of(x.rows, RRL_ROW_BLOCK), work);
    }
    return RRL_OK;
}

static rrl_status op_rope(rrl_device *d, rrl_tensor x, int32_t n_heads, int32_t head_dim, const rrl_batch *b,
                          const float *cos, const float *sin, bool inverse) {
    RRL_TRY(check(x.cols == (int64_t)n_heads * head_dim && head_dim % 2 == 0 && x.rows == b->n_rows,
                  "rope's heads"));
    rrl_rope_job job = {x, n_heads, head_dim, b, cos, sin, inverse};
    run_rope(d, &job, x.rows, (double)x.rows * (double)x.cols);
    return RRL_OK;
}

static void round_to(rrl_device *d, rrl_tensor x, rrl_dtype dtype) {
    rrl_round_job job = {x};
    if (dtype == RRL_BF16) run_round(d, &job, x.rows, (double)x.rows * (double)x.cols);
}

static rrl_status op_kv_write(rrl_device *d, const rrl_kv_pool *pool, int32_t layer, const rrl_kv_rows *in,
                              const rrl_batch *b, const rrl_kv_writes *w) {
    const rrl_tensor q = in->q, k = in->k, v = in->v;
    const int32_t dim = pool->head_dim;
    RRL_TRY(check(same_shape(k, v) && k.cols == (int64_t)pool->n_kv_heads * dim, "keys or values"));
    RRL_TRY(check(in->dtype == RRL_F32 || in->dtype == RRL_BF16, "keys' type"));
    if (in->cos) {
        RRL_TRY(op_rope(d, q, (int32_t)(q.cols / dim), dim, b, in->cos, in->sin, false));
        RRL_TRY(op_rope(d, k, pool->n_kv_heads, dim, b, in->cos, in->sin, false));
    }
    round_to(d, k, in->dtype);
    round_to(d, v, in->dtype);
    rrl_kv_write_job job = {pool, layer, k, v, w};
    run_kv_write(d, &job, w->n, 2.0 * w->n * (double)k.cols);
    return RRL_OK;
}

static rrl_status op_kv_copy(rrl_device *d, const rrl_kv_pool *pool, const int32_t *from, const int32_t *to,
                             int32_t n) {
    size_t block = (size_t)rrl_kv_tile_bytes(pool) * (size_t)pool->n_kv_heads;
    for (int32_t layer = 0; layer < pool->n_layers; ++layer) {
        char *blocks = rrl_kv_tile(pool, layer, 0, 0);
        for (int32_t i = 0; i < n; ++i)
            memcpy(blocks + (size_t)to[i] * block, blocks + (size_t)from[i] * block, block);
    }
    return RRL_OK;
}

static rrl_status op_attention(rrl_device *d, rrl_tensor out, rrl_tensor lse, rrl_tensor q, int32_t n_heads,
                               const rrl_kv_pool *pool, int32_t layer, const rrl_kv_table *table,
                               const rrl_batch *b, float scale) {
    RRL_TRY(check(same_shape(out, q) && q.cols == (int64_t)n_heads * pool->head_dim && q.rows == b->n_rows,
                  "attention's queries"));
    RRL_TRY(
        check(n_heads % pool->n_kv_heads == 0 && pool->head_dim <= RRL_MAX_HEAD_DIM, "attention's heads"));
    RRL_TRY(check(!lse.data || (lse.rows == q.rows && lse.cols == n_heads), "attention's log-sum-exp"));
    rrl_attention_job job = {out, lse, q, n_heads, pool, layer, table, b, scale};
    /* lengths are device data, so the work is a guess: 128 keys a row */
    double work = (double)q.rows * (double)q.cols * 256;
    run_attention(d, &job, blocks_of(q.rows, RRL_ROW_BLOCK) * pool->n_kv_heads, work);
    return RRL_OK;
}

static rrl_status op_swiglu(rrl_device *d, rrl_tensor y, rrl_tensor gate, rrl_tensor up) {
    RRL_TRY(check(same_shape(y, gate) && same_shape(y, up), "swiglu's operands"));
    rrl_swiglu_job job = {y.data, gate.data, up.data, y.rows * y.cols};
    run_swiglu(d, &job, blocks_of(job.n, RRL_ELEMENT_BLOCK), 8.0 * (double)job.n);
    return RRL_OK;
}

static rrl_status op_gather(rrl_device *d, rrl_tensor y, rrl_tensor x, const int32_t *row) {
    RRL_TRY(check(y.cols == x.cols, "gather's output"));
    for (int64_t i = 0; i < y.rows; ++i)
        memcpy(y.data + i * y.cols, x.data + row[i] * x.cols, (size_t)x.cols * sizeof(float));
    return RRL_OK;
}

/* Rows a unit of the LM head: each chunk reads all weights, so as large as leaves every thread one. */
static int64_t score_chunk(const rrl_device *d, int64_t rows) {
    int64_t chunk = blocks_of(rows, cpu_of(d)->threads);
    return chunk < 1 ? 1 : chunk > RRL_SCORE_ROWS ? RRL_SCORE_ROWS : chunk;
}

static rrl_status op_lm_score(rrl_device *d, float *logp, float *lse, float *entropy, rrl_tensor x,
                              const rrl_weight *w, const int32_t *target, const float *temperature,
                              rrl_tensor scratch) {
    RRL_TRY(check(x.cols == w->k, "lm_score's input"));
    RRL_TRY(check(rrl_head_scratch_fits(scratch, x.rows, w), "lm_score's scratch"));
    rrl_lm_score_job job = {logp, lse, entropy, x, w, target, temperature, scratch, score_chunk(d, x.rows),
                            NULL};
    run_lm_score(d, &job, blocks_of(x.rows, job.chunk), (double)x.rows * (double)w->n * (double)w->k);
    return RRL_OK;
}

void rrl_cpu_scratch_free(rrl_cpu *cpu) {
    for (int i = 0; cpu->scratch && i < cpu->threads; ++i) {
        free(cpu->scratch[i].z);
        free(cpu->scratch[i].a);
        free(cpu->scratch[i].b);
    }
    free(cpu->scratch);
    cpu->scratch = NULL;
    cpu->scratch_vocabulary = 0;
}

/* The one exception to "an op never allocates": once, for the largest vocabulary. */
static rrl_status scratch_reserve(rrl_cpu *cpu, int64_t vocabulary) {
    if (vocabulary <= cpu->scratch_vocabulary) return RRL_OK;
    rrl_cpu_scratch_free(cpu);
    RRL_TRY(rrl_alloc(&cpu->scratch, (size_t)cpu->threads, sizeof *cpu->scratch, "scratch of sampling"));
    for (int i = 0; i < cpu->threads; ++i) {
        rrl_sample_scratch *s = &cpu->scratch[i];
        RRL_TRY(rrl_alloc_aligned(&s->z, (size_t)vocabulary, sizeof *s->z, "scratch of sampling"));
        RRL_TRY(rrl_alloc_aligned(&s->a, (size_t)vocabulary, sizeof *s->a, "scratch of sampling"));
        RRL_TRY(rrl_alloc_aligned(&s->b, (size_t)vocabulary, sizeof *s->b, "scratch of sampling"));
    }
    cpu->scratch_vocabulary = vocabulary;
    return RRL_OK;
}

rrl_status rrl_cpu_sample_kept(rrl_device *d, int32_t *token, float *logp, uint64_t *kept, rrl_tensor logits,
                               const rrl_sample_row *rows) {
    rrl_cpu *cpu = cpu_of(d);
    RRL_TRY(scratch_reserve(cpu, logits.cols));
    if (kept) memset(kept, 0, (size_t)logits.rows * (size_t)logits.cols * sizeof *kept);
    int64_t units = logits.rows < cpu->threads ? logits.rows : cpu->threads;
    rrl_sample_job job = {token, logp, logits, rows, units, cpu->scratch, kept};
    run_sample(d, &job, units, 16.0 * (double)logits.rows * (double)logits.cols);
    return RRL_OK;
}

static rrl_status op_sample(rrl_device *d, int32_t *token, float *logp, rrl_tensor logits,
                            const rrl_sample_row *rows) {
    return rrl_cpu_sample_kept(d, token, logp, NULL, logits, rows);
}

/* backward */

static rrl_status op_rms_norm_backward(rrl_device *d, rrl_tensor dx, rrl_tensor dy, rrl_tensor x,
                                       const float *w, float eps, bool accumulate) {
    RRL_TRY(check(same_shape(dx, x) && same_shape(dy, x), "rms_norm_backward's operands"));
    rrl_rms_norm_backward_job job = {dx, dy, x, w, eps, accumulate};
    run_rms_norm_backward(d, &job, x.rows, 2.0 * (double)x.rows * (double)x.cols);
    return RRL_OK;
}

static rrl_status op_linear_backward(rrl_device *d, rrl_tensor dx, rrl_tensor dy, const rrl_weight *w,
                                     bool accumulate) {
    RRL_TRY(check(dx.cols == w->k && dy.cols == w->n && dx.rows == dy.rows, "linear_backward's operands"));
    linear(d, &(rrl_linear_job){.y = dx, .x = dy, .w = w, .turned = true, .accumulate = accumulate,
                                .chunk = LINEAR_CHUNK});
    return RRL_OK;
}

static rrl_status op_lora_backward(rrl_device *d, float *da, float *db, rrl_tensor dx, rrl_tensor du,
                                   rrl_tensor dy, rrl_tensor x, rrl_tensor us, const rrl_lora *m,
                                   const rrl_batch *b, const rrl_lora_args *args) {
    RRL_TRY(check(x.cols == m->k && dy.cols == m->n && same_shape(dx, x) && dy.rows == x.rows,
                  "lora_backward's rows"));
    RRL_TRY(check(same_shape(du, us) && du.cols >= m->r && du.rows == x.rows && m->r <= RRL_MAX_LORA_RANK,
                  "lora_backward's rank"));
    rrl_lora_backward_job job = {da, db, dx, du, dy, x, us, m, b, args};
    double rows = (double)x.rows * m->r;
    run_lora_backward_rows(d, &job, blocks_of(x.rows, RRL_ROW_BLOCK), rows * (m->k + m->n));
    run_lora_backward_a(d, &job, blocks_of(m->k, RRL_COLUMN_BLOCK), rows * m->k);
    run_lora_backward_b(d, &job, blocks_of(m->n, RRL_COLUMN_BLOCK), rows * m->n);
    return RRL_OK;
}

static rrl_status op_attention_backward(rrl_device *d, rrl_tensor dq, rrl_tensor dk, rrl_tensor dv,
                                        rrl_tensor dout, rrl_tensor out, rrl_tensor lse, rrl_tensor q,
                                        rrl_tensor k, rrl_tensor v, int32_t n_heads, int32_t head_dim,
                                        const rrl_batch *b, const rrl_parents *p, float scale) {
    RRL_TRY(check(same_shape(dq, q) && same_shape(dout, q) && same_shape(out, q),
                  "attention_backward's queries"));
    RRL_TRY(check(same_shape(dk, k) && same_shape(dv, v) && same_shape(k, v) && k.rows == q.rows,
                  "attention_backward's keys"));
    RRL_TRY(check(q.cols == (int64_t)n_heads * head_dim && head_dim <= RRL_MAX_HEAD_DIM &&
                      k.cols % head_dim == 0 && q.cols % k.cols == 0 && lse.rows == q.rows &&
                      lse.cols == n_heads,
                  "attention_backward's heads"));
    rrl_attention_backward_job job = {dq, dk, dv, dout, out, lse, q, k, v, n_heads, head_dim, b, p, scale, false};
    double work = (double)q.rows * (double)q.cols * 512;
    for (int own = 0; own < 2; ++own) {
        job.own = own;
        run_attention_backward(d, &job, b->n_seqs * (k.cols / head_dim), work);
    }
    return RRL_OK;
}

static rrl_status op_swiglu_backward(rrl_device *d, rrl_tensor dgate, rrl_tensor dup, rrl_tensor dy,
                                     rrl_tensor gate, rrl_tensor up) {
    RRL_TRY(check(same_shape(dgate, gate) && same_shape(dup, gate) && same_shape(dy, gate) &&
                      same_shape(up, gate),
                  "swiglu_backward's operands"));
    rrl_swiglu_backward_job job = {dgate.data, dup.data, dy.data, gate.data, up.data, gate.rows * gate.cols};
    run_swiglu_backward(d, &job, blocks_of(job.n, RRL_ELEMENT_BLOCK), 12.0 * (double)job.n);
    return RRL_OK;
}

static rrl_status op_scatter_add(rrl_device *d, rrl_tensor x, rrl_tensor y, const int32_t *row) {
    RRL_TRY(check(x.cols == y.cols, "scatter_add's operands"));
    for (int64_t i = 0; i < y.rows; ++i)
        for (int64_t c = 0; c < x.cols; ++c) x.data[row[i] * x.cols + c] += y.data[i * x.cols + c];
    return RRL_OK;
}

static rrl_status op_lm_backward(rrl_device *d, rrl_tensor dx, rrl_tensor x, const rrl_weight *w,
                                 const int32_t *target, const float *temperature, const float *lse,
                                 const float *dlogp, rrl_tensor scratch) {
    RRL_TRY(check(dx.cols == w->k && (!x.data || same_shape(dx, x)), "lm_backward's operands"));
    RRL_TRY(check(rrl_head_scratch_fits(scratch, dx.rows, w), "lm_backward's scratch"));
    rrl_lm_backward_job job = {dx,  x, w, target, temperature, lse, dlogp, scratch, score_chunk(d, dx.rows),
                               NULL};
    run_lm_backward(d, &job, blocks_of(dx.rows, job.chunk),
                    2.0 * (double)dx.rows * (double)w->n * (double)w->k);
    return RRL_OK;
}

/* trainable vectors */

static rrl_status op_lora_pack(rrl_device *d, const rrl_lora *m) {
    const int64_t ld = rrl_lora_stride(m->r);
    memset(m->a_t, 0, (size_t)(m->k * ld) * sizeof(float));
    for (int64_t c = 0; c < m->r; ++c) {
        for (int64_t k = 0; k < m->k; ++k) m->a_t[k * ld + c] = m->a[c * m->k + k];
        for (int64_t n = 0; n < m->n; ++n) m->b_t[c * m->n + n] = m->b[n * m->r + c];
    }
    return RRL_OK;
}

/* In double: p = p (1 - lr wd) - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps) with g scaled
 * first. */
static rrl_status op_adamw(rrl_device *d, float *p, float *m, float *v, const float *g, int64_t n,
                           const rrl_adamw_args *a) {
    double t = (double)a->step;
    rrl_adamw_job job = {
        .p = p, .m = m, .v = v, .g = g, .n = n, .clip = a->clip, .beta1 = a->beta1, .beta2 = a->beta2};
    job.eps = a->eps;
    job.decay = 1.0 - a->lr * a->weight_decay;
    job.step_size = a->lr / (1.0 - rrl_pow(a->beta1, t));
    job.root_scale = 1.0 / sqrt(1.0 - rrl_pow(a->beta2, t));
    run_adamw(d, &job, blocks_of(n, RRL_ELEMENT_BLOCK), 10.0 * (double)n);
    return RRL_OK;
}

static rrl_status op_sum_squares(rrl_device *d, double *out, const float *x, int64_t n) {
    rrl_sum_squares_job job = {out, x, n};
    *out = 0.0;
    run_sum_squares(d, &job, blocks_of(n, RRL_SQUARES_BLOCK),
                    0.0); /* blocks are added in order: one thread */
    return RRL_OK;
}

static rrl_status op_zero(rrl_device *d, float *y, int64_t n) {
    if (n > 0) memset(y, 0, (size_t)n * sizeof(float));
    return RRL_OK;
}

const rrl_device_ops rrl_cpu_ops = {
    .name = "cpu",
    .close = rrl_cpu_close,
    .numeric_path = rrl_cpu_numeric_path,
    .isa = rrl_cpu_isa,
    .alloc = op_alloc,
    .free = op_free,
    .upload = op_copy,
    .download = op_copy,
    .sync = op_sync,
    .weight_pack = op_weight_pack,
    .weight_free = op_weight_free,
    .weight_bytes = op_weight_bytes,
    .weight_view = op_weight_view,
    .weight_fill = op_weight_fill,
    .embed = op_embed,
    .rms_norm = op_rms_norm,
    .add_rms_norm = op_add_rms_norm,
    .linear = op_linear,
    .lora = op_lora,
    .rope = op_rope,
    .kv_write = op_kv_write,
    .kv_copy = op_kv_copy,
    .attention = op_attention,
    .swiglu = op_swiglu,
    .gather = op_gather,
    .lm_score = op_lm_score,
    .sample = op_sample,
    .rms_norm_backward = op_rms_norm_backward,
    .linear_backward = op_linear_backward,
    .lora_backward = op_lora_backward,
    .attention_backward = op_attention_backward,
    .swiglu_backward = op_swiglu_backward,
    .scatter_add = op_scatter_add,
    .lm_backward = op_lm_backward,
    .lora_pack = op_lora_pack,
    .adamw = op_adamw,
    .sum_squares = op_sum_squares,
    .axpy = op_axpy,
    .zero = op_zero,
    .keeps_logits = true,
};
