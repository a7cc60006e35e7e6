#include "ops_cases.h"

#include "check.h"

#include <stdint.h>

#include "device/cpu/cpu.h"
#include "device_inputs.h"

/* One case under way: the device, the numbers, what is written, and device memory to give back. */
typedef struct {
    rrl_device *d;
    const rrl_device_ops *ops;
    rng *g;
    ops_written *out;
    bool kept;
    void *held[128];
    int n_held;
} run;

/* --- device memory */

static void *hold(run *c, size_t bytes) {
    void *p = NULL;
    CHECK_OK(c->ops->alloc(c->d, &p, bytes, "a test's numbers"));
    if (!CHECK(c->n_held < 128)) exit(1);
    return c->held[c->n_held++] = p;
}

static void *on_device(run *c, const void *host, size_t bytes) {
    void *p = hold(c, bytes);
    CHECK_OK(c->ops->upload(c->d, p, host, bytes));
    return p;
}

/* rows x cols numbers made on the host (freed here). */
static rrl_tensor send(run *c, float *host, int64_t rows, int64_t cols) {
    const rrl_tensor t = {on_device(c, host, (size_t)(rows * cols) * sizeof *host), rows, cols};
    free(host);
    return t;
}

static rrl_tensor some(run *c, int64_t rows, int64_t cols, float scale) {
    return send(c, numbers(c->g, rows * cols, scale), rows, cols);
}

/* --- writing down */

static void put(run *c, const void *p, size_t bytes, double bound) {
    ops_written_add(c->out, p, bytes, bound);
}

static void put_device(run *c, const void *from, size_t bytes, double bound) {
    char *host = calloc(bytes ? bytes : 1, 1);
    CHECK_OK(c->ops->download(c->d, host, from, bytes));
    put(c, host, bytes, bound);
    free(host);
}

static void put_near(run *c, rrl_tensor t, double bound) {
    put_device(c, t.data, (size_t)(t.rows * t.cols) * sizeof(float), bound);
}

static void put_exact(run *c, rrl_tensor t) {
    put_near(c, t, 0);
}

/* Worst case of a float32 sum of n products of numbers up to x and w: n terms, n roundings each of half an ulp of a
 * partial sum; twice, for the two orders compared. */
static double sum_bound(int64_t n, double x, double w) {
    return 2 * (double)n * 0x1p-24 * ((double)n * x * w) + 0x1p-24 * (double)n * x * w;
}

void ops_case_equal(const ops_written *want, const ops_written *got, const char *name, int round, const char *who) {
    CHECK(ops_written_equal(want, got, name, round, who));
}

void ops_case_near(const ops_written *want, const ops_written *got, const char *name, int round, const char *who) {
    CHECK(ops_written_near(want, got, name, round, who));
}

int ops_cases_failures(void) {
    return check_failures;
}

/* --- batches */

/* A ragged batch of n_seqs sequences; positions start anywhere. */
enum { MAX_SEQS = 6, MAX_ROWS = 1400, SEQ_BLOCKS = 16 };
typedef struct {
    rrl_batch b; /* on the device */
    int32_t n_rows, n_seqs;
    int32_t token[MAX_ROWS], position[MAX_ROWS], row_seq[MAX_ROWS], seq_row[MAX_SEQS + 1], adapter[MAX_SEQS];
} ragged;

static void make_batch(run *c, ragged *r, int n_seqs, int longest, int last_start, int vocabulary, int n_adapters) {
    const size_t word = sizeof(int32_t);
    int n = 0;
    for (int s = 0; s < n_seqs; ++s) {
        int length = pick(c->g, 1, longest), start = pick(c->g, 0, last_start);
        r->seq_row[s] = n;
        r->adapter[s] = pick(c->g, -1, n_adapters - 1);
        for (int i = 0; i < length; ++i, ++n) {
            r->token[n] = pick(c->g, 0, vocabulary - 1);
            r->position[n] = start + i;
            r->row_seq[n] = s;
        }
    }
    r->seq_row[n_seqs] = n;
    r->n_rows = n;
    r->n_seqs = n_seqs;
    const size_t rows = (size_t)n * word, seqs = (size_t)n_seqs * word;
    r->b = (rrl_batch){n,
                       n_seqs,
                       on_device(c, r->token, rows),
                       on_device(c, r->position, rows),
                       on_device(c, r->row_seq, rows),
                       on_device(c, r->seq_row, seqs + word),
                       on_device(c, r->adapter, seqs)};
}

