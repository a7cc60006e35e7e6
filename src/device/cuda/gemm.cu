/* Products in the CPU's order of sums, for `deterministic: exact`: plain fma, no tensor cores.
 *
 * A block makes 64 x 64 outputs, a thread 4 x 4 of them, from tiles of 32 k in shared memory. An output is one
 * thread's: f32: one fma chain over k ascending from the start value; bf16: per 32 k an even and an odd chain from 0,
 * then acc + (even + odd), then + start, all with denormals as 0 (device/cpu/bf16.h). So an output does not depend on
 * the tile it lies in, on other rows or on the number of rows. */
#include "device/cuda/gemm.cuh"

constexpr int TILE = 64, STEP = 32, SIDE = 16, OWN = TILE / SIDE; /* SIDE x SIDE threads, OWN x OWN outputs each */
static_assert(SIDE * SIDE == RRL_CUDA_THREADS, "a block is a square of threads");

typedef struct {
    float x[STEP][TILE + 1]; /* [k][row]; one more against bank conflicts while loading */
    float w[STEP][TILE + 1]; /* [k][output] */
} gemm_shared;

/* One of the products: its weights, where it goes. */
typedef struct {
    float *y;
    const void *w;
    const float *bias;
    int64_t ldy, outputs;
} gemm_output;

/* Products of one x: w(output, k) = w[output * w_out + k * w_k]. */
typedef struct {
    const float *x;
    int64_t ldx, rows, k, w_out, w_k;
    bool accumulate;
    gemm_output of[RRL_MOST_PRODUCTS];
} gemm_args;

template <typename W> __device__ static float operand(W v) { /* as the product sees it */
    if constexpr (sizeof(W) == 2)
        return rrl_bf16_value(v);
    else
        return v;
}

template <typename W>
__device__ static void load_tiles(gemm_shared *s, const gemm_args *a, const gemm_output *o, int64_t row0, int64_t out0,
                                  int64_t k0) {
    const W *w = (const W *)o->w;
    for (int i = threadIdx.x; i < TILE * STEP; i += RRL_CUDA_THREADS) {
        const int64_t row = row0 + i / STEP, kx = k0 + i % STEP;
        float x = row < a->rows && kx < a->k ? a->x[row * a->ldx + kx] : 0.0f;
        s->x[i % STEP][i / STEP] = sizeof(W) == 2 ? rrl_bf16_value(rrl_bf16_of(x)) : x;
        /* neighbours of a warp read neighbours in memory: along k where k is contiguous, else along outputs */
        const int out = a->w_k == 1 ? i / STEP : i % TILE, kw = a->w_k == 1 ? i % STEP : i / TILE;
        const bool in = out0 + out < o->outputs && k0 + kw < a->k;
        s->w[kw][out] = in ? operand(w[(out0 + out) * a->w_out + (k0 + kw) * a->w_k]) : 0.0f;
    }
}

/* acc += one step of k: row r of the block is threadIdx.x / SIDE + SIDE * i, output threadIdx.x % SIDE + SIDE * j. */
template <bool BF16> __device__ static void add_step(float acc[OWN][OWN], const gemm_shared *s, int n) {
    const int tr = threadIdx.x / SIDE, tc = threadIdx.x % SIDE;
    float chain[2][OWN][OWN] = {};
#pragma unroll 8
    for (int k = 0; k < (BF16 ? STEP : n); ++k) /* a constant where k % 2 chooses a register */
#pragma unroll
        for (int i = 0; i < OWN; ++i)
#pragma unroll
            for (int j = 0; j < OWN; ++j) {
                const float x = s->x[k][tr + SIDE * i], w = s->w[k][tc + SIDE * j];
                if constexpr (BF16)
                    chain[k % 2][i][j] = RRL_CUDA_FMA_FTZ(x, w, chain[k % 2][i][j]);
                else
                    acc[i][j] = fmaf(x, w, acc[i][j]);
            }
    if constexpr (BF16)
#pragma unroll
        for (int i = 0; i < OWN; ++i)
#pragma unroll
            for (int j = 0; j < OWN; ++j)
                acc[i][j] = RRL_CUDA_ADD_FTZ(acc[i][j], RRL_CUDA_ADD_FTZ(chain[0][i][j], chain[1][i][j]));
}

