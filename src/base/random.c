/* Philox4x32-10 and the two-level keys. 64-bit parts of a key go in as low word, high word; the first two
 * words of a block make 64 bits the same way. */
#include "base/random.h"

#include "base/exactmath_f32.h"
#include "base/hash.h"

void rrl_philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]) {
    rrl_philox_block(out, counter, key);
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
