/* Gradients of attention: blocks of queries of one head against blocks of keys. Lanes are queries for the weights and
 * head dimensions for the sums. Scores are computed again from q and k; nothing of rows x keys is
 * kept. */
#include "device/cpu/gemm.h"

#if defined(RRL_ISA_avx512)
enum { VECTORS = 2 };
#else
enum { VECTORS = 1 };
#endif
enum { QUERIES = VECTORS * RRL_LANES, KEYS = 32, SET = RRL_CHAIN_ROWS };

/* What one block of queries needs; transposed copies so that lanes are queries. */
typedef struct {
    int64_t row; /* first */
    int n;
    int dim;
    const float *q, *dout; /* first row's head */
    float *dq;
    float q_t[RRL_MAX_HEAD_DIM][QUERIES], dout_t[RRL_MAX_HEAD_DIM][QUERIES];
    v16 delta[VECTORS], lse[VECTORS];
} query_block;

/* to[d][i] = from[i][d] of n <= QUERIES rows; 0 beyond them */
static void turn(float (*to)[QUERIES], const float *from, int64_t ld, int n, int dim) {
    for (int u = 0; u < QUERIES; u += RRL_LANES)
        for (int d = 0; d < dim; d += RRL_LANES) {
            const int left = v16_left(d, dim);
            v16 r[RRL_LANES];
            for (int i = 0; i < RRL_LANES; ++i)
                r[i] = u + i < n ? v16_load_left(from + (u + i) * ld + d, left) : v16_zero();
            v16_transpose(r);
            for (int i = 0; i < left; ++i) v16_store(to[d + i] + u, r[i]);
        }
}

static void load_queries(query_block *b, const rrl_attention_backward_job *j, int64_t row, int n, int head) {
    int dim = j->head_dim;
    float delta[QUERIES] = {0}, lse[QUERIES] = {0};
    b->row = row;
    b->n = n;
    b->dim = dim;
    int64_t at = row * j->q.cols + head * dim;
    b->q = j->q.data + at;
    b->dout = j->dout.data + at;
    b->dq = j->dq.data + at;
    turn(b->q_t, b->q, j->q.cols, n, dim);
    turn(b->dout_t, b->dout, j->q.cols, n, dim);
    for (int i = 0; i < n; ++i) {
        const float *dout = b->dout + i * j->q.cols, *out = j->out.data + at + i * j->q.cols;
        v16 sum = v16_zero();
        for (int d = 0; d < dim; d += RRL_LANES) {
            int left = v16_left(d, dim);
            sum = v16_fma(v16_load_left(dout + d, left), v16_load_left(out + d, left), sum);
        }
        delta[i] = v16_sum(sum);
        lse[i] = j->lse.data[(row + i) * j->lse.cols + head];
    }
    for (int v = 0; v < VECTORS; ++v) {
        b->delta[v] = v16_load(delta + v * RRL_LANES);
        b->lse[v] = v16_load(lse + v * RRL_LANES);
    }
}

/* p and ds of n keys for the block's queries; lanes are queries. */
RRL_INLINE void weights(float (*p)[QUERIES], float (*ds)[QUERIES], const query_block *b, const float *k,
                        const float *v, int64_t ld, float scale, const int n) {
    v16 s[SET][VECTORS], dp[SET][VECTORS], factor = v16_set1(scale);
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i)
#pragma GCC unroll 2
        for (int u = 0; u < VECTORS; ++u) s[i][u] = dp[i][u] = v16_zero();
    for (int d = 0; d < b->dim; ++d) {
        v16 q[VECTORS], dout[VECTORS];
#pragma GCC unroll 2
        for (int u = 0; u < VECTORS; ++u) {
            q[u] = v16_load(b->q_t[d] + u * RRL_LANES);
            dout[u] = v16_load(b->dout_t[d] + u * RRL_LANES);
        }
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) {
            v16 key = v16_set1(k[i * ld + d]), value = v16_set1(v[i * ld + d]);
#pragma GCC unroll 2
            for (int u = 0; u < VECTORS; ++u) {
                s[i][u] = v16_fma(q[u], key, s[i][u]);
                dp[i][u] = v16_fma(dout[u], value, dp[i][u]);
            }
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i)
#pragma GCC unroll 2
        for (int u = 0; u < VECTORS; ++u) {
            v16 w = v16_exp(v16_sub(v16_mul(s[i][u], factor), b->lse[u]));
            v16_store(p[i] + u * RRL_LANES, w);
            v16_store(ds[i] + u * RRL_LANES, v16_mul(v16_mul(w, v16_sub(dp[i][u], b->delta[u])), factor));
        }
}

