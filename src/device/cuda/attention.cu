/* The paged cache, and attention over it: online softmax in tiles of shared memory, one kernel for prompts, decoding
 * and training, because it must give one answer for all three.
 *
 * A block serves one kv head and the queries (row, head) of a few rows, up to 32 at a time: 8 warps of 4 queries. For
 * the scores a lane is a key, for the values a head dimension; a tile of 32 keys is read once for all queries of the
 * block. A query's order of operations is that of reference.c: key blocks at absolute positions ascending, chains over
 * d and over keys, 16 lanes for the sum. How many rows or blocks of keys are taken together changes no number. */
#include "device/cuda/cuda_ops.cuh"

/* --- the cache */

template <typename KV> __device__ static KV stored(float x) {
    if constexpr (sizeof(KV) == 2)
        return rrl_bf16_of(x);
    else
        return x;
}
template <typename KV> __device__ static float loaded(KV x) {
    if constexpr (sizeof(KV) == 2)
        return rrl_bf16_value(x);
    else
        return x;
}

/* Rows by their writes (`store`) or one after the other; what is done to each. */
typedef struct {
    rrl_kv_pool pool;
    rrl_kv_rows in;
    rrl_kv_writes w;
    const int32_t *position;
    int32_t layer, q_heads; /* q_heads 0 = not looked at */
    bool store;
} write_args;

/* a thread numbers e and e + half of a head: heads of q, then of k, then of v */
template <typename KV> __global__ void kv_write_kernel(const __grid_constant__ write_args a) {
    const int32_t dim = a.pool.head_dim, half = (dim + 1) / 2, kv = a.pool.n_kv_heads;
    const int64_t units = (int64_t)(a.q_heads + 2 * kv) * half, n = (a.store ? a.w.n : a.in.k.rows) * units;
    for (int64_t i = rrl_cuda_first(); i < n; i += rrl_cuda_step()) {
        const int64_t row = a.store ? a.w.row[i / units] : i / units;
        const int32_t all = (int32_t)(i % units / half), e = (int32_t)(i % half);
        const bool is_q = all < a.q_heads, is_v = all >= a.q_heads + kv, two = e + half < dim;
        const int32_t head = is_q ? all : is_v ? all - a.q_heads - kv : all - a.q_heads;
        const rrl_tensor t = is_q ? a.in.q : is_v ? a.in.v : a.in.k;
        float *x = t.data + row * t.cols + head * dim + e, low = x[0], high = two ? x[half] : 0.0f;
        if (a.in.cos && !is_v) {
            const int64_t angle = (int64_t)a.position[row] * half + e;
            const float c = a.in.cos[angle], s = a.in.sin[angle], first = low;
            low = fmaf(first, c, -(high * s));
            high = fmaf(high, c, first * s);
        }
        if (a.in.dtype == RRL_BF16 && !is_q) {
            low = rrl_bf16_value(rrl_bf16_of(low));
            high = rrl_bf16_value(rrl_bf16_of(high));
        }
        if (a.in.cos || a.in.dtype == RRL_BF16) { /* else nothing changed, and another thread may read it */
            x[0] = low;
            if (two) x[half] = high;
        }
        if (!a.store || is_q) continue;
        const int64_t write = i / units, at = a.w.at[write];
        KV *k_tile = (KV *)rrl_kv_tile(&a.pool, a.layer, a.w.block[write], head), *v_tile = k_tile + dim * RRL_KV_BLOCK;
        KV *to = is_v ? v_tile + at * dim + e : k_tile + e * RRL_KV_BLOCK + at;
        to[0] = stored<KV>(low);
        if (two) to[is_v ? half : half * RRL_KV_BLOCK] = stored<KV>(high);
    }
}

static rrl_status launch_write(rrl_cuda *c, const write_args *a) {
    const int64_t heads = a->q_heads + 2 * a->pool.n_kv_heads, half = (a->pool.head_dim + 1) / 2;
    const dim3 grid = rrl_cuda_grid((a->store ? a->w.n : a->in.k.rows) * heads * half);
    if (a->pool.dtype == RRL_BF16)
        return RRL_LAUNCH(c, kv_write_kernel<uint16_t>, grid, RRL_CUDA_THREADS, 0, *a);
    return RRL_LAUNCH(c, kv_write_kernel<float>, grid, RRL_CUDA_THREADS, 0, *a);
}

/* One launch where each row is written once, as in decoding; else two, because a row's writes are made by threads that
 * do not wait for each other. */
