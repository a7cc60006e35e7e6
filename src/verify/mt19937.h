/* The Mersenne Twister of Matsumoto and Nishimura as Python's random module seeds and reads it: the reference
 * rule for corruption is written in terms of it. Nothing else in the program uses it. */
#ifndef RRL_VERIFY_MT19937_H
#define RRL_VERIFY_MT19937_H

#include <stddef.h>
#include <stdint.h>

enum { RRL_MT_WORDS = 624 };

typedef struct {
    uint32_t word[RRL_MT_WORDS];
    int next;
} rrl_mt19937;

/** init_by_array of the authors' 2002 code. key [n], n >= 1. */
void rrl_mt_seed_words(rrl_mt19937 *m, const uint32_t *key, size_t n);
/** As Python's random.seed(number): 32-bit words, least significant first, no zero high word. */
void rrl_mt_seed(rrl_mt19937 *m, uint64_t number);
uint32_t rrl_mt_next(rrl_mt19937 *m);
/** Uniform in [0,1) with 53 bits of two words, as random.random(). */
double rrl_mt_uniform(rrl_mt19937 *m);

#endif
