/* Philox4x32-10 and the two-level keys. 64-bit parts of a key go in as low word, high word; the first two words of a
 * block make 64 bits the same way. */
#include "base/random.h"

#include <stdio.h>
#include <string.h>

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
    static const char PREFIX[] = "evaluation/";
    uint8_t digest[RRL_SHA256_BYTES] = {0};
    rrl_buffer text = {0};
    /* A hash of bytes in memory cannot fail; the buffer can only when memory is gone for a name of a few bytes, and
     * then a wrong key must not pass silently: the caller's own next allocation fails with it. */
    if (rrl_buffer_puts(&text, PREFIX) == RRL_OK && rrl_buffer_puts(&text, name) == RRL_OK)
        rrl_sha256_of(digest, text.data, text.len);
    rrl_buffer_free(&text);
    return (uint32_t)first_bytes_big_endian(digest, 4) | 0x80000000u;
}
