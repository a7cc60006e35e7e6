/* LoRA: down into the rank, up out of it, and the gradients. A batch may mix adapters: a block takes 8 rows and goes
 * through their runs of one adapter, so rows of one adapter share each read of its matrices.
 *
 * The backward pass of the rows has the same shape with the matrices exchanged (down by B, up by A), so the same two
 * kernels do it. Sums over k ascend as one chain (`exact`), or as 256 / r16 chains side by side that are joined in a
 * fixed order: one chain of thousands of numbers is slow where few rows decode. */
#include "device/cuda/cuda_ops.cuh"

constexpr int ROWS = 8, DOWN_STEP = 256, TABLE = 48; /* TABLE: a kernel's arguments are at most 4 KiB */

/* One module of one adapter, as the kernels use it. */
typedef struct {
    const float *down; /* [k, ld]: column c is what row c of A is in forward */
    const float *up;   /* [r, n] */
    int16_t ld, r;     /* r 0 = this adapter has no such module */
    float scale;
} side;

/* One module of adapters [first, first + n). */
typedef struct {
    rrl_tensor y, u;
    uint32_t key; /* of its dropout: module + 65536 * iteration */
    side of[TABLE];
} module_sides;

/* The modules of a call, a layer of the grid each. They travel as a kernel's argument: no transfer, and a captured
 * graph keeps them. */
typedef struct {
    int32_t first, n;
    module_sides of[RRL_MOST_PRODUCTS];
} sides;

static_assert(sizeof(sides) <= 3800, "with the rest, a kernel's arguments");

/* Keyed dropout of a module's input; threshold 0 = none. */
typedef struct {
    uint32_t threshold; /* kept iff word >= threshold */
    float factor;
    const uint32_t *seq_key, *seq_sample;
} mask;

typedef struct {
    const int32_t *row_seq, *adapter, *position;
} row_info;

static mask mask_of(const rrl_lora_args *args) {
    const rrl_dropout *d = args->dropout;
    if (!d || !(d->p > 0.0f)) return mask{};
    return mask{(uint32_t)ceil((double)d->p * 0x1p32), 1.0f / (1.0f - d->p), d->seq_key, d->seq_sample};
}

static uint32_t mask_key(const rrl_lora_args *args) {
    return args->module + (args->dropout ? 65536u * args->dropout->iteration : 0);
}

/* Words of elements 4 quad .. 4 quad + 3 of a row. */
__device__ static void mask_words(uint32_t word[4], const mask *m, uint32_t key, const row_info *b, int64_t row,
                                  int64_t quad) {
    const int32_t s = b->row_seq[row];
    const uint32_t counter[4] = {m->seq_sample[s], key, (uint32_t)b->position[row], (uint32_t)quad};
    rrl_philox_block(word, counter, m->seq_key + 2 * s);
}

__device__ static float dropped(float x, const mask *m, uint32_t key, const row_info *b, int64_t row, int64_t e) {
    uint32_t word[4];
    if (m->threshold == 0) return x;
    mask_words(word, m, key, b, row, e / 4);
    return x * (word[e % 4] >= m->threshold ? m->factor : 0.0f);
}

/* The side of a row in this layer of the grid; NULL = none, or of another launch (*other). */
__device__ static const side *side_of(const sides *t, const row_info *b, int64_t row, bool *other) {
    const int32_t adapter = b->adapter[b->row_seq[row]];
    const side *of = t->of[blockIdx.z].of;
    *other = adapter >= 0 && (adapter < t->first || adapter >= t->first + TABLE);
    if (adapter < t->first || adapter >= t->first + t->n || of[adapter - t->first].r == 0) return NULL;
    return &of[adapter - t->first];
}

/* The end of the run of rows from `row` on that have its side. */
__device__ static int64_t run_end(const sides *t, const row_info *b, int64_t row, int64_t last, const side *m,
                                  bool other) {
    bool next_other;
    int64_t next = row + 1;
    while (next < last && side_of(t, b, next, &next_other) == m && next_other == other) next++;
    return next;
}

