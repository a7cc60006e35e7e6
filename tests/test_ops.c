/* Every op of every instruction set equals the reference kernels bit for bit: random ragged batches, odd
 * sizes, several thread counts. */
#include "check.h"

#include <stdint.h>

#include "device/cpu/cpu.h"
#include "device_inputs.h"

/* What an op wrote, to compare */
typedef struct {
    char *data;
    size_t len, capacity;
} bytes;

static void put(bytes *b, const void *p, size_t n) {
    if (b->len + n > b->capacity) {
        b->capacity = 2 * (b->len + n);
        b->data = realloc(b->data, b->capacity);
    }
    if (n) memcpy(b->data + b->len, p, n);
    b->len += n;
}

static void put_free(bytes *b, rrl_tensor t) {
    put(b, t.data, (size_t)(t.rows * t.cols) * sizeof(float));
    free(t.data);
}

/* A ragged batch of n_seqs sequences; positions start anywhere. */
enum { MAX_SEQS = 6, MAX_ROWS = 400 };
typedef struct {
    rrl_batch b;
    int32_t token[MAX_ROWS], position[MAX_ROWS], row_seq[MAX_ROWS], seq_row[MAX_SEQS + 1], adapter[MAX_SEQS];
} ragged;

static void make_batch(ragged *r, rng *g, int n_seqs, int longest, int last_start, int vocabulary,
                       int n_adapters) {
    int n = 0;
    for (int s = 0; s < n_seqs; ++s) {
        int length = pick(g, 1, longest), start = pick(g, 0, last_start);
        r->seq_row[s] = n;
        r->adapter[s] = pick(g, -1, n_adapters - 1);
        for (int i = 0; i < length; ++i, ++n) {
            r->token[n] = pick(g, 0, vocabulary - 1);
            r->position[n] = start + i;
            r->row_seq[n] = s;
        }
    }
    r->seq_row[n_seqs] = n;
    r->b = (rrl_batch){n, n_seqs, r->token, r->position, r->row_seq, r->seq_row, r->adapter};
}

/* cases: inputs depend on the seed only */

static void case_embed(rrl_device *d, rng *g, bytes *out) {
    int vocabulary = odd_size(g, 90), hidden = odd_size(g, 100);
    ragged r;
    make_batch(&r, g, pick(g, 1, 4), 9, 3, vocabulary, 1);
    rrl_weight *w = weight(d, g, vocabulary, hidden);
    rrl_tensor y = tensor(g, r.b.n_rows, hidden, 1);
    CHECK_OK(d->ops->embed(d, y, w, &r.b));
    put_free(out, y);
    d->ops->weight_free(d, &w);
}

static void case_rms_norm(rrl_device *d, rng *g, bytes *out) {
    int rows = pick(g, 1, 40), n = odd_size(g, 300);
    rrl_tensor x = tensor(g, rows, n, 3), y = tensor(g, rows, n, 1), dy = tensor(g, rows, n, 1),
               dx = tensor(g, rows, n, 1);
    float *w = numbers(g, n, 1);
    CHECK_OK(d->ops->rms_norm(d, y, x, w, 1e-5f));
    CHECK_OK(d->ops->rms_norm_backward(d, dx, dy, x, w, 1e-5f, pick(g, 0, 1)));
    put_free(out, y);
    put_free(out, dx);
    free(x.data);
    free(dy.data);
    free(w);
}

static void case_linear(rrl_device *d, rng *g, bytes *out) {
    int rows = pick(g, 0, 2) ? pick(g, 1, 40) : pick(g, 250, 400);
    int n = odd_size(g, 200), k = pick(g, 0, 2) ? odd_size(g, 100) : pick(g, 250, 600);
    rrl_weight *w = weight(d, g, n, k);
    rrl_tensor x = tensor(g, rows, k, 1), y = tensor(g, rows, n, 1), dx = tensor(g, rows, k, 1);
    float *bias = numbers(g, n, 1);
    CHECK_OK(d->ops->linear(d, y, x, w, pick(g, 0, 1) ? bias : NULL));
    CHECK_OK(d->ops->linear_backward(d, dx, y, w, pick(g, 0, 1)));
    put_free(out, y);
    put_free(out, dx);
    free(x.data);
    free(bias);
    d->ops->weight_free(d, &w);
}

