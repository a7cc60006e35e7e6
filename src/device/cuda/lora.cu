/* LoRA: down into the rank, up out of it - one kernel each or, for few rows, one for both, which changes no bit - and
 * the gradients. A batch may mix adapters: a block takes 8 rows and goes through their runs of one adapter, so rows of
 * one adapter share each read of its matrices.
 *
 * The backward pass of the rows has the same shape with the matrices exchanged (down by B, up by A), so the same
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

/* Rows in a row that a block takes with one adapter's matrices. */
typedef struct {
    int64_t row;
    int32_t n;
    bool other;    /* their adapter is of another launch, which writes what belongs to them */
    const side *m; /* NULL = no module, or of another launch */
} run;

/* The side of a row in this layer of the grid; NULL = none, or of another launch (*other). */
__device__ static const side *side_of(const sides *t, const row_info *b, int64_t row, bool *other) {
    const int32_t adapter = b->adapter[b->row_seq[row]];
    const side *of = t->of[blockIdx.z].of;
    *other = adapter >= 0 && (adapter < t->first || adapter >= t->first + TABLE);
    if (adapter < t->first || adapter >= t->first + t->n || of[adapter - t->first].r == 0) return NULL;
    return &of[adapter - t->first];
}

__device__ static run run_from(const sides *t, const row_info *b, int64_t row, int64_t last) {
    run r = {row, 0, false, NULL};
    bool next_other;
    r.m = side_of(t, b, row, &r.other);
    do r.n++;
    while (row + r.n < last && side_of(t, b, row + r.n, &next_other) == r.m && next_other == r.other);
    return r;
}

/* --- down: u [rows, r16] = scale * xd down; zeros beyond r and for rows without a module */

typedef struct {
    float x[DOWN_STEP][ROWS];
    float us[RRL_MAX_LORA_RANK][ROWS];
    float part[ROWS][RRL_CUDA_THREADS]; /* of split s and column c: [s * r16 + c] */
} down_shared;

/* What the kernels that go down read. Column c is summed by `splits` threads, s * r16 + c for each split s. */
typedef struct {
    rrl_tensor x;
    mask drop;
    row_info rows;
    int32_t splits;
} down_input;

/* x of a run, elements [k0, k0 + len), through the mask. A thread fills four, one block of words. */
__device__ static void load_dropped(down_shared *s, const down_input *in, uint32_t key, const run *r, int64_t k0,
                                    int len) {
    for (int i = threadIdx.x; i < ROWS * (DOWN_STEP / 4); i += blockDim.x) {
        const int j = i % ROWS, e = i / ROWS * 4;
        if (j >= r->n || e >= len) continue;
        const mask *m = &in->drop;
        uint32_t word[4];
        if (m->threshold) mask_words(word, m, key, &in->rows, r->row + j, (k0 + e) / 4);
        for (int l = 0; l < 4 && e + l < len; ++l) {
            const float v = in->x.data[(r->row + j) * in->x.cols + k0 + e + l];
            s->x[e + l][j] = m->threshold == 0 ? v : v * (word[l] >= m->threshold ? m->factor : 0.0f);
        }
    }
}

/* A run's us, which stays in shared memory; `out`: and in u. All threads of the block come here. */
__device__ static void go_down(down_shared *sh, const down_input *in, const module_sides *of, const run *r, bool out) {
    const int r16 = (int)of->u.cols, c = threadIdx.x % r16, split = threadIdx.x / r16;
    const side *m = r->m;
    const bool sums = m && split < in->splits && c < m->r;
    float acc[ROWS] = {};
    for (int64_t k0 = 0; m && k0 < in->x.cols; k0 += DOWN_STEP) {
        const int len = (int)(in->x.cols - k0 < DOWN_STEP ? in->x.cols - k0 : DOWN_STEP);
        __syncthreads(); /* before x is written again */
        load_dropped(sh, in, of->key, r, k0, len);
        __syncthreads();
#pragma unroll 8
        for (int k = split; sums && k < len; k += in->splits) {
            const float a = m->down[(k0 + k) * m->ld + c];
#pragma unroll
            for (int j = 0; j < ROWS; ++j) acc[j] = fmaf(sh->x[k][j], a, acc[j]); /* beyond the run: not read */
        }
    }
#pragma unroll
    for (int j = 0; j < ROWS; ++j) sh->part[j][threadIdx.x] = acc[j];
    __syncthreads();
    for (int i = threadIdx.x; i < r->n * r16; i += blockDim.x) { /* join: chains in ascending order */
        const int j = i / r16, col = i % r16;
        float sum = sh->part[j][col];
        for (int s = 1; s < in->splits; ++s) sum += sh->part[j][s * r16 + col];
        sum = m && col < m->r ? m->scale * sum : 0.0f;
        sh->us[col][j] = sum;
        if (out) of->u.data[(r->row + j) * r16 + col] = sum;
    }
    __syncthreads(); /* before us is read */
}