rrl_status rrl_cuda_kv_write(rrl_device *d, const rrl_kv_pool *pool, int32_t layer, const rrl_kv_rows *in,
                             const rrl_batch *b, const rrl_kv_writes *w) {
    const int32_t dim = pool->head_dim;
    const int32_t q_heads = in->cos ? (int32_t)(in->q.cols / dim) : 0;
    write_args a = {*pool, *in, *w, in->cos ? b->position : NULL, layer, q_heads, true};
    RRL_TRY(rrl_cuda_check(rrl_same_shape(in->k, in->v) && in->k.cols == (int64_t)pool->n_kv_heads * dim,
                           "keys or values"));
    RRL_TRY(rrl_cuda_check(in->dtype == RRL_F32 || in->dtype == RRL_BF16, "keys' type"));
    RRL_TRY(rrl_cuda_check(!in->cos || (dim % 2 == 0 && in->q.cols % dim == 0 && in->q.rows == in->k.rows &&
                                        in->k.rows == b->n_rows),
                           "queries and keys"));
    if (w->n != in->k.rows) {
        a.store = false;
        RRL_TRY(launch_write(rrl_cuda_of(d), &a));
        a.in.cos = NULL;
        a.in.dtype = RRL_F32;
        a.q_heads = 0;
        a.store = true;
    }
    return launch_write(rrl_cuda_of(d), &a);
}

/* A block copies one cache block of one layer, words of four bytes; a tile has an even number of elements. */
__global__ void kv_copy_kernel(rrl_kv_pool pool, const int32_t *from, const int32_t *to) {
    const int64_t words = rrl_kv_tile_bytes(&pool) / 4 * pool.n_kv_heads;
    const uint32_t *source = (const uint32_t *)rrl_kv_tile(&pool, (int32_t)blockIdx.y, from[blockIdx.x], 0);
    uint32_t *target = (uint32_t *)rrl_kv_tile(&pool, (int32_t)blockIdx.y, to[blockIdx.x], 0);
    for (int64_t i = threadIdx.x; i < words; i += blockDim.x) target[i] = source[i];
}

rrl_status rrl_cuda_kv_copy(rrl_device *d, const rrl_kv_pool *pool, const int32_t *from, const int32_t *to, int32_t n) {
    return RRL_LAUNCH(rrl_cuda_of(d), kv_copy_kernel, dim3((unsigned)n, (unsigned)pool->n_layers), RRL_CUDA_THREADS, 0,
                      *pool, from, to);
}

/* --- attention */

constexpr int WARPS = RRL_CUDA_THREADS / RRL_WARP, PER_WARP = 4, QUERIES = WARPS * PER_WARP, MAX_STAGE = 4;
static_assert(RRL_KV_BLOCK == RRL_WARP, "a lane is a key");

typedef struct {
    rrl_tensor out, lse, q;
    int32_t n_heads, layer;
    rrl_kv_pool pool;
    rrl_kv_table table;
    const int32_t *position, *row_seq;
    float scale;
    int32_t tile_rows; /* rows of a block */
    int32_t stage;     /* blocks of keys brought in at a time */
    rrl_cuda_beside beside;
} attention_args;

/* Shared memory of a block: queries [QUERIES][dim] f32, then `stage` pairs of tiles K [dim][32], V [32][dim] of KV. */
static size_t attention_shared(int32_t dim, int32_t stage, size_t width) {
    return sizeof(float) * QUERIES * (size_t)dim + (size_t)stage * 2 * RRL_KV_BLOCK * (size_t)dim * width;
}

/* Sixteen bytes at a time: a tile is a multiple of 64. */
struct alignas(16) quad {
    uint32_t word[4];
};

/* What a warp keeps of its queries; lane l: d = l, l + 32, ... of o, and slot l % 16 of the sum. */
template <int D32> struct running {
    float o[PER_WARP][D32], m[PER_WARP], sum[PER_WARP];
    int n_keys[PER_WARP]; /* 0 = no such query */
};

