/* Philox4x32-10 and the two-level keys. 64-bit parts of a key go in as low word, high word; the first two
 * words of a block make 64 bits the same way. */
#include "base/random.h"

#include "base/hash.h"

enum { ROUNDS = 10 };
static const uint32_t MULTIPLIER_0 = 0xD2511F53, MULTIPLIER_1 = 0xCD9E8D57; /* Salmon et al., table 2 */
static const uint32_t WEYL_0 = 0x9E3779B9, WEYL_1 = 0xBB67AE85;             /* golden ratio, sqrt(3) - 1 */

void rrl_philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MULTIPLIER_0 * c0, p1 = (uint64_t)MULTIPLIER_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static uint64_t first_bytes_big_endian(const uint8_t *bytes, int n) {
    uint64_t value = 0;
    for (int i = 0; i < n; i++) value = value << 8 | bytes[i];
    return value;
}

uint32_t rrl_rng_evaluation(const char *name) {
    uint8_t digest[RRL_SHA256_BYTES];
    rrl_sha256_joined(digest, "evaluation/", name);
    return (uint32_t)first_bytes_big_endian(digest, 4) | 0x80000000u;
}

uint64_t rrl_rng_question(const char *question_id) {
    uint8_t digest[RRL_SHA256_BYTES];
    rrl_sha256_joined(digest, question_id, "");
    return first_bytes_big_endian(digest, 8);
}

void rrl_rng_stream(uint32_t out[2], const rrl_rng_key *key) {
    const uint32_t seed[2] = {(uint32_t)key->seed, (uint32_t)(key->seed >> 32)};
    const uint32_t sequence[4] = {key->purpose, key->step, (uint32_t)key->question,
                                  (uint32_t)(key->question >> 32)};
    uint32_t block[4];
    rrl_philox4x32(block, sequence, seed);
    out[0] = block[0];
    out[1] = block[1];
}

uint64_t rrl_rng_bits(const rrl_rng_key *key, uint32_t position) {
    const uint32_t draw[4] = {key->sample, key->attempt, position, 0};
    uint32_t stream[2], words[4];
    rrl_rng_stream(stream, key);
    rrl_philox4x32(words, draw, stream);
    return (uint64_t)words[1] << 32 | words[0];
}

double rrl_rng_uniform(const rrl_rng_key *key, uint32_t position) {
    return (double)(rrl_rng_bits(key, position) >> 11) * 0x1p-53;
}

void rrl_rng_permutation(int64_t *out, int64_t n, const rrl_rng_key *key) {
    for (int64_t i = 0; i < n; i++) out[i] = i;
    uint32_t position = 0;
    for (int64_t i = n - 1; i > 0; i--) {
        unsigned __int128 product = (unsigned __int128)rrl_rng_bits(key, position++) * (uint64_t)(i + 1);
        int64_t j = (int64_t)(product >> 64);
        int64_t kept = out[i];
        out[i] = out[j];
        out[j] = kept;
    }
}