/* --- cases */

static void case_embed(run *c) {
    int vocabulary = odd_size(c->g, 90), hidden = odd_size(c->g, 100);
    ragged r;
    make_batch(c, &r, pick(c->g, 1, 4), 9, 3, vocabulary, 1);
    rrl_weight *w = weight(c->d, c->g, vocabulary, hidden);
    rrl_tensor y = some(c, r.n_rows, hidden, 1);
    CHECK_EQ_INT(rrl_weight_rows(w), vocabulary);
    CHECK_EQ_INT(rrl_weight_cols(w), hidden);
    CHECK_OK(c->ops->embed(c->d, y, w, &r.b));
    put_exact(c, y);
    c->ops->weight_free(c->d, &w);
}

static void case_rms_norm(run *c) {
    int rows = pick(c->g, 1, 40), n = odd_size(c->g, 300);
    rrl_tensor x = some(c, rows, n, 3), y = some(c, rows, n, 1), dy = some(c, rows, n, 1), dx = some(c, rows, n, 1);
    rrl_tensor w = some(c, 1, n, 1);
    CHECK_OK(c->ops->rms_norm(c->d, y, x, w.data, 1e-5f));
    CHECK_OK(c->ops->rms_norm_backward(c->d, dx, dy, x, w.data, 1e-5f, pick(c->g, 0, 1)));
    put_exact(c, y);
    put_exact(c, dx);
    CHECK_OK(c->ops->add_rms_norm(c->d, y, x, dy, w.data, 1e-5f));
    put_exact(c, y);
    put_exact(c, x);
}

static void case_linear(run *c) {
    int rows = pick(c->g, 0, 2) ? pick(c->g, 1, 40) : pick(c->g, 250, 400);
    int n = odd_size(c->g, 200), k = pick(c->g, 0, 2) ? odd_size(c->g, 100) : pick(c->g, 250, 600);
    int n_products = pick(c->g, 1, RRL_MOST_PRODUCTS);
    rrl_tensor x = some(c, rows, k, 1), dy = some(c, rows, n, 1), dx = some(c, rows, k, 1);
    rrl_weight *w[RRL_MOST_PRODUCTS];
    rrl_product products[RRL_MOST_PRODUCTS];
    for (int i = 0; i < n_products; ++i) {
        const int outputs = i == 0 ? n : odd_size(c->g, 200);
        const rrl_tensor bias = some(c, 1, outputs, 1);
        w[i] = weight(c->d, c->g, outputs, k);
        products[i] = (rrl_product){some(c, rows, outputs, 1), w[i], pick(c->g, 0, 1) ? bias.data : NULL};
    }
    CHECK_OK(c->ops->linear(c->d, x, products, n_products, pick(c->g, 0, 1) ? w[0] : NULL));
    CHECK_OK(c->ops->linear_backward(c->d, dx, dy, w[0], pick(c->g, 0, 1)));
    for (int i = 0; i < n_products; ++i) put_near(c, products[i].y, sum_bound(k + 1, 1, 0.3) + 0x1p-23);
    put_near(c, dx, sum_bound(n + 1, 1, 0.3) + 0x1p-23);
    for (int i = 0; i < n_products; ++i) c->ops->weight_free(c->d, &w[i]);
}

static void make_lora(run *c, rrl_lora *m, int r, int n, int k) {
    const rrl_tensor a = some(c, r, k, 0.5f), b = some(c, n, r, 0.5f);
    *m = (rrl_lora){.a = a.data, .b = b.data, .r = r, .k = k, .n = n, .scale = 2.0f / 3.0f};
    m->a_t = some(c, k, (r + 15) / 16 * 16, 1).data;
    m->b_t = some(c, r, n, 1).data;
    CHECK_OK(c->ops->lora_pack(c->d, m));
}

/* Adapters of one module. */
enum { MANY_ADAPTERS = 130 };
typedef struct {
    rrl_lora m[2];
    const rrl_lora *of[MANY_ADAPTERS];
} adapters;

/* Of different ranks, the third without this module. */
static void make_adapters(run *c, adapters *a, int r, int n, int k) {
    make_lora(c, &a->m[0], r, n, k);
    make_lora(c, &a->m[1], pick(c->g, 1, r), n, k);
    for (int i = 0; i < MANY_ADAPTERS; ++i) a->of[i] = i == 2 ? NULL : &a->m[i % 2];
}

