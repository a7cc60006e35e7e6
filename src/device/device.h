/* The device: memory, packed weights and the op table - all that an accelerator must implement.
 *
 * Ops are named by their maths and work on ragged batches: rows of all sequences packed without padding. An op
 * enqueues, never allocates, never reads back; errors surface at sync. What changes per token lies in device memory.
 * A row's result depends on that row's inputs alone and has one order of operations (docs/numerics.md), so a number
 * never depends on what else is in the batch, on the thread count, or on the instruction set.
 *
 * Orders in f32 (the plain loops of cpu/reference.c are the definition; cpu/kernels.c equals them bit for bit):
 *   linear        acc = bias or 0; for k ascending acc = fma(x[k], w[n,k], acc)
 *   lora          u[j] = chain over k ascending from 0 of fma(xd[k], A[j,k], .); us[j] = scale * u[j];
 *                 y[n] continues: for j ascending y = fma(us[j], B[n,j], y)
 *   sums          16 lanes: element i goes to lane i % 16 in ascending i (a product by fma); then lane l += lane l+8, +4,
 *                 +2, +1
 *   attention     key blocks of RRL_KV_BLOCK at absolute positions in ascending order, online softmax, see below
 *   log-sum-exp   vocabulary blocks of RRL_VOCAB_BLOCK at absolute ids, block results joined in ascending order
 *   outer sums    over rows ascending, one fma chain per element */
#ifndef RRL_DEVICE_DEVICE_H
#define RRL_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rrl/status.h"

enum { RRL_KV_BLOCK = 32, RRL_VOCAB_BLOCK = 512, RRL_LANES = 16, RRL_MAX_LORA_RANK = 256 };

typedef enum { RRL_F32, RRL_BF16, RRL_F16 } rrl_dtype;

typedef struct rrl_device rrl_device;
/* A frozen matrix [n,k] packed once in the device's layout, for products with it and with its transpose. Each back end has
 * a struct of its own, which begins with int64_t n, k. */
typedef struct rrl_weight rrl_weight;

/* Ops recorded once, to be launched again and again: a back end's own. */
typedef struct rrl_graph rrl_graph;

/* A view: row-major, contiguous, in device memory. f32 in this version. */
typedef struct {
    float *data;
    int64_t rows, cols;
} rrl_tensor;

/* One ragged batch. All arrays in device memory. Rows of a sequence are consecutive and ascend in position. lora and
 * lora_backward may be given some consecutive rows of a batch: n_rows and the arrays of rows are theirs, seq_row and
 * n_seqs those of the whole; they take rows by row_seq. */
typedef struct {
    int32_t n_rows, n_seqs;
    const int32_t *token;    /* [n_rows] */
    const int32_t *position; /* [n_rows] absolute position of the row */
    const int32_t *row_seq;  /* [n_rows] sequence of the row */
    const int32_t *seq_row;  /* [n_seqs+1] first row of each sequence */
    const int32_t *adapter;  /* [n_seqs] index of the sequence's adapter, -1 = base */
} rrl_batch;

/* Keys and values in blocks of RRL_KV_BLOCK positions: per layer, block and kv head a K tile [head_dim, RRL_KV_BLOCK]
 * (transposed: lanes are keys) followed by a V tile [RRL_KV_BLOCK, head_dim]. A prompt's full blocks are shared by
 * table; a partly filled one is owned by each sequence. A number is stored as `dtype`, RRL_F32 or RRL_BF16, and read
 * back exactly: attention over a pool of either type gives the same bits where the numbers are the same. */
typedef struct {
    void *data; /* [n_layers, n_blocks, n_kv_heads, 2, head_dim * RRL_KV_BLOCK] of dtype */
    int32_t n_layers, n_blocks, n_kv_heads, head_dim;
    rrl_dtype dtype;
} rrl_kv_pool;

/* Block tables of a batch's sequences: table[s * stride + p / RRL_KV_BLOCK] = block of position p. */
typedef struct {
    const int32_t *table;
    int32_t stride;
} rrl_kv_table;

