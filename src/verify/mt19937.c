#include "verify/mt19937.h"

enum { SHIFT = 397 };

static void seed_word(rrl_mt19937 *m, uint32_t seed) {
    m->word[0] = seed;
    for (uint32_t i = 1; i < RRL_MT_WORDS; i++)
        m->word[i] = 1812433253u * (m->word[i - 1] ^ (m->word[i - 1] >> 30)) + i;
    m->next = RRL_MT_WORDS;
}

/* The word before i, mixed. */
static uint32_t mixed(const rrl_mt19937 *m, size_t i, uint32_t factor) {
    return m->word[i] ^ ((m->word[i - 1] ^ (m->word[i - 1] >> 30)) * factor);
}

static size_t advance(rrl_mt19937 *m, size_t i) {
    if (i + 1 < RRL_MT_WORDS) return i + 1;
    m->word[0] = m->word[RRL_MT_WORDS - 1];
    return 1;
}

void rrl_mt_seed_words(rrl_mt19937 *m, const uint32_t *key, size_t n) {
    seed_word(m, 19650218u);
    size_t i = 1, j = 0;
    for (size_t k = n > RRL_MT_WORDS ? n : RRL_MT_WORDS; k; k--) {
        m->word[i] = mixed(m, i, 1664525u) + key[j] + (uint32_t)j;
        i = advance(m, i);
        j = j + 1 < n ? j + 1 : 0;
    }
    for (size_t k = RRL_MT_WORDS - 1; k; k--) {
        m->word[i] = mixed(m, i, 1566083941u) - (uint32_t)i;
        i = advance(m, i);
    }
    m->word[0] = 0x80000000u;
}

void rrl_mt_seed(rrl_mt19937 *m, uint64_t number) {
    const uint32_t key[2] = {(uint32_t)number, (uint32_t)(number >> 32)};
    rrl_mt_seed_words(m, key, key[1] ? 2 : 1);
}

static void refill(rrl_mt19937 *m) {
    for (int i = 0; i < RRL_MT_WORDS; i++) {
        uint32_t y = (m->word[i] & 0x80000000u) | (m->word[(i + 1) % RRL_MT_WORDS] & 0x7fffffffu);
        m->word[i] = m->word[(i + SHIFT) % RRL_MT_WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    m->next = 0;
}

uint32_t rrl_mt_next(rrl_mt19937 *m) {
    if (m->next >= RRL_MT_WORDS) refill(m);
    uint32_t y = m->word[m->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

double rrl_mt_uniform(rrl_mt19937 *m) {
    uint32_t a = rrl_mt_next(m) >> 5, b = rrl_mt_next(m) >> 6;
    return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
}
