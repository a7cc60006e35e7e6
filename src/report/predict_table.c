/* The cells of a prediction: the members of each arm and level as the study itself sets them, or of one run,
 * and the reference table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/config_check.h"
#include "report/predict.h"
#include "study/study.h"

static const double PRIORS[] = {0.1, 0.3, 0.5, 0.7, 0.9};
enum { N_PRIORS = sizeof PRIORS / sizeof *PRIORS };
static const char RUN[] = "run";

/* ---- views ---- */

static rrl_shaping shaping_of(const rrl_reward_config *r, rrl_shaping_strategy strategy) {
    return (rrl_shaping){.strategy = strategy,
                         .penalty = r->penalty,
                         .moderate_threshold = r->moderate_threshold,
                         .severe_threshold = r->severe_threshold,
                         .moderate_scale = r->moderate_scale,
                         .severe_scale = r->severe_scale};
}

/* Standard shaping of each ensemble under `plain`'s rule for missing rewards; shapings of one ensemble as
 * `shaped` says. */
static void set_views(rrl_predict_cell *cell, rrl_ensemble_strategy ensemble, const rrl_reward_config *plain,
                      const rrl_reward_config *shaped) {
    for (int i = RRL_PREDICT_MEAN; i <= RRL_PREDICT_MINIMUM; i++)
        cell->views[i] = (rrl_predict_view){.ensemble = (rrl_ensemble_strategy)(i - RRL_PREDICT_MEAN),
                                            .shaping = shaping_of(plain, RRL_SHAPE_STANDARD),
                                            .exclude_missing = plain->missing == RRL_MISSING_EXCLUDE};
    for (int i = RRL_PREDICT_CONFIDENCE; i <= RRL_PREDICT_CONSERVATIVE; i++)
        cell->views[i] = (rrl_predict_view){
            .ensemble = ensemble,
            .shaping =
                shaping_of(shaped, (rrl_shaping_strategy)(i - RRL_PREDICT_CONFIDENCE + RRL_SHAPE_CONFIDENCE)),
            .exclude_missing = shaped->missing == RRL_MISSING_EXCLUDE};
}

/* The view that a reward section trains on. */
static int strategy_of(const rrl_reward_config *r, rrl_ensemble_strategy ensemble) {
    if (r->strategy == RRL_SHAPE_STANDARD) return RRL_PREDICT_MEAN + (int)ensemble;
    return RRL_PREDICT_CONFIDENCE + r->strategy - RRL_SHAPE_CONFIDENCE;
}

/* ---- members ---- */

static rrl_corruption corruption_of(const rrl_corruption_config *k) {
    return (rrl_corruption){.kind = (rrl_corruption_kind)k->kind,
                            .probability = k->probability,
                            .seed = (uint64_t)k->seed,
                            .noise_std = k->noise_std,
                            .confidence_scale = k->confidence_scale,
                            .bias_key = k->bias_key,
                            .bias_value = k->bias_value,
                            .bias_reward = k->bias_reward};
}

/* "flip", "flip_shared", or where the kinds differ all of them: "exploit+exploit+none". */
static rrl_status name_kind(rrl_predict_cell *cell, const rrl_corruption *members, int n) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    bool one = true, shared = n > 1 && members[0].kind != RRL_CORRUPT_NONE;
    cell->level = members[0].probability;
    for (int i = 0; i < n; i++) {
        one &= members[i].kind == members[0].kind;
        shared &= members[i].seed == members[0].seed;
        cell->has_eligible |= members[i].kind == RRL_CORRUPT_BIAS || members[i].kind == RRL_CORRUPT_EXPLOIT;
        if (members[i].probability != members[0].probability) cell->level = NAN;
    }
    for (int i = 0; i < (one ? 1 : n); i++)
        RRL_GOTO(rrl_buffer_printf(&b, "%s%s", i ? "+" : "",
                                   rrl_enum_text(RRL_ENUM_TEXTS(RRL_CORRUPTION_LIST), (int)members[i].kind)));
    if (one && shared) RRL_GOTO(rrl_buffer_puts(&b, "_shared"));
    if (!one) cell->level = NAN;
    cell->kind = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    return rc;
}

