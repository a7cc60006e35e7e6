/* Gradients against central differences of the same maths written again in double, and forward ops against
 * that maths.
 *
 * Tolerance: a chain of n f32 operations on terms of size s errs by at most n * 2^-24 * s each way; each
 * check states n * s. The differences in double (step 1e-5) err by about 1e-9, far below. */
#include "check.h"

#include <float.h>
#include <stdint.h>

#include "base/random.h"
#include "device/device.h"

static uint64_t seed_state;
static float number(void) {
    seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
    return (float)((double)(seed_state >> 40) * 0x1p-23 - 1.0);
}

static void fill(float *x, int n) {
    for (int i = 0; i < n; ++i) x[i] = number();
}

static double tolerance(double terms) {
    return terms * FLT_EPSILON / 2;
}

/* d loss / d p[i] by central difference; loss reads its inputs from context, among them p */
static double slope(double (*loss)(const void *context), const void *context, double *p) {
    const double h = 1e-5, kept = *p;
    *p = kept + h;
    double up = loss(context);
    *p = kept - h;
    double down = loss(context);
    *p = kept;
    return (up - down) / (2 * h);
}

static void widen(double *to, const float *from, int n) {
    for (int i = 0; i < n; ++i) to[i] = from[i];
}

/* rms_norm */

enum { NORM = 37 };
typedef struct {
    double x[NORM], w[NORM], c[NORM], y[NORM];
} norm;

static double norm_loss(const void *context) {
    norm *n = (norm *)context;
    double mean = 0, sum = 0;
    for (int i = 0; i < NORM; ++i) mean += n->x[i] * n->x[i] / NORM;
    for (int i = 0; i < NORM; ++i) {
        n->y[i] = n->x[i] / sqrt(mean + (double)1e-5f) * n->w[i];
        sum += n->c[i] * n->y[i];
    }
    return sum;
}

static void check_rms_norm(rrl_device *d) {
    float x[NORM], w[NORM], c[NORM], y[NORM], dx[NORM];
    norm n;
    fill(x, NORM), fill(w, NORM), fill(c, NORM);
    widen(n.x, x, NORM), widen(n.w, w, NORM), widen(n.c, c, NORM);
    rrl_tensor tx = {x, 1, NORM}, ty = {y, 1, NORM}, tdx = {dx, 1, NORM}, tc = {c, 1, NORM};
    CHECK_OK(d->ops->rms_norm(d, ty, tx, w, 1e-5f));
    norm_loss(&n);
    for (int i = 0; i < NORM; ++i) CHECK_NEAR(y[i], n.y[i], tolerance(8 * 2));
    CHECK_OK(d->ops->rms_norm_backward(d, tdx, tc, tx, w, 1e-5f, false));
    for (int i = 0; i < NORM; ++i) CHECK_NEAR(dx[i], slope(norm_loss, &n, &n.x[i]), tolerance(30 * 2));
    float once = dx[3];
    CHECK_OK(d->ops->rms_norm_backward(d, tdx, tc, tx, w, 1e-5f, true));
    CHECK(dx[3] == once + once);
}

/* linear and LoRA */

enum { ROWS = 5, IN = 21, OUT = 35, RANK = 3, R16 = 16, MODULE = 4, ITERATION = 1 };
typedef struct {
    double x[ROWS * IN], w[OUT * IN], bias[OUT], a[RANK * IN], b[OUT * RANK], c[ROWS * OUT], y[ROWS * OUT];
    double keep[ROWS * IN]; /* 1 without dropout */
    double scale;           /* 0: no LoRA */
    bool adapted[ROWS];
} layer;

static double layer_loss(const void *context) {
    layer *l = (layer *)context;
    double sum = 0;
    for (int i = 0; i < ROWS; ++i) {
        double u[RANK] = {0};
        for (int r = 0; r < RANK; ++r)
            for (int k = 0; k < IN; ++k) u[r] += l->a[r * IN + k] * l->x[i * IN + k] * l->keep[i * IN + k];
        for (int n = 0; n < OUT; ++n) {
            double y = l->bias[n];
            for (int k = 0; k < IN; ++k) y += l->w[n * IN + k] * l->x[i * IN + k];
            for (int r = 0; r < RANK && l->adapted[i]; ++r) y += l->scale * l->b[n * RANK + r] * u[r];
            l->y[i * OUT + n] = y;
            sum += l->c[i * OUT + n] * y;
        }
    }
    return sum;
}

