/* Keyed random numbers. Block vectors: kat_vectors of the Random123 distribution. The other values come from
 * a second implementation in Python 3.11 of the key layout in random.h. */
#include "base/random.h"

#include "check.h"

static void test_philox_vectors(void) {
    static const struct {
        const char *what;
        uint32_t counter[4], key[2], want[4];
    } CASES[] = {
        {"zeros", {0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {"ones",
         {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {"pi",
         {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint32_t out[4];
        rrl_philox4x32(out, CASES[i].counter, CASES[i].key);
        if (!CHECK(memcmp(out, CASES[i].want, sizeof out) == 0))
            fprintf(stderr, "  case %s\n", CASES[i].what);
    }
}

static void test_keys(void) {
    static const struct {
        rrl_rng_key key;
        uint32_t position;
        uint64_t bits;
        double uniform;
    } CASES[] = {
        {{42, RRL_RNG_TRAIN, 0, 0x0123456789abcdef, 0, 0}, 0, 0x01f07607cf7daf7f, 0x1.f07607cf7da80p-8},
        {{42, RRL_RNG_TRAIN, 0, 0x0123456789abcdef, 0, 0}, 1, 0x36eb5cb67282df23, 0x1.b75ae5b39416cp-3},
        {{INT64_MAX, RRL_RNG_DROPOUT, 7, UINT64_MAX, 3, 1},
         UINT32_MAX,
         0x49cdbaa349a59028,
         0x1.2736ea8d26964p-2},
        {{0, 0x80000001, 0, 0, 0, 0}, 0, 0xcf7445ddc3298b93, 0x1.9ee88bbb86531p-1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        CHECK(rrl_rng_bits(&CASES[i].key, CASES[i].position) == CASES[i].bits);
        CHECK_NEAR(rrl_rng_uniform(&CASES[i].key, CASES[i].position), CASES[i].uniform, 0);
        /* what a device does with the stream's key gives the same bits */
        uint32_t stream[2], out[4];
        uint32_t draw[4] = {CASES[i].key.sample, CASES[i].key.attempt, CASES[i].position, 0};
        rrl_rng_stream(stream, &CASES[i].key);
        rrl_philox4x32(out, draw, stream);
        CHECK(((uint64_t)out[1] << 32 | out[0]) == CASES[i].bits);
    }
    CHECK(rrl_rng_evaluation("quick") == 0xee746a8e);
    CHECK(rrl_rng_evaluation("höhe") == 0xd8178bf0);
    CHECK(rrl_rng_question("gsm8k-final-train-0001") == 0xac5a0fda4636293b);
}

/* Every part of the identity matters. */
static void test_parts_differ(void) {
    const rrl_rng_key base = {42, RRL_RNG_TRAIN, 5, 77, 1, 0};
    rrl_rng_key keys[] = {base, base, base, base, base, base, base, base};
    keys[1].seed++;
    keys[2].seed += (uint64_t)1 << 32;
    keys[3].purpose++;
    keys[4].step++;
    keys[5].question += (uint64_t)1 << 32;
    keys[6].sample++;
    keys[7].attempt++;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < i; j++) CHECK(rrl_rng_bits(&keys[i], 9) != rrl_rng_bits(&keys[j], 9));
}

static void test_permutation(void) {
    static const int64_t WANT[10] = {4, 9, 1, 3, 0, 6, 5, 8, 2, 7};
    const rrl_rng_key key = {7, RRL_RNG_SCHEDULE, 0, 0, 0, 0};
    int64_t out[10] = {-1};
    rrl_rng_permutation(out, 0, &key);
    CHECK_EQ_INT(out[0], -1);
    rrl_rng_permutation(out, 1, &key);
    CHECK_EQ_INT(out[0], 0);
    rrl_rng_permutation(out, 10, &key);
    for (int i = 0; i < 10; i++) CHECK_EQ_INT(out[i], WANT[i]);
}

/* Mean and variance of 10,000 uniforms: 1/2 and 1/12, each within 4 standard errors. */
static void test_moments(void) {
    enum { N = 10000 };
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < N; i++) {
        const rrl_rng_key key = {1, RRL_RNG_STATS, 0, i, 0, 0};
        double u = rrl_rng_uniform(&key, 0);
        CHECK(u >= 0 && u < 1);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
    }
    CHECK_NEAR(sum / N, 0.5, 4 * sqrt(1.0 / 12 / N));
    CHECK_NEAR(squares / N, 1.0 / 12, 4 * sqrt(1.0 / 180 / N));
}

int main(void) {
    test_philox_vectors();
    test_keys();
    test_parts_differ();
    test_permutation();
    test_moments();
    return CHECK_DONE();
}
