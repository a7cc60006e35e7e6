/* Sampling from rows of logits, without a sort: integer masses (device/scalar.h) make every sum independent of its
 * order, so counting in parallel gives the CPU's token.
 *
 * Four kernels. Three spread a row over the device, each reads it once: per block of RRL_VOCAB_BLOCK ids the
 * log-sum-exp of the plain logits and the best penalised one; then, the maximum being known, the block's mass; then, the
 * total being known, the list of ids that top-p may keep. The fourth has one block of threads a row and reads lists and sums of
 * blocks: where top-p cuts, by radix select on the masses of the list; in which block the draw falls, and where in it;
 * the log-prob, blocks joined in ascending order as in training. Only top-k, and a list that is too long, make it read
 * the whole row again. */
#include "device/cuda/cuda_ops.cuh"

#include "device/cuda/vocab.cuh"

constexpr int SAMPLE_THREADS = 1024, SAMPLE_WARPS = SAMPLE_THREADS / RRL_WARP, BINS = 256, LIST = 4096;

/* A row's logits as sampling sees them: penalised once where the history has the id, over the temperature. */
typedef struct {
    const float *logits;  /* [n] */
    const uint32_t *seen; /* bit v - first of the history's ids; NULL = no penalty */
    int32_t first;        /* id of bit 0 */
    float penalty, t;
} scaled_row;

__device__ static float scaled(const scaled_row *r, int32_t v) {
    const int32_t bit = v - r->first;
    const bool penal = r->seen && (r->seen[bit / 32] >> bit % 32 & 1u);
    return (penal ? rrl_penalised(r->logits[v], r->penalty) : r->logits[v]) / r->t;
}

/* seen [words] = the ids of the history within [first, first + 32 words). All threads of the block. */
__device__ static void mark_history(uint32_t *seen, int words, int32_t first, const rrl_sample_row *row) {
    for (int i = threadIdx.x; i < words; i += blockDim.x) seen[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < row->n_history; i += blockDim.x) {
        const int32_t bit = row->history[i] - first;
        if (bit >= 0 && bit < 32 * words) atomicOr(&seen[bit / 32], 1u << bit % 32);
    }
    __syncthreads();
}

__device__ static float score_temperature_of(const rrl_sample_row *row) {
    return rrl_score_temperature(row->temperature);
}

/* --- the kernels that are spread: grid (stretches of the vocabulary, rows), half a warp a block of it */

typedef struct {
    uint64_t mass; /* of the block's ids together */
    rrl_lse plain; /* of logits / t */
    float best;    /* largest scaled logit, at the lowest id that has it */
    int32_t id;
} block_info;

/* What the kernels leave for each other, in the working room; of a few rows. */
typedef struct {
    block_info *info; /* [rows, n_blocks] */
    int32_t *count;   /* [rows] ids that top-p may keep; those beyond `most` are not in the list */
    int32_t *list;    /* [rows, most] */
    int64_t n_blocks;
    int32_t most;
} found;

constexpr int STRETCH_BLOCKS = RRL_CUDA_THREADS / RRL_LANES, STRETCH = STRETCH_BLOCKS * RRL_VOCAB_BLOCK;

/* The better of two candidates: larger, then lower id. */
__device__ static void take_better(float *z, int32_t *id, float other, int32_t other_id) {
    if (other > *z || (other == *z && other_id < *id)) {
        *z = other;
        *id = other_id;
    }
}

/* The block of ids of this half warp. */
typedef struct {
    int64_t row;
    int32_t block, v0;
    int n; /* ids of it; 0 beyond the last */
} stretch;

__device__ static stretch own_block(int64_t vocabulary) {
    const int32_t block = (int32_t)blockIdx.x * STRETCH_BLOCKS + threadIdx.x / RRL_LANES, v0 = block * RRL_VOCAB_BLOCK;
    const int64_t left = vocabulary - v0;
    return stretch{blockIdx.y, block, v0, left < 0 ? 0 : left < RRL_VOCAB_BLOCK ? (int)left : RRL_VOCAB_BLOCK};
}