static void check_layer(rrl_device *d, float p) {
    static float x[ROWS * IN], w[OUT * IN], bias[OUT], a[RANK * IN], b[OUT * RANK], c[ROWS * OUT],
        y[ROWS * OUT];
    static float a_t[IN * R16], b_t[RANK * OUT], u[ROWS * R16], du[ROWS * R16], dx[ROWS * IN], da[RANK * IN],
        db[OUT * RANK];
    static layer l;
    fill(x, ROWS * IN), fill(w, OUT * IN), fill(bias, OUT), fill(a, RANK * IN), fill(b, OUT * RANK),
        fill(c, ROWS * OUT);
    widen(l.x, x, ROWS * IN), widen(l.w, w, OUT * IN), widen(l.bias, bias, OUT), widen(l.a, a, RANK * IN);
    widen(l.b, b, OUT * RANK), widen(l.c, c, ROWS * OUT);
    l.scale = 2.0;
    /* rows 0-2 are sequence 0 (base), rows 3-4 sequence 1 (adapter 0); positions start at 7 */
    const int32_t position[ROWS] = {0, 1, 2, 7, 8}, row_seq[ROWS] = {0, 0, 0, 1, 1}, seq_row[3] = {0, 3, 5};
    const int32_t adapter[2] = {-1, 0};
    const uint32_t key[4] = {1, 2, 3, 4}, sample[2] = {0, 9};
    for (int i = 0; i < ROWS; ++i) {
        l.adapted[i] = i >= 3;
        for (int k = 0; k < IN; ++k) {
            uint32_t counter[4] = {sample[row_seq[i]], MODULE + 65536 * ITERATION, (uint32_t)position[i],
                                   (uint32_t)k / 4};
            uint32_t word[4];
            rrl_philox4x32(word, counter, key + 2 * row_seq[i]);
            l.keep[i * IN + k] = word[k % 4] >= (double)p * 4294967296.0 ? 1.0 / (1.0 - (double)p) : 0.0;
        }
    }
    rrl_batch batch = {ROWS, 2, NULL, position, row_seq, seq_row, adapter};
    rrl_lora m = {a, b, a_t, b_t, RANK, IN, OUT, 2.0f};
    const rrl_lora *modules[1] = {&m};
    rrl_dropout dropout = {p, ITERATION, key, sample};
    rrl_lora_args args = {modules, &dropout, MODULE, 1};
    rrl_weight *packed = NULL;
    CHECK_OK(d->ops->weight_pack(d, &packed, w, RRL_F32, OUT, IN));
    CHECK_OK(d->ops->lora_pack(d, &m));
    rrl_tensor tx = {x, ROWS, IN}, ty = {y, ROWS, OUT}, tu = {u, ROWS, R16}, tdu = {du, ROWS, R16};
    rrl_tensor tc = {c, ROWS, OUT}, tdx = {dx, ROWS, IN};
    CHECK_OK(d->ops->linear(d, tx, &(rrl_product){ty, packed, bias}, 1, NULL));
    CHECK_OK(d->ops->lora(d, tx, &batch, &(rrl_lora_product){ty, tu, args}, 1));
    layer_loss(&l);
    for (int i = 0; i < ROWS * OUT; ++i) CHECK_NEAR(y[i], l.y[i], tolerance((IN + RANK * IN) * 6));
    memset(da, 0, sizeof da), memset(db, 0, sizeof db);
    CHECK_OK(d->ops->linear_backward(d, tdx, tc, packed, false));
    CHECK_OK(d->ops->lora_backward(d, da, db, tdx, tdu, tc, tx, tu, &m, &batch, &args));
    for (int i = 0; i < ROWS * IN; ++i)
        CHECK_NEAR(dx[i], slope(layer_loss, &l, &l.x[i]), tolerance(2 * OUT * 12));
    for (int i = 0; i < RANK * IN; ++i)
        CHECK_NEAR(da[i], slope(layer_loss, &l, &l.a[i]), tolerance(2 * OUT * 12));
    for (int i = 0; i < OUT * RANK; ++i)
        CHECK_NEAR(db[i], slope(layer_loss, &l, &l.b[i]), tolerance(2 * IN * 12));
    d->ops->weight_free(d, &packed);
}

