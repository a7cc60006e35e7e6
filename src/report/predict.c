/* Moments of rewards: the sum over everything that the members can say, times its probability.
 *
 * A completion is right or wrong, eligible or not for each bias and exploit; given that, sources are
 * independent and their branches are multiplied out. Verdicts that move with a normal deviate are integrated
 * (predict_integral.h). */
#include "report/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/predict_integral.h"
#include "report/predict_source.h"

enum { MEMBERS = RRL_PREDICT_MEMBERS, ENSEMBLES = RRL_ENSEMBLE_MINIMUM + 1, MOST_CONDITIONS = 6 };
static const double MOST_OUTCOMES = 4e6;
static const double TOLERANCE =
    2e-8; /* of one outcome's contribution; there are seldom more than ten with noise */
static const double NO_INFORMATION = 1e-12;

/* The sums that are formed: three of each view, then the posteriors. */
typedef struct {
    const rrl_predict_ensemble *e;
    const rrl_predict_view *views;
    const double *priors;
    int n_views, n_priors;
    rrl_predict_source sources[MEMBERS];
    int n_sources;
    int condition[MEMBERS]; /* of a member: the eligibility that it asks for, -1 = none */
    int n_conditions;
    rrl_predict_branches *branches; /* [wrong or right, assignments of the conditions, sources] */
    double sums[2][RRL_INTEGRAL_VALUES];
    double unmet;
    /* the outcome at hand */
    int right;
    const rrl_predict_branch *chosen[MEMBERS]; /* [n_sources] */
    int moving[RRL_INTEGRAL_DIMS];             /* sources with a z, in order */
    int n_moving;
    const rrl_predict_integral *integral;
    double verdict[MEMBERS], confidence[MEMBERS];
    bool moves[MEMBERS];
} enumeration;

static int n_values(const enumeration *n) {
    return 3 * n->n_views + n->n_priors;
}

static rrl_predict_branches *branches_at(enumeration *n, int right, int assignment, int source) {
    return &n->branches[((right << n->n_conditions) + assignment) * n->n_sources + source];
}

/* P(assignment of the conditions | right or wrong). */
static double share_of(const enumeration *n, int right, int assignment) {
    double p = 1;
    for (int c = 0; c < n->n_conditions; c++)
        p *= assignment >> c & 1 ? n->e->eligible[right] : 1 - n->e->eligible[right];
    return p;
}

/* ---- one outcome ---- */

static double likelihood(enumeration *n, int right) {
    double sum = 0;
    for (int a = 0; a < 1 << n->n_conditions; a++) {
        double p = share_of(n, right, a);
        for (int s = 0; s < n->n_sources && p > 0; s++)
            p *= rrl_predict_likelihood(branches_at(n, right, a, s), &n->sources[s], n->verdict, n->moves);
        sum += p;
    }
    return sum;
}

/* The summands of the verdicts at hand. The posterior is summed over right completions only. */
static rrl_status summands(enumeration *n, double *out) {
    rrl_ensemble ensembles[ENSEMBLES];
    bool made[ENSEMBLES] = {false};
    for (int i = 0; i < n->n_views; i++) {
        const rrl_predict_view *view = &n->views[i];
        rrl_ensemble *e = &ensembles[view->ensemble];
        double shaped, scale;
        if (!made[view->ensemble])
            RRL_TRY(rrl_ensemble_of(e, view->ensemble, n->verdict, n->confidence, n->e->n));
        made[view->ensemble] = true;
        rrl_shape_one(&shaped, &scale, &view->shaping, e);
        *out++ = isnan(e->reward) ? 0 : 1;
        *out++ = shaped;
        *out++ = shaped * shaped;
    }
    bool asked = n->right && n->n_priors > 0;
    double if_right = asked ? likelihood(n, 1) : 0, if_wrong = asked ? likelihood(n, 0) : 0;
    for (int i = 0; i < n->n_priors; i++) {
        double right = n->priors[i] * if_right, wrong = (1 - n->priors[i]) * if_wrong;
        *out++ = right > 0 ? right / (right + wrong) : 0;
    }
    return RRL_OK;
}