/* More adapters than a kernel's table has places: sequences of the second have one of the last instead. */
static void name_last_adapters(run *c, ragged *batch) {
    for (int s = 0; s < batch->n_seqs; ++s)
        if (batch->adapter[s] == 1) batch->adapter[s] = MANY_ADAPTERS - 1 - s;
    CHECK_OK(c->ops->upload(c->d, (void *)batch->b.adapter, batch->adapter,
                            (size_t)batch->n_seqs * sizeof *batch->adapter));
}

/* One to three modules over one x. */
static void case_lora(run *c) {
    int n = odd_size(c->g, 200), k = pick(c->g, 0, 2) ? odd_size(c->g, 150) : pick(c->g, 250, 600);
    int r = pick(c->g, 0, 5) ? pick(c->g, 1, 40) : pick(c->g, 100, 256);
    ragged batch;
    make_batch(c, &batch, pick(c->g, 1, MAX_SEQS), 40, 3, 10, 3);
    int n_modules = pick(c->g, 0, 2) ? 3 : MANY_ADAPTERS, n_products = pick(c->g, 1, RRL_MOST_PRODUCTS);
    if (n_modules > 3) name_last_adapters(c, &batch);
    uint32_t key[2 * MAX_SEQS], sample[MAX_SEQS];
    for (int s = 0; s < MAX_SEQS; ++s) {
        key[2 * s] = (uint32_t)next_bits(c->g);
        key[2 * s + 1] = (uint32_t)next_bits(c->g);
        sample[s] = (uint32_t)pick(c->g, 0, 9);
    }
    rrl_dropout dropout = {pick(c->g, 0, 1) ? 0.3f : 0.0f, 1, on_device(c, key, sizeof key),
                           on_device(c, sample, sizeof sample)};
    int rows = batch.n_rows, r16 = (r + 15) / 16 * 16;
    bool dropped = pick(c->g, 0, 3);
    adapters of[RRL_MOST_PRODUCTS];
    rrl_lora_product products[RRL_MOST_PRODUCTS];
    for (int i = 0; i < n_products; ++i) {
        const int outputs = i == 0 ? n : odd_size(c->g, 200);
        make_adapters(c, &of[i], r, outputs, k);
        products[i] = (rrl_lora_product){some(c, rows, outputs, 1), some(c, rows, r16, 1),
                                         {of[i].of, dropped ? &dropout : NULL, 5 + (uint32_t)i, n_modules}};
    }
    rrl_tensor x = some(c, rows, k, 1);
    CHECK_OK(c->ops->lora(c->d, x, &batch.b, products, n_products));
    rrl_tensor dy = some(c, rows, n, 1), dx = some(c, rows, k, 1), du = some(c, rows, r16, 1);
    rrl_tensor da = some(c, r, k, 1), db = some(c, n, r, 1), us = some(c, rows, r16, 1);
    CHECK_OK(c->ops->lora_backward(c->d, da.data, db.data, dx, du, dy, x, us, &of[0].m[0], &batch.b,
                                   &products[0].args));
    /* u in another order, and what its error makes of y; dropout multiplies by up to 1 / 0.7 */
    const double keep = 1 / 0.7, u_bound = sum_bound(k, keep, 0.5), du_bound = sum_bound(n, 1, 0.5);
    for (int i = 0; i < n_products; ++i) {
        put_near(c, products[i].u, u_bound);
        put_near(c, products[i].y, r * 0.5 * u_bound + sum_bound(r, k * keep * 0.5, 0.5));
    }
    put_near(c, dx, keep * (r * 0.5 * du_bound + sum_bound(r, n * 0.5, 0.5)));
    put_near(c, da, rows * keep * du_bound + sum_bound(rows, n * 0.5, keep));
    put_exact(c, db);
}

static void case_rope(run *c) {
    int heads = pick(c->g, 1, 4), dim = 2 * pick(c->g, 1, 40);
    ragged r;
    make_batch(c, &r, 3, 9, 20, 10, 1);
    rrl_tensor x = some(c, r.n_rows, heads * dim, 1), cosine = some(c, 40, dim / 2, 1), sine = some(c, 40, dim / 2, 1);
    CHECK_OK(c->ops->rope(c->d, x, heads, dim, &r.b, cosine.data, sine.data, pick(c->g, 0, 1)));
    put_exact(c, x);
}