/* One block of keys, the first of them at position `first`, for the first N queries of each warp. */
template <int N, int D32, typename KV>
__device__ static void key_block(running<D32> *r, const float *q, const KV *kt, const KV *vt, int dim, int first,
                                 float scale) {
    const int warp = threadIdx.x / RRL_WARP, lane = threadIdx.x % RRL_WARP;
    float s[N] = {};
#pragma unroll 4
    for (int e = 0; e < dim; ++e) {
        const float k = loaded<KV>(kt[e * RRL_KV_BLOCK + lane]);
#pragma unroll
        for (int i = 0; i < N; ++i) s[i] = fmaf(q[(warp + WARPS * i) * dim + e], k, s[i]);
    }
    int n[N]; /* keys of this block that the query sees; the same in all lanes */
#pragma unroll
    for (int i = 0; i < N; ++i) {
        n[i] = r->n_keys[i] - first < RRL_KV_BLOCK ? r->n_keys[i] - first : RRL_KV_BLOCK;
        if (n[i] <= 0) continue;
        const float score = lane < n[i] ? s[i] * scale : -INFINITY, most = rrl_max_of(score, RRL_WARP);
        const float m_new = most > r->m[i] ? most : r->m[i], a = rrl_exp_f32(r->m[i] - m_new);
        s[i] = lane < n[i] ? rrl_exp_f32(score - m_new) : 0.0f; /* p from here on */
        const float upper = __shfl_down_sync(RRL_ALL_LANES, s[i], RRL_LANES);
        r->sum[i] = (r->sum[i] * a + s[i]) + upper; /* lanes 0 to 15 hold the reference's */
        r->m[i] = m_new;
#pragma unroll
        for (int t = 0; t < D32; ++t) r->o[i][t] *= a;
    }
#pragma unroll 4
    for (int j = 0; j < RRL_KV_BLOCK; ++j) {
        float v[D32];
#pragma unroll
        for (int t = 0; t < D32; ++t)
            v[t] = lane + RRL_WARP * t < dim ? loaded<KV>(vt[j * dim + lane + RRL_WARP * t]) : 0.0f;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (j >= n[i]) continue; /* an unwritten value may be anything */
            const float p = __shfl_sync(RRL_ALL_LANES, s[i], j);
#pragma unroll
            for (int t = 0; t < D32; ++t) r->o[i][t] = fmaf(p, v[t], r->o[i][t]);
        }
    }
}

/* out = o / l, lse = m + log l of this warp's queries. */
template <int D32>
__device__ static void finish(const attention_args *a, const running<D32> *r, int64_t row0, int32_t head0, int group,
                              int at) {
    const int warp = threadIdx.x / RRL_WARP, lane = threadIdx.x % RRL_WARP, dim = a->pool.head_dim;
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i) {
        if (r->n_keys[i] == 0) continue;
        const int query = at + warp + WARPS * i;
        const int64_t row = row0 + query / group, head = head0 + query % group;
        const float l = __shfl_sync(RRL_ALL_LANES, rrl_tree16(r->sum[i]), 0);
#pragma unroll
        for (int t = 0; t < D32; ++t)
            if (lane + RRL_WARP * t < dim) {
                const int64_t col = head * dim + lane + RRL_WARP * t;
                const float o = r->o[i][t] / l;
                a->out.data[row * a->out.cols + col] = o;
                rrl_put_beside(&a->beside, row, col, o);
            }
        if (a->lse.data && lane == 0) a->lse.data[row * a->lse.cols + head] = r->m[i] + rrl_log_f32(l);
    }
}

/* Queries [at, at + n) of a run of rows of one sequence, counted row by row, head by head. */
template <int D32, typename KV>
__device__ static void query_set(const attention_args *a, unsigned char *shared, int64_t row0, int at, int n) {
    const int dim = a->pool.head_dim, tile = dim * RRL_KV_BLOCK, warp = threadIdx.x / RRL_WARP;
    const int32_t group = a->n_heads / a->pool.n_kv_heads, kv_head = (int32_t)blockIdx.y, head0 = kv_head * group;
    const int32_t *table = a->table.table + (int64_t)a->row_seq[row0] * a->table.stride;
    const int most = a->position[row0 + (at + n - 1) / group] + 1; /* positions ascend: the last query sees most */
    float *q = (float *)shared;                                    /* [QUERIES][dim] */
    KV *tiles = (KV *)(q + QUERIES * dim);
    running<D32> r;
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i) {
        const int query = warp + WARPS * i;
        r.n_keys[i] = query < n ? a->position[row0 + (at + query) / group] + 1 : 0;
        r.m[i] = -INFINITY;
        r.sum[i] = 0.0f;
#pragma unroll
        for (int t = 0; t < D32; ++t) r.o[i][t] = 0.0f;
    }
    __syncthreads(); /* the set before this one is done with the shared memory */
    for (int i = threadIdx.x; i < QUERIES * dim; i += RRL_CUDA_THREADS) {
        const int query = at + i / dim;
        q[i] = i / dim < n ? a->q.data[(row0 + query / group) * a->q.cols + (head0 + query % group) * dim + i % dim]
                           : 0.0f;
    }
    for (int first = 0; first < most; first += a->stage * RRL_KV_BLOCK) {
        int blocks = (most - first + RRL_KV_BLOCK - 1) / RRL_KV_BLOCK;
        blocks = blocks < a->stage ? blocks : a->stage;
        if (first > 0) __syncthreads(); /* before the tiles are written again */
        for (int b = 0; b < blocks; ++b) {
            const int32_t block = table[first / RRL_KV_BLOCK + b];
            const quad *from = (const quad *)rrl_kv_tile(&a->pool, a->layer, block, kv_head);
            quad *to = (quad *)(tiles + b * 2 * tile);
            for (int i = threadIdx.x; i < 2 * tile * (int)sizeof(KV) / (int)sizeof(quad); i += RRL_CUDA_THREADS)
                to[i] = from[i];
        }
        __syncthreads();
        for (int b = 0; b < blocks; ++b) {
            const KV *kt = tiles + b * 2 * tile, *vt = kt + tile;
            const int key = first + b * RRL_KV_BLOCK;
            if (n <= WARPS) /* as in decoding: the other places of a warp have no query */
                key_block<1>(&r, q, kt, vt, dim, key, a->scale);
            else
                key_block<PER_WARP>(&r, q, kt, vt, dim, key, a->scale);
        }
    }
    finish<D32>(a, &r, row0, head0, group, at);
}