/* --- down: u [rows, r16] = scale * xd down; zeros beyond r and for rows without a module */

typedef struct {
    float x[ROWS][DOWN_STEP];
    float part[RRL_CUDA_THREADS][ROWS]; /* of split s and column c: [s * r16 + c] */
} down_shared;

/* x of rows [row, row + n), elements [k0, k0 + len), through the mask. A thread fills four, one block of words. */
__device__ static void load_dropped(down_shared *s, rrl_tensor x, const mask *m, uint32_t key, const row_info *b,
                                    int64_t row, int n, int64_t k0, int len) {
    for (int i = threadIdx.x; i < n * (DOWN_STEP / 4); i += blockDim.x) {
        const int j = i / (DOWN_STEP / 4), e = i % (DOWN_STEP / 4) * 4;
        uint32_t word[4];
        if (m->threshold && e < len) mask_words(word, m, key, b, row + j, (k0 + e) / 4);
        for (int l = 0; l < 4 && e + l < len; ++l) {
            const float v = x.data[(row + j) * x.cols + k0 + e + l];
            s->x[j][e + l] = m->threshold == 0 ? v : v * (word[l] >= m->threshold ? m->factor : 0.0f);
        }
    }
}

/* Grid: (rows, 1, modules). blockDim.x = u.cols * splits; thread s * u.cols + c sums k = s, s + splits, ... of column
 * c. */
__global__ void down_kernel(rrl_tensor x, const __grid_constant__ sides t, const __grid_constant__ mask drop,
                            const __grid_constant__ row_info b) {
    RRL_CUDA_SHARED(raw);
    down_shared *sh = (down_shared *)raw;
    const rrl_tensor u = t.of[blockIdx.z].u;
    const uint32_t key = t.of[blockIdx.z].key;
    const int r16 = (int)u.cols, c = threadIdx.x % r16, split = threadIdx.x / r16, splits = blockDim.x / r16;
    int64_t row = (int64_t)blockIdx.x * ROWS, next;
    const int64_t last = row + ROWS < x.rows ? row + ROWS : x.rows;
    for (; row < last; row = next) {
        bool other;
        const side *m = side_of(&t, &b, row, &other);
        next = run_end(&t, &b, row, last, m, other);
        const int n = (int)(next - row);
        float acc[ROWS] = {};
        for (int64_t k0 = 0; m && k0 < x.cols; k0 += DOWN_STEP) {
            const int len = (int)(x.cols - k0 < DOWN_STEP ? x.cols - k0 : DOWN_STEP);
            __syncthreads(); /* before x is written again */
            load_dropped(sh, x, &drop, key, &b, row, n, k0, len);
            __syncthreads();
            for (int k = split; c < m->r && k < len; k += splits) {
                const float a = m->down[(k0 + k) * m->ld + c];
#pragma unroll
                for (int j = 0; j < ROWS; ++j)
                    if (j < n) acc[j] = fmaf(sh->x[j][k], a, acc[j]);
            }
        }
        if (splits > 1) { /* join: chains in ascending order */
            for (int j = 0; j < ROWS; ++j) sh->part[threadIdx.x][j] = acc[j];
            __syncthreads();
            for (int s = 1; split == 0 && s < splits; ++s)
                for (int j = 0; j < n; ++j) acc[j] += sh->part[s * r16 + c][j];
            __syncthreads(); /* before the parts are written again */
        }
        if (split > 0 || other) continue;
#pragma unroll
        for (int j = 0; j < ROWS; ++j)
            if (j < n) u.data[(row + j) * r16 + c] = m && c < m->r ? m->scale * acc[j] : 0.0f;
    }
}

/* --- up: forward y continues as a chain over c; backward dx += mask(chain from 0). Grid: (columns, rows,
 * modules) */

