/* Backward of attention over packed sequences, in the style of flash attention: scores again from q and k, never
 * rows x keys in memory. Two passes with the same tiles of 32 x 32: one block of queries against all its keys gives dq,
 * one block of keys against all its queries gives dk and dv. In the first a warp has 4 queries and a lane is a key, in
 * the second a warp has 4 keys and a lane is a query; then lanes are head dimensions, and each number is one chain in
 * the reference's order: dq over keys ascending, dk and dv over the heads of the kv head, then sequences, then rows. */
#include "device/cuda/cuda_ops.cuh"

constexpr int WARPS = RRL_CUDA_THREADS / RRL_WARP, PER_WARP = 4, TILE = WARPS * PER_WARP;
static_assert(TILE == RRL_WARP, "a lane is a row of the other side's tile");

typedef struct {
    rrl_tensor dq, dk, dv, dout, out, lse, q, k, v;
    float *delta; /* [rows, heads] dout . out */
    int32_t n_heads, group, dim, n_seqs;
    const int32_t *row_seq, *seq_row, *parent;
    float scale;
} backward_args;

/* Shared memory of a block: four tiles of rows [TILE][dim + 1], the stride against bank conflicts. */
typedef struct {
    float *q, *dout, *k, *v;
} tiles;

static size_t backward_shared(int32_t dim) {
    return 4 * sizeof(float) * TILE * (size_t)(dim + 1);
}

__device__ static tiles tiles_in(unsigned char *raw, int dim) {
    float *p = (float *)raw;
    const int size = TILE * (dim + 1);
    return tiles{p, p + size, p + 2 * size, p + 3 * size};
}

/* to [TILE][dim + 1] = rows [row, row + n) of t, columns [col, col + dim); zeros beyond. */
__device__ static void load_tile(float *to, rrl_tensor t, int64_t row, int n, int64_t col, int dim) {
    for (int i = threadIdx.x; i < TILE * dim; i += RRL_CUDA_THREADS)
        to[i / dim * (dim + 1) + i % dim] = i / dim < n ? t.data[(row + i / dim) * t.cols + col + i % dim] : 0.0f;
}

/* delta: half a warp a (row, head) */
__global__ void delta_kernel(const __grid_constant__ backward_args a) {
    const int64_t i = rrl_cuda_first() / RRL_LANES, at = i * a.dim; /* q.cols = heads * dim: (row, head) side by side */
    const bool in = i < a.q.rows * a.n_heads;
    float sum = 0.0f;
    for (int e = threadIdx.x % RRL_LANES; in && e < a.dim; e += RRL_LANES)
        sum = fmaf(a.dout.data[at + e], a.out.data[at + e], sum);
    sum = rrl_tree16(sum);
    if (in && threadIdx.x % RRL_LANES == 0) a.delta[i] = sum;
}

/* q . k and dout . v of this warp's 4 rows of one side and the lane's row of the other (mine: q, dout or k, v). */
__device__ static void scores(float s[PER_WARP], float dp[PER_WARP], const float *mine, const float *mine2,
                              const float *other, const float *other2, int dim) {
    const int warp = threadIdx.x / RRL_WARP, lane = threadIdx.x % RRL_WARP;
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i) s[i] = dp[i] = 0.0f;
#pragma unroll 2
    for (int e = 0; e < dim; ++e) {
        const float x = other[lane * (dim + 1) + e], x2 = other2[lane * (dim + 1) + e];
#pragma unroll
        for (int i = 0; i < PER_WARP; ++i) {
            s[i] = fmaf(mine[(warp + WARPS * i) * (dim + 1) + e], x, s[i]);
            dp[i] = fmaf(mine2[(warp + WARPS * i) * (dim + 1) + e], x2, dp[i]);
        }
    }
}

/* --- dq: grid (tiles of rows, heads) */

template <int D32> struct query_state { float dq[PER_WARP][D32], lse[PER_WARP], delta[PER_WARP]; };