/* rope: the inverse is the transposed rotation */

static void check_rope(rrl_device *d) {
    enum { DIM = 6, HEADS = 2 };
    const double angle[3] = {0.3, 1.1, 2.5};
    float c[2 * 3], s[2 * 3], x[DIM * HEADS], kept[DIM * HEADS];
    for (int i = 0; i < 3; ++i) {
        c[i] = c[3 + i] = (float)cos(angle[i]);
        s[i] = s[3 + i] = (float)sin(angle[i]);
    }
    const int32_t position = 1, zero = 0, rows[2] = {0, 1};
    rrl_batch b = {1, 1, &zero, &position, &zero, rows, &zero};
    rrl_tensor t = {x, 1, DIM * HEADS};
    fill(x, DIM * HEADS);
    memcpy(kept, x, sizeof x);
    CHECK_OK(d->ops->rope(d, t, HEADS, DIM, &b, c, s, false));
    for (int h = 0; h < HEADS; ++h)
        for (int i = 0; i < 3; ++i) {
            double a = kept[h * DIM + i], e = kept[h * DIM + 3 + i];
            CHECK_NEAR(x[h * DIM + i], a * cos(angle[i]) - e * sin(angle[i]), tolerance(6));
            CHECK_NEAR(x[h * DIM + 3 + i], e * cos(angle[i]) + a * sin(angle[i]), tolerance(6));
        }
    CHECK_OK(d->ops->rope(d, t, HEADS, DIM, &b, c, s, true));
    for (int i = 0; i < DIM * HEADS; ++i) CHECK_NEAR(x[i], kept[i], tolerance(12));
}

/* attention: a prompt of 34 rows and two completions that see it, 4 heads on 2 kv heads */

enum {
    PROMPT = 34,
    FIRST = 3,
    SECOND = 2,
    TOKENS = PROMPT + FIRST + SECOND,
    HEADS = 4,
    KV_HEADS = 2,
    DIM = 5
};
static const int SEQ_ROW[4] = {0, PROMPT, PROMPT + FIRST, TOKENS};
typedef struct {
    double q[TOKENS * HEADS * DIM], k[TOKENS * KV_HEADS * DIM], v[TOKENS * KV_HEADS * DIM];
    double c[TOKENS * HEADS * DIM], out[TOKENS * HEADS * DIM], lse[TOKENS * HEADS];
} attention;
static const float SCALE = 0.45f;

static void attend(attention *a, int seq, int row, int head) {
    int key[TOKENS], n = 0;
    for (int i = 0; seq > 0 && i < PROMPT; ++i) key[n++] = i;
    for (int i = SEQ_ROW[seq]; i <= row; ++i) key[n++] = i;
    double p[TOKENS], sum = 0, *o = a->out + (row * HEADS + head) * DIM;
    for (int j = 0; j < n; ++j) {
        double s = 0;
        for (int e = 0; e < DIM; ++e)
            s += a->q[(row * HEADS + head) * DIM + e] * a->k[(key[j] * KV_HEADS + head / 2) * DIM + e];
        p[j] = exp(s * (double)SCALE);
        sum += p[j];
    }
    for (int e = 0; e < DIM; ++e) {
        o[e] = 0;
        for (int j = 0; j < n; ++j) o[e] += p[j] / sum * a->v[(key[j] * KV_HEADS + head / 2) * DIM + e];
    }
    a->lse[row * HEADS + head] = log(sum);
}

static double attention_loss(const void *context) {
    attention *a = (attention *)context;
    for (int s = 0; s < 3; ++s)
        for (int row = SEQ_ROW[s]; row < SEQ_ROW[s + 1]; ++row)
            for (int h = 0; h < HEADS; ++h) attend(a, s, row, h);
    double sum = 0;
    for (int i = 0; i < TOKENS * HEADS * DIM; ++i) sum += a->c[i] * a->out[i];
    return sum;
}