/* A cell with everything but its views' owner; it stands in the table before it can fail. */
static rrl_status add_cell(rrl_predict_cell **out, rrl_predict_table *t, const char *arm) {
    RRL_TRY(rrl_grow(&t->cells, &t->capacity, t->n + 1, sizeof *t->cells, "cells of a prediction"));
    rrl_predict_cell *cell = &t->cells[t->n++];
    *cell = (rrl_predict_cell){.baseline = -1, .robust = -1};
    RRL_TRY(rrl_strdup(&cell->arm, arm));
    *out = cell;
    return RRL_OK;
}

/* Fill in a cell whose views are set. What cannot be enumerated is said, and nothing else is lost. */
static rrl_status predict(rrl_predict_cell *cell, const rrl_predict_table *t, const rrl_corruption *members,
                          int n) {
    rrl_predict_ensemble e = {.members = members, .n = n, .eligible = {t->eligible[0], t->eligible[1]}};
    cell->members = n;
    RRL_TRY(name_kind(cell, members, n));
    rrl_status rc = rrl_predict_moments_of(cell->moments, cell->posterior, &cell->error, &e, cell->views,
                                           RRL_PREDICT_VIEWS, t->priors, t->n_priors);
    if (rc != RRL_ERR_RANGE) return rc;
    return rrl_strdup(&cell->refused, rrl_error_message());
}

static rrl_status predict_config(rrl_predict_cell *cell, const rrl_predict_table *t,
                                 const rrl_verifier_config *v) {
    rrl_corruption *members = NULL;
    RRL_TRY(rrl_alloc(&members, (size_t)v->n_members, sizeof *members, "members"));
    for (int64_t i = 0; i < v->n_members; i++) members[i] = corruption_of(&v->members[i].corruption);
    rrl_status rc = predict(cell, t, members, (int)v->n_members);
    free(members);
    return rc;
}

/* ---- cells ---- */

static rrl_status add_run(rrl_predict_table *t, const rrl_config *c) {
    rrl_predict_cell *cell;
    rrl_ensemble_strategy ensemble = (rrl_ensemble_strategy)c->training_verifier.strategy;
    RRL_TRY(add_cell(&cell, t, RUN));
    set_views(cell, ensemble, &c->reward, &c->reward);
    cell->baseline = strategy_of(&c->reward, ensemble);
    return predict_config(cell, t, &c->training_verifier);
}

static bool same_place(const rrl_condition *a, const rrl_condition *b) {
    return strcmp(a->arm, b->arm) == 0 && (a->level == b->level || (isnan(a->level) && isnan(b->level)));
}

/* Conditions [n] of one arm and level: their members differ in seeds only. */
static rrl_status add_place(rrl_predict_table *t, const rrl_config *study, const rrl_condition *conditions,
                            int64_t n) {
    rrl_predict_cell *cell;
    rrl_ensemble_strategy ensemble = (rrl_ensemble_strategy)study->training_verifier.strategy;
    RRL_TRY(add_cell(&cell, t, conditions[0].arm));
    set_views(cell, ensemble, &study->reward, &study->experiment.robust_reward);
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(conditions[i].method, "baseline") == 0) cell->baseline = RRL_PREDICT_MEAN + (int)ensemble;
        if (strcmp(conditions[i].method, "robust") == 0)
            cell->robust = strategy_of(&study->experiment.robust_reward, ensemble);
    }
    RRL_TRY(predict_config(cell, t, &conditions[0].config->training_verifier));
    cell->level = conditions[0].level;
    return RRL_OK;
}

static rrl_status add_study(rrl_predict_table *t, const rrl_config *c) {
    rrl_status rc = RRL_OK;
    rrl_condition *list = NULL;
    int64_t n = 0;
    RRL_TRY(rrl_conditions_list(&list, &n, c));
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && same_place(&list[i], &list[end]);) end++;
        RRL_GOTO(add_place(t, c, list + i, end - i));
    }