/* Grid: (rows, 1, modules). */
__global__ void down_kernel(const __grid_constant__ down_input in, const __grid_constant__ sides t) {
    RRL_CUDA_SHARED(raw);
    const int64_t first = (int64_t)blockIdx.x * ROWS, last = first + ROWS < in.x.rows ? first + ROWS : in.x.rows;
    run r;
    for (int64_t row = first; row < last; row += r.n) {
        r = run_from(&t, &in.rows, row, last);
        if (!r.other) go_down((down_shared *)raw, &in, &t.of[blockIdx.z], &r, true);
    }
}

/* --- up: forward y continues as a chain over c; backward dx += mask(chain from 0) */

/* Column n of a run. */
template <bool BACKWARD>
__device__ static void go_up(const float (*us)[ROWS], const module_sides *of, const run *r, int64_t n,
                             const mask *drop, const row_info *b) {
    const rrl_tensor y = of->y;
    float acc[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; ++j) acc[j] = BACKWARD || j >= r->n ? 0.0f : y.data[(r->row + j) * y.cols + n];
#pragma unroll 8
    for (int c = 0; c < r->m->r; ++c) {
        const float w = r->m->up[(int64_t)c * y.cols + n];
#pragma unroll
        for (int j = 0; j < ROWS; ++j) acc[j] = fmaf(us[c][j], w, acc[j]); /* beyond the run: not written */
    }
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
        if (j >= r->n) continue;
        float *to = &y.data[(r->row + j) * y.cols + n];
        *to = BACKWARD ? *to + dropped(acc[j], drop, of->key, b, r->row + j, n) : acc[j];
    }
}

/* Grid: (columns, rows, modules). */
template <bool BACKWARD>
__global__ void up_kernel(const __grid_constant__ sides t, const __grid_constant__ mask drop,
                          const __grid_constant__ row_info b) {
    RRL_CUDA_SHARED(raw);
    float(*us)[ROWS] = (float(*)[ROWS])raw; /* [r16] */
    const module_sides *of = &t.of[blockIdx.z];
    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (n - threadIdx.x >= of->y.cols) return; /* another module is wider */
    const int r16 = (int)of->u.cols;
    const int64_t first = (int64_t)blockIdx.y * ROWS, last = first + ROWS < of->y.rows ? first + ROWS : of->y.rows;
    run r;
    for (int64_t row = first; row < last; row += r.n) {
        r = run_from(&t, &b, row, last);
        if (!r.m) continue;
        __syncthreads(); /* before us is written again */
        for (int i = threadIdx.x; i < r.n * r16; i += blockDim.x) us[i % r16][i / r16] = of->u.data[row * r16 + i];
        __syncthreads();
        if (n < of->y.cols) go_up<BACKWARD>(us, of, &r, n, &drop, &b);
    }
}

/* --- both in one launch, for few rows: every part of PART columns makes the rows' us for itself. Grid: (parts, rows,
 * modules). */

constexpr int PART = 4 * RRL_CUDA_THREADS;