/* Keys [key, key + n) for one block of queries. own: the keys are rows of the queries' own sequence, so
 * causal. */
static void key_block(const rrl_attention_backward_job *j, const query_block *b, int kv_head, int64_t key,
                      int n, bool own) {
    float p[KEYS][QUERIES], ds[KEYS][QUERIES];
    int dim = b->dim;
    int64_t ld = j->k.cols, at = key * ld + kv_head * dim;
    const float *k = j->k.data + at, *v = j->v.data + at;
    int i = 0;
    for (; i + SET <= n; i += SET) weights(p + i, ds + i, b, k + i * ld, v + i * ld, ld, j->scale, SET);
    for (; i < n; ++i) weights(p + i, ds + i, b, k + i * ld, v + i * ld, ld, j->scale, 1);

    rrl_chains c = {
        .vec = k, .ld_vec = ld, .ld_out = j->q.cols, .coef_row = 1, .coef_t = QUERIES, .dim = dim};
    for (int q = 0; q < b->n; q += SET) {
        c.rows = b->n - q < SET ? b->n - q : SET;
        for (int r = 0; r < c.rows; ++r) {
            c.begin[r] = 0;
            c.end[r] = own ? (int)rrl_min(n, b->row + q + r - key + 1) : n;
        }
        c.out = b->dq + q * j->q.cols;
        c.coef = ds[0] + q;
        RRL_KERNEL(chains)(&c);
    }
    c = (rrl_chains){.ld_vec = j->q.cols, .ld_out = ld, .coef_row = QUERIES, .coef_t = 1, .dim = dim};
    for (int r0 = 0; r0 < n; r0 += SET) {
        c.rows = n - r0 < SET ? n - r0 : SET;
        for (int r = 0; r < c.rows; ++r) {
            int64_t first = own ? key + r0 + r - b->row : 0;
            c.begin[r] = first > 0 ? (int)first : 0;
            c.end[r] = b->n;
        }
        c.out = j->dk.data + at + r0 * ld;
        c.vec = b->q;
        c.coef = ds[r0];
        RRL_KERNEL(chains)(&c);
        c.out = j->dv.data + at + r0 * ld;
        c.vec = b->dout;
        c.coef = p[r0];
        RRL_KERNEL(chains)(&c);
    }
}

/* One head of sequence s against the keys of `from`: its parent or, causal, itself. */
static void one_head(const rrl_attention_backward_job *j, int32_t s, int32_t from, int head, int kv_head) {
    const int32_t *seq_row = j->b->seq_row;
    query_block b;
    for (int64_t row = seq_row[s]; row < seq_row[s + 1]; row += QUERIES) {
        load_queries(&b, j, row, (int)rrl_min(QUERIES, seq_row[s + 1] - row), head);
        const int64_t last = from == s ? row + b.n : seq_row[from + 1];
        for (int64_t key = seq_row[from]; key < last; key += KEYS)
            key_block(j, &b, kv_head, key, (int)rrl_min(KEYS, last - key), from == s);
    }
}

static void zero_heads(rrl_tensor t, int64_t row0, int64_t row1, int64_t column, int64_t n) {
    for (int64_t i = row0; i < row1; ++i) memset(t.data + i * t.cols + column, 0, (size_t)n * sizeof(float));
}

void RRL_KERNEL(attention_backward)(const rrl_attention_backward_job *j, int64_t begin, int64_t end) {
    int dim = j->head_dim, kv_heads = (int)(j->k.cols / dim), group = j->n_heads / kv_heads;
    const int32_t *parent = j->parents->parent, *seq_row = j->b->seq_row;
    for (int64_t unit = begin; unit < end; ++unit) {
        const int32_t seq = (int32_t)(unit / kv_heads);
        const int32_t kv_head = (int32_t)(unit % kv_heads), head = kv_head * group;
        if (j->own) {
            for (int32_t h = head; parent[seq] >= 0 && h < head + group; ++h) one_head(j, seq, seq, h, kv_head);
            continue;
        }
        if (parent[seq] >= 0) continue; /* done with its parent */
        for (int32_t s = 0; s < j->b->n_seqs; ++s)
            if (s == seq || parent[s] == seq) {
                zero_heads(j->dq, seq_row[s], seq_row[s + 1], head * dim, group * dim);
                zero_heads(j->dk, seq_row[s], seq_row[s + 1], kv_head * dim, dim);
                zero_heads(j->dv, seq_row[s], seq_row[s + 1], kv_head * dim, dim);
            }
        for (int32_t h = head; h < head + group; ++h)
            for (int32_t s = 0; s < j->b->n_seqs; ++s)
                if (s == seq || parent[s] == seq) one_head(j, s, seq, h, kv_head);
    }
}