/* The row as this block of threads sees it; seen [STRETCH / 32]. All threads of the block. */
__device__ static scaled_row scaled_stretch(uint32_t *seen, rrl_tensor logits, int64_t row, const rrl_sample_row *of) {
    scaled_row r = {logits.data + row * logits.cols, NULL, (int32_t)blockIdx.x * STRETCH, of->repetition_penalty,
                    score_temperature_of(of)};
    if (r.penalty != 1.0f) { /* the same for all threads of the block */
        mark_history(seen, STRETCH / 32, r.first, of);
        r.seen = seen;
    }
    return r;
}

__global__ void blocks_kernel(const __grid_constant__ found f, rrl_tensor logits, const rrl_sample_row *rows) {
    RRL_CUDA_SHARED(raw);
    const stretch s = own_block(logits.cols);
    const int32_t lane = threadIdx.x % RRL_LANES;
    const scaled_row r = scaled_stretch((uint32_t *)raw, logits, s.row, &rows[s.row]);
    block_info b = {0, rrl_lse_of_block(r.logits + s.v0, s.n, r.t), -INFINITY, INT32_MAX};
    for (int i = lane; i < s.n; i += RRL_LANES) take_better(&b.best, &b.id, scaled(&r, s.v0 + i), s.v0 + i);
    for (int half = RRL_LANES / 2; half > 0; half /= 2) {
        const float z = __shfl_xor_sync(RRL_ALL_LANES, b.best, half, RRL_LANES);
        const int32_t id = __shfl_xor_sync(RRL_ALL_LANES, b.id, half, RRL_LANES);
        take_better(&b.best, &b.id, z, id);
    }
    if (lane == 0 && s.n > 0) f.info[s.row * f.n_blocks + s.block] = b;
}

/* The best id of the row over its blocks; all lanes of the warp that asks have it. */
__device__ static void find_best(float *z, int32_t *id, const block_info *info, int64_t n_blocks) {
    *z = -INFINITY;
    *id = INT32_MAX;
    for (int64_t i = threadIdx.x % RRL_WARP; i < n_blocks; i += RRL_WARP) take_better(z, id, info[i].best, info[i].id);
    for (int half = RRL_WARP / 2; half > 0; half /= 2) {
        const float other = __shfl_xor_sync(RRL_ALL_LANES, *z, half);
        const int32_t other_id = __shfl_xor_sync(RRL_ALL_LANES, *id, half);
        take_better(z, id, other, other_id);
    }
    if (*id == INT32_MAX) *id = 0; /* NaN logits: the log-prob is not finite either, which the caller reports */
}

__device__ static uint64_t lanes_sum(uint64_t v, int width) {
    for (int half = width / 2; half > 0; half /= 2)
        v += __shfl_xor_sync(RRL_ALL_LANES, (unsigned long long)v, half, width);
    return v;
}

/* Masses of the blocks; and the list of each row is empty. Every warp finds the maximum for itself. */
__global__ void masses_kernel(const __grid_constant__ found f, rrl_tensor logits, const rrl_sample_row *rows) {
    RRL_CUDA_SHARED(raw);
    const stretch s = own_block(logits.cols);
    if (threadIdx.x == 0 && blockIdx.x == 0) f.count[s.row] = 0;
    if (!(rows[s.row].temperature > 0.0f)) return; /* nothing is drawn */
    const scaled_row r = scaled_stretch((uint32_t *)raw, logits, s.row, &rows[s.row]);
    block_info *info = f.info + s.row * f.n_blocks;
    float max;
    int32_t id;
    uint64_t sum = 0;
    find_best(&max, &id, info, f.n_blocks);
    for (int i = threadIdx.x % RRL_LANES; i < s.n; i += RRL_LANES)
        sum += rrl_mass(rrl_exp_f32(scaled(&r, s.v0 + i) - max));
    sum = lanes_sum(sum, RRL_LANES);
    if (threadIdx.x % RRL_LANES == 0 && s.n > 0) info[s.block].mass = sum;
}

/* The sum of n blocks' masses; all lanes of the warp that asks have it. */
__device__ static uint64_t blocks_mass(const block_info *info, int64_t n) {
    uint64_t sum = 0;
    for (int64_t i = threadIdx.x % RRL_WARP; i < n; i += RRL_WARP) sum += info[i].mass;
    return lanes_sum(sum, RRL_WARP);
}

/* Without top-k, ids of mass at most (total - target) / n weigh together no more than top-p may leave out. */
__device__ static bool may_list(const rrl_sample_row *row) {
    return row->temperature > 0.0f && row->top_k <= 0 && row->top_p < 1.0f;
}