template <bool BACKWARD>
__global__ void up_kernel(const __grid_constant__ sides t, const __grid_constant__ mask drop,
                          const __grid_constant__ row_info b) {
    RRL_CUDA_SHARED(raw);
    float *us = (float *)raw; /* [ROWS][r16] */
    const rrl_tensor y = t.of[blockIdx.z].y, u = t.of[blockIdx.z].u;
    const uint32_t key = t.of[blockIdx.z].key;
    if ((int64_t)blockIdx.x * blockDim.x >= y.cols) return; /* another module is wider */
    const int r16 = (int)u.cols;
    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t row = (int64_t)blockIdx.y * ROWS, next;
    const int64_t last = row + ROWS < y.rows ? row + ROWS : y.rows;
    for (; row < last; row = next) {
        bool other;
        const side *m = side_of(&t, &b, row, &other);
        next = run_end(&t, &b, row, last, m, other);
        const int count = (int)(next - row);
        if (!m) continue;
        __syncthreads(); /* before us is written again */
        for (int i = threadIdx.x; i < count * r16; i += blockDim.x) us[i] = u.data[row * r16 + i];
        __syncthreads();
        if (n >= y.cols) continue;
        float acc[ROWS];
#pragma unroll
        for (int j = 0; j < ROWS; ++j) acc[j] = BACKWARD || j >= count ? 0.0f : y.data[(row + j) * y.cols + n];
        for (int c = 0; c < m->r; ++c) {
            const float w = m->up[(int64_t)c * y.cols + n];
#pragma unroll
            for (int j = 0; j < ROWS; ++j)
                if (j < count) acc[j] = fmaf(us[j * r16 + c], w, acc[j]);
        }
#pragma unroll
        for (int j = 0; j < ROWS; ++j) {
            if (j >= count) continue;
            float *to = &y.data[(row + j) * y.cols + n];
            *to = BACKWARD ? *to + dropped(acc[j], &drop, key, &b, row + j, n) : acc[j];
        }
    }
}

/* --- gradients: out[c * out_c + j * out_j] += over the trained rows ascending of u[row][c] * xd[row][j] */

constexpr int OUTER_COLS = 64, OUTER_RANK = 16, OUTER_ROWS = 32, OUTER_OWN = OUTER_COLS * OUTER_RANK / RRL_CUDA_THREADS;

typedef struct {
    float x[OUTER_ROWS][OUTER_COLS], u[OUTER_ROWS][OUTER_RANK];
    bool trained[OUTER_ROWS];
} outer_shared;

/* Grid: (columns of x, ranks); a thread has one column and OUTER_OWN ranks. */
__global__ void outer_kernel(float *out, int64_t out_c, int64_t out_j, rrl_tensor u, rrl_tensor x, int32_t r,
                             const __grid_constant__ mask drop, uint32_t key, const __grid_constant__ row_info b) {
    RRL_CUDA_SHARED(raw);
    outer_shared *s = (outer_shared *)raw;
    const int64_t j0 = (int64_t)blockIdx.x * OUTER_COLS, c0 = (int64_t)blockIdx.y * OUTER_RANK;
    const int col = threadIdx.x % OUTER_COLS, rank = threadIdx.x / OUTER_COLS * OUTER_OWN;
    float acc[OUTER_OWN];
#pragma unroll
    for (int i = 0; i < OUTER_OWN; ++i)
        acc[i] = j0 + col < x.cols && c0 + rank + i < r ? out[(c0 + rank + i) * out_c + (j0 + col) * out_j] : 0.0f;
    for (int64_t row0 = 0; row0 < x.rows; row0 += OUTER_ROWS) {
        const int n = (int)(x.rows - row0 < OUTER_ROWS ? x.rows - row0 : OUTER_ROWS);
        __syncthreads(); /* before the tiles are written again */
        for (int i = threadIdx.x; i < n * OUTER_COLS; i += blockDim.x) {
            const int64_t row = row0 + i / OUTER_COLS, j = j0 + i % OUTER_COLS;
            s->x[i / OUTER_COLS][i % OUTER_COLS] =
                j < x.cols ? dropped(x.data[row * x.cols + j], &drop, key, &b, row, j) : 0.0f;
        }
        for (int i = threadIdx.x; i < n * OUTER_RANK; i += blockDim.x) {
            const int64_t c = c0 + i % OUTER_RANK;
            s->u[i / OUTER_RANK][i % OUTER_RANK] = c < r ? u.data[(row0 + i / OUTER_RANK) * u.cols + c] : 0.0f;
        }
        if ((int)threadIdx.x < n) s->trained[threadIdx.x] = b.adapter[b.row_seq[row0 + threadIdx.x]] == 0;
        __syncthreads();
        for (int i = 0; i < n; ++i) {
            if (!s->trained[i]) continue;
#pragma unroll
            for (int k = 0; k < OUTER_OWN; ++k) acc[k] = fmaf(s->u[i][rank + k], s->x[i][col], acc[k]);
        }
    }
#pragma unroll
    for (int i = 0; i < OUTER_OWN; ++i)
        if (j0 + col < x.cols && c0 + rank + i < r) out[(c0 + rank + i) * out_c + (j0 + col) * out_j] = acc[i];
}