/* Numbers of all sizes, and what rounding treats apart: ties, denormals, infinity, NaN. */
static rrl_tensor wild(run *c, int64_t rows, int64_t cols) {
    static const uint32_t special[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x00400000, 0x80000001, 0x7f7fffff,
                                       0x7f800000, 0xff800000, 0x7f800001, 0xffc00000, 0x80000000, 0x00800000};
    float *host = numbers(c->g, rows * cols, 1);
    for (int64_t i = 0; i < rows * cols; ++i) {
        uint32_t u = pick(c->g, 0, 3) ? (uint32_t)next_bits(c->g) : special[pick(c->g, 0, 11)];
        memcpy(&host[i], &u, sizeof u);
    }
    return send(c, host, rows, cols);
}

/* Rows of q, k, v: rotated or not, of ordinary numbers or of wild ones (those are not rotated: NaNs have no one pattern),
 * stored once each or some of them twice. What lies in the cache is what a copy of its blocks holds. */
static void case_kv_write(run *c) {
    enum { BLOCKS = 3, MOST_WRITES = 64 };
    const bool rotated = pick(c->g, 0, 1), twice = pick(c->g, 0, 1);
    const int kv_heads = pick(c->g, 1, 3), group = pick(c->g, 1, 3), half = pick(c->g, 1, 20);
    const int dim = rotated ? 2 * half : pick(c->g, 1, 40), cols = kv_heads * dim;
    ragged r;
    make_batch(c, &r, 3, 9, 20, 10, 1);
    const size_t size = 2ul * BLOCKS * (size_t)cols * 2 * RRL_KV_BLOCK * sizeof(float);
    char *nothing = calloc(size, 1);
    rrl_kv_pool pool = {on_device(c, nothing, size), 2, BLOCKS, kv_heads, dim, pick(c->g, 0, 1) ? RRL_BF16 : RRL_F32};
    free(nothing);
    int32_t row[MOST_WRITES], block[MOST_WRITES], at[MOST_WRITES], n = 0;
    for (int i = r.n_rows - 1; i >= 0; --i, ++n) row[n] = i, block[n] = i / RRL_KV_BLOCK, at[n] = i % RRL_KV_BLOCK;
    for (int i = 0; twice && i < r.n_rows; i += 3, ++n) row[n] = i, block[n] = BLOCKS - 1, at[n] = i;
    const size_t bytes = (size_t)n * sizeof *row;
    const rrl_kv_writes w = {on_device(c, row, bytes), on_device(c, block, bytes), on_device(c, at, bytes), n};
    const rrl_tensor cosine = some(c, 40, half, 1), sine = some(c, 40, half, 1);
    rrl_kv_rows in = {.dtype = pick(c->g, 0, 1) ? RRL_BF16 : RRL_F32};
    in.q = some(c, r.n_rows, group * cols, 1);
    in.k = rotated ? some(c, r.n_rows, cols, 1) : wild(c, r.n_rows, cols);
    in.v = rotated ? some(c, r.n_rows, cols, 1) : wild(c, r.n_rows, cols);
    if (rotated) in.cos = cosine.data, in.sin = sine.data;
    CHECK_OK(c->ops->kv_write(c->d, &pool, 1, &in, &r.b, &w));
    put_exact(c, in.q);
    put_exact(c, in.k);
    put_exact(c, in.v);
    put_device(c, pool.data, pool.dtype == RRL_BF16 ? size / 2 : size, 0);
}

/* A cache whose unwritten places are NaN: nothing may read them. Some blocks are moved by kv_copy. */
typedef struct {
    rrl_kv_pool pool;
    rrl_kv_table table;
    int32_t entry[MAX_SEQS * SEQ_BLOCKS];
} cache;

