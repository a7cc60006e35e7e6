/* GRPO loss, row by row. */
#include "learn/grpo.h"

#include <math.h>

#include "base/exactmath.h"

void rrl_grpo_weights(double *weight, const rrl_grpo *g, const int32_t *n_tokens, const int32_t *finish, int64_t n) {
    int64_t all = 0; /* dapo's denominator counts masked rows too, as TRL's num_items_in_batch does */
    for (int64_t i = 0; i < n; i++) all += n_tokens[i];
    for (int64_t first = 0; first < n; first += g->micro_rows) {
        int64_t end = first + g->micro_rows < n ? first + g->micro_rows : n, tokens = 0;
        for (int64_t i = first; i < end; i++)
            if (!(g->mask_truncated && finish[i] == RRL_FINISH_LENGTH)) tokens += n_tokens[i];
        double rows = (double)(end - first), acc = (double)g->accumulation;
        for (int64_t i = first; i < end; i++) {
            double w = 0;
            if (!(g->mask_truncated && finish[i] == RRL_FINISH_LENGTH)) switch (g->type) {
                case RRL_LOSS_DAPO: w = 1 / (double)all; break;
                case RRL_LOSS_GRPO: w = 1 / (rows * (double)n_tokens[i] * acc); break;
                case RRL_LOSS_BNPO: w = 1 / ((double)(tokens > 1 ? tokens : 1) * acc); break;
                default: w = 1 / (rows * (double)g->max_tokens * acc); break;
                }
            weight[i] = w;
        }
    }
}

void rrl_grpo_row_loss(float *dlogp, rrl_row_stats *stats, const rrl_grpo *g, const rrl_grpo_row *row) {
    rrl_row_stats s = *stats;
    double low = 1 - g->epsilon, high = 1 + g->epsilon_high, a = row->advantage, w = row->weight;
    for (int32_t t = 0; t < row->n_tokens; t++) {
        double logp = row->logp[t];
        double rho = row->old ? rrl_exp(logp - (double)row->old[t]) : 1.0;
        double clipped = rho < low ? low : rho > high ? high : rho;
        bool inside = rho >= low && rho <= high;
        /* inside the range both branches are equal and the gradient flows whole; outside, only if the unclipped
           branch is the smaller one */
        double slope = inside || rho * a < clipped * a ? -a * rho : 0;
        double policy = -(rho * a < clipped * a ? rho * a : clipped * a);
        if (rho < low && a < 0) s.clip_low++;
        if (rho > high && a > 0) s.clip_high++;
        if (row->ref) {
            double d = (double)row->ref[t] - logp, e = rrl_exp(d), k3 = e - d - 1;
            s.kl_sum += k3;
            if (!row->no_kl) {
                s.loss_kl += w * g->beta * k3;
                slope += g->beta * (1 - e);
            }
        }
        s.loss_policy += w * policy;
        if (row->entropy) s.entropy_sum += row->entropy[t];
        double diff = fabs((double)row->recorded[t] - logp);
        if (!(diff <= s.max_diff)) s.max_diff = diff;
        dlogp[t] = (float)(w * slope);
    }
    if (!row->ref) s.kl_sum = NAN;
    *stats = s;
}
