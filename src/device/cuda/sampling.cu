/* Sampling from rows of logits, without a sort: integer masses (device/scalar.h) make every sum independent of its
 * order, so counting in parallel gives the CPU's token.
 *
 * Two kernels. The first spreads a row over the device: per block of RRL_VOCAB_BLOCK ids the log-sum-exp of the plain
 * logits and the best penalised one. The second has one block of threads a row: total mass; where top-k or top-p cut,
 * by radix select on the masses; the draw, by dividing the ids among the warps again and again; and the log-prob,
 * blocks joined in ascending order as in training. */
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

/* --- first kernel: grid (stretches of the vocabulary, rows) */

typedef struct {
    rrl_lse plain; /* of logits / t */
    float best;    /* largest scaled logit, at the lowest id that has it */
    int32_t id;
} block_info;

constexpr int STRETCH_BLOCKS = RRL_CUDA_THREADS / RRL_LANES, STRETCH = STRETCH_BLOCKS * RRL_VOCAB_BLOCK;

/* The better of two candidates: larger, then lower id. */
__device__ static void take_better(float *z, int32_t *id, float other, int32_t other_id) {
    if (other > *z || (other == *z && other_id < *id)) {
        *z = other;
        *id = other_id;
    }
}

__global__ void blocks_kernel(block_info *info, rrl_tensor logits, const rrl_sample_row *rows) {
    RRL_CUDA_SHARED(raw);
    uint32_t *seen = (uint32_t *)raw; /* [STRETCH / 32] */
    const int64_t row = blockIdx.y, n_blocks = (logits.cols + RRL_VOCAB_BLOCK - 1) / RRL_VOCAB_BLOCK;
    const int32_t first = (int32_t)blockIdx.x * STRETCH, lane = threadIdx.x % RRL_LANES;
    const int32_t block = (int32_t)blockIdx.x * STRETCH_BLOCKS + threadIdx.x / RRL_LANES, v0 = block * RRL_VOCAB_BLOCK;
    const int64_t left = logits.cols - v0;
    const int n = left < 0 ? 0 : left < RRL_VOCAB_BLOCK ? (int)left : RRL_VOCAB_BLOCK;
    const rrl_sample_row *settings = &rows[row];
    scaled_row r = {logits.data + row * logits.cols, NULL, first, settings->repetition_penalty,
                    score_temperature_of(settings)};
    if (r.penalty != 1.0f) { /* the same for all threads of the block */
        mark_history(seen, STRETCH / 32, first, settings);
        r.seen = seen;
    }
    block_info b = {rrl_lse_of_block(r.logits + v0, n, r.t), -INFINITY, INT32_MAX};
    for (int i = lane; i < n; i += RRL_LANES) take_better(&b.best, &b.id, scaled(&r, v0 + i), v0 + i);
    for (int half = RRL_LANES / 2; half > 0; half /= 2) {
        const float z = __shfl_xor_sync(RRL_ALL_LANES, b.best, half, RRL_LANES);
        const int32_t id = __shfl_xor_sync(RRL_ALL_LANES, b.id, half, RRL_LANES);
        take_better(&b.best, &b.id, z, id);
    }
    if (lane == 0 && n > 0) info[row * n_blocks + block] = b;
}

/* --- second kernel: one block a row */

typedef struct {
    unsigned long long bin_sum[BINS], part[SAMPLE_WARPS];
    uint32_t bin_count[BINS];
    /* found by one warp, read by all */
    unsigned long long above_sum;
    int64_t above_count;
    int32_t stop, id, list_count;
    float best;
    int32_t list[LIST];
    /* and behind it the bits of the history [(n + 31) / 32] */
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

__device__ static uint64_t warp_sum(uint64_t v) {
    for (int half = RRL_WARP / 2; half > 0; half /= 2) v += __shfl_xor_sync(RRL_ALL_LANES, (unsigned long long)v, half);
    return v;
}

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
        sum = warp_sum(sum);
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

/* The ids whose mass is above `least` into s->list, in any order; how many, or -1 if they are too many. */
__device__ static int32_t collect(sample_shared *s, const masses *m, uint64_t least) {
    if (threadIdx.x == 0) s->list_count = 0;
    __syncthreads();
    for (int32_t v = threadIdx.x; v < m->n; v += blockDim.x) {
        if (mass_of(m, v) <= least) continue;
        const int32_t at = atomicAdd(&s->list_count, 1);
        if (at < LIST) s->list[at] = v;
    }
    __syncthreads();
    return s->list_count <= LIST ? s->list_count : -1;
}

__device__ static uint64_t total_of(sample_shared *s, const masses *m) {
    uint64_t sum = 0;
    for (int32_t v = threadIdx.x; v < m->n; v += blockDim.x) sum += mass_of(m, v);
    sum = warp_sum(sum);
    if (threadIdx.x % RRL_WARP == 0) s->part[threadIdx.x / RRL_WARP] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < SAMPLE_WARPS; ++i) sum += s->part[i];
    __syncthreads(); /* before the parts are written again */
    return sum;
}