static void make_cache(run *c, cache *x, const ragged *b, int kv_heads, int dim) {
    enum { BLOCKS = MAX_SEQS * SEQ_BLOCKS };
    const size_t size = 2ul * (BLOCKS + 1) * (size_t)kv_heads * 2 * (size_t)dim * RRL_KV_BLOCK * sizeof(float);
    char *nothing = malloc(size);
    memset(nothing, 0xff, size); /* NaN in both types */
    x->pool =
        (rrl_kv_pool){on_device(c, nothing, size), 2, BLOCKS + 1, kv_heads, dim, pick(c->g, 0, 1) ? RRL_BF16 : RRL_F32};
    free(nothing);
    for (int i = 0; i < BLOCKS; ++i) x->entry[i] = i;
    for (int i = BLOCKS - 1; i > 0; --i) {
        int other = pick(c->g, 0, i), t = x->entry[i];
        x->entry[i] = x->entry[other];
        x->entry[other] = t;
    }
    for (int s = 0; s < b->n_seqs; ++s) {
        int n = b->position[b->seq_row[s + 1] - 1] + 1;
        int32_t row[SEQ_BLOCKS * RRL_KV_BLOCK], block[SEQ_BLOCKS * RRL_KV_BLOCK], at[SEQ_BLOCKS * RRL_KV_BLOCK];
        for (int p = 0; p < n; ++p) {
            row[p] = p;
            block[p] = x->entry[s * SEQ_BLOCKS + p / RRL_KV_BLOCK];
            at[p] = p % RRL_KV_BLOCK;
        }
        rrl_tensor k = some(c, n, kv_heads * dim, 1), v = some(c, n, kv_heads * dim, 1);
        const size_t bytes = (size_t)n * sizeof *row;
        rrl_kv_writes w = {on_device(c, row, bytes), on_device(c, block, bytes), on_device(c, at, bytes), n};
        CHECK_OK(c->ops->kv_write(c->d, &x->pool, 1, &(rrl_kv_rows){.k = k, .v = v}, &b->b, &w));
    }
    int32_t *from = on_device(c, &x->entry[0], sizeof *from), spare = BLOCKS, *to = on_device(c, &spare, sizeof spare);
    CHECK_OK(c->ops->kv_copy(c->d, &x->pool, from, to, 1)); /* the first block of the first sequence moves */
    x->entry[0] = BLOCKS;
    x->table = (rrl_kv_table){on_device(c, x->entry, sizeof x->entry), SEQ_BLOCKS};
}

static void attend(run *c, int n_seqs, int longest, int kv_heads, int group, int dim) {
    ragged r;
    cache x;
    make_batch(c, &r, n_seqs, longest, 150, 10, 1);
    make_cache(c, &x, &r, kv_heads, dim);
    rrl_tensor q = some(c, r.n_rows, kv_heads * group * dim, 2), o = some(c, q.rows, q.cols, 1);
    rrl_tensor lse = some(c, q.rows, kv_heads * group, 1), none = {0};
    CHECK_OK(c->ops->attention(c->d, o, pick(c->g, 0, 1) ? lse : none, q, kv_heads * group, &x.pool, 1, &x.table, &r.b,
                               0.37f));
    put_exact(c, o);
    put_exact(c, lse);
}

static void case_attention(run *c) {
    int kv_heads = pick(c->g, 1, 3), group = pick(c->g, 1, 5),
        dim = pick(c->g, 0, 1) ? 16 * pick(c->g, 1, 5) : pick(c->g, 1, 70);
    attend(c, pick(c->g, 1, MAX_SEQS), pick(c->g, 0, 1) ? 1 : 45, kv_heads, group, dim);
}

/* Large heads, many heads a kv head, and more rows than are taken one by one. */
static void case_attention_large(run *c) {
    int kind = pick(c->g, 0, 3);
    if (kind == 0)
        attend(c, MAX_SEQS, 230, 1, pick(c->g, 1, 3), 8); /* above a thousand rows in most rounds */
    else
        attend(c, 2, kind == 1 ? 1 : 3, 1, kind == 2 ? 40 : 2, kind == 1 ? 256 : kind == 2 ? 16 : 128);
}

static void attend_backward(run *c, int longest, int kv_heads, int heads, int dim) {
    ragged r;
    make_batch(c, &r, pick(c->g, 1, 5), longest, 0, 10, 1);
    int32_t parent[MAX_SEQS];
    for (int s = 0; s < r.n_seqs; ++s) parent[s] = s && pick(c->g, 0, 2) ? 0 : -1;
    rrl_parents parents = {on_device(c, parent, sizeof parent)};
    int rows = r.n_rows;
    rrl_tensor q = some(c, rows, heads * dim, 1), k = some(c, rows, kv_heads * dim, 1);
    rrl_tensor v = some(c, rows, kv_heads * dim, 1), o = some(c, rows, heads * dim, 1);
    rrl_tensor dout = some(c, rows, heads * dim, 1), lse = some(c, rows, heads, 1);
    rrl_tensor dq = some(c, rows, heads * dim, 1), dk = some(c, rows, k.cols, 1), dv = some(c, rows, k.cols, 1);
    CHECK_OK(c->ops->attention_backward(c->d, dq, dk, dv, dout, o, lse, q, k, v, heads, dim, &r.b, &parents, 0.4f));
    put_exact(c, dq);
    put_exact(c, dk);
    put_exact(c, dv);
}

