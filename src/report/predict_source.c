/* Sources and their branches. The members' events are those of rrl_corrupt, which is asked for every value:
 * with probability 1 for what an event makes, with probability 0 for what stays. Only the normal deviate is
 * not drawn. */
#include "report/predict_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/predict_integral.h"

static const double Z_END = 6.5; /* P(|Z| > 6.5) = 8e-11 */
static const double NO_WEIGHT = 1e-18;
static const double SAME = 1e-9; /* of values that two members make of one z */
enum { TELL_APART = 12 };        /* sources that are enumerated in full: 2^12 outcomes of binary members */

static bool is_noisy(const rrl_corruption *c) {
    return c->kind == RRL_CORRUPT_NOISE && c->noise_std > 0;
}

/* ---- sources ---- */

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool are_twins(const rrl_predict_ensemble *e, const rrl_predict_source *a, const rrl_predict_source *b,
                      bool all) {
    const rrl_corruption *p = &e->members[a->member[0]], *q = &e->members[b->member[0]];
    return a->n == 1 && b->n == 1 && (all || is_noisy(p)) && p->kind == q->kind &&
           p->probability == q->probability && p->noise_std == q->noise_std &&
           p->confidence_scale == q->confidence_scale && p->bias_reward == q->bias_reward &&
           same_text(p->bias_key, q->bias_key) && same_text(p->bias_value, q->bias_value);
}

void rrl_predict_sources_of(rrl_predict_source *sources, int *n_sources, const rrl_predict_ensemble *e) {
    int n = 0;
    for (int i = 0; i < e->n; i++) {
        int at = n;
        /* a member without corruption draws nothing: its seed means nothing */
        for (int s = 0; s < n && e->members[i].kind != RRL_CORRUPT_NONE; s++) {
            const rrl_corruption *other = &e->members[sources[s].member[0]];
            if (other->kind != RRL_CORRUPT_NONE && other->seed == e->members[i].seed) at = s;
        }
        if (at == n) sources[n++] = (rrl_predict_source){.n = 0};
        sources[at].member[sources[at].n++] = i;
    }
    for (int s = 1; s < n; s++) /* bring the next twin of s - 1 here, if there is one */
        for (int t = s; t < n; t++) {
            if (!are_twins(e, &sources[s - 1], &sources[t], n > TELL_APART)) continue;
            rrl_predict_source twin = sources[t];
            sources[t] = sources[s];
            sources[s] = twin;
            sources[s].twin = true;
            break;
        }
    *n_sources = n;
}