/* grid: (tiles of outputs of one product after the other, tiles of rows) */
template <typename W>
__global__ void __launch_bounds__(RRL_CUDA_THREADS, 2) gemm_exact_kernel(const __grid_constant__ gemm_args a) {
    constexpr bool BF16 = sizeof(W) == 2;
    RRL_CUDA_SHARED(raw);
    gemm_shared *s = (gemm_shared *)raw;
    const gemm_output *o = a.of;
    int64_t out0 = (int64_t)blockIdx.x * TILE;
    for (; out0 >= o->outputs; ++o) out0 -= (o->outputs + TILE - 1) / TILE * TILE;
    const int64_t row0 = (int64_t)blockIdx.y * TILE;
    const int tr = threadIdx.x / SIDE, tc = threadIdx.x % SIDE;
    float acc[OWN][OWN], start[OWN][OWN];
    for (int i = 0; i < OWN; ++i)
        for (int j = 0; j < OWN; ++j) {
            const int64_t row = row0 + tr + SIDE * i, out = out0 + tc + SIDE * j;
            const bool in = row < a.rows && out < o->outputs;
            start[i][j] = !in ? 0.0f : a.accumulate ? o->y[row * o->ldy + out] : o->bias ? o->bias[out] : 0.0f;
            acc[i][j] = BF16 ? 0.0f : start[i][j];
        }
    for (int64_t k0 = 0; k0 < a.k; k0 += STEP) {
        load_tiles<W>(s, &a, o, row0, out0, k0);
        __syncthreads();
        /* bf16: k is padded with zeros by definition; f32: fma(0, 0, -0) would be +0 */
        add_step<BF16>(acc, s, a.k - k0 > STEP ? STEP : (int)(a.k - k0));
        __syncthreads(); /* before the tiles are written again */
    }
    for (int i = 0; i < OWN; ++i)
        for (int j = 0; j < OWN; ++j) {
            const int64_t row = row0 + tr + SIDE * i, out = out0 + tc + SIDE * j;
            if (row >= a.rows || out >= o->outputs) continue;
            float y = acc[i][j];
            if (BF16 && (a.accumulate || o->bias)) y = RRL_CUDA_ADD_FTZ(start[i][j], y);
            o->y[row * o->ldy + out] = y;
        }
}

rrl_status rrl_cuda_gemm_exact(rrl_cuda *c, const rrl_cuda_gemm *p, int n) {
    const int64_t k = p->w->k;
    const size_t width = c->dtype == RRL_BF16 ? 2 : 4;
    gemm_args a = {p->x, p->ldx, p->rows, k, k, 1, p->accumulate, {}};
    if (p->turned) {
        a.k = p->count;
        a.w_out = 1;
        a.w_k = k;
    }
    int64_t tiles = 0;
    for (int i = 0; i < n; i++) {
        const int64_t outputs = p->turned ? k : p[i].count;
        const char *w = (const char *)p[i].w->data + (size_t)(p[i].first * k) * width;
        a.of[i] = gemm_output{p[i].y, w, p[i].bias, p[i].ldy, outputs};
        tiles += rrl_blocks(outputs, TILE);
    }
    const dim3 grid((unsigned)tiles, (unsigned)rrl_blocks(a.rows, TILE));
    if (c->dtype == RRL_BF16)
        return RRL_LAUNCH(c, gemm_exact_kernel<uint16_t>, grid, RRL_CUDA_THREADS, sizeof(gemm_shared), a);
    return RRL_LAUNCH(c, gemm_exact_kernel<float>, grid, RRL_CUDA_THREADS, sizeof(gemm_shared), a);
}