static void case_attention_backward(run *c) {
    int kv_heads = pick(c->g, 1, 3), heads = kv_heads * pick(c->g, 1, 3),
        dim = pick(c->g, 0, 1) ? 32 : pick(c->g, 1, 50);
    if (pick(c->g, 0, 7) == 0)
        attend_backward(c, 10, 1, 2, pick(c->g, 0, 1) ? 128 : 256);
    else
        attend_backward(c, 70, kv_heads, heads, dim);
}

static void case_elementwise(run *c) {
    int rows = pick(c->g, 1, 60), n = odd_size(c->g, 100);
    float *host = numbers(c->g, rows * n, 30);
    host[0] = 200.0f;
    host[rows * n - 1] = -200.0f;
    rrl_tensor gate = send(c, host, rows, n), up = some(c, rows, n, 2), y = some(c, rows, n, 1);
    rrl_tensor dgate = some(c, rows, n, 1), dup = some(c, rows, n, 1);
    double *sum = hold(c, sizeof *sum);
    CHECK_OK(c->ops->swiglu_backward(c->d, dgate, dup, y, gate, up));
    CHECK_OK(c->ops->swiglu(c->d, y, gate, up));
    CHECK_OK(c->ops->axpy(c->d, y.data, dgate.data, 0.3f, y.rows * y.cols));
    CHECK_OK(c->ops->sum_squares(c->d, sum, up.data, rows * n));
    put_device(c, sum, sizeof *sum, 0);
    CHECK_OK(c->ops->zero(c->d, dup.data, rows * n / 2));
    put_exact(c, dup);
    rrl_adamw_args a = {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.7, 3};
    host = numbers(c->g, rows * n, 1);
    for (int i = 0; i < rows * n; ++i) host[i] = fabsf(host[i]);
    rrl_tensor second = send(c, host, rows, n);
    CHECK_OK(c->ops->adamw(c->d, y.data, dgate.data, second.data, up.data, rows * n, &a));
    put_exact(c, y);
    put_exact(c, dgate);
    put_exact(c, second);
}

static void case_vocabulary(run *c) {
    enum { MOST = 50 };
    int rows = pick(c->g, 1, MOST), hidden = odd_size(c->g, 70), vocabulary = odd_size(c->g, 200);
    if (pick(c->g, 0, 2)) { /* several blocks, and rows that fill a small working room */
        vocabulary = pick(c->g, 500, 1200);
        hidden = pick(c->g, 50, 70);
    }
    rrl_weight *w = weight(c->d, c->g, vocabulary, hidden);
    rrl_tensor x = some(c, rows, hidden, 3), scratch = some(c, rows, RRL_VOCAB_BLOCK, 1);
    rrl_tensor all = some(c, rows, (vocabulary + RRL_VOCAB_BLOCK - 1) / RRL_VOCAB_BLOCK * RRL_VOCAB_BLOCK, 1);
    rrl_tensor logp = some(c, rows, 1, 1), lse = some(c, rows, 1, 1), entropy = some(c, rows, 1, 1);
    rrl_tensor dlogp = some(c, rows, 1, 1), dx = some(c, rows, hidden, 1), logits = some(c, rows, vocabulary, 1);
    int32_t target[MOST];
    float temperature[MOST], sampled_logp[MOST], trained_logp[MOST];
    rrl_sample_row row[MOST];
    for (int i = 0; i < rows; ++i) {
        target[i] = pick(c->g, 0, vocabulary - 1);
        temperature[i] = (const float[]){1.0f, 0.7f, 1.3f}[pick(c->g, 0, 2)];
        row[i] =
            (rrl_sample_row){.temperature = temperature[i], .top_p = 1, .repetition_penalty = 1, .sample = (uint32_t)i};
    }
    const int32_t *targets = on_device(c, target, sizeof target);
    const float *temperatures = on_device(c, temperature, sizeof temperature);
    const rrl_sample_row *settings = on_device(c, row, sizeof row);
    int32_t *token = hold(c, sizeof target);
    CHECK_OK(c->ops->lm_score(c->d, logp.data, lse.data, entropy.data, x, w, targets, temperatures, scratch));
    /* a scaled logit's error; that of a log-prob is twice it, and an ulp or two of log and max */
    const double z = sum_bound(hidden, 3, 0.3) / 0.7, log_bound = 2 * z + 1e-5, size = 3 * 0.3 * hidden / 0.7;
    put_near(c, logp, log_bound);
    put_near(c, lse, log_bound);
    put_near(c, entropy, 2 * z * (1 + size) + 1e-4); /* its derivative by a logit is p (log p + H) */
    /* from one lse for all devices, so that the error is that of this op. bf16 products round the gradients of logits,
     * and those a little apart may go to neighbours, 2^-8 of them away. */
    const double flip = strstr(rrl_device_numeric_path(c->d), "bf16") ? 0x1p-8 : 0;
    float host[MOST];
    for (int i = 0; i < rows; ++i) host[i] = (float)size;
    CHECK_OK(c->ops->upload(c->d, lse.data, host, (size_t)rows * sizeof(float)));
    if (c->ops->keeps_logits && pick(c->g, 0, 1)) {
        CHECK_OK(c->ops->lm_score(c->d, logp.data, NULL, NULL, x, w, targets, temperatures, all));
        CHECK_OK(c->ops->lm_backward(c->d, dx, (rrl_tensor){0}, w, targets, temperatures, lse.data, dlogp.data, all));
    } else
        CHECK_OK(c->ops->lm_backward(c->d, dx, x, w, targets, temperatures, lse.data, dlogp.data, scratch));
    put_near(c, dx, 0.3 / 0.7 * vocabulary * (2 * z + 1e-5 + 2 * flip) + sum_bound(vocabulary, 2 / 0.7, 0.3));
    /* the log-prob of a sampled token is the one that training computes for it, to the bit */
    CHECK_OK(c->ops->linear(c->d, x, &(rrl_product){logits, w, NULL}, 1, NULL));
    CHECK_OK(c->ops->sample(c->d, token, dlogp.data, logits, settings));
    CHECK_OK(c->ops->lm_score(c->d, logp.data, NULL, pick(c->g, 0, 1) ? entropy.data : NULL, x, w, token, temperatures,
                              scratch));
    CHECK_OK(c->ops->download(c->d, sampled_logp, dlogp.data, (size_t)rows * sizeof(float)));
    CHECK_OK(c->ops->download(c->d, trained_logp, logp.data, (size_t)rows * sizeof(float)));
    CHECK(memcmp(sampled_logp, trained_logp, (size_t)rows * sizeof(float)) == 0);
    put_near(c, logits, sum_bound(hidden, 3, 0.3));
    put_device(c, token, (size_t)rows * sizeof *token, INFINITY); /* a token may change with its logits' last bit */
    put_near(c, logp, INFINITY);
    c->ops->weight_free(c->d, &w);
}