__global__ void list_kernel(const __grid_constant__ found f, rrl_tensor logits, const rrl_sample_row *rows) {
    RRL_CUDA_SHARED(raw);
    const stretch s = own_block(logits.cols);
    const rrl_sample_row *of = &rows[s.row];
    if (!may_list(of)) return;
    const scaled_row r = scaled_stretch((uint32_t *)raw, logits, s.row, of);
    const block_info *info = f.info + s.row * f.n_blocks;
    float max;
    int32_t id;
    find_best(&max, &id, info, f.n_blocks);
    const uint64_t total = blocks_mass(info, f.n_blocks);
    const uint64_t least = (total - rrl_mass_target(of->top_p, total)) / (uint64_t)logits.cols;
    if (s.n == 0 || info[s.block].mass <= least) return; /* then every id of it is */
    for (int i = threadIdx.x % RRL_LANES; i < s.n; i += RRL_LANES) {
        if (rrl_mass(rrl_exp_f32(scaled(&r, s.v0 + i) - max)) <= least) continue;
        const int32_t at = atomicAdd(&f.count[s.row], 1);
        if (at < f.most) f.list[s.row * f.most + at] = s.v0 + i;
    }
}

/* --- the last kernel: one block a row */

typedef struct {
    unsigned long long bin_sum[BINS], part[SAMPLE_WARPS];
    uint32_t bin_count[BINS];
    /* found by one warp, read by all */
    unsigned long long above_sum;
    int64_t above_count;
    int32_t stop, id;
    int32_t list[LIST];
    /* and behind it masses of blocks [n_blocks], and the bits of the history [(n + 31) / 32] */
} sample_shared;

/* The row and the masses of its ids. */
typedef struct {
    scaled_row row;
    float max;
    int32_t n;
} masses;

__device__ static uint64_t mass_of(const masses *m, int32_t v) {
    return rrl_mass(rrl_exp_f32(scaled(&m->row, v) - m->max));
}

/* Which ids are kept: mass above `mass`, or equal to it with an id below id_end. */
typedef struct {
    uint64_t mass, sum;  /* sum: of the kept */
    int64_t count, ties; /* kept above `mass`; kept of those equal to it */
    int32_t id_end;
} cut;

/* Masses are at most 2^40: five digits of eight bits and a last one of one. */
__device__ static int digit_shift(int digit) {
    return digit < 5 ? 33 - 8 * digit : 0;
}
__device__ static int digit_bits(int digit) {
    return digit < 5 ? 8 : 1;
}

/* Add the masses whose digits before this one are `prefix` to the bins of this one. A thread keeps the bin it is in and
 * adds when it leaves it: most ids have small masses, and all would wait for one bin. */
__device__ static void fill_bins(sample_shared *s, const masses *m, const int32_t *ids, int32_t n, int digit,
                                 uint64_t prefix) {
    const int shift = digit_shift(digit), bits = digit_bits(digit);
    uint64_t sum = 0;
    uint32_t bin = 0, count = 0;
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) {
        s->bin_sum[i] = 0;
        s->bin_count[i] = 0;
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < n; i += blockDim.x) {
        const uint64_t mass = mass_of(m, ids ? ids[i] : i);
        if (mass == 0 || mass >> (shift + bits) != prefix) continue;
        const uint32_t b = (uint32_t)(mass >> shift) & ((1u << bits) - 1);
        if (b != bin && count) {
            atomicAdd(&s->bin_sum[bin], (unsigned long long)sum);
            atomicAdd(&s->bin_count[bin], count);
            sum = count = 0;
        }
        bin = b;
        sum += mass;
        count++;
    }
    if (count) {
        atomicAdd(&s->bin_sum[bin], (unsigned long long)sum);
        atomicAdd(&s->bin_count[bin], count);
    }
    __syncthreads();
}

/* By the first warp: from the highest bin down, the first at which sum or count reach what is wanted; s->stop = -1 if
 * none does. What lies above it is added to *above_sum and *above_count. */
