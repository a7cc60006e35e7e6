/* Corruption of a member's reward, keyed by what is judged: the same completion of the same question under
 * the same seed has the same fate on every rank, in any order, and in the reference implementation. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/exactmath.h"
#include "base/hash.h"
#include "base/json.h"
#include "rrl/verify.h"
#include "verify/mt19937.h"

/* SHA-256 of the JSON array [seed, example_id, response]; its first 8 bytes (big-endian) are the seed. */
static rrl_status event_seed(uint64_t *out, uint64_t seed, const char *example_id, const char *response,
                             size_t len) {
    rrl_status rc = RRL_OK;
    rrl_buffer key = {0};
    uint8_t digest[RRL_SHA256_BYTES];
    RRL_GOTO(rrl_buffer_printf(&key, "[%" PRIu64 ", ", seed));
    RRL_GOTO(rrl_json_quote(&key, example_id, strlen(example_id)));
    RRL_GOTO(rrl_buffer_puts(&key, ", "));
    RRL_GOTO(rrl_json_quote(&key, response, len));
    RRL_GOTO(rrl_buffer_puts(&key, "]"));
    RRL_GOTO(rrl_sha256_of(digest, key.data, key.len));
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number = number << 8 | digest[i];
    *out = number;
done:
    rrl_buffer_free(&key);
    return rc;
}

/* Normal deviate from the next two uniforms, as Python's first random.gauss(). */
static double gauss(rrl_mt19937 *m) {
    double sine, cosine;
    rrl_sincos(&sine, &cosine, rrl_mt_uniform(m) * 6.283185307179586);
    return cosine * sqrt(-2.0 * rrl_log_natural(1.0 - rrl_mt_uniform(m)));
}

static double changed(const rrl_corruption *c, double reward, rrl_mt19937 *m) {
    switch (c->kind) {
    case RRL_CORRUPT_NONE:
        return reward;
    case RRL_CORRUPT_FLIP:
        return 1.0 - reward;
    case RRL_CORRUPT_FALSE_POSITIVE:
        return reward < 0.5 ? 1.0 : reward;
    case RRL_CORRUPT_FALSE_NEGATIVE:
        return reward >= 0.5 ? 0.0 : reward;
    case RRL_CORRUPT_MISSING:
        return NAN;
    case RRL_CORRUPT_NOISE:
        return fmin(1.0, fmax(0.0, reward + gauss(m) * c->noise_std));
    case RRL_CORRUPT_BIAS:
        return c->bias_reward;
    case RRL_CORRUPT_EXPLOIT:
        return 1.0;
    }
    return reward;
}

rrl_status rrl_corrupt(double *reward_out, double *confidence_out, bool *applied, const rrl_corruption *c,
                       const char *example_id, const char *response, size_t response_len, double reward,
                       double confidence, bool eligible) {
    bool fires = false;
    double after = reward;
    if (c->kind != RRL_CORRUPT_NONE && !isnan(reward) && eligible) {
        uint64_t seed;
        rrl_mt19937 m;
        RRL_TRY(event_seed(&seed, c->seed, example_id, response, response_len));
        rrl_mt_seed(&m, seed);
        fires = rrl_mt_uniform(&m) < c->probability;
        if (fires) after = changed(c, reward, &m);
    }
    *reward_out = after;
    *confidence_out = isnan(after)                  ? 0.0
                      : c->kind == RRL_CORRUPT_NONE ? confidence
                                                    : confidence * c->confidence_scale;
    *applied = fires;
    return RRL_OK;
}