/* Keys [key, key + n) for the queries [row, row + rows) of the block; own: a query sees keys up to its own row. */
template <int D32>
__device__ static void keys_for_queries(query_state<D32> *st, const backward_args *a, const tiles *t, int64_t row,
                                        int rows, int64_t key, int n, int32_t kv_head, bool own) {
    const int warp = threadIdx.x / RRL_WARP, lane = threadIdx.x % RRL_WARP, dim = a->dim;
    float s[PER_WARP], dp[PER_WARP];
    __syncthreads(); /* before the tiles are written again */
    load_tile(t->k, a->k, key, n, (int64_t)kv_head * dim, dim);
    load_tile(t->v, a->v, key, n, (int64_t)kv_head * dim, dim);
    __syncthreads();
    scores(s, dp, t->q, t->dout, t->k, t->v, dim);
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i)
        s[i] = (rrl_exp_f32(s[i] * a->scale - st->lse[i]) * (dp[i] - st->delta[i])) * a->scale; /* ds */
#pragma unroll 2
    for (int j = 0; j < n; ++j)
#pragma unroll
        for (int i = 0; i < PER_WARP; ++i) {
            const int query = warp + WARPS * i;
            if (query >= rows || (own && key + j > row + query)) continue; /* the same in all lanes */
            const float ds = __shfl_sync(RRL_ALL_LANES, s[i], j);
#pragma unroll
            for (int x = 0; x < D32; ++x) {
                const int e = lane + RRL_WARP * x;
                if (e < dim) st->dq[i][x] = fmaf(ds, t->k[j * (dim + 1) + e], st->dq[i][x]);
            }
        }
}

/* Queries [row, row + rows) of one sequence. */
template <int D32>
__device__ static void query_run(const backward_args *a, const tiles *t, int64_t row, int rows, int32_t head) {
    const int warp = threadIdx.x / RRL_WARP, lane = threadIdx.x % RRL_WARP, dim = a->dim;
    const int32_t sequence = a->row_seq[row], parent = a->parent[sequence], kv_head = head / a->group;
    query_state<D32> st;
    __syncthreads(); /* the run before this one is done with the shared memory */
    load_tile(t->q, a->q, row, rows, (int64_t)head * dim, dim);
    load_tile(t->dout, a->dout, row, rows, (int64_t)head * dim, dim);
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i) {
        const int64_t at = (row + warp + WARPS * i) * a->n_heads + head;
        const bool in = warp + WARPS * i < rows;
        st.lse[i] = in ? a->lse.data[at] : 0.0f;
        st.delta[i] = in ? a->delta[at] : 0.0f;
#pragma unroll
        for (int x = 0; x < D32; ++x) st.dq[i][x] = 0.0f;
    }
    const int64_t none = 0, first = a->seq_row[sequence], last = row + rows;
    for (int64_t key = parent < 0 ? none : a->seq_row[parent], end = parent < 0 ? none : a->seq_row[parent + 1];
         key < end; key += TILE)
        keys_for_queries<D32>(&st, a, t, row, rows, key, (int)(end - key < TILE ? end - key : TILE), kv_head, false);
    for (int64_t key = first; key < last; key += TILE)
        keys_for_queries<D32>(&st, a, t, row, rows, key, (int)(last - key < TILE ? last - key : TILE), kv_head, true);
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i)
#pragma unroll
        for (int x = 0; x < D32; ++x) {
            const int query = warp + WARPS * i, e = lane + RRL_WARP * x;
            if (query < rows && e < dim) a->dq.data[(row + query) * a->dq.cols + (int64_t)head * dim + e] = st.dq[i][x];
        }
}

/* Rows [row, *next) of this block's tile that belong to one sequence. */
__device__ static int64_t run_end(const backward_args *a, int64_t row, int64_t last) {
    int64_t next = row + 1;
    while (next < last && a->row_seq[next] == a->row_seq[row]) next++;
    return next;
}