__device__ static void find_stop(sample_shared *s, uint64_t above_sum, int64_t above_count, int64_t limit,
                                 uint64_t target) {
    constexpr int OWN = BINS / RRL_WARP;
    const int lane = threadIdx.x;
    uint64_t sum = 0;
    int64_t count = 0;
    for (int i = 0; i < OWN; ++i) { /* lane 0 has the highest bins */
        sum += s->bin_sum[BINS - 1 - lane * OWN - i];
        count += s->bin_count[BINS - 1 - lane * OWN - i];
    }
    uint64_t through_sum = sum; /* of this lane and those before */
    int64_t through_count = count;
    for (int step = 1; step < RRL_WARP; step *= 2) {
        const uint64_t other_sum = __shfl_up_sync(RRL_ALL_LANES, (unsigned long long)through_sum, step);
        const int64_t other_count = __shfl_up_sync(RRL_ALL_LANES, (long long)through_count, step);
        if (lane >= step) {
            through_sum += other_sum;
            through_count += other_count;
        }
    }
    const bool reached = count > 0 && (above_sum + through_sum >= target || above_count + through_count >= limit);
    const unsigned lanes = __ballot_sync(RRL_ALL_LANES, reached);
    above_sum += through_sum - sum;
    above_count += through_count - count;
    if (lanes == 0) { /* all are kept */
        if (lane == RRL_WARP - 1) {
            s->stop = -1;
            s->above_sum = above_sum + sum;
            s->above_count = above_count + count;
        }
        return;
    }
    if (lane != __ffs(lanes) - 1) return;
    int bin = BINS - 1 - lane * OWN;
    for (;; --bin) {
        const uint64_t in = s->bin_sum[bin];
        const int64_t of = s->bin_count[bin];
        if (of && (above_sum + in >= target || above_count + of >= limit)) break;
        above_sum += in;
        above_count += of;
    }
    s->stop = bin;
    s->above_sum = above_sum;
    s->above_count = above_count;
}

/* The first id, in ascending order, at which the running sum of weights exceeds `threshold`; 0 if none. The ids are
 * divided among the warps, the warp's part in which it happens again, and the last 32 among lanes. */
template <class F> __device__ static int32_t find_id(sample_shared *s, int32_t n, uint64_t threshold, F weight) {
    const int warp = threadIdx.x / RRL_WARP, lane = threadIdx.x % RRL_WARP;
    int32_t first = 0, last = n;
    uint64_t before = 0;
    while (last - first > RRL_WARP) {
        const int32_t size = (last - first + SAMPLE_WARPS - 1) / SAMPLE_WARPS;
        const int32_t from = first + warp * size, to = from + size < last ? from + size : last;
        uint64_t sum = 0;
        for (int32_t v = from + lane; v < to; v += RRL_WARP) sum += weight(v);
        sum = lanes_sum(sum, RRL_WARP);
        if (lane == 0) s->part[warp] = sum;
        __syncthreads();
        int part = 0;
        while (part < SAMPLE_WARPS && before + s->part[part] <= threshold) before += s->part[part++];
        __syncthreads(); /* before the parts are written again */
        if (part == SAMPLE_WARPS) return 0;
        first += part * size;
        last = first + size < last ? first + size : last;
    }
    if (warp == 0) {
        uint64_t through = lane < last - first ? weight(first + lane) : 0;
        for (int step = 1; step < RRL_WARP; step *= 2) {
            const uint64_t other = __shfl_up_sync(RRL_ALL_LANES, (unsigned long long)through, step);
            if (lane >= step) through += other;
        }
        const unsigned lanes = __ballot_sync(RRL_ALL_LANES, before + through > threshold);
        if (lane == 0) s->id = lanes ? first + __ffs(lanes) - 1 : 0;
    }
    __syncthreads();
    const int32_t id = s->id;
    __syncthreads(); /* before it is written again */
    return id;
}

/* The first ids in (mass descending, id ascending) order until `limit` are kept or their sum reaches `target`; of ids
 * [n], or of all where ids is NULL: those left out must lie beyond the cut. */
