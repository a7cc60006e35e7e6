/* The statistics of the report, kept small: deviation across seeds, bootstrap over questions, sign flips, Holm. */
#ifndef RRL_REPORT_STATISTICS_H
#define RRL_REPORT_STATISTICS_H

#include <stdint.h>

#include "rrl/status.h"

enum { RRL_BOOTSTRAP_DRAWS = 2000, RRL_EXACT_FLIP_SEEDS = 20, RRL_MONTE_CARLO_FLIPS = 10000 };

/** Mean and unbiased standard deviation (n - 1) of the values that are not NaN; *n how many these are. The mean of none
 *  and the deviation of fewer than two are NaN. */
void rrl_mean_std(double *mean, double *std, int64_t *n, const double *v, int64_t count);

/* Which questions each bootstrap draw takes, drawn once for all comparisons over the same number of questions. */
typedef struct {
    int64_t n_questions;
    uint32_t *index; /* [RRL_BOOTSTRAP_DRAWS, n_questions] */
} rrl_bootstrap;
/** Draws are keyed (RRL_RNG_STATS), so they are the same for every report. Free with rrl_bootstrap_free. */
rrl_status rrl_bootstrap_open(rrl_bootstrap *out, int64_t n_questions);
void rrl_bootstrap_free(rrl_bootstrap *b);

/** 95 % percentile interval of the mean over seeds of the mean difference over questions. difference
 *  [n_seeds, b->n_questions], NaN = no pair. Each draw takes questions with replacement, the same ones for every seed and
 *  both methods, so pairs stay together. Seeds are not drawn: the interval says how far the questions carry the
 *  difference, given these seeds. NaN, NaN for fewer than two questions. */
rrl_status rrl_bootstrap_interval(double *low, double *high, const rrl_bootstrap *b, const double *difference,
                                  int64_t n_seeds);

/** Two-sided p of sign flips over seeds: among all assignments of signs to the seeds' differences d [n], the share whose
 *  |mean| reaches the observed one. It tests that a seed's difference is as likely to have either sign; exact (all 2^n)
 *  up to RRL_EXACT_FLIP_SEEDS seeds, else RRL_MONTE_CARLO_FLIPS keyed flips, (1 + hits) / (1 + flips). The smallest value
 *  for n seeds is 2 / 2^n: 1 for one seed, 0.25 for three. NaN for none. */
rrl_status rrl_sign_flip_p(double *p, const double *d, int64_t n);

/** Holm's step-down adjustment of p [n] in place; NaN entries stay and do not count. Errors: RRL_ERR_NOMEM. */
rrl_status rrl_holm(double *p, int64_t n);

#endif