/* Put the verdicts of a source in place; z is its deviate if it has one. */
static void place(enumeration *n, int source, double z) {
    const rrl_predict_source *s = &n->sources[source];
    for (int i = 0; i < s->n; i++) {
        const rrl_predict_verdict *v = &n->chosen[source]->verdicts[i];
        int m = s->member[i];
        n->moves[m] = v->slope > 0;
        n->verdict[m] = v->slope > 0 ? fmin(1, fmax(0, v->value + v->slope * z)) : v->value;
        n->confidence[m] = v->confidence;
    }
}

static rrl_status integrand(void *state, const double *z, double *out) {
    enumeration *n = state;
    for (int d = 0; d < n->n_moving; d++) place(n, n->moving[d], z[d]);
    return summands(n, out);
}

/* ---- where an integrand jumps or bends ---- */

static void add_cut(double *cuts, int *n, double at, double a, double b) {
    if (at > a && at < b && *n < RRL_INTEGRAL_CUTS) cuts[(*n)++] = at;
}

/* A vote changes at 0.5, the minimum where two verdicts meet. Verdicts of later dimensions are not there yet.
 */
static void cut_at_verdicts(enumeration *n, int dim, double a, double b, double *cuts, int *n_cuts) {
    int source = n->moving[dim];
    bool later[MEMBERS] = {false};
    for (int d = dim + 1; d < n->n_moving; d++)
        for (int i = 0; i < n->sources[n->moving[d]].n; i++) later[n->sources[n->moving[d]].member[i]] = true;
    for (int i = 0; i < n->sources[source].n; i++) {
        const rrl_predict_verdict *v = &n->chosen[source]->verdicts[i];
        if (!(v->slope > 0)) continue;
        add_cut(cuts, n_cuts, (0.5 - v->value) / v->slope, a, b);
        for (int j = 0; j < n->e->n; j++) {
            bool own = false;
            for (int k = 0; k < n->sources[source].n; k++) own |= n->sources[source].member[k] == j;
            if (!own && !later[j] && !isnan(n->verdict[j]))
                add_cut(cuts, n_cuts, (n->verdict[j] - v->value) / v->slope, a, b);
        }
    }
}

/* square t^2 + linear t + constant, t from -1 to 1 over a range. */
typedef struct {
    double square, linear, constant;
} parabola;

static rrl_status fit(parabola *p, enumeration *n, const rrl_predict_integral *q, double *z, int dim,
                      double a, double b, int ends);

/* U, with the deviates of dimensions from `dim` on where `ends` says (a base-3 digit each): at the low or at
 * the high end of its range, or where U is least. U is a square function of the deviates, so three values
 * tell the rest. *u NaN: there is no least U. */
static rrl_status least_uncertainty(double *u, enumeration *n, const rrl_predict_integral *q, double *z,
                                    int dim, int ends) {
    if (dim == n->n_moving) {
        rrl_ensemble e;
        for (int d = 0; d < n->n_moving; d++) place(n, n->moving[d], z[d]);
        RRL_TRY(rrl_ensemble_of(&e, RRL_ENSEMBLE_MEAN, n->verdict, n->confidence, n->e->n));
        *u = e.u;
        return RRL_OK;
    }
    double low = q->ordered[dim] ? z[dim - 1] : q->low[dim], high = q->high[dim];
    z[dim] = ends % 3 == 0 ? low : high;
    if (ends % 3 < 2) return least_uncertainty(u, n, q, z, dim + 1, ends / 3);
    parabola p;
    RRL_TRY(fit(&p, n, q, z, dim, q->low[dim], high, ends / 3));
    *u = p.square > 0 ? p.constant - p.linear * p.linear / (4 * p.square) : NAN;
    return RRL_OK;
}

static rrl_status fit(parabola *p, enumeration *n, const rrl_predict_integral *q, double *z, int dim,
                      double a, double b, int ends) {
    double u[3];
    for (int i = 0; i < 3; i++) {
        z[dim] = a + 0.5 * i * (b - a);
        RRL_TRY(least_uncertainty(&u[i], n, q, z, dim + 1, ends));
    }
    *p = (parabola){.square = 0.5 * (u[0] + u[2]) - u[1], .linear = 0.5 * (u[2] - u[0]), .constant = u[1]};
    return RRL_OK;
}

