/* Advantages: each reward against the mean of its group. NaN rewards are left out and get exactly 0. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "rrl/shape.h"

static const double DEVIATION_FLOOR = 1e-4; /* added to a standard deviation before division, as TRL does */

typedef struct {
    double mean, deviation; /* unbiased (n-1); 0 for fewer than two values */
    bool flat;              /* no two values differ */
} statistics;

/* Over the values that are not NaN, in order. */
static statistics take(const double *v, int64_t n) {
    statistics s = {.flat = true};
    double sum = 0.0, squares = 0.0, first = NAN;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(v[i])) continue;
        if (count == 0) first = v[i];
        if (v[i] != first) s.flat = false;
        sum += v[i];
        count++;
    }
    if (count == 0) return s;
    s.mean = sum / (double)count;
    for (int64_t i = 0; i < n; i++)
        if (!isnan(v[i])) squares += (v[i] - s.mean) * (v[i] - s.mean);
    if (count > 1 && !s.flat) s.deviation = sqrt(squares / (double)(count - 1));
    return s;
}

rrl_status rrl_advantages(double *advantage, const double *reward, int64_t n, int64_t group,
                          rrl_scale_rewards scale) {
    if (n < 0 || group < 1 || n % group != 0)
        return RRL_FAIL(RRL_ERR_RANGE, "%lld rewards do not divide into groups of %lld", (long long)n,
                        (long long)group);
    for (int64_t i = 0; i < n; i++)
        if (isinf(reward[i])) return RRL_FAIL(RRL_ERR_NONFINITE, "reward %lld is infinite", (long long)i);
    statistics batch = take(reward, n);
    for (int64_t at = 0; at < n; at += group) {
        statistics s = take(reward + at, group);
        double divisor = scale == RRL_SCALE_NONE
                             ? 1.0
                             : (scale == RRL_SCALE_GROUP ? s.deviation : batch.deviation) + DEVIATION_FLOOR;
        for (int64_t i = at; i < at + group; i++)
            advantage[i] = s.flat || isnan(reward[i]) ? 0.0 : (reward[i] - s.mean) / divisor;
    }
    return RRL_OK;
}

rrl_status rrl_advantages_step(rrl_group *const *groups, int n_groups, rrl_scale_rewards scale,
                               bool exclude_missing) {
    rrl_status rc = RRL_OK;
    double *values = NULL, *advantages;
    if (n_groups < 1) return RRL_FAIL(RRL_ERR_RANGE, "a step without groups");
    int64_t size = groups[0]->head.count, n = size * n_groups;
    RRL_GOTO(rrl_alloc(&values, (size_t)n * 2, sizeof *values, "rewards of a step"));
    advantages = values + n;
    for (int g = 0; g < n_groups; g++) {
        if (groups[g]->head.count != size || groups[g]->head.group_size != size) {
            rc = RRL_FAIL(RRL_ERR_INTERNAL,
                          "group %d of the step has %d of %d completions, the others have %lld", g,
                          groups[g]->head.count, groups[g]->head.group_size, (long long)size);
            goto done;
        }
        for (int64_t i = 0; i < size; i++) {
            const rrl_completion *row = &groups[g]->rows[i];
            values[g * size + i] = exclude_missing && isnan(row->reward) ? NAN : (double)row->shaped;
        }
    }
    RRL_GOTO(rrl_advantages(advantages, values, n, size, scale));
    for (int g = 0; g < n_groups; g++)
        for (int64_t i = 0; i < size; i++) groups[g]->rows[i].advantage = (float)advantages[g * size + i];
done:
    free(values);
    return rc;
}
