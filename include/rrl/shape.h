/* Reward shaping and advantages: doubles inside, f32 in the group. */
#ifndef RRL_SHAPE_H
#define RRL_SHAPE_H

#include "rrl/group.h"
#include "rrl/verify.h"

#define RRL_SHAPING_LIST(X)                                                                                            \
    X(RRL_SHAPE_STANDARD, "standard")                                                                                  \
    X(RRL_SHAPE_CONFIDENCE, "confidence")                                                                              \
    X(RRL_SHAPE_PENALIZED, "penalized")                                                                                \
    X(RRL_SHAPE_COMBINED, "combined")                                                                                  \
    X(RRL_SHAPE_CONSERVATIVE, "conservative")
typedef enum {
#define X(name, text) name,
    RRL_SHAPING_LIST(X)
#undef X
} rrl_shaping_strategy;

typedef struct {
    rrl_shaping_strategy strategy;
    double penalty, moderate_threshold, severe_threshold, moderate_scale, severe_scale;
} rrl_shaping;

/** Shaped value and attenuation scale of one completion; missing reward gives 0 and 0. */
void rrl_shape_one(double *shaped, double *scale, const rrl_shaping *s, const rrl_ensemble *e);
/** Shape every completion of a judged group from its verdicts (recomputed in double). */
rrl_status rrl_shape_group(rrl_group *g, const rrl_shaping *s, rrl_ensemble_strategy ensemble);

#define RRL_SCALE_REWARDS_LIST(X)                                                                                      \
    X(RRL_SCALE_NONE, "none")                                                                                          \
    X(RRL_SCALE_GROUP, "group")                                                                                        \
    X(RRL_SCALE_BATCH, "batch")
typedef enum {
#define X(name, text) name,
    RRL_SCALE_REWARDS_LIST(X)
#undef X
} rrl_scale_rewards;

/** Advantages of n rewards in groups of `group` (n divides), NaN = left out of mean, deviation and count, advantage
 *  exactly 0. std is unbiased (n-1), + 1e-4. A flat group gives exactly 0. */
rrl_status rrl_advantages(double *advantage, const double *reward, int64_t n, int64_t group, rrl_scale_rewards scale);
/** The same over the groups of one step in schedule order, stored in rows[].advantage. exclude_missing: rewards that
 *  are missing are left out (reward.missing: exclude), else their shaped value 0 enters. */
rrl_status rrl_advantages_step(rrl_group *const *groups, int n_groups, rrl_scale_rewards scale, bool exclude_missing);

#endif
