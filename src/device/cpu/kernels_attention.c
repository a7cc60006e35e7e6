/* Attention over the paged cache: queries of one kv head, up to four at a time, against tiles of 32 keys.
 * Lanes are keys for the scores and head dimensions for the values. */
#include "device/cpu/gemm.h"
#include "device/cpu/vec_bf16.h"

enum { SET = RRL_CHAIN_ROWS };

typedef struct {
    const float *q[SET];
    int n_keys[SET];
    int n;
    float m[SET];
    v16 sum[SET];
    float o[SET][RRL_MAX_HEAD_DIM];
} query_set;

/* One block of a kv head's cache. */
typedef struct {
    const void *tile; /* K [dim, 32], then V [32, dim] */
    const char *next; /* the tiles that are read after it, to be fetched meanwhile */
    bool bf16;
    int dim, first; /* position of the block's first key */
} key_tiles;

/* 16 numbers of a tile, from number `at` on; bf16 is a constant where this is expanded */
RRL_INLINE v16 numbers_at(const void *tile, int at, const bool bf16) {
    return bf16 ? v16_widen((const uint16_t *)tile + at) : v16_load((const float *)tile + at);
}

/* s[q][32] = q . k for one tile of keys. A tile is 32 numbers a d, so 2 or 4 cache lines of K and V come with each. */
RRL_INLINE void scores(float s[SET][RRL_KV_BLOCK], const query_set *set, const key_tiles *t, const int n,
                       const bool bf16) {
    enum { LINE = 64 };
    v16 acc[SET][2];
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i) acc[i][0] = acc[i][1] = v16_zero();
    for (int d = 0; d < t->dim; ++d) {
        for (int line = 0; line < (bf16 ? 2 : 4); ++line)
            __builtin_prefetch(t->next + (d * (bf16 ? 2 : 4) + line) * LINE, 0, 3);
        v16 k0 = numbers_at(t->tile, d * RRL_KV_BLOCK, bf16);
        v16 k1 = numbers_at(t->tile, d * RRL_KV_BLOCK + RRL_LANES, bf16);
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) {
            v16 a = v16_set1(set->q[i][d]);
            acc[i][0] = v16_fma(a, k0, acc[i][0]);
            acc[i][1] = v16_fma(a, k1, acc[i][1]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i) {
        v16_store(s[i], acc[i][0]);
        v16_store(s[i] + RRL_LANES, acc[i][1]);
    }
}

/* The online softmax step of one query: s becomes p, the return value is the factor of what was summed
 * before. */
RRL_INLINE float softmax_step(float *m, v16 *sum, float s[RRL_KV_BLOCK], int valid, float scale) {
    v16 factor = v16_set1(scale), none = v16_set1(-INFINITY);
    int high = valid > RRL_LANES ? valid - RRL_LANES : 0, low = valid > RRL_LANES ? RRL_LANES : valid;
    v16 s0 = v16_pick_n(v16_mul(v16_load(s), factor), none, low);
    v16 s1 = v16_pick_n(v16_mul(v16_load(s + RRL_LANES), factor), none, high);
    float max = v16_hmax(v16_max(s0, s1)), m_new = max > *m ? max : *m;
    v16 a = v16_exp(v16_set1(*m - m_new)), shift = v16_set1(m_new);
    v16 p0 = v16_exp(v16_sub(s0, shift)), p1 = v16_exp(v16_sub(s1, shift));
    *sum = v16_add(v16_add(v16_mul(*sum, a), p0), p1);
    *m = m_new;
    v16_store(s, p0);
    v16_store(s + RRL_LANES, p1);
    float lanes[RRL_LANES];
    v16_store(lanes, a);
    return lanes[0];
}

/* Scores of the set's queries; the number of queries and the type become constants. */
static void all_scores(float s[SET][RRL_KV_BLOCK], const query_set *set, const key_tiles *t) {
    switch (set->n * 2 + t->bf16) {
#define CASES(n)                                                                                             \
    case n * 2:                                                                                              \
        scores(s, set, t, n, false);                                                                         \
        break;                                                                                               \
    case n * 2 + 1:                                                                                          \
        scores(s, set, t, n, true);                                                                          \
        break;
        CASES(1)
        CASES(2)
        CASES(3)
        CASES(4)
#undef CASES
    }
}

/* The V tile as f32, which a pool of f32 has already. */
static const float *values(float *room, const key_tiles *t) {
    const int n = t->dim * RRL_KV_BLOCK;
    if (!t->bf16) return (const float *)t->tile + n;
    for (int i = 0; i < n; i += RRL_LANES) v16_store(room + i, v16_widen((const uint16_t *)t->tile + n + i));
    return room;
}

