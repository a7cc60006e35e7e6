/* The two statements of the report about a mean over seeds and questions. They are never mixed. Method and proofs:
 * docs/statistics.md. Used by src/report only.
 *
 * (1) about these runs: the seeds are as they are, the questions are a sample. Interval: percentile bootstrap over
 * questions, the same ones for every seed and both methods, so pairs stay together. p: sign flips over questions.
 * (2) about the method: seeds and questions are both samples. Interval: seeds and questions drawn crossed; the spread of
 * the draws is brought to the unbiased variance of two crossed factors and to Student's t with Satterthwaite's degrees of
 * freedom, because a plain crossed bootstrap of few seeds is too narrow in the seeds and too wide in the rest. p: sign
 * flips over seeds, exact where there are few. */
#ifndef RRL_REPORT_RESAMPLE_H
#define RRL_REPORT_RESAMPLE_H

#include <stdint.h>

#include "rrl/status.h"

enum { RRL_BOOTSTRAP_DRAWS = 2000, RRL_QUESTION_FLIPS = 10000, RRL_FEW_SEEDS = 6 };

/* One statement about one mean. NaN = undefined. */
typedef struct {
    double low, high; /* 95 % interval */
    double p, p_holm; /* two-sided; p_holm is left to the caller */
    int64_t flips;    /* random sign flips behind p; 0 = all there are */
    double smallest;  /* effect that a test at 5 % finds in 80 % of such designs */
} rrl_claim;
#define RRL_NO_CLAIM {NAN, NAN, NAN, NAN, 0, NAN}

/* Draws made once for all means over the same number of questions. */
typedef struct {
    int64_t n_questions, max_seeds;
    uint64_t seed;
    double *counts;      /* [n_questions, RRL_BOOTSTRAP_DRAWS] how often a draw takes a question */
    uint64_t *seed_bits; /* [RRL_BOOTSTRAP_DRAWS, max_seeds] */
    uint8_t *flips;      /* [RRL_QUESTION_FLIPS, bytes of n_questions bits] */
} rrl_resample;

/** Draws are keyed by `seed` (RRL_RNG_STATS), so the same study gives the same draws. Free with rrl_resample_free. */
rrl_status rrl_resample_open(rrl_resample *out, uint64_t seed, int64_t n_questions, int64_t max_seeds);
void rrl_resample_free(rrl_resample *r);

/** Both statements about the mean over seeds of the mean over questions of x [n_seeds, r->n_questions], NaN = missing;
 *  n_seeds <= max_seeds. p tests a mean of 0 (values that are differences). (1) has no interval for fewer than two
 *  questions; (2) has neither p nor interval for fewer than two seeds, and no interval where nothing varies. */
rrl_status rrl_resample_claims(rrl_claim *runs, rrl_claim *method, const rrl_resample *r, const double *x,
                               int64_t n_seeds);

#endif