template <int D32>
__global__ void __launch_bounds__(RRL_CUDA_THREADS, D32 > 4 ? 1 : 2)
    dq_kernel(const __grid_constant__ backward_args a) {
    RRL_CUDA_SHARED(raw);
    const tiles t = tiles_in(raw, a.dim);
    int64_t row = (int64_t)blockIdx.x * TILE, next;
    const int64_t last = row + TILE < a.q.rows ? row + TILE : a.q.rows;
    for (; row < last; row = next) {
        next = run_end(&a, row, last);
        query_run<D32>(&a, &t, row, (int)(next - row), (int32_t)blockIdx.y);
    }
}

/* --- dk, dv: grid (tiles of rows, kv heads) */

template <int D32> struct key_state { float dk[PER_WARP][D32], dv[PER_WARP][D32]; };

/* Queries [row, row + n) of one head for the keys [key, key + keys) of the block. */
template <int D32>
__device__ static void queries_for_keys(key_state<D32> *st, const backward_args *a, const tiles *t, int64_t key,
                                        int keys, int64_t row, int n, int32_t head, bool own) {
    const int warp = threadIdx.x / RRL_WARP, lane = threadIdx.x % RRL_WARP, dim = a->dim;
    const int64_t at = (row + lane) * a->n_heads + head;
    const float lse = lane < n ? a->lse.data[at] : 0.0f, delta = lane < n ? a->delta[at] : 0.0f;
    float s[PER_WARP], dp[PER_WARP];
    __syncthreads(); /* before the tiles are written again */
    load_tile(t->q, a->q, row, n, (int64_t)head * dim, dim);
    load_tile(t->dout, a->dout, row, n, (int64_t)head * dim, dim);
    __syncthreads();
    scores(s, dp, t->k, t->v, t->q, t->dout, dim);
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i) {
        s[i] = rrl_exp_f32(s[i] * a->scale - lse);   /* p */
        dp[i] = (s[i] * (dp[i] - delta)) * a->scale; /* ds */
    }
#pragma unroll 2
    for (int j = 0; j < n; ++j)
#pragma unroll
        for (int i = 0; i < PER_WARP; ++i) {
            const int mine = warp + WARPS * i;
            if (mine >= keys || (own && key + mine > row + j)) continue; /* the same in all lanes */
            const float p = __shfl_sync(RRL_ALL_LANES, s[i], j), ds = __shfl_sync(RRL_ALL_LANES, dp[i], j);
#pragma unroll
            for (int x = 0; x < D32; ++x) {
                const int e = lane + RRL_WARP * x;
                if (e >= dim) continue;
                st->dk[i][x] = fmaf(ds, t->q[j * (dim + 1) + e], st->dk[i][x]);
                st->dv[i][x] = fmaf(p, t->dout[j * (dim + 1) + e], st->dv[i][x]);
            }
        }
}

/* Keys [key, key + keys) of one sequence. */
template <int D32>
__device__ static void key_run(const backward_args *a, const tiles *t, int64_t key, int keys, int32_t kv_head) {
    const int warp = threadIdx.x / RRL_WARP, lane = threadIdx.x % RRL_WARP, dim = a->dim;
    const int32_t sequence = a->row_seq[key];
    key_state<D32> st;
    __syncthreads(); /* the run before this one is done with the shared memory */
    load_tile(t->k, a->k, key, keys, (int64_t)kv_head * dim, dim);
    load_tile(t->v, a->v, key, keys, (int64_t)kv_head * dim, dim);
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i)
#pragma unroll
        for (int x = 0; x < D32; ++x) st.dk[i][x] = st.dv[i][x] = 0.0f;
    for (int32_t head = kv_head * a->group; head < (kv_head + 1) * a->group; ++head)
        for (int32_t s = 0; s < a->n_seqs; ++s) {
            const bool own = s == sequence;
            if (!own && a->parent[s] != sequence) continue;
            const int64_t last = a->seq_row[s + 1]; /* rows of its own sequence before the keys do not see them */
            for (int64_t row = own ? key : a->seq_row[s]; row < last; row += TILE)
                queries_for_keys<D32>(&st, a, t, key, keys, row, (int)(last - row < TILE ? last - row : TILE), head,
                                      own);
        }
#pragma unroll
    for (int i = 0; i < PER_WARP; ++i)
