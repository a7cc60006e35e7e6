/* The ensemble: one reward, an uncertainty U and a confidence C from the members that answered. Sums run in
 * member order, in double. */
#include <math.h>

#include "base/exactmath.h"
#include "rrl/verify.h"

/* Values of the available members only. */
typedef struct {
    double reward_sum, confidence_sum, weighted_sum;
    double reward_mean, confidence_mean;
    double reward_variance, confidence_variance; /* population */
    double minimum;
    int positive, available;
} moments;

static void take_moments(moments *m, const double *reward, const double *confidence, int n) {
    *m = (moments){.minimum = NAN};
    for (int i = 0; i < n; i++) {
        if (isnan(reward[i])) continue;
        m->available++;
        m->positive += reward[i] >= 0.5;
        m->reward_sum += reward[i];
        m->confidence_sum += confidence[i];
        m->weighted_sum += confidence[i] * reward[i];
        m->minimum = fmin(m->minimum, reward[i]); /* fmin passes over NaN */
    }
    if (m->available == 0) return;
    m->reward_mean = m->reward_sum / m->available;
    m->confidence_mean = m->confidence_sum / m->available;
    for (int i = 0; i < n; i++) {
        if (isnan(reward[i])) continue;
        double r = reward[i] - m->reward_mean, c = confidence[i] - m->confidence_mean;
        m->reward_variance += r * r;
        m->confidence_variance += c * c;
    }
    m->reward_variance /= m->available;
    m->confidence_variance /= m->available;
}

/* Bits of a vote with this share of positives. */
static double entropy_bits(double share) {
    double bits = 0.0;
    if (share == 0.5) return 1.0;
    if (share > 0.0) bits -= share * rrl_log_natural(share);
    if (share < 1.0) bits -= (1.0 - share) * rrl_log_natural(1.0 - share);
    return bits / 0.6931471805599453;
}

static double aggregate(rrl_ensemble_strategy s, const moments *m) {
    switch (s) {
    case RRL_ENSEMBLE_MEAN:
        return m->reward_mean;
    case RRL_ENSEMBLE_MAJORITY:
        return 2 * m->positive == m->available ? 0.5 : 2 * m->positive > m->available;
    case RRL_ENSEMBLE_CONFIDENCE:
        return m->confidence_sum > 0.0 ? m->weighted_sum / m->confidence_sum : NAN;
    case RRL_ENSEMBLE_MINIMUM:
        return m->minimum;
    }
    return NAN;
}

rrl_status rrl_ensemble_of(rrl_ensemble *out, rrl_ensemble_strategy s, const double *reward,
                           const double *confidence, int n) {
    if (n < 1) return RRL_FAIL(RRL_ERR_RANGE, "an ensemble needs at least one member, got %d", n);
    for (int i = 0; i < n; i++) {
        if (!isnan(reward[i]) && !(reward[i] >= 0.0 && reward[i] <= 1.0))
            return RRL_FAIL(RRL_ERR_RANGE, "reward %g of member %d is outside [0,1]", reward[i], i);
        if (!(confidence[i] >= 0.0 && confidence[i] <= 1.0))
            return RRL_FAIL(RRL_ERR_RANGE, "confidence %g of member %d is outside [0,1]", confidence[i], i);
    }
    moments m;
    take_moments(&m, reward, confidence, n);
    rrl_ensemble e = {.reward = NAN, .minimum = NAN};
    if (m.available > 0) {
        e.available = m.available;
        e.reward = fmin(1.0, aggregate(s, &m)); /* a weighted mean of ones may round above 1 */
        if (s == RRL_ENSEMBLE_CONFIDENCE && m.confidence_sum == 0.0) e.reward = NAN; /* fmin would hide it */
        e.minimum = m.minimum;
        e.u = fmin(1.0, 4.0 * m.reward_variance);
        e.c = m.confidence_mean * ((double)m.available / n) * (1.0 - e.u);
        e.vote_entropy = entropy_bits((double)m.positive / m.available);
        e.confidence_dispersion = sqrt(m.confidence_variance);
    }
    *out = e;
    return RRL_OK;
}