/* --- ops */

static row_info info_of(const rrl_batch *b) {
    return row_info{b->row_seq, b->adapter, b->position};
}

static rrl_status launch_down(rrl_cuda *c, rrl_tensor x, const sides *t, int n, const mask *m, const rrl_batch *b) {
    const unsigned r16 = (unsigned)t->of[0].u.cols;
    const unsigned splits = c->determinism == RRL_DETERMINISM_EXACT ? 1 : RRL_CUDA_THREADS / r16;
    return RRL_LAUNCH(c, down_kernel, dim3((unsigned)rrl_blocks(x.rows, ROWS), 1, (unsigned)n), r16 * splits,
                      sizeof(down_shared), x, *t, *m, info_of(b));
}

template <bool BACKWARD>
static rrl_status launch_up(rrl_cuda *c, const sides *t, int n, const mask *m, const rrl_batch *b) {
    int64_t widest = 0;
    for (int i = 0; i < n; i++) widest = t->of[i].y.cols > widest ? t->of[i].y.cols : widest;
    const dim3 grid((unsigned)rrl_blocks(widest, RRL_CUDA_THREADS), (unsigned)rrl_blocks(t->of[0].y.rows, ROWS),
                    (unsigned)n);
    const size_t shared = ROWS * (size_t)t->of[0].u.cols * sizeof(float);
    return RRL_LAUNCH(c, up_kernel<BACKWARD>, grid, RRL_CUDA_THREADS, shared, *t, *m, info_of(b));
}

/* One module of adapters [first, first + count). */
static void list_sides(module_sides *to, const rrl_lora_product *p, int32_t first, int32_t count) {
    to->y = p->y;
    to->u = p->u;
    to->key = mask_key(&p->args);
    for (int32_t i = 0; i < count; ++i) {
        const rrl_lora *m = p->args.modules[first + i];
        const int64_t ld = m ? rrl_blocks(m->r, RRL_LANES) * RRL_LANES : 0;
        to->of[i] = m ? side{m->a_t, m->b_t, (int16_t)ld, (int16_t)m->r, m->scale} : side{};
    }
}