done:
    rrl_conditions_free(&list, n);
    return rc;
}

/* Three rule members, mean and the shapings' default parameters. */
static rrl_status add_reference(rrl_predict_table *t) {
    static const struct {
        rrl_corruption_kind kind;
        double probability;
        bool shared;
    } ROWS[] = {{RRL_CORRUPT_FLIP, 0.1, false},
                {RRL_CORRUPT_FLIP, 0.2, false},
                {RRL_CORRUPT_FLIP, 0.4, false},
                {RRL_CORRUPT_FLIP, 0.6, false},
                {RRL_CORRUPT_FALSE_POSITIVE, 0.4, false},
                {RRL_CORRUPT_FALSE_NEGATIVE, 0.4, false},
                {RRL_CORRUPT_FLIP, 0.2, true}};
#define X(key, type, list, def, low, high, cls, unit, doc) .key = def,
    static const rrl_reward_config DEFAULTS = {RRL_REWARD_KEYS(X)};
#undef X
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        rrl_predict_cell *cell;
        rrl_corruption members[3];
        for (int m = 0; m < 3; m++)
            members[m] = (rrl_corruption){.kind = ROWS[i].kind,
                                          .probability = ROWS[i].probability,
                                          .seed = ROWS[i].shared ? 0 : (uint64_t)m,
                                          .confidence_scale = 1};
        RRL_TRY(add_cell(&cell, t, "reference"));
        cell->reference = true;
        set_views(cell, RRL_ENSEMBLE_MEAN, &DEFAULTS, &DEFAULTS);
        RRL_TRY(predict(cell, t, members, 3));
    }
    return RRL_OK;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static rrl_status set_priors(rrl_predict_table *t, const rrl_predict_request *r) {
    const double *from = r->priors ? r->priors : PRIORS;
    int n = r->priors ? r->n_priors : N_PRIORS;
    bool there = isnan(r->extra_prior);
    if (n + !there > RRL_PREDICT_PRIORS)
        return RRL_FAIL(RRL_ERR_RANGE, "prediction: more than %d values of P(right)", RRL_PREDICT_PRIORS);
    for (int i = 0; i < n; i++) {
        t->priors[t->n_priors++] = from[i];
        there |= from[i] == r->extra_prior;
    }
    if (!there) t->priors[t->n_priors++] = r->extra_prior;
    qsort(t->priors, (size_t)t->n_priors, sizeof *t->priors, compare);
    return RRL_OK;
}

rrl_status rrl_predict_table_make(rrl_predict_table *out, const rrl_config *c,
                                  const rrl_predict_request *request, bool reference) {
    rrl_status rc = RRL_OK;
    rrl_predict_table t = {.eligible = {request->eligible[0], request->eligible[1]},
                           .group = c->generation.num_generations,
                           .run = rrl_config_purpose(c) != RRL_FOR_STUDY};
    RRL_GOTO(set_priors(&t, request));
    RRL_GOTO(t.run ? add_run(&t, c) : add_study(&t, c));
    if (reference) RRL_GOTO(add_reference(&t));
    *out = t;
    t = (rrl_predict_table){0};
done:
    rrl_predict_table_free(&t);
    return rc;
}

void rrl_predict_table_free(rrl_predict_table *t) {
    for (size_t i = 0; i < t->n; i++) {
        free(t->cells[i].arm);
        free(t->cells[i].kind);
        free(t->cells[i].refused);
    }
    free(t->cells);
    *t = (rrl_predict_table){0};
}

rrl_predict_effect rrl_predict_effect_at(const rrl_predict_table *t, const rrl_predict_cell *cell,
                                         rrl_predict_strategy s, int prior) {
    double p = t->priors[prior];
    if (s == RRL_PREDICT_POSTERIOR) return rrl_predict_effect_of_posterior(cell->posterior[prior], p);
    return rrl_predict_effect_of(&cell->moments[s], cell->views[s].exclude_missing, p, t->group);
}