/* Sequence 0 in blocks 0, 1; the completions share block 0 and own 2 and 3, with the prompt's tail written to
 * each. */
static void attention_forward(rrl_device *d, rrl_tensor out, rrl_tensor lse, rrl_tensor q, rrl_tensor k,
                              rrl_tensor v, const rrl_batch *b) {
    int32_t row[2 * TOKENS], block[2 * TOKENS], at[2 * TOKENS], n = 0;
    const int32_t table[6] = {0, 1, 0, 2, 0, 3};
    for (int s = 0; s < 3; ++s) {
        for (int i = s ? RRL_KV_BLOCK : 0; i < PROMPT; ++i, ++n)
            row[n] = i, block[n] = table[2 * s + i / RRL_KV_BLOCK], at[n] = i % RRL_KV_BLOCK;
        for (int i = SEQ_ROW[s]; s > 0 && i < SEQ_ROW[s + 1]; ++i, ++n)
            row[n] = i, block[n] = table[2 * s + 1], at[n] = PROMPT + i - SEQ_ROW[s] - RRL_KV_BLOCK;
    }
    rrl_kv_pool pool = {NULL, 1, 4, KV_HEADS, DIM, RRL_F32};
    void *data = NULL;
    CHECK_OK(d->ops->alloc(d, &data, sizeof(float) * 4 * KV_HEADS * 2 * DIM * RRL_KV_BLOCK, "cache"));
    pool.data = data;
    rrl_kv_writes w = {row, block, at, n};
    rrl_kv_table t = {table, 2};
    CHECK_OK(d->ops->kv_write(d, &pool, 0, &(rrl_kv_rows){.k = k, .v = v}, b, &w));
    CHECK_OK(d->ops->attention(d, out, lse, q, HEADS, &pool, 0, &t, b, SCALE));
    d->ops->free(d, data);
}

static void check_attention(rrl_device *d) {
    enum { Q = TOKENS * HEADS * DIM, K = TOKENS * KV_HEADS * DIM };
    static float q[Q], k[K], v[K], c[Q], out[Q], lse[TOKENS * HEADS], dq[Q], dk[K], dv[K];
    static attention a;
    fill(q, Q), fill(k, K), fill(v, K), fill(c, Q);
    widen(a.q, q, Q), widen(a.k, k, K), widen(a.v, v, K), widen(a.c, c, Q);
    int32_t position[TOKENS], row_seq[TOKENS], adapter[3] = {0};
    for (int s = 0; s < 3; ++s)
        for (int i = SEQ_ROW[s]; i < SEQ_ROW[s + 1]; ++i)
            row_seq[i] = s, position[i] = i - SEQ_ROW[s] + (s ? PROMPT : 0);
    rrl_batch b = {TOKENS, 3, NULL, position, row_seq, SEQ_ROW, adapter};
    rrl_tensor tq = {q, TOKENS, HEADS * DIM}, tk = {k, TOKENS, KV_HEADS * DIM},
               tv = {v, TOKENS, KV_HEADS * DIM};
    rrl_tensor tc = {c, TOKENS, HEADS * DIM}, to = {out, TOKENS, HEADS * DIM}, tl = {lse, TOKENS, HEADS};
    rrl_tensor tdq = {dq, TOKENS, HEADS * DIM}, tdk = {dk, TOKENS, KV_HEADS * DIM},
               tdv = {dv, TOKENS, KV_HEADS * DIM};
    attention_forward(d, to, tl, tq, tk, tv, &b);
    attention_loss(&a);
    for (int i = 0; i < Q; ++i) CHECK_NEAR(out[i], a.out[i], tolerance(2 * TOKENS));
    for (int i = 0; i < TOKENS * HEADS; ++i) CHECK_NEAR(lse[i], a.lse[i], tolerance(2 * TOKENS));
    const int32_t parent[3] = {-1, 0, 0};
    rrl_parents parents = {parent};
    CHECK_OK(d->ops->attention_backward(d, tdq, tdk, tdv, tc, to, tl, tq, tk, tv, HEADS, DIM, &b, &parents,
                                        SCALE));
    for (int i = 0; i < Q; ++i) CHECK_NEAR(dq[i], slope(attention_loss, &a, &a.q[i]), tolerance(4 * TOKENS));
    for (int i = 0; i < K; ++i) {
        CHECK_NEAR(dk[i], slope(attention_loss, &a, &a.k[i]), tolerance(8 * TOKENS));
        CHECK_NEAR(dv[i], slope(attention_loss, &a, &a.v[i]), tolerance(8 * TOKENS));
    }
}

