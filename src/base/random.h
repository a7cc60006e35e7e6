/* Keyed random numbers: Philox4x32-10 (Salmon et al., SC'11), never rank, time or call order.
 *
 * A draw is named by (seed, purpose, step, question, sample, attempt, position). 128 bits of counter do not hold all
 * of these, so there are two levels: stream = philox(key = seed; purpose, step, question), draw = philox(key = first
 * 64 bits of stream; sample, attempt, position, 0). A 64-bit part is two words, low first; the 64 bits of a draw are
 * words 0 (low) and 1 (high) of its block. */
#ifndef RRL_BASE_RANDOM_H
#define RRL_BASE_RANDOM_H

#include <stdint.h>

/* Purposes of draws. An evaluation has its own purpose made from its name, see rrl_rng_evaluation. */
#define RRL_RNG_LIST(X)                                                                                               \
    X(RRL_RNG_TRAIN, 1)    /* tokens of training rollouts */                                                          \
    X(RRL_RNG_DROPOUT, 2)  /* LoRA dropout masks */                                                                   \
    X(RRL_RNG_SCHEDULE, 3) /* order of the questions */                                                               \
    X(RRL_RNG_INIT, 4)     /* initial adapter */                                                                      \
    X(RRL_RNG_FIXTURE, 5)  /* answers of the fixture back end */                                                      \
    X(RRL_RNG_STATS, 6)    /* bootstrap and permutations of the report */
enum {
#define X(name, value) name = value,
    RRL_RNG_LIST(X)
#undef X
};

/** Purpose of an evaluation: first 4 bytes (big-endian) of SHA-256("evaluation/" + name), top bit set. */
uint32_t rrl_rng_evaluation(const char *name);

/** First 8 bytes (big-endian) of SHA-256(question id): the question's part of every key. */
uint64_t rrl_rng_question(const char *question_id);

/** The identity of one sequence's draws. attempt is 0 unless a completion is made again on purpose. */
typedef struct {
    uint64_t seed;     /* [0, 2^63) */
    uint32_t purpose;  /* RRL_RNG_* or rrl_rng_evaluation() */
    uint32_t step;     /* sampling step; 0 in evaluation */
    uint64_t question; /* rrl_rng_question() */
    uint32_t sample, attempt;
} rrl_rng_key;

/** The bare block function; known-answer vectors of the Random123 distribution are a test. */
void rrl_philox4x32(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2]);
/** The stream's key: the first 64 bits of its block. sample and attempt do not enter. For devices that draw themselves. */
void rrl_rng_stream(uint32_t out[2], const rrl_rng_key *key);
/** 64 random bits of draw `position` of this key. */
uint64_t rrl_rng_bits(const rrl_rng_key *key, uint32_t position);
/** Uniform in [0,1) with 53 bits: (bits >> 11) * 2^-53. */
double rrl_rng_uniform(const rrl_rng_key *key, uint32_t position);
/** Seeded permutation of 0..n-1 (Fisher-Yates, draws 0, 1, ... of the key, unbiased by 128-bit multiply with rejection
 *  left out: bias < n/2^64): for i = n-1 down to 1 swap out[i] and out[draw * (i+1) >> 64]. n <= 2^32. */
void rrl_rng_permutation(int64_t *out, int64_t n, const rrl_rng_key *key);

#endif