/* Where U crosses a threshold of a shaping. In the last dimension an integrand jumps there; before it, its
 * integral bends where that happens at an end of a later range, or where the jump comes into being. */
static rrl_status cut_at_thresholds(enumeration *n, int dim, double *z, double a, double b, double *cuts,
                                    int *n_cuts) {
    int states = 1;
    for (int d = dim + 1; d < n->n_moving; d++) states *= 3;
    for (int ends = 0; ends < states; ends++) {
        parabola p;
        RRL_TRY(fit(&p, n, n->integral, z, dim, a, b, ends));
        for (int i = 0; i < n->n_views; i++) {
            double thresholds[] = {n->views[i].shaping.moderate_threshold,
                                   n->views[i].shaping.severe_threshold};
            if (n->views[i].shaping.strategy == RRL_SHAPE_STANDARD) continue;
            for (int k = 0; k < 2; k++) {
                double r = p.constant - thresholds[k], inside = p.linear * p.linear - 4 * p.square * r;
                if (!(inside >= 0)) continue;
                double root = -0.5 * (p.linear + copysign(sqrt(inside), p.linear)); /* without cancellation */
                double middle = 0.5 * (a + b), half = 0.5 * (b - a);
                if (p.square != 0) add_cut(cuts, n_cuts, middle + half * root / p.square, a, b);
                if (root != 0) add_cut(cuts, n_cuts, middle + half * r / root, a, b);
            }
        }
    }
    return RRL_OK;
}

static rrl_status cuts_of(void *state, int dim, double *z, double a, double b, double *cuts, int *n_cuts) {
    enumeration *n = state;
    for (int d = 0; d < dim; d++) place(n, n->moving[d], z[d]);
    cut_at_verdicts(n, dim, a, b, cuts, n_cuts);
    return cut_at_thresholds(n, dim, z, a, b, cuts, n_cuts);
}

/* ---- all outcomes ---- */

static rrl_status add_outcome(enumeration *n, double weight) {
    double v[RRL_INTEGRAL_VALUES], unmet = 0;
    rrl_predict_integral q = {.n_values = n_values(n), .value = integrand, .cuts = cuts_of, .state = n};
    n->n_moving = 0;
    for (int s = 0; s < n->n_sources; s++) {
        const rrl_predict_branch *b = n->chosen[s];
        place(n, s, 0.5 * (b->low + b->high));
        if (!b->continuous) continue;
        if (n->n_moving == RRL_INTEGRAL_DIMS)
            return RRL_FAIL(RRL_ERR_RANGE, "more than %d members with independent noise cannot be predicted",
                            RRL_INTEGRAL_DIMS);
        q.low[n->n_moving] = b->low;
        q.high[n->n_moving] = b->high;
        q.ordered[n->n_moving] =
            n->sources[s].twin && n->chosen[s - 1]->low == b->low && n->chosen[s - 1]->continuous;
        n->moving[n->n_moving++] = s;
    }
    q.n_dims = n->n_moving;
    n->integral = &q;
    if (n->n_moving > 0)
        RRL_TRY(rrl_predict_integrate(v, &unmet, &q, TOLERANCE / weight));
    else
        RRL_TRY(summands(n, v));
    for (int i = 0; i < n_values(n); i++) n->sums[n->right][i] += weight * v[i];
    n->unmet += n->n_moving > 0 ? weight * unmet + TOLERANCE : 0;
    return RRL_OK;
}

/* Choose branches for the sources from `source` on. Twins choose in ascending order, and each such outcome
 * stands for all its permutations: k of them, of which a run of r chose the same branch, give a factor k / r
 * at each step; where the verdicts move the integral runs over ordered z and the run does not divide. */
static rrl_status choose(enumeration *n, int assignment, int source, double weight, size_t before, int k,
                         int r) {
    if (source == n->n_sources) return add_outcome(n, weight);
    const rrl_predict_branches *list = branches_at(n, n->right, assignment, source);
    bool twin = n->sources[source].twin;
    k = twin ? k + 1 : 1;
    for (size_t b = twin ? before : 0; b < list->n; b++) {
        int run = twin && b == before ? r + 1 : 1;
        n->chosen[source] = &list->v[b];
        double factor = list->v[b].continuous ? k : (double)k / run;
        RRL_TRY(choose(n, assignment, source + 1, weight * factor * list->v[b].weight, b, k, run));
    }
    return RRL_OK;
}

