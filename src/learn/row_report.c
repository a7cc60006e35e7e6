/* The training row of a step: means over the whole update, in schedule order. */
#include "learn/row_report.h"

#include <math.h>

typedef struct {
    double sum;
    int64_t n;
} mean;

static void put(mean *m, double x) {
    m->sum += x;
    m->n++;
}

static double value(const mean *m) { return m->n ? m->sum / (double)m->n : NAN; }

/* Unbiased deviation of a group's shaped rewards, in double. */
static double group_std(const rrl_group *g) {
    int32_t n = g->head.count;
    double sum = 0, square = 0;
    for (int32_t i = 0; i < n; i++) sum += g->rows[i].shaped;
    for (int32_t i = 0; i < n; i++) {
        double d = g->rows[i].shaped - sum / n;
        square += d * d;
    }
    return n > 1 ? sqrt(square / (n - 1)) : 0;
}

static bool all_equal(const rrl_group *g) {
    for (int32_t i = 1; i < g->head.count; i++)
        if (g->rows[i].shaped != g->rows[0].shaped) return false;
    return true;
}

void rrl_report_rewards(rrl_training_row *row, rrl_group *const *groups, int32_t n_groups) {
    mean shaped = {0}, observed = {0}, right = {0}, penalty = {0}, u = {0}, c = {0}, deviation = {0}, flat = {0},
         length = {0}, clipped = {0};
    row->missing = row->suppressed = row->downweighted = 0;
    for (int32_t g = 0; g < n_groups; g++) {
        put(&deviation, group_std(groups[g]));
        put(&flat, all_equal(groups[g]));
        for (int32_t i = 0; i < groups[g]->head.count; i++) {
            const rrl_completion *r = &groups[g]->rows[i];
            put(&shaped, r->shaped);
            put(&u, r->disagreement);
            put(&c, r->confidence);
            put(&length, r->n_tokens);
            put(&clipped, r->finish == RRL_FINISH_LENGTH);
            if (!isnan(r->correct)) put(&right, r->correct);
            if (!isnan(r->reward)) {
                put(&observed, r->reward);
                put(&penalty, (double)r->reward - (double)r->shaped);
            }
            row->missing += isnan(r->reward);
            row->suppressed += r->scale == 0;
            row->downweighted += r->scale > 0 && r->scale < 1;
        }
    }
    row->reward = value(&shaped);
    row->observed_reward = value(&observed);
    row->correct = value(&right);
    row->penalty = value(&penalty);
    row->disagreement = value(&u);
    row->confidence = value(&c);
    row->reward_std = value(&deviation);
    row->frac_reward_zero_std = value(&flat);
    row->mean_length = value(&length);
    row->clipped_ratio = value(&clipped);
}

void rrl_report_loss(rrl_training_row *row, const rrl_grpo *grpo, rrl_group *const *groups, int32_t n_groups,
                     const rrl_row_stats *stats) {
    double policy = 0, kl_loss = 0, kl = 0, entropy = 0, low = 0, high = 0, diff = 0;
    int64_t tokens = 0, at = 0;
    for (int32_t g = 0; g < n_groups; g++)
        for (int32_t i = 0; i < groups[g]->head.count; i++, at++) {
            rrl_completion *r = &groups[g]->rows[i];
            const rrl_row_stats *s = &stats[at];
            r->kl_mean = (float)(s->kl_sum / r->n_tokens);
            policy += s->loss_policy;
            kl_loss += s->loss_kl;
            if (!(s->max_diff <= diff)) diff = s->max_diff;
            if (grpo->mask_truncated && r->finish == RRL_FINISH_LENGTH) continue;
            tokens += r->n_tokens;
            kl += s->kl_sum;
            entropy += s->entropy_sum;
            low += s->clip_low;
            high += s->clip_high;
        }
    row->loss_policy = policy;
    row->loss_kl = kl_loss;
    row->loss = policy + kl_loss;
    row->kl = kl / (double)tokens;
    row->entropy = entropy / (double)tokens;
    row->clip_low = low / (double)tokens;
    row->clip_high = high / (double)tokens;
    row->rollout_logp_maxdiff = diff;
}

void rrl_report_nonfinite(bool *bad, rrl_group *const *groups, int32_t n_groups, const rrl_row_stats *stats) {
    int64_t at = 0;
    bool any = false;
    for (int32_t g = 0; g < n_groups; g++) {
        bad[g] = false;
        for (int32_t i = 0; i < groups[g]->head.count; i++, at++)
            bad[g] |= !isfinite(stats[at].loss_policy) || !isfinite(stats[at].loss_kl);
        any |= bad[g];
    }
    for (int32_t g = 0; g < n_groups && !any; g++) bad[g] = true;
}