#pragma unroll
        for (int x = 0; x < D32; ++x) {
            const int mine = warp + WARPS * i, e = lane + RRL_WARP * x;
            if (mine >= keys || e >= dim) continue;
            a->dk.data[(key + mine) * a->dk.cols + (int64_t)kv_head * dim + e] = st.dk[i][x];
            a->dv.data[(key + mine) * a->dv.cols + (int64_t)kv_head * dim + e] = st.dv[i][x];
        }
}

template <int D32>
__global__ void __launch_bounds__(RRL_CUDA_THREADS, D32 > 4 ? 1 : 2)
    dkv_kernel(const __grid_constant__ backward_args a) {
    RRL_CUDA_SHARED(raw);
    const tiles t = tiles_in(raw, a.dim);
    int64_t key = (int64_t)blockIdx.x * TILE, next;
    const int64_t last = key + TILE < a.k.rows ? key + TILE : a.k.rows;
    for (; key < last; key = next) {
        next = run_end(&a, key, last);
        key_run<D32>(&a, &t, key, (int)(next - key), (int32_t)blockIdx.y);
    }
}

template <int D32> static rrl_status launch(rrl_cuda *c, const backward_args *a) {
    const size_t shared = backward_shared(a->dim);
    const unsigned row_tiles = (unsigned)rrl_blocks(a->q.rows, TILE);
    RRL_TRY(RRL_LAUNCH(c, dq_kernel<D32>, dim3(row_tiles, (unsigned)a->n_heads), RRL_CUDA_THREADS, shared, *a));
    return RRL_LAUNCH(c, dkv_kernel<D32>, dim3(row_tiles, (unsigned)(a->n_heads / a->group)), RRL_CUDA_THREADS, shared,
                      *a);
}

rrl_status rrl_cuda_attention_backward(rrl_device *d, rrl_tensor dq, rrl_tensor dk, rrl_tensor dv, rrl_tensor dout,
                                       rrl_tensor out, rrl_tensor lse, rrl_tensor q, rrl_tensor k, rrl_tensor v,
                                       int32_t n_heads, int32_t head_dim, const rrl_batch *b, const rrl_parents *p,
                                       float scale) {
    rrl_cuda *c = rrl_cuda_of(d);
    RRL_TRY(rrl_cuda_check(rrl_same_shape(dq, q) && rrl_same_shape(dout, q) && rrl_same_shape(out, q),
                           "attention_backward's queries"));
    RRL_TRY(rrl_cuda_check(rrl_same_shape(dk, k) && rrl_same_shape(dv, v) && rrl_same_shape(k, v) && k.rows == q.rows,
                           "attention_backward's keys"));
    RRL_TRY(rrl_cuda_check(q.cols == (int64_t)n_heads * head_dim && head_dim <= RRL_MAX_HEAD_DIM &&
                               k.cols % head_dim == 0 && q.cols % k.cols == 0 && lse.rows == q.rows &&
                               lse.cols == n_heads,
                           "attention_backward's heads"));
    RRL_TRY(rrl_cuda_check((size_t)lse.rows * (size_t)lse.cols * sizeof(float) <= c->room_bytes,
                           "attention_backward's rows (beyond the working room)"));
    const backward_args a = {dq,         dk,
                             dv,         dout,
                             out,        lse,
                             q,          k,
                             v,          (float *)c->room,
                             n_heads,    (int32_t)(q.cols / k.cols),
                             head_dim,   b->n_seqs,
                             b->row_seq, b->seq_row,
                             p->parent,  scale};
    RRL_TRY(RRL_LAUNCH(c, delta_kernel, dim3((unsigned)rrl_blocks(q.rows * n_heads * RRL_LANES, RRL_CUDA_THREADS)),
                       RRL_CUDA_THREADS, 0, a));
    if (head_dim <= 32) return launch<1>(c, &a);
    if (head_dim <= 64) return launch<2>(c, &a);
    if (head_dim <= 128) return launch<4>(c, &a);
    return launch<8>(c, &a);
}