static void key_block(query_set *set, const key_tiles *t, float scale) {
    float s[SET][RRL_KV_BLOCK], a[SET], room[RRL_MAX_HEAD_DIM * RRL_KV_BLOCK];
    rrl_chains c = {.out = set->o[0],
                    .ld_out = RRL_MAX_HEAD_DIM,
                    .ld_vec = t->dim,
                    .coef = s[0],
                    .coef_row = RRL_KV_BLOCK,
                    .coef_t = 1,
                    .scale = a,
                    .rows = set->n,
                    .dim = t->dim};
    all_scores(s, set, t);
    for (int i = 0; i < set->n; ++i) {
        int valid = set->n_keys[i] - t->first;
        c.end[i] = valid < 0 ? 0 : valid > RRL_KV_BLOCK ? RRL_KV_BLOCK : valid;
        a[i] = valid > 0 ? softmax_step(&set->m[i], &set->sum[i], s[i], c.end[i], scale) : 1.0f;
    }
    c.vec = values(room, t);
    RRL_KERNEL(chains)(&c);
}

static const void *first_tile(const rrl_attention_job *j, int64_t row, int32_t kv_head) {
    int32_t block = j->table->table[(int64_t)j->b->row_seq[row] * j->table->stride];
    return rrl_kv_tile(j->pool, j->layer, block, kv_head);
}

/* Queries (row, head) [at, at + n) of a run of rows of one sequence, counted row by row, head by head. */
static void run_set(const rrl_attention_job *j, int64_t row0, int head0, int group, int at, int n) {
    query_set set;
    int dim = j->pool->head_dim, most = 0;
    int32_t kv_head = head0 / group;
    set.n = n;
    for (int i = 0; i < n; ++i) {
        int64_t row = row0 + (at + i) / group;
        set.q[i] = j->q.data + row * j->q.cols + (head0 + (at + i) % group) * dim;
        set.n_keys[i] = j->b->position[row] + 1;
        set.m[i] = -INFINITY;
        set.sum[i] = v16_zero();
        memset(set.o[i], 0, (size_t)dim * sizeof(float));
        most = set.n_keys[i] > most ? set.n_keys[i] : most;
    }
    const int32_t *table = j->table->table + (int64_t)j->b->row_seq[row0] * j->table->stride;
    key_tiles t = {.bf16 = j->pool->dtype == RRL_BF16, .dim = dim, .next = first_tile(j, row0, kv_head)};
    for (; t.first < most; t.first += RRL_KV_BLOCK) {
        const int32_t *block = table + t.first / RRL_KV_BLOCK;
        t.tile = t.first ? t.next : first_tile(j, row0, kv_head);
        t.next = t.first + RRL_KV_BLOCK < most ? rrl_kv_tile(j->pool, j->layer, block[1], kv_head)
                                               : first_tile(j, rrl_min(row0 + 1, j->q.rows - 1), kv_head);
        key_block(&set, &t, j->scale);
    }
    for (int i = 0; i < n; ++i) {
        int64_t row = row0 + (at + i) / group;
        int head = head0 + (at + i) % group;
        float l = v16_sum(set.sum[i]), *out = j->out.data + row * j->out.cols + head * dim;
        v16 divisor = v16_set1(l);
        for (int d = 0; d < dim; d += RRL_LANES) {
            int left = v16_left(d, dim);
            v16_store_left(out + d, v16_div(v16_load(set.o[i] + d), divisor), left);
        }
        if (j->lse.data) j->lse.data[row * j->lse.cols + head] = set.m[i] + rrl_logf(l);
    }
}

void RRL_KERNEL(attention)(const rrl_attention_job *j, int64_t begin, int64_t end) {
    int32_t kv_heads = j->pool->n_kv_heads, group = j->n_heads / kv_heads;
    for (int64_t unit = begin; unit < end; ++unit) {
        int64_t row = unit / kv_heads * RRL_ROW_BLOCK, last = rrl_min(row + RRL_ROW_BLOCK, j->q.rows);
        int32_t head = (int32_t)(unit % kv_heads) * group;
        while (row < last) {
            int64_t next = row + 1;
            while (next < last && j->b->row_seq[next] == j->b->row_seq[row]) next++;
            int queries = (int)(next - row) * group;
            for (int at = 0; at < queries; at += SET)
                run_set(j, row, head, group, at, queries - at < SET ? queries - at : SET);
            row = next;
        }
    }
}
