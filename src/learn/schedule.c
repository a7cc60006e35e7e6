/* Order of the questions and course of the learning rate. */
#include "learn/schedule.h"

#include <stdlib.h>

#include "base/exactmath.h"
#include "base/memory.h"
#include "base/random.h"

rrl_status rrl_schedule_questions(int32_t *out, int64_t batch, int32_t groups, int64_t n_questions, uint64_t seed) {
    rrl_status rc = RRL_OK;
    int64_t *order = NULL;
    int64_t chunks = groups > 0 ? n_questions / groups : 0;
    if (chunks == 0)
        return RRL_FAIL(RRL_ERR_DATA,
                        "training needs at least %d questions (batch_size * gradient_accumulation_steps / "
                        "num_generations), the training set has %lld; take a larger set or a smaller batch",
                        (int)groups, (long long)n_questions);
    rrl_rng_key key = {.seed = seed, .purpose = RRL_RNG_SCHEDULE, .step = (uint32_t)(batch / chunks)};
    RRL_GOTO(rrl_alloc(&order, (size_t)n_questions, sizeof *order, "question order"));
    rrl_rng_permutation(order, n_questions, &key);
    for (int32_t g = 0; g < groups; g++) out[g] = (int32_t)order[(batch % chunks) * groups + g];
done:
    free(order);
    return rc;
}

double rrl_learning_rate(rrl_lr_scheduler kind, double lr, int64_t k, int64_t steps, int64_t warmup) {
    if (k < warmup) return lr * (double)k / (double)(warmup > 1 ? warmup : 1);
    double left = steps > warmup ? (double)(steps - k) / (double)(steps - warmup) : 0;
    if (left < 0) left = 0;
    switch (kind) {
    case RRL_SCHEDULE_LINEAR: return lr * left;
    case RRL_SCHEDULE_COSINE: {
        /* cos(pi t) by our own sincos: the learning rate is in the digest */
        double s, c;
        rrl_sincos(&s, &c, 3.14159265358979323846 * (1 - left));
        return lr * 0.5 * (1 + c);
    }
    default: return lr;
    }
}
