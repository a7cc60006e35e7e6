/* The small statistics of the report: deviation across seeds, sign flips over seeds, Holm. Resampling: resample.h. */
#ifndef RRL_REPORT_STATISTICS_H
#define RRL_REPORT_STATISTICS_H

#include <stdint.h>

#include "rrl/status.h"

enum { RRL_EXACT_FLIP_SEEDS = 20, RRL_MONTE_CARLO_FLIPS = 10000 };

/** Mean and unbiased standard deviation (n - 1) of the values that are not NaN; *n how many these are. The mean of none
 *  and the deviation of fewer than two are NaN. */
void rrl_mean_std(double *mean, double *std, int64_t *n, const double *v, int64_t count);

/** Two-sided p of sign flips over seeds: among all assignments of signs to the seeds' differences d [n], the share whose
 *  |mean| reaches the observed one. It tests that a seed's difference is as likely to have either sign; exact (all 2^n)
 *  up to RRL_EXACT_FLIP_SEEDS seeds, else RRL_MONTE_CARLO_FLIPS flips keyed by `seed`, (1 + hits) / (1 + flips). The smallest value
 *  for n seeds is 2 / 2^n: 1 for one seed, 0.25 for three. NaN for none. */
rrl_status rrl_sign_flip_p(double *p, uint64_t seed, const double *d, int64_t n);

/** Holm's step-down adjustment of p [n] in place; NaN entries stay and do not count. Errors: RRL_ERR_NOMEM. */
rrl_status rrl_holm(double *p, int64_t n);

#endif