/* ---- setting up ---- */

static rrl_status check(const rrl_predict_ensemble *e, int n_views, const double *priors, int n_priors) {
    if (e->n < 1 || e->n > MEMBERS)
        return RRL_FAIL(RRL_ERR_RANGE, "prediction: %d members; from 1 to %d are possible", e->n, MEMBERS);
    if (n_views > RRL_PREDICT_VIEWS || n_priors > RRL_PREDICT_PRIORS)
        return RRL_FAIL(RRL_ERR_RANGE, "prediction: %d views and %d priors; at most %d and %d", n_views,
                        n_priors, RRL_PREDICT_VIEWS, RRL_PREDICT_PRIORS);
    for (int i = 0; i < n_priors; i++)
        if (!(priors[i] > 0 && priors[i] < 1))
            return RRL_FAIL(RRL_ERR_RANGE, "prediction: P(right) %g is not between 0 and 1", priors[i]);
    for (int i = 0; i < 2; i++)
        if (!(e->eligible[i] >= 0 && e->eligible[i] <= 1))
            return RRL_FAIL(RRL_ERR_RANGE,
                            "prediction: the share %g of eligible completions is outside [0,1]",
                            e->eligible[i]);
    return RRL_OK;
}

/* Exploit asks one question of a completion, each bias key and value another. */
static rrl_status find_conditions(enumeration *n) {
    for (int i = 0; i < n->e->n; i++) {
        const rrl_corruption *c = &n->e->members[i];
        n->condition[i] = -1;
        if (c->kind != RRL_CORRUPT_BIAS && c->kind != RRL_CORRUPT_EXPLOIT) continue;
        n->condition[i] = n->n_conditions;
        for (int j = i - 1; j >= 0; j--) {
            const rrl_corruption *d = &n->e->members[j];
            if (c->kind == d->kind &&
                (c->kind == RRL_CORRUPT_EXPLOIT ||
                 (strcmp(c->bias_key, d->bias_key) == 0 && strcmp(c->bias_value, d->bias_value) == 0)))
                n->condition[i] = n->condition[j];
        }
        n->n_conditions += n->condition[i] == n->n_conditions;
    }
    if (n->n_conditions > MOST_CONDITIONS)
        return RRL_FAIL(
            RRL_ERR_RANGE,
            "members ask for %d different conditions (bias, exploit); at most %d can be predicted",
            n->n_conditions, MOST_CONDITIONS);
    return RRL_OK;
}

static rrl_status make_branches(enumeration *n) {
    RRL_TRY(rrl_alloc(&n->branches, (size_t)n->n_sources * (2u << n->n_conditions), sizeof *n->branches,
                      "branches of the verdicts"));
    for (int right = 0; right < 2; right++)
        for (int a = 0; a < 1 << n->n_conditions; a++) {
            bool eligible[MEMBERS];
            for (int i = 0; i < n->e->n; i++) eligible[i] = n->condition[i] < 0 || a >> n->condition[i] & 1;
            for (int s = 0; s < n->n_sources; s++)
                RRL_TRY(rrl_predict_branches_of(branches_at(n, right, a, s), n->e, &n->sources[s], right,
                                                eligible));
        }
    return RRL_OK;
}

/* Outcomes to enumerate, before anything is: m twins with b branches have (m + b - 1 over m). */
static rrl_status check_work(enumeration *n) {
    double all = 0;
    for (int right = 0; right < 2; right++)
        for (int a = 0; a < 1 << n->n_conditions; a++) {
            double outcomes = 1;
            for (int s = 0, k = 1; s < n->n_sources; s++) {
                double b = (double)branches_at(n, right, a, s)->n;
                k = n->sources[s].twin ? k + 1 : 1;
                outcomes *= (b + k - 1) / k;
            }
            all += share_of(n, right, a) > 0 ? outcomes : 0;
        }
    if (all > MOST_OUTCOMES)
        return RRL_FAIL(RRL_ERR_RANGE, "the members can answer in %.3g ways; at most %.3g can be enumerated",
                        all, MOST_OUTCOMES);
    return RRL_OK;
}