/* Sample, with the kept masses where the device tells them; its tokens must be the same then. */
static void sample(run *c, int32_t *token, rrl_tensor logp, rrl_tensor logits, const rrl_sample_row *rows) {
    const size_t n = (size_t)(logits.rows * logits.cols), bytes = (size_t)logits.rows * sizeof *token;
    CHECK_OK(c->ops->sample(c->d, token, logp.data, logits, rows));
    put_device(c, token, bytes, 0);
    put_exact(c, logp);
    if (!c->kept) return;
    int32_t *again = malloc(bytes);
    uint64_t *kept = malloc(n * sizeof *kept);
    CHECK_OK(rrl_cpu_sample_kept(c->d, again, logp.data, kept, logits, rows));
    CHECK(memcmp(token, again, bytes) == 0);
    put(c, kept, n * sizeof *kept, 0);
    free(again);
    free(kept);
}

/* every combination of settings, ties and tails */
static void case_sample(run *c) {
    enum { ROWS = 24, HISTORY = 20 };
    const int kind = pick(c->g, 0, 7), vocabulary = kind == 0  ? pick(c->g, 6000, 9000)
                                                    : kind < 4 ? pick(c->g, 1, 100)
                                                               : pick(c->g, 500, 1500);
    const int rows = kind == 0 ? 4 : ROWS;
    float *host = numbers(c->g, (int64_t)rows * vocabulary, 1);
    int32_t history[HISTORY];
    rrl_sample_row row[ROWS];
    for (int h = 0; h < HISTORY; ++h) history[h] = pick(c->g, 0, vocabulary - 1);
    const int32_t *there = on_device(c, history, sizeof history);
    for (int i = 0; i < rows; ++i) {
        float spread = (const float[]){0.01f, 1, 8, 60}[pick(c->g, 0, 3)];
        bool ties = pick(c->g, 0, 1);
        for (int v = 0; v < vocabulary; ++v) {
            float *z = &host[i * vocabulary + v];
            *z = ties ? rintf(*z * 3) * spread : *z * spread;
        }
        row[i] = (rrl_sample_row){.temperature = (const float[]){0, 0.7f, 1, 2}[pick(c->g, 0, 3)],
                                  .top_p = (const float[]){1, 0.95f, 0.5f, 1e-6f}[pick(c->g, 0, 3)],
                                  .top_k = (const int[]){0, 0, 1, 5, 5000}[pick(c->g, 0, 4)],
                                  .repetition_penalty = pick(c->g, 0, 1) ? 1.0f : 1.3f,
                                  .key = {(uint32_t)next_bits(c->g), 7},
                                  .position = (uint32_t)i,
                                  .history = there,
                                  .n_history = pick(c->g, 0, HISTORY)};
    }
    rrl_tensor logits = send(c, host, rows, vocabulary), logp = some(c, rows, 1, 1);
    sample(c, hold(c, sizeof(int32_t) * ROWS), logp, logits, on_device(c, row, sizeof row));
}