static void make_lora(rrl_device *d, rrl_lora *m, rng *g, int r, int n, int k) {
    *m = (rrl_lora){.r = r, .k = k, .n = n, .scale = 2.0f / 3.0f};
    m->a = numbers(g, r * k, 0.5f);
    m->b = numbers(g, n * r, 0.5f);
    m->a_t = numbers(g, k * ((r + 15) / 16 * 16), 1);
    m->b_t = numbers(g, r * n, 1);
    CHECK_OK(d->ops->lora_pack(d, m));
}

static void free_lora(rrl_lora *m) {
    free((void *)m->a);
    free((void *)m->b);
    free(m->a_t);
    free(m->b_t);
}

static void case_lora(rrl_device *d, rng *g, bytes *out) {
    int n = odd_size(g, 200), k = pick(g, 0, 2) ? odd_size(g, 150) : pick(g, 250, 600), r = pick(g, 1, 40);
    ragged batch;
    make_batch(&batch, g, pick(g, 1, MAX_SEQS), 40, 3, 10, 3);
    rrl_lora m[2];
    make_lora(d, &m[0], g, r, n, k);
    make_lora(d, &m[1], g, pick(g, 1, r), n, k);
    const rrl_lora *modules[3] = {&m[0], &m[1], NULL};
    uint32_t key[2 * MAX_SEQS], sample[MAX_SEQS];
    for (int s = 0; s < MAX_SEQS; ++s) {
        key[2 * s] = (uint32_t)next_bits(g);
        key[2 * s + 1] = (uint32_t)next_bits(g);
        sample[s] = (uint32_t)pick(g, 0, 9);
    }
    rrl_dropout dropout = {pick(g, 0, 1) ? 0.3f : 0.0f, 1, key, sample};
    rrl_lora_args args = {modules, pick(g, 0, 3) ? &dropout : NULL, 5};
    int rows = batch.b.n_rows, r16 = (r + 15) / 16 * 16;
    rrl_tensor x = tensor(g, rows, k, 1), y = tensor(g, rows, n, 1), u = tensor(g, rows, r16, 1);
    CHECK_OK(d->ops->lora(d, y, u, x, &batch.b, &args));
    rrl_tensor dy = tensor(g, rows, n, 1), dx = tensor(g, rows, k, 1), du = tensor(g, rows, r16, 1);
    rrl_tensor da = tensor(g, r, k, 1), db = tensor(g, n, r, 1);
    CHECK_OK(d->ops->lora_backward(d, da.data, db.data, dx, du, dy, x, u, &m[0], &batch.b, &args));
    put_free(out, y);
    put_free(out, u);
    put_free(out, dx);
    put_free(out, da);
    put_free(out, db);
    free(x.data);
    free(dy.data);
    free(du.data);
    free_lora(&m[0]);
    free_lora(&m[1]);
}

static void case_rope(rrl_device *d, rng *g, bytes *out) {
    int heads = pick(g, 1, 4), dim = 2 * pick(g, 1, 40);
    ragged r;
    make_batch(&r, g, 3, 9, 20, 10, 1);
    rrl_tensor x = tensor(g, r.b.n_rows, heads * dim, 1), c = tensor(g, 40, dim / 2, 1),
               s = tensor(g, 40, dim / 2, 1);
    CHECK_OK(d->ops->rope(d, x, heads, dim, &r.b, c.data, s.data, pick(g, 0, 1)));
    put_free(out, x);
    free(c.data);
    free(s.data);
}

/* Numbers of all sizes, and what rounding treats apart: ties, denormals, infinity, NaN. */
static void case_round(rrl_device *d, rng *g, bytes *out) {
    static const uint32_t special[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x00400000, 0x80000001, 0x7f7fffff,
                                       0x7f800000, 0xff800000, 0x7f800001, 0xffc00000, 0x80000000, 0x00800000};
    rrl_tensor x = tensor(g, pick(g, 1, 9), odd_size(g, 90), 1);
    for (int64_t i = 0; i < x.rows * x.cols; ++i) {
        uint32_t u = pick(g, 0, 3) ? (uint32_t)next_bits(g) : special[pick(g, 0, 11)];
        memcpy(&x.data[i], &u, sizeof u);
    }
    CHECK_OK(d->ops->round(d, x, RRL_BF16));
    put_free(out, x);
}