/* Where rows go: row write_row[i] of K and V is stored at offset write_at[i] of block write_block[i]. Every row is
 * written, and may be to several blocks (a prompt's tail that each completion owns). */
typedef struct {
    const int32_t *row, *block, *at;
    int32_t n;
} rrl_kv_writes;

/* The rows that attention is about to see, and what is done to them first. */
typedef struct {
    rrl_tensor q, k, v;
    const float *cos, *sin; /* [max_pos, head_dim/2]: q and k are rotated; NULL = they are not, and q is not looked at */
    rrl_dtype dtype;        /* k and v are rounded to it */
} rrl_kv_rows;

/* One LoRA module of one adapter. a [r,k], b [n,r] row-major as PEFT stores them; a_t and b_t, room for [k,r16] and
 * [r,n], take the transposed forms made by lora_pack in the back end's own layout; r16 = r rounded up to 16. */
typedef struct {
    const float *a, *b;
    float *a_t, *b_t;
    int32_t r, k, n;
    float scale; /* alpha / r */
} rrl_lora;

/* Keyed dropout of the LoRA input: element e of a row is kept iff word e % 4 of
 * philox(key = seq_key[s]; seq_sample[s], module + 65536 * iteration, position, e / 4) >= p * 2^32,
 * and then multiplied by 1 / (1 - p) in f32. p = 0: xd = x, no op. */
typedef struct {
    float p;
    uint32_t iteration;
    const uint32_t *seq_key;    /* [n_seqs, 2]: first 64 bits of the stream, see base/random.h */
    const uint32_t *seq_sample; /* [n_seqs] sample; 0xffffffff for a prompt computed once */
} rrl_dropout;

typedef struct {
    const rrl_lora *const *modules; /* host [n_modules], one an adapter: this module of it; NULL entry = not adapted */
    const rrl_dropout *dropout;     /* NULL = none */
    uint32_t module;                /* index of the module in the model, in the dropout key */
    int32_t n_modules;              /* adapters that the batch may name */
} rrl_lora_args;

/* Several products of one x, and several LoRA modules over one x, are one call: x is rounded, read and dropped out once,
 * and the work of all is one piece. No number depends on what else is in the call; outputs do not overlap. */
enum { RRL_MOST_PRODUCTS = 3 };
typedef struct {
    rrl_tensor y;
    const rrl_weight *w;
    const float *bias; /* NULL = none */
} rrl_product;
typedef struct {
    rrl_tensor y, u; /* all u of a call have as many columns */
    rrl_lora_args args;
} rrl_lora_product;

/* Settings of one row to sample. */
typedef struct {
    float temperature; /* 0 = argmax, lowest id; its log-prob is taken at temperature 1 */
    float top_p;       /* (0,1]; 1 = all */
    int32_t top_k;     /* 0 = all */
    float repetition_penalty;
    uint32_t key[2];   /* stream key, base/random.h */
    uint32_t sample, attempt, position;
    const int32_t *history; /* [n_history] prompt and completion so far, for the penalty */
    int32_t n_history;
} rrl_sample_row;

/* Sequences of a training batch for attention's backward: the keys of sequence s are the rows of parent[s] (a prompt,
 * -1 = none) followed by its own rows. */
typedef struct {
    const int32_t *parent; /* [n_seqs] */
} rrl_parents;

typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    double clip; /* gradients are multiplied by this factor first, 1 = none */
    int64_t step; /* 1, 2, ...: bias correction */
} rrl_adamw_args;