/* exp over its whole range: large arguments show in swiglu's quotient, small ones in masses. NaN has one
 * pattern here. */
static void case_exp(run *c) {
    enum { N = 30011 };
    const float special[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 104, 104.01f, 88.72283f, -88.72284f, -88.8f, 1e-42f};
    float *gates = numbers(c->g, N, 95), *ones = numbers(c->g, N, 1), *low = numbers(c->g, N, 1), *got = malloc(N * 4);
    for (size_t i = 0; i < sizeof special / sizeof special[0]; ++i) gates[17 * i] = special[i];
    for (int i = 0; i < N; ++i) ones[i] = 1;
    for (int i = 0; i < N; ++i) low[i] = (float)(next_bits(c->g) % 16777216) * -0x1p-19f;
    rrl_tensor gate = send(c, gates, 1, N), up = send(c, ones, 1, N), y = some(c, 1, N, 1), logp = some(c, 1, 1, 1);
    CHECK_OK(c->ops->swiglu(c->d, y, gate, up));
    CHECK_OK(c->ops->download(c->d, got, y.data, N * sizeof *got));
    for (int i = 0; i < N; ++i)
        if (isnan(got[i])) got[i] = NAN;
    put(c, got, N * sizeof *got, 0);
    free(got);
    rrl_sample_row row = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    rrl_tensor logits = send(c, low, 1, N);
    sample(c, hold(c, sizeof(int32_t)), logp, logits, on_device(c, &row, sizeof row));
}

static void case_moves(run *c) {
    enum { MOST = 400 };
    int rows = pick(c->g, 0, 1) ? pick(c->g, 1, 20) : pick(c->g, 150, MOST), n = odd_size(c->g, 60);
    rrl_tensor x = some(c, rows, n, 1), y = some(c, 2 * rows, n, 1);
    int32_t row[2 * MOST];
    for (int i = 0; i < 2 * rows; ++i) row[i] = pick(c->g, 0, rows / 10);
    const int32_t *there = on_device(c, row, sizeof row);
    CHECK_OK(c->ops->gather(c->d, y, x, there));
    CHECK_OK(c->ops->scatter_add(c->d, x, y, there));
    put_exact(c, x);
    put_exact(c, y);
}

static const struct {
    const char *name;
    void (*run)(run *c);
    int rounds;
} CASES[] = {
    {"embed", case_embed, 10},
    {"rms_norm", case_rms_norm, 20},
    {"linear", case_linear, 40},
    {"lora", case_lora, 30},
    {"rope", case_rope, 15},
    {"kv_write", case_kv_write, 30},
    {"attention", case_attention, 40},
    {"attention_large", case_attention_large, 8},
    {"attention_backward", case_attention_backward, 25},
    {"elementwise", case_elementwise, 15},
    {"vocabulary", case_vocabulary, 15},
    {"sample", case_sample, 60},
    {"exp", case_exp, 8},
    {"moves", case_moves, 10},
};
const int N_OPS_CASES = sizeof CASES / sizeof CASES[0];

const char *ops_case_name(int which) {
    return CASES[which].name;
}

int ops_case_rounds(int which) {
    return CASES[which].rounds;
}

void ops_case_run(ops_written *out, int which, int round, rrl_device *d, bool kept) {
    rng g = {1000 * (uint64_t)which + (uint64_t)round};
    run c = {.d = d, .ops = d->ops, .g = &g, .out = out, .kept = kept};
    CASES[which].run(&c);
    CHECK_OK(d->ops->sync(d));
    while (c.n_held > 0) d->ops->free(d, c.held[--c.n_held]);
}