/* Which adapters the batch names lies in device memory: a launch for every TABLE that it may name. */
rrl_status rrl_cuda_lora(rrl_device *d, rrl_tensor x, const rrl_batch *b, const rrl_lora_product *products, int32_t n) {
    rrl_cuda *c = rrl_cuda_of(d);
    const int32_t n_adapters = n > 0 ? products[0].args.n_modules : 0;
    RRL_TRY(rrl_cuda_check(n >= 1 && n <= RRL_MOST_PRODUCTS, "lora's list of modules"));
    const mask drop = mask_of(&products[0].args);
    for (int32_t i = 0; i < n; ++i) {
        const rrl_tensor y = products[i].y, u = products[i].u;
        RRL_TRY(rrl_cuda_check(x.rows == y.rows && u.rows == y.rows && x.rows == b->n_rows, "lora's rows"));
        RRL_TRY(rrl_cuda_check(u.cols <= RRL_MAX_LORA_RANK && u.cols % RRL_LANES == 0 && u.cols == products[0].u.cols,
                               "lora's rank"));
    }
    for (int32_t first = 0; first == 0 || first < n_adapters; first += TABLE) {
        sides t = {first, n_adapters - first < TABLE ? n_adapters - first : TABLE, {}};
        for (int32_t i = 0; i < n; ++i) list_sides(&t.of[i], &products[i], first, t.n);
        RRL_TRY(launch_down(c, x, &t, n, &drop, b));
        RRL_TRY(launch_up<false>(c, &t, n, &drop, b));
    }
    return RRL_OK;
}

rrl_status rrl_cuda_lora_backward(rrl_device *d, float *da, float *db, rrl_tensor dx, rrl_tensor du, rrl_tensor dy,
                                  rrl_tensor x, rrl_tensor us, const rrl_lora *m, const rrl_batch *b,
                                  const rrl_lora_args *args) {
    rrl_cuda *c = rrl_cuda_of(d);
    const mask drop = mask_of(args), none = mask{};
    const uint32_t key = mask_key(args);
    const unsigned ranks = (unsigned)rrl_blocks(m->r, OUTER_RANK);
    sides t = {0, 1, {}};
    t.of[0] = module_sides{dx, du, key, {}};
    t.of[0].of[0] = side{m->b, m->a, (int16_t)m->r, (int16_t)m->r, m->scale};
    RRL_TRY(rrl_cuda_check(x.cols == m->k && dy.cols == m->n && rrl_same_shape(dx, x) && dy.rows == x.rows,
                           "lora_backward's rows"));
    RRL_TRY(rrl_cuda_check(rrl_same_shape(du, us) && du.cols >= m->r && du.rows == x.rows &&
                               du.cols <= RRL_MAX_LORA_RANK && du.cols % RRL_LANES == 0,
                           "lora_backward's rank"));
    RRL_TRY(launch_down(c, dy, &t, 1, &none, b));
    RRL_TRY(launch_up<true>(c, &t, 1, &drop, b));
    RRL_TRY(RRL_LAUNCH(c, outer_kernel, dim3((unsigned)rrl_blocks(m->k, OUTER_COLS), ranks), RRL_CUDA_THREADS,
                       sizeof(outer_shared), da, (int64_t)m->k, (int64_t)1, du, x, m->r, drop, key, info_of(b)));
    return RRL_LAUNCH(c, outer_kernel, dim3((unsigned)rrl_blocks(m->n, OUTER_COLS), ranks), RRL_CUDA_THREADS,
                      sizeof(outer_shared), db, (int64_t)1, (int64_t)m->r, us, dy, m->r, none, key, info_of(b));
}

__global__ void pack_kernel(rrl_lora m, int32_t r16) {
    const int64_t in = (int64_t)m.k * r16, out = (int64_t)m.r * m.n;
    for (int64_t i = rrl_cuda_first(); i < in + out; i += rrl_cuda_step()) {
        if (i < in) {
            const int64_t k = i / r16, c = i % r16;
            m.a_t[i] = c < m.r ? m.a[c * m.k + k] : 0.0f;
        } else {
            const int64_t c = (i - in) / m.n, n = (i - in) % m.n;
            m.b_t[i - in] = m.b[n * m.r + c];
        }
    }
}

rrl_status rrl_cuda_lora_pack(rrl_device *d, const rrl_lora *m) {
    const int32_t r16 = (m->r + RRL_LANES - 1) / RRL_LANES * RRL_LANES;
    return RRL_LAUNCH(rrl_cuda_of(d), pack_kernel, rrl_cuda_grid((int64_t)m->k * r16 + (int64_t)m->r * m->n),
                      RRL_CUDA_THREADS, 0, *m, r16);
}