__global__ void both_kernel(const __grid_constant__ down_input in, const __grid_constant__ sides t) {
    RRL_CUDA_SHARED(raw);
    down_shared *sh = (down_shared *)raw;
    const module_sides *of = &t.of[blockIdx.z];
    const int64_t n0 = (int64_t)blockIdx.x * PART, end = n0 + PART < of->y.cols ? n0 + PART : of->y.cols;
    if (n0 >= end) return; /* another module is wider */
    const int64_t first = (int64_t)blockIdx.y * ROWS, last = first + ROWS < in.x.rows ? first + ROWS : in.x.rows;
    run r;
    for (int64_t row = first; row < last; row += r.n) {
        r = run_from(&t, &in.rows, row, last);
        if (r.other) continue;
        go_down(sh, &in, of, &r, blockIdx.x == 0);
        for (int64_t n = n0 + threadIdx.x; r.m && n < end; n += blockDim.x)
            go_up<false>(sh->us, of, &r, n, &in.drop, &in.rows);
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

static down_input input_of(const rrl_cuda *c, rrl_tensor x, const sides *t, const mask *m, const rrl_batch *b) {
    const int32_t most = RRL_CUDA_THREADS / (int32_t)t->of[0].u.cols;
    return down_input{x, *m, info_of(b), c->determinism == RRL_DETERMINISM_EXACT ? 1 : most};
}

static int64_t widest_of(const sides *t, int n) {
    int64_t widest = 0;
    for (int i = 0; i < n; i++) widest = t->of[i].y.cols > widest ? t->of[i].y.cols : widest;
    return widest;
}

static rrl_status launch_down(rrl_cuda *c, const down_input *in, const sides *t, int n) {
    return RRL_LAUNCH(c, down_kernel, dim3((unsigned)rrl_blocks(in->x.rows, ROWS), 1, (unsigned)n), RRL_CUDA_THREADS,
                      sizeof(down_shared), *in, *t);
}

template <bool BACKWARD>
static rrl_status launch_up(rrl_cuda *c, const sides *t, int n, const mask *m, const rrl_batch *b) {
    const dim3 grid((unsigned)rrl_blocks(widest_of(t, n), RRL_CUDA_THREADS),
                    (unsigned)rrl_blocks(t->of[0].y.rows, ROWS), (unsigned)n);
    const size_t shared = ROWS * (size_t)t->of[0].u.cols * sizeof(float);
    return RRL_LAUNCH(c, up_kernel<BACKWARD>, grid, RRL_CUDA_THREADS, shared, *t, *m, info_of(b));
}

/* One launch reads `down` again for every part of columns but the first, from the second-level cache. Of these bytes it
 * gives about 4 TB/s, 8 MiB in the 2 us that a launch costs. Qwen2.5-0.5B at rank 16: gate and up, 5 parts each, read 8
 * times 896 x 16 floats (57 KB) again for each block of 8 rows, so up to 144 rows are one launch; its other modules are
 * one part and read nothing again. */
constexpr int64_t MOST_AGAIN = 8 << 20;

static bool are_few(const down_input *in, const sides *t, int n) {
    const int64_t bytes = in->x.cols * t->of[0].u.cols * (int64_t)sizeof(float);
    int64_t again = 0;
    for (int i = 0; i < n; i++) again += rrl_blocks(t->of[i].y.cols, PART) - 1;
    return again * rrl_blocks(in->x.rows, ROWS) * bytes <= MOST_AGAIN;
}

/* y of n modules from x. */
static rrl_status launch_forward(rrl_cuda *c, rrl_tensor x, const sides *t, int n, const mask *m, const rrl_batch *b) {
    const down_input in = input_of(c, x, t, m, b);
    if (!are_few(&in, t, n)) {
        RRL_TRY(launch_down(c, &in, t, n));
        return launch_up<false>(c, t, n, m, b);
    }
    const dim3 grid((unsigned)rrl_blocks(widest_of(t, n), PART), (unsigned)rrl_blocks(x.rows, ROWS), (unsigned)n);
    return RRL_LAUNCH(c, both_kernel, grid, RRL_CUDA_THREADS, sizeof(down_shared), in, *t);
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
        RRL_TRY(launch_forward(c, x, &t, n, &drop, b));
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
    const down_input in = input_of(c, dy, &t, &none, b);
    RRL_TRY(launch_down(c, &in, &t, 1));
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