struct rrl_device_peers;
typedef struct {
    const char *name;
    /* the device itself, see rrl_device_close and what follows it below */
    void (*close)(rrl_device *d);
    const char *(*numeric_path)(const rrl_device *d);
    const char *(*isa)(const rrl_device *d);
    /* memory ------------------------------------------------------------------------------------------------- */
    rrl_status (*alloc)(rrl_device *d, void **out, size_t bytes, const char *what); /* 64-byte aligned, zeroed */
    void (*free)(rrl_device *d, void *p);
    rrl_status (*upload)(rrl_device *d, void *to, const void *host, size_t bytes);
    rrl_status (*download)(rrl_device *d, void *host, const void *from, size_t bytes); /* syncs */
    rrl_status (*sync)(rrl_device *d);
    /* weights: src in host memory, [n,k] row-major of dtype */
    rrl_status (*weight_pack)(rrl_device *d, rrl_weight **out, const void *src, rrl_dtype dtype, int64_t n, int64_t k);
    void (*weight_free)(rrl_device *d, rrl_weight **w);
    /* The same in steps, where processes can share the device's memory (else NULL): the bytes of a packed [n,k]; one
     * over `room` of them (64-byte aligned, zeroed or filled already, the caller's until weight_free); packing into it. */
    size_t (*weight_bytes)(const rrl_device *d, int64_t n, int64_t k);
    rrl_status (*weight_view)(rrl_device *d, rrl_weight **out, void *room, int64_t n, int64_t k);
    rrl_status (*weight_fill)(rrl_device *d, const rrl_weight *w, const void *src, rrl_dtype dtype);
    /* recorded ops; NULL where the device has none. From begin to end ops are recorded and not run, and memory, copies
     * and sync are errors. What their arguments named must stay, where it is, while the graph is launched; what lies there
     * is read at each launch. end with out NULL drops the recording. */
    rrl_status (*graph_begin)(rrl_device *d);
    rrl_status (*graph_end)(rrl_device *d, rrl_graph **out);
    rrl_status (*graph_launch)(rrl_device *d, rrl_graph *g);
    void (*graph_free)(rrl_device *d, rrl_graph **g);
    /* forward ------------------------------------------------------------------------------------------------ */
    /* y[row] = w[token[row]] */
    rrl_status (*embed)(rrl_device *d, rrl_tensor y, const rrl_weight *w, const rrl_batch *b);
    /* y = x / sqrt(mean(x^2) + eps) * w; mean by 16 lanes; factor r = 1 / sqrtf(.), y = (x * r) * w */
    rrl_status (*rms_norm)(rrl_device *d, rrl_tensor y, rrl_tensor x, const float *w, float eps);
    /* x += r, then y = rms_norm of x */
    rrl_status (*add_rms_norm)(rrl_device *d, rrl_tensor y, rrl_tensor x, rrl_tensor r, const float *w, float eps);
    /* y = x w^T + bias of each of n <= RRL_MOST_PRODUCTS products; `then` is a hint: the weight of the call that follows,
     * to be fetched meanwhile, NULL = not known */
    rrl_status (*linear)(rrl_device *d, rrl_tensor x, const rrl_product *products, int32_t n, const rrl_weight *then);
    /* y += scale * B (A dropout(x)) for rows with an adapter; u [rows, r16 max] receives us = scale * A xd; of each of
     * n <= RRL_MOST_PRODUCTS modules */
    rrl_status (*lora)(rrl_device *d, rrl_tensor x, const rrl_batch *b, const rrl_lora_product *products, int32_t n);
    /* rotate halves (Llama convention: i with i + head_dim/2) of n heads in place; cos, sin [max_pos, head_dim/2];
     * inverse = the transposed rotation, for gradients */
    rrl_status (*rope)(rrl_device *d, rrl_tensor x, int32_t n_heads, int32_t head_dim, const rrl_batch *b,
                       const float *cos, const float *sin, bool inverse);
    /* q and k are rotated in place as by rope; k and v become the nearest numbers of in->dtype, still as f32 (RRL_BF16:
     * ties to even, NaN stays NaN, a denormal is 0, see rrl_bf16_of; RRL_F32: as they are), before anything reads them,
     * in rollout and in training, so both see the same ones, and a gradient goes straight through; then they are stored,
     * rounded once more where the pool's dtype is narrower. */
    rrl_status (*kv_write)(rrl_device *d, const rrl_kv_pool *pool, int32_t layer, const rrl_kv_rows *in,
                           const rrl_batch *b, const rrl_kv_writes *w);
    /* copy whole block from -> to in every layer */
    rrl_status (*kv_copy)(rrl_device *d, const rrl_kv_pool *pool, const int32_t *from, const int32_t *to, int32_t n);
    /* causal attention of every row over positions 0..position[row] of its sequence. Per head and key block:
     * s[j] = (chain over d ascending of fma(q[d], k[j,d], .)) * scale; m' = max(m, max s); a = exp(m - m');
     * p[j] = exp(s[j] - m'); l16 *= a, then for j ascending l16[j % 16] += p[j]; o[d] = o * a, then for j ascending
     * o[d] = fma(p[j], v[j,d], o[d]). End: l = tree(l16), out = o / l, lse = m + log(l). lse [rows, heads] or empty. */
    rrl_status (*attention)(rrl_device *d, rrl_tensor out, rrl_tensor lse, rrl_tensor q, int32_t n_heads,
                            const rrl_kv_pool *pool, int32_t layer, const rrl_kv_table *table, const rrl_batch *b,
                            float scale);
    /* y = silu(gate) * up, silu(x) = x / (1 + exp(-x)) */
    rrl_status (*swiglu)(rrl_device *d, rrl_tensor y, rrl_tensor gate, rrl_tensor up);
    /* y[i] = x[row[i]] */
    rrl_status (*gather)(rrl_device *d, rrl_tensor y, rrl_tensor x, const int32_t *row);
    /* log-probability of target[i] at temperature[i], log-sum-exp (of logits / temperature) and entropy in nats of
     * row i. logp = (z[target] - max) - log(sum), z = logit / temperature, taken at 1 where temperature is 0. Any output
     * but logp may be NULL. scratch [rows, RRL_VOCAB_BLOCK]: rows x vocabulary are not held. Where the device
     * keeps_logits it may be [rows, vocabulary up to a whole block], and z stays there for lm_backward. */
    rrl_status (*lm_score)(rrl_device *d, float *logp, float *lse, float *entropy, rrl_tensor x, const rrl_weight *w,
                           const int32_t *target, const float *temperature, rrl_tensor scratch);
    /* Sample row i of logits [rows, vocabulary]: token, and its log-prob with exactly lm_score's order of sums.
     * Integer masses round(exp(z - max) * 2^40); order-free (docs/numerics.md). rows[] in device memory. */
    rrl_status (*sample)(rrl_device *d, int32_t *token, float *logp, rrl_tensor logits, const rrl_sample_row *rows);
    /* backward ----------------------------------------------------------------------------------------------- */
    /* dx (+)= d rms_norm: with xh = x * r: dx = r * (dy * w - xh * mean(dy * w * xh)) */
    rrl_status (*rms_norm_backward)(rrl_device *d, rrl_tensor dx, rrl_tensor dy, rrl_tensor x, const float *w,
                                    float eps, bool accumulate);
    /* dx (+)= dy w: chain over n ascending, from 0 or from dx */
    rrl_status (*linear_backward)(rrl_device *d, rrl_tensor dx, rrl_tensor dy, const rrl_weight *w, bool accumulate);
    /* For the rows of the one adapter `m` (batch rows with adapter 0): du = scale * (dy B), du [rows, r16] scratch;
     * da [r,k] += du^T xd, db [n,r] += dy^T us, dx += mask(du A). Sums over rows ascending. us as lora() left it. */
    rrl_status (*lora_backward)(rrl_device *d, float *da, float *db, rrl_tensor dx, rrl_tensor du, rrl_tensor dy,
                                rrl_tensor x, rrl_tensor us, const rrl_lora *m, const rrl_batch *b,
                                const rrl_lora_args *args);
    /* dq, dk, dv from dout; q, k, v, out in rows (k, v after rope), keys by parents (which have no parent themselves).
     * p = exp(s * scale - lse), ds = (p * (dout . v - delta)) * scale, delta = dout . out by lanes; dq sums over keys
     * ascending, dk and dv over the query heads of the kv head, within a head over query rows ascending. Overwritten. */
    rrl_status (*attention_backward)(rrl_device *d, rrl_tensor dq, rrl_tensor dk, rrl_tensor dv, rrl_tensor dout,
                                     rrl_tensor out, rrl_tensor lse, rrl_tensor q, rrl_tensor k, rrl_tensor v,
                                     int32_t n_heads, int32_t head_dim, const rrl_batch *b, const rrl_parents *p,
                                     float scale);
    rrl_status (*swiglu_backward)(rrl_device *d, rrl_tensor dgate, rrl_tensor dup, rrl_tensor dy, rrl_tensor gate,
                                  rrl_tensor up);
    /* x[row[i]] += y[i], i ascending */
    rrl_status (*scatter_add)(rrl_device *d, rrl_tensor x, rrl_tensor y, const int32_t *row);
    /* dx = d(sum_i dlogp[i] * logp[i]) / dx: dlogit[v] = dlogp * ((v == target) - exp(z[v] - lse)) / temperature.
     * x.data NULL: z is what lm_score of these rows left in this scratch, and is used up. */
    rrl_status (*lm_backward)(rrl_device *d, rrl_tensor dx, rrl_tensor x, const rrl_weight *w, const int32_t *target,
                              const float *temperature, const float *lse, const float *dlogp, rrl_tensor scratch);
    /* trainable vectors -------------------------------------------------------------------------------------- */
    rrl_status (*lora_pack)(rrl_device *d, const rrl_lora *m); /* a_t, b_t from a, b */
    rrl_status (*adamw)(rrl_device *d, float *p, float *m, float *v, const float *g, int64_t n,
                        const rrl_adamw_args *args);
    /* *out (device memory, double) = sum of squares: blocks of 4096 elements by 16 f64 lanes, blocks added ascending */
    rrl_status (*sum_squares)(rrl_device *d, double *out, const float *x, int64_t n);
    rrl_status (*axpy)(rrl_device *d, float *y, const float *x, float a, int64_t n); /* y = fma(a, x, y) */
    rrl_status (*zero)(rrl_device *d, float *y, int64_t n);
    bool keeps_logits; /* see lm_score */
    /* Rows that a product, what is added to it and what reads it should take at a time, so that they find it in the
     * caches; 0 = as many as there are. */
    int32_t near_rows;
    /* between processes: device/collective.h. NULL = alloc gives host memory, which host collectives work on as it lies */
    const struct rrl_device_peers *peers;
} rrl_device_ops;