/* grid: (tiles of rows, kv heads) */
template <int D32, typename KV>
__global__ void __launch_bounds__(RRL_CUDA_THREADS, 2) attention_kernel(const __grid_constant__ attention_args a) {
    RRL_CUDA_SHARED(raw);
    const int group = a.n_heads / a.pool.n_kv_heads;
    int64_t row = (int64_t)blockIdx.x * a.tile_rows;
    const int64_t last = row + a.tile_rows < a.q.rows ? row + a.tile_rows : a.q.rows;
    while (row < last) { /* runs of rows of one sequence */
        int64_t next = row + 1;
        while (next < last && a.row_seq[next] == a.row_seq[row]) next++;
        const int queries = (int)(next - row) * group;
        for (int at = 0; at < queries; at += QUERIES)
            query_set<D32, KV>(&a, raw, row, at, queries - at < QUERIES ? queries - at : QUERIES);
        row = next;
    }
}

template <typename KV> static rrl_status launch_attention(rrl_cuda *c, const attention_args *a, dim3 grid) {
    const int32_t dim = a->pool.head_dim;
    const size_t shared = attention_shared(dim, a->stage, sizeof(KV));
    if (dim <= 32) return RRL_LAUNCH(c, (attention_kernel<1, KV>), grid, RRL_CUDA_THREADS, shared, *a);
    if (dim <= 64) return RRL_LAUNCH(c, (attention_kernel<2, KV>), grid, RRL_CUDA_THREADS, shared, *a);
    if (dim <= 128) return RRL_LAUNCH(c, (attention_kernel<4, KV>), grid, RRL_CUDA_THREADS, shared, *a);
    return RRL_LAUNCH(c, (attention_kernel<8, KV>), grid, RRL_CUDA_THREADS, shared, *a);
}

rrl_status rrl_cuda_attention(rrl_device *d, rrl_tensor out, rrl_tensor lse, rrl_tensor q, int32_t n_heads,
                              const rrl_kv_pool *pool, int32_t layer, const rrl_kv_table *table, const rrl_batch *b,
                              float scale) {
    rrl_cuda *c = rrl_cuda_of(d);
    const size_t width = pool->dtype == RRL_BF16 ? 2 : 4;
    RRL_TRY(rrl_cuda_check(rrl_same_shape(out, q) && q.cols == (int64_t)n_heads * pool->head_dim && q.rows == b->n_rows,
                           "attention's queries"));
    RRL_TRY(rrl_cuda_check(n_heads % pool->n_kv_heads == 0 && pool->head_dim <= RRL_MAX_HEAD_DIM, "attention's heads"));
    RRL_TRY(rrl_cuda_check(!lse.data || (lse.rows == q.rows && lse.cols == n_heads), "attention's log-sum-exp"));
    attention_args a = {out, lse, q, n_heads, layer, *pool, *table, b->position, b->row_seq, scale, 1, 1,
                        rrl_cuda_beside_of(c, out)};
    /* Few rows: one a block, for parallelism, and several blocks of keys under way. Many: fill the 32 queries. */
    const int32_t group = n_heads / pool->n_kv_heads;
    if (q.rows > 1024 && group < QUERIES) a.tile_rows = QUERIES / group;
    while (a.stage < MAX_STAGE && attention_shared(pool->head_dim, a.stage + 1, width) <= RRL_CUDA_PLAIN_SHARED)
        a.stage++;
    const dim3 grid((unsigned)rrl_blocks(q.rows, a.tile_rows), (unsigned)pool->n_kv_heads);
    RRL_TRY(width == 2 ? launch_attention<uint16_t>(c, &a, grid) : launch_attention<float>(c, &a, grid));
    rrl_cuda_was_rounded(c, a.beside, out);
    return RRL_OK;
}
