/* Attention over the paged cache: queries of one kv head, several at a time, against tiles of 32 keys.
 * Lanes are keys for the scores and head dimensions for the values. */
#include "device/cpu/gemm.h"
#include "device/cpu/vec_bf16.h"

/* Queries at a time: two vectors of scores each fill the registers. */
#if defined(RRL_ISA_avx512)
enum { SET = 8 };
#else
enum { SET = 4 };
#endif

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
    const char *next; /* the tiles that are read after it, fetched meanwhile; NULL = near already */
    bool bf16;
    int dim, first; /* position of the block's first key */
} key_tiles;

/* 16 numbers of a tile, from number `at` on; bf16 is a constant where this is expanded */
RRL_INLINE v16 numbers_at(const void *tile, int at, const bool bf16) {
    return bf16 ? v16_widen((const uint16_t *)tile + at) : v16_load((const float *)tile + at);
}

/* Line `line` of the tiles that come next. They go to the second cache, which has room for more lines on their way. */
RRL_INLINE void fetch_line(const key_tiles *t, int line) {
    enum { LINE = 64 };
    if (t->next) __builtin_prefetch(t->next + line * LINE, 0, 2);
}

/* s[q][32] = q . k for one tile of keys; meanwhile the next K comes, a tile's 32 numbers a d being one line or two. */
RRL_INLINE void scores(float s[SET][RRL_KV_BLOCK], const query_set *set, const key_tiles *t, const int n,
                       const bool bf16) {
    v16 acc[SET][2];
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) acc[i][0] = acc[i][1] = v16_zero();
    for (int d = 0; d < t->dim; ++d) {
        fetch_line(t, bf16 ? d : 2 * d);
        if (!bf16) fetch_line(t, 2 * d + 1);
        v16 k0 = numbers_at(t->tile, d * RRL_KV_BLOCK, bf16);
        v16 k1 = numbers_at(t->tile, d * RRL_KV_BLOCK + RRL_LANES, bf16);
#pragma GCC unroll 8
        for (int i = 0; i < n; ++i) {
            v16 a = v16_set1(set->q[i][d]);
            acc[i][0] = v16_fma(a, k0, acc[i][0]);
            acc[i][1] = v16_fma(a, k1, acc[i][1]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) {
        v16_store(s[i], acc[i][0]);
        v16_store(s[i] + RRL_LANES, acc[i][1]);
    }
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
#if defined(RRL_ISA_avx512)
        CASES(5)
        CASES(6)
        CASES(7)
        CASES(8)
#endif
#undef CASES
    }
}

/* The online softmax step: s, of which valid[i] numbers count, becomes p; a the factor of what was summed before. */
static void softmax_step(query_set *set, float a[RRL_LANES], float s[SET][RRL_KV_BLOCK], const int *valid,
                         float scale) {
    const v16 factor = v16_set1(scale), none = v16_set1(-INFINITY);
    float fall[RRL_LANES] = {0};
    for (int i = 0; i < set->n; ++i) {
        const int high = valid[i] > RRL_LANES ? valid[i] - RRL_LANES : 0;
        const int low = valid[i] > RRL_LANES ? RRL_LANES : valid[i];
        if (valid[i] == 0) continue;
        const v16 s0 = v16_pick_n(v16_mul(v16_load(s[i]), factor), none, low);
        const v16 s1 = v16_pick_n(v16_mul(v16_load(s[i] + RRL_LANES), factor), none, high);
        const float max = v16_hmax(v16_max(s0, s1)), m = max > set->m[i] ? max : set->m[i];
        v16_store(s[i], s0);
        v16_store(s[i] + RRL_LANES, s1);
        fall[i] = set->m[i] - m;
        set->m[i] = m;
    }
    v16_store(a, v16_exp(v16_load(fall)));
    for (int i = 0; i < set->n; ++i) {
        if (valid[i] == 0) continue;
        const v16 shift = v16_set1(set->m[i]);
        const v16 p0 = v16_exp(v16_sub(v16_load(s[i]), shift));
        const v16 p1 = v16_exp(v16_sub(v16_load(s[i] + RRL_LANES), shift));
        set->sum[i] = v16_add(v16_add(v16_mul(set->sum[i], v16_set1(a[i])), p0), p1);
        v16_store(s[i], p0);
        v16_store(s[i] + RRL_LANES, p1);
    }
}

/* The V tile as f32, which a pool of f32 has already; meanwhile the next V comes. */
static const float *values(float *room, const key_tiles *t) {
    const int n = t->dim * RRL_KV_BLOCK;
    if (!t->bf16) {
        for (int line = 2 * t->dim; line < 4 * t->dim; ++line) fetch_line(t, line);
        return (const float *)t->tile + n;
    }
    for (int d = 0; d < t->dim; ++d) {
        const uint16_t *from = (const uint16_t *)t->tile + n + d * RRL_KV_BLOCK;
        fetch_line(t, t->dim + d);
        v16_store(room + d * RRL_KV_BLOCK, v16_widen(from));
        v16_store(room + d * RRL_KV_BLOCK + RRL_LANES, v16_widen(from + RRL_LANES));
    }
    return room;
}

static void key_block(query_set *set, const key_tiles *t, float scale) {
    float s[SET][RRL_KV_BLOCK], a[RRL_LANES], room[RRL_MAX_HEAD_DIM * RRL_KV_BLOCK];
    int valid[SET];
    all_scores(s, set, t);
    for (int i = 0; i < set->n; ++i) {
        const int left = set->n_keys[i] - t->first;
        valid[i] = left < 0 ? 0 : left > RRL_KV_BLOCK ? RRL_KV_BLOCK : left;
    }
    softmax_step(set, a, s, valid, scale);
    rrl_chains c = {.ld_out = RRL_MAX_HEAD_DIM, .vec = values(room, t), .ld_vec = t->dim, .coef_row = RRL_KV_BLOCK,
                    .coef_t = 1, .dim = t->dim};
    for (int i = 0; i < set->n; i += RRL_CHAIN_ROWS) {
        c.rows = set->n - i < RRL_CHAIN_ROWS ? set->n - i : RRL_CHAIN_ROWS;
        c.out = set->o[i];
        c.coef = s[i];
        c.scale = a + i;
        memcpy(c.end, valid + i, (size_t)c.rows * sizeof *valid);
        RRL_KERNEL(chains)(&c);
    }
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
    key_tiles t = {.tile = first_tile(j, row0, kv_head), .bf16 = j->pool->dtype == RRL_BF16, .dim = dim};
    for (const void *next; t.first < most; t.first += RRL_KV_BLOCK, t.tile = next) {
        next = t.first + RRL_KV_BLOCK < most
                   ? rrl_kv_tile(j->pool, j->layer, table[t.first / RRL_KV_BLOCK + 1], kv_head)
                   : first_tile(j, rrl_min(row0 + 1, j->q.rows - 1), kv_head);
        t.next = at == 0 ? next : NULL; /* the sets that follow read the same tiles */
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