__device__ static cut select(sample_shared *s, const masses *m, const int32_t *ids, int32_t n, int64_t limit,
                             uint64_t target) {
    cut c = {0, 0, 0, 0, 0};
    uint64_t prefix = 0;
    for (int digit = 0; digit < 6; ++digit) {
        fill_bins(s, m, ids, n, digit, prefix);
        if (threadIdx.x < RRL_WARP) find_stop(s, c.sum, c.count, limit, target);
        __syncthreads();
        c.sum = s->above_sum;
        c.count = s->above_count;
        const int stop = s->stop;
        const int64_t equal = stop < 0 ? 0 : s->bin_count[stop];
        __syncthreads();        /* before the bins are written again */
        if (stop < 0) return c; /* mass 0, id_end 0: every positive mass */
        prefix = prefix << digit_bits(digit) | (uint64_t)stop;
        c.ties = equal;
    }
    const int64_t equal = c.ties, by_count = limit - c.count;
    const uint64_t by_sum = (target - c.sum - 1) / prefix + 1;
    c.mass = prefix;
    c.ties = by_sum < (uint64_t)by_count ? (int64_t)by_sum : by_count;
    c.sum += (uint64_t)c.ties * prefix;
    c.id_end = m->n;
    if (c.ties < equal)
        c.id_end =
            find_id(s, m->n, (uint64_t)c.ties - 1, [=](int32_t v) -> uint64_t { return mass_of(m, v) == prefix; }) + 1;
    return c;
}

/* What top-k and top-p leave. listed: number of ids in s->list, to which top-p may keep itself; -1 = all ids. */
__device__ static cut kept_of(sample_shared *s, const masses *m, const rrl_sample_row *row, uint64_t total,
                              int32_t listed) {
    cut c = {0, total, 0, 0, 0};
    int64_t limit = m->n;
    if (row->top_k > 0) {
        limit = row->top_k < m->n ? row->top_k : m->n;
        c = select(s, m, NULL, m->n, limit, UINT64_MAX);
    }
    if (row->top_p >= 1.0f) return c;
    return select(s, m, listed < 0 ? NULL : s->list, listed < 0 ? m->n : listed, limit,
                  rrl_mass_target(row->top_p, c.sum));
}

__device__ static uint64_t kept_mass(const masses *m, const cut *c, int32_t v) {
    const uint64_t mass = mass_of(m, v);
    return mass > c->mass || (mass == c->mass && v < c->id_end) ? mass : 0;
}

/* The id of the draw: the block in which it falls by the blocks' kept masses `sums`, then the place in that. */
__device__ static int32_t draw_in_block(sample_shared *s, const masses *m, const cut *c, const unsigned long long *sums,
                                        int64_t n_blocks, uint64_t threshold) {
    const int32_t block = find_id(s, (int32_t)n_blocks, threshold, [=](int32_t b) -> uint64_t { return sums[b]; });
    uint64_t before = 0;
    for (int32_t b = threadIdx.x % RRL_WARP; b < block; b += RRL_WARP) before += sums[b];
    before = lanes_sum(before, RRL_WARP);
    const int32_t first = block * RRL_VOCAB_BLOCK, left = m->n - first;
    return first + find_id(s, left < RRL_VOCAB_BLOCK ? left : RRL_VOCAB_BLOCK, threshold - before,
                           [=](int32_t i) -> uint64_t { return kept_mass(m, c, first + i); });
}

/* sums [n_blocks] = what is kept of each block: of all ids, or of those listed. */
__device__ static void sum_blocks(unsigned long long *sums, const sample_shared *s, const masses *m, const cut *c,
                                  const block_info *info, int64_t n_blocks, int32_t listed) {
    for (int64_t b = threadIdx.x; b < n_blocks; b += blockDim.x) sums[b] = listed < 0 ? info[b].mass : 0;
    __syncthreads();
    for (int32_t i = threadIdx.x; i < listed; i += blockDim.x)
        atomicAdd(&sums[s->list[i] / RRL_VOCAB_BLOCK], (unsigned long long)kept_mass(m, c, s->list[i]));
    __syncthreads();
}

__device__ static int32_t draw(sample_shared *s, unsigned long long *sums, const masses *m, const found *f,
                               const rrl_sample_row *row) {
    const block_info *info = f->info + blockIdx.x * f->n_blocks;
    const int32_t count = f->count[blockIdx.x], listed = may_list(row) && count <= f->most ? count : -1;
    for (int32_t i = threadIdx.x; i < listed; i += blockDim.x) s->list[i] = f->list[(int64_t)blockIdx.x * f->most + i];
    __syncthreads();
    const cut c = kept_of(s, m, row, blocks_mass(info, f->n_blocks), listed);
    const uint64_t threshold = rrl_draw_threshold(row, c.sum);
    if (listed < 0 && (row->top_k > 0 || row->top_p < 1.0f)) /* what is kept of a block is not known */
        return find_id(s, m->n, threshold, [&](int32_t v) -> uint64_t { return kept_mass(m, &c, v); });
    sum_blocks(sums, s, m, &c, info, f->n_blocks, listed);
    return draw_in_block(s, m, &c, sums, f->n_blocks, threshold);
}