/* What top-k and top-p leave. */
__device__ static cut kept_of(sample_shared *s, const masses *m, const rrl_sample_row *row) {
    cut c = {0, 0, 0, 0, 0};
    int64_t limit = m->n;
    if (row->top_k > 0) {
        limit = row->top_k < m->n ? row->top_k : m->n;
        c = select(s, m, NULL, m->n, limit, UINT64_MAX);
    } else {
        c.sum = total_of(s, m);
    }
    if (row->top_p >= 1.0f) return c;
    const uint64_t target = rrl_mass_target(row->top_p, c.sum);
    /* Without top-k, ids of mass at most (total - target) / n weigh together no more than top-p may leave out. */
    const int32_t listed = row->top_k > 0 ? -1 : collect(s, m, (c.sum - target) / (uint64_t)m->n);
    return select(s, m, listed < 0 ? NULL : s->list, listed < 0 ? m->n : listed, limit, target);
}

/* The best id of the row over its blocks, by the first warp. */
__device__ static void find_best(sample_shared *s, const block_info *info, int64_t n_blocks) {
    float z = -INFINITY;
    int32_t id = INT32_MAX;
    for (int64_t i = threadIdx.x; i < n_blocks; i += RRL_WARP) take_better(&z, &id, info[i].best, info[i].id);
    for (int half = RRL_WARP / 2; half > 0; half /= 2) {
        const float other = __shfl_xor_sync(RRL_ALL_LANES, z, half);
        const int32_t other_id = __shfl_xor_sync(RRL_ALL_LANES, id, half);
        take_better(&z, &id, other, other_id);
    }
    if (threadIdx.x == 0) {
        s->best = z;
        s->id = id == INT32_MAX ? 0 : id; /* NaN logits: the log-prob is not finite either, which the caller reports */
    }
}

__global__ void __launch_bounds__(SAMPLE_THREADS)
    sample_kernel(int32_t *token, float *logp, rrl_tensor logits, const rrl_sample_row *rows, const block_info *info) {
    RRL_CUDA_SHARED(raw);
    sample_shared *s = (sample_shared *)raw;
    uint32_t *seen = (uint32_t *)(s + 1); /* [(n + 31) / 32] */
    const int64_t row = blockIdx.x, n_blocks = (logits.cols + RRL_VOCAB_BLOCK - 1) / RRL_VOCAB_BLOCK;
    const rrl_sample_row *settings = &rows[row];
    masses m = {
        {logits.data + row * logits.cols, NULL, 0, settings->repetition_penalty, score_temperature_of(settings)},
        0.0f,
        (int32_t)logits.cols};
    info += row * n_blocks;
    if (m.row.penalty != 1.0f) { /* the same for all threads */
        mark_history(seen, (m.n + 31) / 32, 0, settings);
        m.row.seen = seen;
    }
    if (threadIdx.x < RRL_WARP) find_best(s, info, n_blocks);
    __syncthreads();
    m.max = s->best;
    int32_t id = s->id;
    __syncthreads(); /* before it is written again */
    if (settings->temperature > 0.0f) {
        const cut c = kept_of(s, &m, settings);
        const uint64_t threshold = rrl_draw_threshold(settings, c.sum);
        id = find_id(s, m.n, threshold, [&](int32_t v) -> uint64_t {
            const uint64_t mass = mass_of(&m, v);
            return mass > c.mass || (mass == c.mass && v < c.id_end) ? mass : 0;
        });
    }
    if (threadIdx.x != 0) return;
    rrl_lse total = {0.0f, 0.0f, 0.0f};
    for (int64_t i = 0; i < n_blocks; ++i) rrl_lse_join(&total, info[i].plain);
    token[row] = id;
    logp[row] = rrl_lse_logp(total, m.row.logits[id] / m.row.t);
}

rrl_status rrl_cuda_sample(rrl_device *d, int32_t *token, float *logp, rrl_tensor logits, const rrl_sample_row *rows) {
    rrl_cuda *c = rrl_cuda_of(d);
    const int64_t n_blocks = rrl_blocks(logits.cols, RRL_VOCAB_BLOCK);
    const int64_t most = (int64_t)(c->room_bytes / sizeof(block_info)) / n_blocks; /* rows at a time */
    const size_t shared = sizeof(sample_shared) + (size_t)rrl_blocks(logits.cols, 32) * sizeof(uint32_t);
    block_info *info = (block_info *)c->room;
    RRL_TRY(rrl_cuda_check(most > 0, "sample's vocabulary (beyond the working room)"));
    for (int64_t row = 0; row < logits.rows; row += most) {
        const int64_t n = logits.rows - row < most ? logits.rows - row : most;
        const rrl_tensor part = {logits.data + row * logits.cols, n, logits.cols};
        RRL_TRY(RRL_LAUNCH(c, blocks_kernel, dim3((unsigned)rrl_blocks(n_blocks, STRETCH_BLOCKS), (unsigned)n),
                           RRL_CUDA_THREADS, STRETCH / 8, info, part, rows + row));
        RRL_TRY(RRL_LAUNCH(c, sample_kernel, dim3((unsigned)n), SAMPLE_THREADS, shared, token + row, logp + row, part,
                           rows + row, info));
    }
    return RRL_OK;
}