/* A cache whose unwritten places are NaN: nothing may read them. */
typedef struct {
    rrl_kv_pool pool;
    rrl_kv_table table;
    int32_t entry[MAX_SEQS * 8];
} cache;

static void make_cache(rrl_device *d, cache *c, rng *g, const rrl_batch *b, int kv_heads, int dim) {
    enum { BLOCKS = MAX_SEQS * 8 };
    int64_t size = 2ll * BLOCKS * kv_heads * 2 * dim * RRL_KV_BLOCK;
    c->pool = (rrl_kv_pool){numbers(g, size, 1), 2, BLOCKS, kv_heads, dim, pick(g, 0, 1) ? RRL_BF16 : RRL_F32};
    memset(c->pool.data, 0xff, (size_t)size * sizeof(float)); /* NaN in both types */
    for (int i = 0; i < BLOCKS; ++i) c->entry[i] = i;
    for (int i = BLOCKS - 1; i > 0; --i) {
        int other = pick(g, 0, i), t = c->entry[i];
        c->entry[i] = c->entry[other];
        c->entry[other] = t;
    }
    c->table = (rrl_kv_table){c->entry, 8};
    for (int s = 0; s < b->n_seqs; ++s) {
        int n = b->position[b->seq_row[s + 1] - 1] + 1;
        int32_t row[256], block[256], at[256];
        for (int p = 0; p < n; ++p) {
            row[p] = p;
            block[p] = c->entry[s * 8 + p / RRL_KV_BLOCK];
            at[p] = p % RRL_KV_BLOCK;
        }
        rrl_tensor k = tensor(g, n, kv_heads * dim, 1), v = tensor(g, n, kv_heads * dim, 1);
        rrl_kv_writes w = {row, block, at, n};
        CHECK_OK(d->ops->kv_write(d, &c->pool, 1, k, v, &w));
        free(k.data);
        free(v.data);
    }
}

static void case_attention(rrl_device *d, rng *g, bytes *out) {
    int kv_heads = pick(g, 1, 3), group = pick(g, 1, 5),
        dim = pick(g, 0, 1) ? 16 * pick(g, 1, 5) : pick(g, 1, 70);
    ragged r;
    make_batch(&r, g, pick(g, 1, MAX_SEQS), pick(g, 0, 1) ? 1 : 45, 150, 10, 1);
    cache c;
    make_cache(d, &c, g, &r.b, kv_heads, dim);
    rrl_tensor q = tensor(g, r.b.n_rows, kv_heads * group * dim, 2), o = tensor(g, q.rows, q.cols, 1);
    rrl_tensor lse = tensor(g, q.rows, kv_heads * group, 1), none = {0};
    CHECK_OK(d->ops->attention(d, o, pick(g, 0, 1) ? lse : none, q, kv_heads * group, &c.pool, 1, &c.table,
                               &r.b, 0.37f));
    put_free(out, o);
    put_free(out, lse);
    free(q.data);
    free(c.pool.data);
}

static void case_attention_backward(rrl_device *d, rng *g, bytes *out) {
    int kv_heads = pick(g, 1, 3), heads = kv_heads * pick(g, 1, 3), dim = pick(g, 0, 1) ? 32 : pick(g, 1, 50);
    ragged r;
    make_batch(&r, g, pick(g, 1, 5), 70, 0, 10, 1);
    int32_t parent[MAX_SEQS];
    for (int s = 0; s < r.b.n_seqs; ++s) parent[s] = s && pick(g, 0, 2) ? 0 : -1;
    rrl_parents parents = {parent};
    int rows = r.b.n_rows;
    rrl_tensor q = tensor(g, rows, heads * dim, 1), k = tensor(g, rows, kv_heads * dim, 1);
    rrl_tensor v = tensor(g, rows, kv_heads * dim, 1), o = tensor(g, rows, heads * dim, 1);
    rrl_tensor dout = tensor(g, rows, heads * dim, 1), lse = tensor(g, rows, heads, 1);
    rrl_tensor dq = tensor(g, rows, heads * dim, 1), dk = tensor(g, rows, k.cols, 1),
               dv = tensor(g, rows, k.cols, 1);
    CHECK_OK(
        d->ops->attention_backward(d, dq, dk, dv, dout, o, lse, q, k, v, heads, dim, &r.b, &parents, 0.4f));
    put_free(out, dq);
    put_free(out, dk);
    put_free(out, dv);
    free(q.data);
    free(k.data);
    free(v.data);
    free(o.data);
    free(dout.data);
    free(lse.data);
}