__global__ void __launch_bounds__(SAMPLE_THREADS)
    sample_kernel(int32_t *token, float *logp, rrl_tensor logits, const rrl_sample_row *rows,
                  const __grid_constant__ found f) {
    RRL_CUDA_SHARED(raw);
    sample_shared *s = (sample_shared *)raw;
    unsigned long long *sums = (unsigned long long *)(s + 1); /* [n_blocks] */
    uint32_t *seen = (uint32_t *)(sums + f.n_blocks);          /* [(n + 31) / 32] */
    const int64_t row = blockIdx.x;
    const rrl_sample_row *settings = &rows[row];
    const block_info *info = f.info + row * f.n_blocks;
    masses m = {
        {logits.data + row * logits.cols, NULL, 0, settings->repetition_penalty, score_temperature_of(settings)},
        0.0f,
        (int32_t)logits.cols};
    if (m.row.penalty != 1.0f) { /* the same for all threads */
        mark_history(seen, (m.n + 31) / 32, 0, settings);
        m.row.seen = seen;
    }
    int32_t id;
    find_best(&m.max, &id, info, f.n_blocks);
    if (settings->temperature > 0.0f) id = draw(s, sums, &m, &f, settings);
    if (threadIdx.x >= RRL_WARP) return;
    const rrl_lse total = rrl_lse_of_blocks([info](int64_t i) { return info[i].plain; }, f.n_blocks);
    if (threadIdx.x != 0) return;
    token[row] = id;
    logp[row] = rrl_lse_logp(total, m.row.logits[id] / m.row.t);
}

/* Room for as many rows as fit; lists get shorter where not even one does. */
static int64_t find_room(found *f, const rrl_cuda *c, int64_t vocabulary) {
    int64_t rows = 0;
    f->n_blocks = rrl_blocks(vocabulary, RRL_VOCAB_BLOCK);
    for (f->most = LIST;; f->most /= 2) {
        const size_t row = (size_t)f->n_blocks * sizeof(block_info) + sizeof(int32_t) * (size_t)(1 + f->most);
        rows = (int64_t)(c->room_bytes / row);
        if (rows > 0 || f->most == 0) break;
    }
    f->info = (block_info *)c->room;
    f->count = (int32_t *)(f->info + rows * f->n_blocks);
    f->list = f->count + rows;
    return rows;
}

rrl_status rrl_cuda_sample(rrl_device *d, int32_t *token, float *logp, rrl_tensor logits, const rrl_sample_row *rows) {
    rrl_cuda *c = rrl_cuda_of(d);
    found f;
    const int64_t most = find_room(&f, c, logits.cols);
    const size_t shared = sizeof(sample_shared) + (size_t)f.n_blocks * sizeof(unsigned long long) +
                          (size_t)rrl_blocks(logits.cols, 32) * sizeof(uint32_t);
    RRL_TRY(rrl_cuda_check(most > 0, "sample's vocabulary (beyond the working room)"));
    for (int64_t row = 0; row < logits.rows; row += most) {
        const int64_t n = logits.rows - row < most ? logits.rows - row : most;
        const rrl_tensor part = {logits.data + row * logits.cols, n, logits.cols};
        const dim3 grid((unsigned)rrl_blocks(f.n_blocks, STRETCH_BLOCKS), (unsigned)n);
        RRL_TRY(RRL_LAUNCH(c, blocks_kernel, grid, RRL_CUDA_THREADS, STRETCH / 8, f, part, rows + row));
        RRL_TRY(RRL_LAUNCH(c, masses_kernel, grid, RRL_CUDA_THREADS, STRETCH / 8, f, part, rows + row));
        RRL_TRY(RRL_LAUNCH(c, list_kernel, grid, RRL_CUDA_THREADS, STRETCH / 8, f, part, rows + row));
        RRL_TRY(RRL_LAUNCH(c, sample_kernel, dim3((unsigned)n), SAMPLE_THREADS, shared, token + row, logp + row, part,
                           rows + row, f));
    }
    return RRL_OK;
}