struct rrl_device {
    const rrl_device_ops *ops;
    void *state; /* the back end's own */
    /* What models on this device round keys and values to: RRL_F32 (as opened) or RRL_BF16; set before the first of them
     * is opened. Part of the numeric path. */
    rrl_dtype kv_dtype;
};

/** Open the CPU back end. isa: "auto", "portable", "avx2", "avx512", or "reference" (plain loops); a name the machine
 *  lacks is RRL_ERR_CONFIG naming those it has. threads >= 1 (a pool of threads - 1 workers plus the caller). */
rrl_status rrl_cpu_open(rrl_device **out, const char *isa, int threads);
/** The same with products in `dtype`: RRL_F32, or RRL_BF16 (weights and, at the input of a product, activations rounded
 *  to bf16, sums in f32 in one order). isa may then also be "amx"; "auto" takes it first where it works. */
rrl_status rrl_cpu_open_dtype(rrl_device **out, rrl_dtype dtype, const char *isa, int threads);
void rrl_device_close(rrl_device **d);
/** Numeric path of the device, part of a run's identity: "f32-asc" or "bf16-tile" (all CPU ISAs give the same bits), with
 *  "/kv-bf16" where keys and values are rounded to bfloat16; and the ISA. */
const char *rrl_device_numeric_path(const rrl_device *d);
const char *rrl_device_isa(const rrl_device *d);
int64_t rrl_weight_rows(const rrl_weight *w);
int64_t rrl_weight_cols(const rrl_weight *w);
/** Bytes the packed form of an [n,k] matrix takes, for the memory plan. */
size_t rrl_cpu_weight_bytes(int64_t n, int64_t k);
size_t rrl_cpu_weight_bytes_bf16(int64_t n, int64_t k);
/* The same of its bf16 path: rows whose results stay in the second cache until they are read (near_rows), and weights of
 * which it keeps W^T. */
enum { RRL_BF16_NEAR_ROWS = 256, RRL_BF16_TURNED = 3 };

#endif
