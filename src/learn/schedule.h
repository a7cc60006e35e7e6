/* What happens at which step: a pure function of the config, computed by every rank, never sent. */
#ifndef RRL_LEARN_SCHEDULE_H
#define RRL_LEARN_SCHEDULE_H

#include <stdint.h>

#include "rrl/config.h"

/** Questions of sampling batch `batch` (0, 1, ...): out [groups], rows of the pool. As TRL's sampler: a seeded
 *  permutation, chunks without repetition, an incomplete last chunk dropped, a new permutation each epoch.
 *  Errors: RRL_ERR_DATA (fewer questions than groups in a step), RRL_ERR_NOMEM. */
rrl_status rrl_schedule_questions(int32_t *out, int64_t batch, int32_t groups, int64_t n_questions, uint64_t seed);

/** Learning rate of update k of T (k = 0, 1, ...): linear lr (T-k)/T after warm-up, constant, cosine,
 *  constant_with_warmup. Source: transformers' get_scheduler. */
double rrl_learning_rate(rrl_lr_scheduler kind, double lr, int64_t k, int64_t steps, int64_t warmup);

#endif
