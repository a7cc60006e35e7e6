/* A loss whose derivatives by the log-probs of a slot are given. */
#ifndef RRL_TESTS_GIVEN_LOSS_H
#define RRL_TESTS_GIVEN_LOSS_H

#include <string.h>

#include "model/slot.h"

static inline void given_dlogp(void *context, float *dlogp, const float *logp, const float *entropy, int64_t first,
                               int64_t n) {
    memcpy(dlogp, (const float *)context + first, (size_t)n * sizeof *dlogp);
}

/* gradient += d(sum dlogp * logp)/d(adapter), dlogp host [tokens of the slot] */
static inline rrl_status given_gradient(rrl_slot_engine *e, float *gradient, const rrl_slot *s, rrl_adapter *a,
                                        float *dlogp) {
    return rrl_slot_gradient(e, gradient, s, a, &(rrl_slot_loss){given_dlogp, dlogp});
}

#endif
