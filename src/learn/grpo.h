/* The GRPO loss and its gradient with respect to the log-probs, as TRL 0.26 computes it (docs/reference.md).
 *
 * token loss = -min(rho A, clip(rho, 1 - eps, 1 + eps_high) A) + beta * k3
 * rho = exp(logp - old), k3 = exp(d) - d - 1 with d = ref - logp. All arithmetic in double, own exp. */
#ifndef RRL_LEARN_GRPO_H
#define RRL_LEARN_GRPO_H

#include <stdbool.h>
#include <stdint.h>

#include "rrl/config.h"
#include "rrl/group.h"

typedef struct {
    rrl_loss_type type;
    double epsilon, epsilon_high, beta;
    bool mask_truncated, kl_on_flat_groups;
    int64_t micro_rows;   /* rows of a loss micro-batch (training.batch_size) */
    int64_t accumulation; /* micro-batches of an update */
    int64_t max_tokens;   /* completion length limit, dr_grpo's divisor */
} rrl_grpo;

/* What one completion contributes to the loss and the step's metrics. Doubles only: sent as they are. */
typedef struct {
    double loss_policy, loss_kl; /* weighted as loss_type says; their sum over rows is the loss */
    double kl_sum, entropy_sum;  /* over tokens; kl_sum NaN without a reference */
    double clip_low, clip_high;  /* tokens */
    double max_diff;             /* largest |recorded - trained| log-prob */
} rrl_row_stats;

/** weight [n] of every row's tokens: the aggregation of the loss type, for rows in schedule order. n_tokens, finish [n].
 *  Rows masked out get 0. n = micro_rows * accumulation. */
void rrl_grpo_weights(double *weight, const rrl_grpo *g, const int32_t *n_tokens, const int32_t *finish, int64_t n);

/* One row's inputs: log-probs [n_tokens]. old NULL = the first pass on policy: rho is 1. ref NULL = no KL term. */
typedef struct {
    const float *logp, *old, *ref, *entropy;
    const float *recorded; /* log-probs stored at sampling */
    int32_t n_tokens;
    double advantage, weight;
    bool no_kl; /* flat group with kl_on_flat_groups off */
} rrl_grpo_row;

/** dlogp [n_tokens] = d loss / d logp of the row. What its tokens add goes on in *stats, 0 at its first: a row may come in
 *  parts. */
void rrl_grpo_row_loss(float *dlogp, rrl_row_stats *stats, const rrl_grpo *g, const rrl_grpo_row *row);

#endif
