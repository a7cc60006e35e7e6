/* numpy.random.default_rng(seed).permutation(n), bit for bit: SeedSequence feeds PCG64 (XSL-RR 128/64), whose
 * 32-bit halves feed a Fisher-Yates shuffle through masked rejection. Hugging Face datasets shuffle this way.
 * Sources: numpy 1.24 bit_generator.pyx, pcg64.h, distributions.c, _generator.pyx; O'Neill 2014. */
#include "data/questions.h"

typedef unsigned __int128 u128;

enum { POOL = 4, STATE_WORDS = 8 };

typedef struct {
    u128 state, inc;
    uint32_t high; /* upper half of the last 64 bits, used second */
    int has_high;
} pcg64;

static uint32_t hash_mix(uint32_t value, uint32_t *constant, uint32_t multiplier) {
    value ^= *constant;
    *constant *= multiplier;
    value *= *constant;
    return value ^ value >> 16;
}

static uint32_t mix(uint32_t x, uint32_t y) {
    uint32_t r = 0xca01f9ddu * x - 0x4973f715u * y;
    return r ^ r >> 16;
}

/* SeedSequence(seed).generate_state(4, uint64); a seed has at most two words, the rest of the pool is fed
 * with 0. */
static void seed_sequence(uint64_t out[STATE_WORDS / 2], uint64_t seed) {
    const uint32_t entropy[POOL] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t pool[POOL], constant = 0x43b0d7e5u;
    for (int i = 0; i < POOL; i++) pool[i] = hash_mix(entropy[i], &constant, 0x931e8875u);
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to) pool[to] = mix(pool[to], hash_mix(pool[from], &constant, 0x931e8875u));
    constant = 0x8b51f9ddu;
    for (int i = 0; i < STATE_WORDS; i++) {
        uint64_t word = hash_mix(pool[i % POOL], &constant, 0x58f38dedu);
        out[i / 2] = i % 2 ? out[i / 2] | word << 32 : word;
    }
}

static void pcg_step(pcg64 *g) {
    const u128 multiplier = (u128)0x2360ed051fc65da4u << 64 | 0x4385df649fccf645u;
    g->state = g->state * multiplier + g->inc;
}

static void pcg_seed(pcg64 *g, uint64_t seed) {
    uint64_t w[STATE_WORDS / 2];
    seed_sequence(w, seed);
    *g = (pcg64){.inc = ((u128)w[2] << 64 | w[3]) << 1 | 1};
    pcg_step(g);
    g->state += (u128)w[0] << 64 | w[1];
    pcg_step(g);
}

static uint64_t pcg_next64(pcg64 *g) {
    pcg_step(g);
    uint64_t x = (uint64_t)(g->state >> 64) ^ (uint64_t)g->state;
    unsigned rotate = (unsigned)(g->state >> 122);
    return x >> rotate | x << (-rotate & 63);
}

static uint32_t pcg_next32(pcg64 *g) {
    if (g->has_high) {
        g->has_high = 0;
        return g->high;
    }
    uint64_t x = pcg_next64(g);
    g->high = (uint32_t)(x >> 32);
    g->has_high = 1;
    return (uint32_t)x;
}

/* Uniform in [0, top]: bits below the next power of two until they are not above top (numpy's
 * random_interval). */
static uint32_t bounded(pcg64 *g, uint32_t top) {
    uint32_t mask = top, value;
    for (int shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do value = pcg_next32(g) & mask;
    while (value > top);
    return value;
}

rrl_status rrl_numpy_permutation(int64_t *order, int64_t n, uint64_t seed) {
    pcg64 g;
    if (n < 0 || n > (int64_t)UINT32_MAX + 1)
        return RRL_FAIL(RRL_ERR_RANGE, "shuffle of %lld rows, expected 0 to 2^32", (long long)n);
    pcg_seed(&g, seed);
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = bounded(&g, (uint32_t)i), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    return RRL_OK;
}
