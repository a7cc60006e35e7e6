/* The generator: decodes group parts with the adapter it was given and sends them to the verifiers. */
#ifndef RRL_ROLES_GENERATOR_H
#define RRL_ROLES_GENERATOR_H

#include "roles/engine.h"
#include "roles/mailbox.h"

/* What to generate for one run: groups of a step or of an evaluation. */
typedef struct {
    int32_t run;              /* place in the fleet */
    const rrl_pool *pool;
    const int32_t *questions; /* [n_groups] rows of the pool, schedule order */
    int32_t n_groups, group_size;
    uint32_t purpose;         /* RRL_RNG_TRAIN or rrl_rng_evaluation(name) */
    int64_t step, policy_version;
    uint64_t seed;
    rrl_sampling sampling;
    float dropout;            /* in rollout */
    rrl_adapter *adapter;     /* NULL = base */
    bool stops;               /* a signal ends it with RRL_ERR_REQUEUE as soon as one more part is done */
} rrl_generation;

/** Generate this rank's parts of n runs in one decode batch and send each to its verifier as soon as it is done. Local. */
rrl_status rrl_generate(rrl_team *team, rrl_engine *engine, rrl_mailbox *parts, const rrl_generation *g, int32_t n);
/** Sampling settings of a config. */
rrl_sampling rrl_sampling_of(const rrl_config *c);

#endif