static void case_elementwise(rrl_device *d, rng *g, bytes *out) {
    int rows = pick(g, 1, 60), n = odd_size(g, 100);
    rrl_tensor gate = tensor(g, rows, n, 30), up = tensor(g, rows, n, 2), y = tensor(g, rows, n, 1);
    rrl_tensor dgate = tensor(g, rows, n, 1), dup = tensor(g, rows, n, 1);
    gate.data[0] = 200.0f;
    gate.data[rows * n - 1] = -200.0f;
    CHECK_OK(d->ops->swiglu_backward(d, dgate, dup, y, gate, up));
    CHECK_OK(d->ops->swiglu(d, y, gate, up));
    CHECK_OK(d->ops->add(d, y, dup));
    CHECK_OK(d->ops->axpy(d, y.data, dgate.data, 0.3f, y.rows * y.cols));
    double sum;
    CHECK_OK(d->ops->sum_squares(d, &sum, up.data, rows * n));
    put(out, &sum, sizeof sum);
    rrl_adamw_args a = {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.7, 3};
    CHECK_OK(d->ops->zero(d, dup.data, rows * n / 2));
    for (int i = 0; i < rows * n; ++i) dup.data[i] = fabsf(dup.data[i]);
    CHECK_OK(d->ops->adamw(d, y.data, dgate.data, dup.data, up.data, rows * n, &a));
    put_free(out, y);
    put_free(out, dgate);
    put_free(out, dup);
    free(gate.data);
    free(up.data);
}

static void case_vocabulary(rrl_device *d, rng *g, bytes *out) {
    int rows = pick(g, 1, 50), hidden = odd_size(g, 70),
        vocabulary = pick(g, 0, 1) ? pick(g, 500, 1200) : odd_size(g, 200);
    rrl_weight *w = weight(d, g, vocabulary, hidden);
    rrl_tensor x = tensor(g, rows, hidden, 3), scratch = tensor(g, rows, RRL_VOCAB_BLOCK, 1);
    rrl_tensor logp = tensor(g, rows, 1, 1), lse = tensor(g, rows, 1, 1), entropy = tensor(g, rows, 1, 1);
    rrl_tensor dlogp = tensor(g, rows, 1, 1), dx = tensor(g, rows, hidden, 1),
               logits = tensor(g, rows, vocabulary, 1);
    int32_t target[50], token[50];
    float temperature[50];
    rrl_sample_row row[50];
    for (int i = 0; i < rows; ++i) {
        target[i] = pick(g, 0, vocabulary - 1);
        temperature[i] = (const float[]){1.0f, 0.7f, 1.3f}[pick(g, 0, 2)];
        row[i] = (rrl_sample_row){
            .temperature = temperature[i], .top_p = 1, .repetition_penalty = 1, .sample = (uint32_t)i};
    }
    CHECK_OK(d->ops->lm_score(d, logp.data, lse.data, entropy.data, x, w, target, temperature, scratch));
    CHECK_OK(d->ops->lm_backward(d, dx, x, w, target, temperature, lse.data, dlogp.data, scratch));
    put(out, logp.data, (size_t)rows * sizeof(float));
    /* the log-prob of a sampled token is the one that training computes for it, to the bit */
    CHECK_OK(d->ops->linear(d, logits, x, w, NULL));
    CHECK_OK(d->ops->sample(d, token, dlogp.data, logits, row));
    CHECK_OK(d->ops->lm_score(d, logp.data, NULL, pick(g, 0, 1) ? entropy.data : NULL, x, w, token,
                              temperature, scratch));
    CHECK(memcmp(logp.data, dlogp.data, (size_t)rows * sizeof(float)) == 0);
    put(out, token, (size_t)rows * sizeof *token);
    put_free(out, logp);
    put_free(out, lse);
    put_free(out, entropy);
    put_free(out, dx);
    put_free(out, logits);
    free(x.data);
    free(scratch.data);
    free(dlogp.data);
    d->ops->weight_free(d, &w);
}