/* swiglu */

typedef struct {
    double gate, up;
} swiglu;
static double swiglu_loss(const void *context) {
    const swiglu *s = context;
    return s->gate / (1.0 + exp(-s->gate)) * s->up;
}

static void check_swiglu(rrl_device *d) {
    enum { N = 40 };
    float gate[N], up[N], dy[N], y[N], dgate[N], dup[N];
    fill(gate, N), fill(up, N), fill(dy, N);
    for (int i = 0; i < N; ++i) gate[i] *= 9;
    rrl_tensor tg = {gate, 2, N / 2}, tu = {up, 2, N / 2}, ty = {y, 2, N / 2}, td = {dy, 2, N / 2};
    CHECK_OK(d->ops->swiglu(d, ty, tg, tu));
    CHECK_OK(
        d->ops->swiglu_backward(d, (rrl_tensor){dgate, 2, N / 2}, (rrl_tensor){dup, 2, N / 2}, td, tg, tu));
    for (int i = 0; i < N; ++i) {
        swiglu s = {gate[i], up[i]};
        CHECK_NEAR(y[i], swiglu_loss(&s), tolerance(8 * 9));
        CHECK_NEAR(dgate[i], dy[i] * slope(swiglu_loss, &s, &s.gate), tolerance(16 * 9));
        CHECK_NEAR(dup[i], dy[i] * slope(swiglu_loss, &s, &s.up), tolerance(8 * 9));
    }
}

/* the language-model head over two vocabulary blocks */

enum { HIDDEN = 9, VOCABULARY = 700, SCORED = 3 };
typedef struct {
    double x[SCORED * HIDDEN], w[VOCABULARY * HIDDEN], c[SCORED], t[SCORED];
    double logp[SCORED], lse[SCORED], entropy[SCORED];
    int32_t target[SCORED];
} head;

static double head_loss(const void *context) {
    head *h = (head *)context;
    double total = 0;
    for (int i = 0; i < SCORED; ++i) {
        double z[VOCABULARY], sum = 0;
        for (int v = 0; v < VOCABULARY; ++v) {
            z[v] = 0;
            for (int k = 0; k < HIDDEN; ++k) z[v] += h->x[i * HIDDEN + k] * h->w[v * HIDDEN + k] / h->t[i];
            sum += exp(z[v]);
        }
        h->lse[i] = log(sum);
        h->logp[i] = z[h->target[i]] - h->lse[i];
        h->entropy[i] = 0;
        for (int v = 0; v < VOCABULARY; ++v) h->entropy[i] -= exp(z[v] - h->lse[i]) * (z[v] - h->lse[i]);
        total += h->c[i] * h->logp[i];
    }
    return total;
}