rrl_status rrl_predict_moments_of(rrl_predict_moments *moments, double *posterior, double *error,
                                  const rrl_predict_ensemble *e, const rrl_predict_view *views, int n_views,
                                  const double *priors, int n_priors) {
    rrl_status rc = RRL_OK;
    enumeration *n = NULL;
    RRL_TRY(check(e, n_views, priors, n_priors));
    RRL_TRY(rrl_alloc(&n, 1, sizeof *n, "prediction"));
    n->e = e;
    n->views = views;
    n->priors = priors;
    n->n_views = n_views;
    n->n_priors = n_priors;
    rrl_predict_sources_of(n->sources, &n->n_sources, e);
    RRL_GOTO(find_conditions(n));
    RRL_GOTO(make_branches(n));
    RRL_GOTO(check_work(n));
    for (n->right = 0; n->right < 2; n->right++)
        for (int a = 0; a < 1 << n->n_conditions; a++) {
            double weight = share_of(n, n->right, a);
            if (weight > 0) RRL_GOTO(choose(n, a, 0, weight, 0, 1, 1));
        }
    for (int i = 0; i < n_views; i++)
        for (int k = 0; k < 2; k++) {
            moments[i].available[k] = n->sums[k][3 * i];
            moments[i].sum[k] = n->sums[k][3 * i + 1];
            moments[i].square[k] = n->sums[k][3 * i + 2];
        }
    for (int i = 0; i < n_priors; i++) posterior[i] = n->sums[1][3 * n_views + i];
    *error = n->unmet;
done:
    for (int i = 0; n->branches && i < n->n_sources * (2 << n->n_conditions); i++)
        rrl_predict_branches_free(&n->branches[i]);
    free(n->branches);
    free(n);
    return rc;
}

/* ---- what it means ---- */

int rrl_predict_sign(double j_eff) {
    return j_eff > NO_INFORMATION ? 1 : j_eff < -NO_INFORMATION ? -1 : 0;
}

/* Updates relative to clean. Where missing rewards are left out, a group of G has N available ones; the part
 * of the update that is left is E[(N - 1)+] / (G - 1). */
static double updates_of(double j, double available, bool exclude, int64_t group) {
    double left = 1;
    if (exclude && group > 1)
        left = ((double)group * available - 1 + pow(1 - available, (double)group)) / (double)(group - 1);
    return rrl_predict_sign(j) > 0 && left > 0 ? 1 / (j * left) : INFINITY;
}

rrl_predict_effect rrl_predict_effect_of(const rrl_predict_moments *m, bool exclude_missing, double p_right,
                                         int64_t group) {
    double share[2] = {1 - p_right, p_right}, mean[2], square[2];
    double available = share[0] * m->available[0] + share[1] * m->available[1];
    rrl_predict_effect f = {.missing = 1 - available, .rho = NAN};
    for (int k = 0; k < 2; k++) {
        double counted = exclude_missing ? m->available[k] : 1; /* P(enters | right or wrong) */
        mean[k] = counted > 0 ? m->sum[k] / counted : NAN;
        square[k] = counted > 0 ? m->square[k] / counted : NAN;
        if (exclude_missing) share[k] *= m->available[k] / available;
    }
    f.wrong = mean[0];
    f.right = mean[1];
    f.j_eff = f.right - f.wrong;
    double all = share[0] * mean[0] + share[1] * mean[1];
    double variance = share[0] * square[0] + share[1] * square[1] - all * all;
    if (variance > NO_INFORMATION) f.rho = f.j_eff * sqrt(share[0] * share[1] / variance);
    f.updates = isnan(f.j_eff) ? NAN : updates_of(f.j_eff, available, exclude_missing, group);
    return f;
}

rrl_predict_effect rrl_predict_effect_of_posterior(double posterior, double p_right) {
    rrl_predict_effect f = {.right = posterior, .rho = NAN};
    f.wrong = p_right * (1 - posterior) / (1 - p_right); /* the mean of a posterior is the prior */
    f.j_eff = f.right - f.wrong;
    if (rrl_predict_sign(f.j_eff) > 0)
        f.rho = sqrt(f.j_eff);
    else
        f.j_eff = 0;
    f.updates = updates_of(f.j_eff, 1, false, 0);
    return f;
}