/* every combination of settings, ties and tails; the kept masses are compared too */
static void case_sample(rrl_device *d, rng *g, bytes *out) {
    enum { ROWS = 24 };
    int vocabulary = pick(g, 0, 1) ? pick(g, 1, 100) : pick(g, 500, 1500);
    rrl_tensor logits = tensor(g, ROWS, vocabulary, 1), logp = tensor(g, ROWS, 1, 1);
    int32_t token[ROWS], history[20];
    rrl_sample_row row[ROWS];
    for (int h = 0; h < 20; ++h) history[h] = pick(g, 0, vocabulary - 1);
    for (int i = 0; i < ROWS; ++i) {
        float spread = (const float[]){0.01f, 1, 8, 60}[pick(g, 0, 3)];
        bool ties = pick(g, 0, 1);
        for (int v = 0; v < vocabulary; ++v) {
            float *z = &logits.data[i * vocabulary + v];
            *z = ties ? rintf(*z * 3) * spread : *z * spread;
        }
        row[i] = (rrl_sample_row){.temperature = (const float[]){0, 0.7f, 1, 2}[pick(g, 0, 3)],
                                  .top_p = (const float[]){1, 0.95f, 0.5f, 1e-6f}[pick(g, 0, 3)],
                                  .top_k = (const int[]){0, 0, 1, 5, 5000}[pick(g, 0, 4)],
                                  .repetition_penalty = pick(g, 0, 1) ? 1.0f : 1.3f,
                                  .key = {(uint32_t)next_bits(g), 7},
                                  .position = (uint32_t)i,
                                  .history = history,
                                  .n_history = pick(g, 0, 20)};
    }
    size_t n = (size_t)ROWS * (size_t)vocabulary;
    uint64_t *kept = malloc(n * sizeof *kept);
    int32_t plain[ROWS];
    CHECK_OK(rrl_cpu_sample_kept(d, token, logp.data, kept, logits, row));
    CHECK_OK(d->ops->sample(d, plain, logp.data, logits, row));
    CHECK(memcmp(token, plain, sizeof token) == 0);
    put(out, token, sizeof token);
    put(out, kept, n * sizeof *kept);
    put_free(out, logp);
    free(logits.data);
    free(kept);
}

/* exp over its whole range: large arguments show in swiglu's quotient, small ones in masses. NaN has one
 * pattern here. */
static void case_exp(rrl_device *d, rng *g, bytes *out) {
    enum { N = 30011 };
    const float special[] = {0,       -0.0f,     INFINITY,   -INFINITY, NAN,   104,
                             104.01f, 88.72283f, -88.72284f, -88.8f,    1e-42f};
    rrl_tensor gate = tensor(g, 1, N, 95), up = tensor(g, 1, N, 1), y = tensor(g, 1, N, 1),
               logp = tensor(g, 1, 1, 1);
    for (size_t i = 0; i < sizeof special / sizeof special[0]; ++i) gate.data[17 * i] = special[i];
    for (int i = 0; i < N; ++i) up.data[i] = 1;
    CHECK_OK(d->ops->swiglu(d, y, gate, up));
    for (int i = 0; i < N; ++i)
        if (isnan(y.data[i])) y.data[i] = NAN;
    for (int i = 0; i < N; ++i) up.data[i] = (float)(next_bits(g) % 16777216) * -0x1p-19f;
    rrl_sample_row row = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    uint64_t *kept = malloc(N * sizeof *kept);
    int32_t token;
    CHECK_OK(rrl_cpu_sample_kept(d, &token, logp.data, kept, up, &row));
    put(out, kept, N * sizeof *kept);
    put(out, &token, sizeof token);
    put_free(out, y);
    put_free(out, logp);
    free(gate.data);
    free(up.data);
    free(kept);
}

