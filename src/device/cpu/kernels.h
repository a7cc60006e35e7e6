/* The inner kernels of the CPU back end: one table an instruction set, plus the reference table of plain
 * loops.
 *
 * A kernel does units [begin, end) of a job. Units are independent, so any split over threads gives the same
 * bits; what a unit is stands beside each job. Ops (cpu_ops.c) check shapes and split; nothing here allocates
 * or fails. */
#ifndef RRL_DEVICE_CPU_KERNELS_H
#define RRL_DEVICE_CPU_KERNELS_H

#include "device/cpu/weight.h"

/* Sizes of units: they shape speed, never numbers. */
enum { RRL_ROW_BLOCK = 8, RRL_ELEMENT_BLOCK = 1024, RRL_COLUMN_BLOCK = 64, RRL_SQUARES_BLOCK = 4096 };
enum { RRL_MAX_HEAD_DIM = 256 };

typedef struct { /* unit: row */
    rrl_tensor y;
    const rrl_weight *w;
    const rrl_batch *b;
} rrl_embed_job;

typedef struct { /* unit: row */
    rrl_tensor y, x;
    const float *w;
    float eps;
} rrl_rms_norm_job;

typedef struct { /* unit: panel of y's columns for a chunk of rows, chunk-major: unit = chunk * panels + panel */
    rrl_tensor y, x;
    const rrl_weight *w;
    bool turned; /* the product with W^T */
    const float *bias;
    bool accumulate; /* start from y */
    int64_t chunk;   /* rows a chunk */
} rrl_linear_job;

typedef struct { /* unit: RRL_ROW_BLOCK rows */
    rrl_tensor y, u, x;
    const rrl_batch *b;
    const rrl_lora_args *args;
} rrl_lora_job;

typedef struct { /* unit: row */
    rrl_tensor x;
    int32_t n_heads, head_dim;
    const rrl_batch *b;
    const float *cos, *sin;
    bool inverse;
} rrl_rope_job;

typedef struct { /* unit: row; to bf16 */
    rrl_tensor x;
} rrl_round_job;

typedef struct { /* unit: write */
    const rrl_kv_pool *pool;
    int32_t layer;
    rrl_tensor k, v;
    const rrl_kv_writes *writes;
} rrl_kv_write_job;

typedef struct { /* unit: kv head of RRL_ROW_BLOCK rows, unit = block * n_kv_heads + head */
    rrl_tensor out, lse, q;
    int32_t n_heads;
    const rrl_kv_pool *pool;
    int32_t layer;
    const rrl_kv_table *table;
    const rrl_batch *b;
    float scale;
} rrl_attention_job;

typedef struct { /* unit: RRL_ELEMENT_BLOCK elements */
    float *y;
    const float *gate, *up;
    int64_t n;
} rrl_swiglu_job;

typedef struct { /* unit: RRL_ELEMENT_BLOCK elements; y = fma(a, x, y) */
    float *y;
    const float *x;
    float a;
    int64_t n;
} rrl_axpy_job;

/* Products with the head of another numeric path, in place of the kernel's own. */
typedef struct rrl_head_product rrl_head_product;
struct rrl_head_product {
    /* logits [rows, ld] of the job's rows from `row` on, for vocabulary [v, v + n) */
    void (*logits)(const rrl_head_product *p, float *logits, int64_t ld, int64_t row, int64_t rows, int64_t v,
                   int64_t n);
    /* dx [rows, hidden] = or, beyond the first block, += dlogits [rows, ld] times W [v, v + n) */
    void (*gradient)(const rrl_head_product *p, float *dx, const float *dlogits, int64_t ld, int64_t rows, int64_t v,
                     int64_t n);
};

/* A scratch of lm_score holds a block of the vocabulary or all of it; where the block at v of a row lies. */
static inline bool rrl_head_scratch_fits(rrl_tensor scratch, int64_t rows, const rrl_weight *w) {
    return scratch.rows >= rows && scratch.cols % RRL_VOCAB_BLOCK == 0 &&
           (scratch.cols == RRL_VOCAB_BLOCK || scratch.cols >= w->n);
}
static inline float *rrl_head_scratch(rrl_tensor scratch, int64_t row, int64_t v) {
    return scratch.data + row * scratch.cols + (scratch.cols > RRL_VOCAB_BLOCK ? v : 0);
}

typedef struct { /* unit: chunk of rows */
    float *logp, *lse, *entropy;
    rrl_tensor x;
    const rrl_weight *w;
    const int32_t *target;
    const float *temperature;
    rrl_tensor scratch;
    int64_t chunk; /* at most RRL_SCORE_ROWS */
    const rrl_head_product *product; /* NULL = f32 */
} rrl_lm_score_job;
enum { RRL_SCORE_ROWS = 256 };