static void check_head(rrl_device *d) {
    static float x[SCORED * HIDDEN], w[VOCABULARY * HIDDEN], scratch[SCORED * RRL_VOCAB_BLOCK],
        dx[SCORED * HIDDEN];
    static head h;
    float c[SCORED], logp[SCORED], lse[SCORED], entropy[SCORED];
    const float t[SCORED] = {1.0f, 0.7f, 1.3f};
    const int32_t target[SCORED] = {3, 699, 511};
    fill(x, SCORED * HIDDEN), fill(w, VOCABULARY * HIDDEN), fill(c, SCORED);
    widen(h.x, x, SCORED * HIDDEN), widen(h.w, w, VOCABULARY * HIDDEN), widen(h.c, c, SCORED),
        widen(h.t, t, SCORED);
    memcpy(h.target, target, sizeof target);
    rrl_weight *packed = NULL;
    CHECK_OK(d->ops->weight_pack(d, &packed, w, RRL_F32, VOCABULARY, HIDDEN));
    rrl_tensor tx = {x, SCORED, HIDDEN}, ts = {scratch, SCORED, RRL_VOCAB_BLOCK}, tdx = {dx, SCORED, HIDDEN};
    CHECK_OK(d->ops->lm_score(d, logp, lse, entropy, tx, packed, target, t, ts));
    CHECK_OK(d->ops->lm_backward(d, tdx, tx, packed, target, t, lse, c, ts));
    head_loss(&h);
    for (int i = 0; i < SCORED; ++i) {
        CHECK_NEAR(logp[i], h.logp[i], tolerance(32 + HIDDEN * 3));
        CHECK_NEAR(lse[i], h.lse[i], tolerance(32 + HIDDEN * 3));
        CHECK_NEAR(entropy[i], h.entropy[i], tolerance(64 + HIDDEN * 3));
    }
    for (int i = 0; i < SCORED * HIDDEN; ++i)
        CHECK_NEAR(dx[i], slope(head_loss, &h, &h.x[i]), tolerance(VOCABULARY / 4));
    d->ops->weight_free(d, &packed);
}

/* gather and scatter_add are transposes: <gather(x), y> = <x, scatter(y)>, exact with small integers */

static void check_gather(rrl_device *d) {
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[6], z[8] = {0}, c[6] = {3, -1, 2, 5, -4, 1};
    const int32_t row[3] = {2, 0, 2};
    CHECK_OK(d->ops->gather(d, (rrl_tensor){y, 3, 2}, (rrl_tensor){x, 4, 2}, row));
    CHECK_OK(d->ops->scatter_add(d, (rrl_tensor){z, 4, 2}, (rrl_tensor){c, 3, 2}, row));
    double left = 0, right = 0;
    for (int i = 0; i < 6; ++i) left += y[i] * c[i];
    for (int i = 0; i < 8; ++i) right += x[i] * z[i];
    CHECK(left == right);
    CHECK(y[0] == 5 && y[2] == 1 && z[4] == -1 && z[6] == 0);
}

/* the optimiser, written again with libm */

static void check_adamw(rrl_device *d) {
    enum { N = 20 };
    float p[N], m[N] = {0}, v[N] = {0}, g[N];
    double p2[N], m2[N] = {0}, v2[N] = {0};
    fill(p, N);
    widen(p2, p, N);
    for (int step = 1; step <= 5; ++step) {
        fill(g, N);
        rrl_adamw_args a = {1e-2, 0.9, 0.999, 1e-8, 0.1, 0.5, step};
        CHECK_OK(d->ops->adamw(d, p, m, v, g, N, &a));
        for (int i = 0; i < N; ++i) {
            double grad = 0.5 * g[i];
            m2[i] = 0.9 * m2[i] + 0.1 * grad;
            v2[i] = 0.999 * v2[i] + 0.001 * grad * grad;
            double mh = m2[i] / (1 - pow(0.9, step)), vh = v2[i] / (1 - pow(0.999, step));
            p2[i] = p2[i] * (1 - 1e-2 * 0.1) - 1e-2 * mh / (sqrt(vh) + 1e-8);
            CHECK_NEAR(p[i], p2[i], tolerance(2 * step));
        }
    }
    double sum, want = 0;
    float many[5000];
    fill(many, 5000);
    CHECK_OK(d->ops->sum_squares(d, &sum, many, 5000));
    for (int i = 0; i < 5000; ++i) want += (double)many[i] * many[i];
    CHECK_NEAR(sum, want, 1e-10);
}

int main(void) {
    static const char *const ISAS[] = {"reference", "auto"};
    for (int i = 0; i < 2; ++i) {
        rrl_device *d = NULL;
        if (!CHECK_OK(rrl_cpu_open(&d, ISAS[i], 2))) break;
        seed_state = 11;
        check_rms_norm(d);
        check_layer(d, 0.0f);
        check_layer(d, 0.25f);
        check_rope(d);
        check_attention(d);
        check_swiglu(d);
        check_head(d);
        check_gather(d);
        check_adamw(d);
        rrl_device_close(&d);
    }
    return CHECK_DONE();
}