static void case_moves(rrl_device *d, rng *g, bytes *out) {
    int rows = pick(g, 1, 20), n = odd_size(g, 60);
    rrl_tensor x = tensor(g, rows, n, 1), y = tensor(g, 2 * rows, n, 1);
    int32_t row[40];
    for (int i = 0; i < 2 * rows; ++i) row[i] = pick(g, 0, rows - 1);
    CHECK_OK(d->ops->gather(d, y, x, row));
    CHECK_OK(d->ops->scatter_add(d, x, y, row));
    put_free(out, x);
    put_free(out, y);
}

static const struct {
    const char *name;
    void (*run)(rrl_device *d, rng *g, bytes *out);
    int rounds;
} CASES[] = {
    {"embed", case_embed, 10},
    {"rms_norm", case_rms_norm, 20},
    {"linear", case_linear, 40},
    {"lora", case_lora, 30},
    {"rope", case_rope, 15},
    {"round", case_round, 20},
    {"attention", case_attention, 40},
    {"attention_backward", case_attention_backward, 25},
    {"elementwise", case_elementwise, 15},
    {"vocabulary", case_vocabulary, 15},
    {"sample", case_sample, 60},
    {"exp", case_exp, 8},
    {"moves", case_moves, 5},
};

static void compare(const char *name, int round, const rrl_device *d, int threads, const bytes *want,
                    const bytes *got) {
    if (CHECK(want->len == got->len && memcmp(want->data, got->data, want->len) == 0)) return;
    size_t at = 0;
    while (at < want->len && want->data[at] == got->data[at]) at++;
    float a, b;
    memcpy(&a, want->data + at / 4 * 4, sizeof a);
    memcpy(&b, got->data + at / 4 * 4, sizeof b);
    fprintf(stderr, "  %s, round %d, %s with %d threads: word %zu of %zu is %.9g, reference %.9g\n", name,
            round, rrl_device_isa(d), threads, at / 4, want->len / 4, (double)b, (double)a);
}

/* Portable code calls fmaf for every lane: with sanitisers on, a quarter of the rounds still takes half a
 * minute. */
#ifdef __SANITIZE_ADDRESS__
enum { ROUNDS_DIVISOR = 4 };
#else
enum { ROUNDS_DIVISOR = 1 };
#endif

static void all_equal_reference(void) {
    static const struct {
        const char *isa;
        int threads;
    } DEVICES[] = {{"avx2", 1}, {"avx512", 1}, {"portable", 3}, {"avx2", 3}, {"avx512", 3}, {"reference", 2}};
    enum { N = sizeof DEVICES / sizeof DEVICES[0] };
    rrl_device *reference = NULL, *d[N] = {NULL};
    if (!CHECK_OK(rrl_cpu_open(&reference, "reference", 1))) return;
    for (int i = 0; i < N; ++i)
        if (rrl_cpu_open(&d[i], DEVICES[i].isa, DEVICES[i].threads) != RRL_OK) {
            CHECK(strncmp(DEVICES[i].isa, "avx", 3) == 0);
            printf("not tested here: %s\n", DEVICES[i].isa);
        }
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; ++c)
        for (int round = 0; round < CASES[c].rounds / ROUNDS_DIVISOR; ++round) {
            const rng start = {1000 * c + (uint64_t)round};
            rng g = start;
            bytes want = {0};
            CASES[c].run(reference, &g, &want);
            for (int i = 0; i < N; ++i) {
                bytes got = {0};
                g = start;
                if (!d[i]) continue;
                CASES[c].run(d[i], &g, &got);
                compare(CASES[c].name, round, d[i], DEVICES[i].threads, &want, &got);
                free(got.data);
            }
            free(want.data);
        }
    for (int i = 0; i < N; ++i) rrl_device_close(&d[i]);
    rrl_device_close(&reference);
}

int main(void) {
    all_equal_reference();
    return CHECK_DONE();
}