typedef struct {
    uint64_t mass;
    int32_t id;
} rrl_candidate;

/* Work space of one unit of sample: [vocabulary] each. */
typedef struct {
    float *z;
    rrl_candidate *a, *b;
} rrl_sample_scratch;

typedef struct { /* unit: rows unit, unit + n_units, ... */
    int32_t *token;
    float *logp;
    rrl_tensor logits;
    const rrl_sample_row *rows;
    int64_t n_units;
    rrl_sample_scratch *scratch; /* [n_units] */
    uint64_t *kept; /* NULL, or [rows, vocabulary]: masses after top-k and top-p, 0 = removed (tests) */
} rrl_sample_job;

typedef struct { /* unit: row */
    rrl_tensor dx, dy, x;
    const float *w;
    float eps;
    bool accumulate;
} rrl_rms_norm_backward_job;

/* One job, three kernels: rows (du and dx; unit: RRL_ROW_BLOCK rows), da (unit: RRL_COLUMN_BLOCK columns of
 * k), db (unit: RRL_COLUMN_BLOCK rows of B). da needs du, so it comes after rows. */
typedef struct {
    float *da, *db;
    rrl_tensor dx, du, dy, x, us;
    const rrl_lora *m;
    const rrl_batch *b;
    const rrl_lora_args *args;
} rrl_lora_backward_job;

/* Two jobs: the keys of sequences without a parent, for them and their children; then (own) those of the children, each
 * for itself. Unit: a kv head of a sequence, sequence * n_kv_heads + head. */
typedef struct {
    rrl_tensor dq, dk, dv, dout, out, lse, q, k, v;
    int32_t n_heads, head_dim;
    const rrl_batch *b;
    const rrl_parents *parents;
    float scale;
    bool own;
} rrl_attention_backward_job;

typedef struct { /* unit: RRL_ELEMENT_BLOCK elements */
    float *dgate, *dup;
    const float *dy, *gate, *up;
    int64_t n;
} rrl_swiglu_backward_job;

typedef struct { /* unit: chunk of rows */
    rrl_tensor dx, x; /* x.data NULL: the scratch holds z */
    const rrl_weight *w;
    const int32_t *target;
    const float *temperature, *lse, *dlogp;
    rrl_tensor scratch;
    int64_t chunk;
    const rrl_head_product *product; /* NULL = f32 */
} rrl_lm_backward_job;

typedef struct { /* unit: RRL_ELEMENT_BLOCK elements */
    float *p, *m, *v;
    const float *g;
    int64_t n;
    double clip, beta1, beta2, eps, decay, step_size, root_scale; /* see adamw in cpu_ops.c */
} rrl_adamw_job;

typedef struct { /* unit: RRL_SQUARES_BLOCK elements; the block sums are added in the order of the call */
    double *out;
    const float *x;
    int64_t n;
} rrl_sum_squares_job;

#define RRL_KERNEL_LIST(X)                                                                                   \
    X(embed, rrl_embed_job)                                                                                  \
    X(rms_norm, rrl_rms_norm_job)                                                                            \
    X(linear, rrl_linear_job)                                                                                \
    X(lora, rrl_lora_job)                                                                                    \
    X(rope, rrl_rope_job)                                                                                    \
    X(round, rrl_round_job)                                                                                  \
    X(kv_write, rrl_kv_write_job)                                                                            \
    X(attention, rrl_attention_job)                                                                          \
    X(swiglu, rrl_swiglu_job)                                                                                \
    X(axpy, rrl_axpy_job)                                                                                    \
    X(lm_score, rrl_lm_score_job)                                                                            \
    X(sample, rrl_sample_job)                                                                                \
    X(rms_norm_backward, rrl_rms_norm_backward_job)                                                          \
    X(lora_backward_rows, rrl_lora_backward_job)                                                             \
    X(lora_backward_a, rrl_lora_backward_job)                                                                \
    X(lora_backward_b, rrl_lora_backward_job)                                                                \
    X(attention_backward, rrl_attention_backward_job)                                                        \
    X(swiglu_backward, rrl_swiglu_backward_job)                                                              \
    X(lm_backward, rrl_lm_backward_job)                                                                      \
    X(adamw, rrl_adamw_job)                                                                                  \
    X(sum_squares, rrl_sum_squares_job)

typedef struct {
    const char *isa;
#define X(name, job) void (*name)(const job *j, int64_t begin, int64_t end);
    RRL_KERNEL_LIST(X)
#undef X
} rrl_kernels;

extern const rrl_kernels rrl_kernels_reference, rrl_kernels_portable;
#if defined(__x86_64__)
extern const rrl_kernels rrl_kernels_avx2, rrl_kernels_avx512;
#endif

#endif