/* ---- branches ---- */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool same_number(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static bool same_outcome(const rrl_predict_branch *b, const rrl_predict_branch *c, int n) {
    if (b->continuous != c->continuous || b->low != c->low || b->high != c->high) return false;
    for (int i = 0; i < n; i++)
        if (!same_number(b->verdicts[i].value, c->verdicts[i].value) ||
            b->verdicts[i].slope != c->verdicts[i].slope)
            return false;
    return true;
}

/* Add a branch, or its weight to an equal one. */
static rrl_status add(rrl_predict_branches *list, const rrl_predict_branch *b, int n) {
    if (b->weight < NO_WEIGHT) return RRL_OK;
    for (size_t i = 0; i < list->n; i++)
        if (same_outcome(&list->v[i], b, n)) {
            list->v[i].weight += b->weight;
            return RRL_OK;
        }
    RRL_TRY(rrl_grow(&list->v, &list->capacity, list->n + 1, sizeof *list->v, "branches of a verdict"));
    rrl_predict_branch copy = *b;
    RRL_TRY(rrl_alloc(&copy.verdicts, (size_t)n, sizeof *copy.verdicts, "verdicts of a branch"));
    memcpy(copy.verdicts, b->verdicts, (size_t)n * sizeof *copy.verdicts);
    list->v[list->n++] = copy;
    return RRL_OK;
}

/* The verdict of a member when its first uniform lies below its probability, or not; records hold f32. */
static rrl_status settle(rrl_predict_verdict *out, const rrl_corruption *member, bool right, bool fires) {
    rrl_corruption c = *member;
    double value, confidence;
    bool applied;
    c.probability = fires ? 1 : 0;
    RRL_TRY(rrl_corrupt(&value, &confidence, &applied, &c, "", "", 0, right, 1, fires));
    *out = (rrl_predict_verdict){.value = (double)(float)value, .confidence = (double)(float)confidence};
    if (!fires || c.kind != RRL_CORRUPT_NOISE) return RRL_OK;
    out->value = right; /* the deviate drawn for this empty completion is nobody's */
    out->slope = c.noise_std;
    return RRL_OK;
}

/* The branches of an event in which verdicts [n] with a slope moved: z is cut where a verdict reaches 0 or 1.
 */
static rrl_status add_noise(rrl_predict_branches *list, const rrl_predict_verdict *verdicts, int n,
                            double weight, bool right) {
    double ends[RRL_PREDICT_MEMBERS + 3];
    rrl_predict_verdict clipped[RRL_PREDICT_MEMBERS];
    int n_ends = 0;
    ends[n_ends++] = -Z_END;
    ends[n_ends++] = 0;
    ends[n_ends++] = Z_END;
    for (int i = 0; i < n; i++) {
        double reach = (right ? -1 : 1) / verdicts[i].slope; /* infinite without slope */
        if (verdicts[i].slope > 0 && fabs(reach) < Z_END) ends[n_ends++] = reach;
    }
    qsort(ends, (size_t)n_ends, sizeof *ends, compare);
    for (int k = 0; k + 1 < n_ends; k++) {
        double middle = 0.5 * (ends[k] + ends[k + 1]);
        rrl_predict_branch b = {.weight = weight, .verdicts = clipped};
        for (int i = 0; i < n; i++) {
            double moved = verdicts[i].value + verdicts[i].slope * middle;
            clipped[i] = verdicts[i];
            if (!(verdicts[i].slope > 0)) continue;
            if (moved > 0 && moved < 1)
                b.continuous = true;
            else
                clipped[i] = (rrl_predict_verdict){.value = moved >= 1, .confidence = verdicts[i].confidence};
        }
        if (b.continuous) {
            b.low = ends[k];
            b.high = ends[k + 1];
        } else {
            b.weight *= rrl_normal_mass(ends[k], ends[k + 1]);
        }
        RRL_TRY(add(list, &b, n));
    }
    return RRL_OK;
}

rrl_status rrl_predict_branches_of(rrl_predict_branches *out, const rrl_predict_ensemble *e,
                                   const rrl_predict_source *source, bool right, const bool *eligible) {
    rrl_status rc = RRL_OK;
    rrl_predict_branches list = {0};
    double cuts[RRL_PREDICT_MEMBERS + 2]; /* of the first uniform: who fires changes here */
    int n_cuts = 0;
    cuts[n_cuts++] = 0;
    cuts[n_cuts++] = 1;
    for (int i = 0; i < source->n; i++) cuts[n_cuts++] = e->members[source->member[i]].probability;
    qsort(cuts, (size_t)n_cuts, sizeof *cuts, compare);
    for (int k = 0; k + 1 < n_cuts; k++) {
        rrl_predict_verdict verdicts[RRL_PREDICT_MEMBERS];
        bool noisy = false;
        if (!(cuts[k] < cuts[k + 1])) continue;
        for (int i = 0; i < source->n; i++) {
            const rrl_corruption *c = &e->members[source->member[i]];
            bool fires =
                c->kind != RRL_CORRUPT_NONE && eligible[source->member[i]] && c->probability >= cuts[k + 1];
            RRL_GOTO(settle(&verdicts[i], c, right, fires));
            noisy |= verdicts[i].slope > 0;
        }
        rrl_predict_branch plain = {.weight = cuts[k + 1] - cuts[k], .verdicts = verdicts};
        if (noisy)
            RRL_GOTO(add_noise(&list, verdicts, source->n, plain.weight, right));
        else
            RRL_GOTO(add(&list, &plain, source->n));
    }
    *out = list;
    list = (rrl_predict_branches){0};
done:
    rrl_predict_branches_free(&list);
    return rc;
}

void rrl_predict_branches_free(rrl_predict_branches *b) {
    for (size_t i = 0; i < b->n; i++) free(b->v[i].verdicts);
    free(b->v);
    *b = (rrl_predict_branches){0};
}

/* ---- likelihood ---- */

/* What a branch adds: its probability if it says exactly this; its density, as a function of the first
 * verdict that moves, if one z makes all of them. */
static double share_of(const rrl_predict_branch *b, const rrl_predict_source *source, const double *verdict,
                       const bool *moves) {
    double z = NAN, density = 1;
    for (int i = 0; i < source->n; i++) {
        const rrl_predict_verdict *v = &b->verdicts[i];
        double seen = verdict[source->member[i]];
        if (moves[source->member[i]] != (v->slope > 0)) return 0;
        if (!(v->slope > 0)) {
            if (!same_number(seen, v->value)) return 0;
        } else if (isnan(z)) {
            z = (seen - v->value) / v->slope;
            density = rrl_normal_density(z) / v->slope;
        } else if (fabs(v->value + v->slope * z - seen) > SAME) {
            return 0;
        }
    }
    if (z < b->low - SAME || z > b->high + SAME) return 0;
    return b->weight * density;
}

double rrl_predict_likelihood(const rrl_predict_branches *b, const rrl_predict_source *source,
                              const double *verdict, const bool *moves) {
    double sum = 0;
    for (size_t i = 0; i < b->n; i++) sum += share_of(&b->v[i], source, verdict, moves);
    return sum;
}
