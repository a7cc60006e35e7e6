/* Shaped rewards: what training sees of the ensemble. Thresholds are compared in double. */
#include <math.h>

#include "rrl/shape.h"

static double attenuation(const rrl_shaping *s, double u) {
    if (u >= s->severe_threshold) return s->severe_scale;
    if (u >= s->moderate_threshold) return s->moderate_scale;
    return 1.0;
}

void rrl_shape_one(double *shaped, double *scale, const rrl_shaping *s, const rrl_ensemble *e) {
    double value = 0.0, attenuated = s->strategy == RRL_SHAPE_STANDARD ? 1.0 : attenuation(s, e->u);
    if (isnan(e->reward)) {
        *shaped = 0.0;
        *scale = 0.0;
        return;
    }
    switch (s->strategy) {
    case RRL_SHAPE_STANDARD:
        value = e->reward;
        break;
    case RRL_SHAPE_CONFIDENCE:
        value = e->reward * e->c;
        break;
    case RRL_SHAPE_PENALIZED:
        value = e->reward - s->penalty * e->u;
        break;
    case RRL_SHAPE_COMBINED:
        value = e->reward * e->c - s->penalty * e->u;
        break;
    case RRL_SHAPE_CONSERVATIVE:
        value = e->minimum;
        break;
    }
    *shaped = value * attenuated;
    *scale = attenuated;
}

rrl_status rrl_shape_group(rrl_group *g, const rrl_shaping *s, rrl_ensemble_strategy ensemble) {
    int members = g->head.members;
    if (!g->verdicts)
        return RRL_FAIL(RRL_ERR_INTERNAL, "question %d: shaping before judging", g->head.question);
    for (int32_t i = 0; i < g->head.count; i++) {
        rrl_ensemble e;
        double shaped, scale;
        RRL_TRY(rrl_ensemble_of_verdicts(&e, ensemble, g->verdicts + (int64_t)i * members, members));
        rrl_shape_one(&shaped, &scale, s, &e);
        g->rows[i].shaped = (float)shaped;
        g->rows[i].scale = (float)scale;
    }
    return RRL_OK;
}
