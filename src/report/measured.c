#include "report/measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/predict.h"

/* --- means over seeds */

typedef struct {
    double sum;
    int64_t n;
} mean;

static void put(mean *m, double v) {
    if (isnan(v)) return;
    m->sum += v;
    m->n++;
}

static double value(const mean *m) {
    return m->n ? m->sum / (double)m->n : NAN;
}

/* --- prediction */

static const rrl_predict_cell *find_cell(const rrl_predict_table *t, const char *arm, double level) {
    for (size_t i = 0; i < t->n; i++) {
        const rrl_predict_cell *c = &t->cells[i];
        if (!c->refused && !c->reference && strcmp(c->arm, arm) == 0 && (t->n == 1 || c->level == level || isnan(level)))
            return c;
    }
    return NULL;
}

static int strategy_of(const rrl_predict_cell *c, const char *method) {
    return strcmp(method, "baseline") == 0 ? c->baseline : strcmp(method, "robust") == 0 ? c->robust : -1;
}

static void fill_effect(rrl_report_measured *m, const rrl_predict_table *t, const rrl_predict_cell *c, int strategy,
                        double p_right) {
    bool possible = p_right > 0 && p_right < 1;
    rrl_predict_effect e = rrl_predict_effect_of(&c->moments[strategy], c->views[strategy].exclude_missing,
                                                 possible ? p_right : 0.5, t->group);
    m->predicted_j = e.j_eff;
    m->predicted_rho = possible ? e.rho : NAN;
}

/* The prediction anew with the measured shares of completions that biases and exploits can act on. */
static rrl_status predict_eligible(rrl_report_measured *m, const rrl_config *config, int strategy, double p_right) {
    rrl_predict_request request = RRL_PREDICT_REQUEST;
    rrl_predict_table t = {0};
    rrl_status rc;
    m->has_eligible = true;
    request.eligible[0] = m->eligible[0];
    request.eligible[1] = m->eligible[1];
    RRL_GOTO(rrl_predict_table_make(&t, config, &request, false));
    const rrl_predict_cell *c = find_cell(&t, m->arm, m->level);
    if (c) fill_effect(m, &t, c, strategy, p_right);
done:
    rrl_predict_table_free(&t);
    return rc;
}

/* --- measurement */

/* The condition of rows [begin, end); *known tells whether the table predicts it. */
static rrl_status measure_one(rrl_report_measured *m, bool *known, const rrl_report_study *study,
                              const rrl_predict_table *t, const rrl_report_numbers *n, size_t begin, size_t end) {
    const rrl_report_condition *first = n->section->v[begin];
    const rrl_predict_cell *cell = find_cell(t, first->arm, first->level);
    int strategy = cell ? strategy_of(cell, first->method) : -1;
    mean j = {0}, rho = {0}, right = {0}, wrong_share = {0}, right_share = {0};
    *known = strategy >= 0;
    if (!*known) return RRL_OK;
    bool exclude = cell->views[strategy].exclude_missing;
    for (size_t i = begin; i < end; i++) {
        const rrl_report_condition *c = n->section->v[i];
        put(&j, exclude ? c->gain.j_available : c->gain.j);
        put(&rho, exclude ? c->gain.rho_available : c->gain.rho);
        put(&right, c->training.independent_accuracy);
        put(&wrong_share, c->gain.eligible[0]);
        put(&right_share, c->gain.eligible[1]);
    }
    *m = (rrl_report_measured){.arm = first->arm,
                               .method = first->method,
                               .level = first->level,
                               .eligible = {value(&wrong_share), value(&right_share)},
                               .n_seeds = j.n,
                               .measured_j = value(&j),
                               .measured_rho = value(&rho),
                               .accuracy = rrl_report_find_difference(n, first->arm, first->level, first->method, "base",
                                                                      "independent_accuracy")};
    *known = j.n > 0;
    if (cell->has_eligible && !isnan(m->eligible[0]) && !isnan(m->eligible[1]))
        return predict_eligible(m, study->config, strategy, value(&right));
    fill_effect(m, t, cell, strategy, value(&right));
    return RRL_OK;
}

rrl_status rrl_report_measure(rrl_report_measurements *out, const rrl_report_study *study, const rrl_report_numbers *n) {
    rrl_report_measurements all = {0};
    rrl_predict_request request = RRL_PREDICT_REQUEST;
    rrl_predict_table t = {0};
    const rrl_report_section *s = n->section;
    rrl_status rc = RRL_OK;
    *out = all;
    if (!study->config) return RRL_OK;
    rc = rrl_predict_table_make(&t, study->config, &request, false);
    if (rc != RRL_OK) return rc == RRL_ERR_NOMEM ? rc : RRL_OK; /* a report comes without a prediction too */
    for (size_t i = 0, end; i < s->n; i = end) {
        rrl_report_measured m;
        bool known;
        end = rrl_report_method_end(s, i);
        if (!s->v[i]->trained) continue;
        RRL_GOTO(measure_one(&m, &known, study, &t, n, i, end));
        if (!known) continue;
        RRL_GOTO(rrl_grow(&all.v, &all.capacity, all.n + 1, sizeof *all.v, "measurements"));
        all.v[all.n++] = m;
    }
    *out = all;
    all = (rrl_report_measurements){0};
done:
    free(all.v);
    rrl_predict_table_free(&t);
    return rc;
}

void rrl_report_signs(char *out, size_t size, const rrl_report_measurements *m) {
    int same = 0, known = 0;
    bool eligible = false;
    for (size_t i = 0; i < m->n; i++) {
        const rrl_report_measured *v = &m->v[i];
        eligible |= v->has_eligible;
        if (!v->accuracy || isnan(v->predicted_j)) continue;
        known++;
        same += (v->predicted_j > 0) == (v->accuracy->mean > 0) && (v->predicted_j < 0) == (v->accuracy->mean < 0);
    }
    snprintf(out, size,
             "The sign of the predicted J is that of the measured change of accuracy at %d of %d trained arms, levels and "
             "methods.%s",
             same, known,
             eligible ? " Where members are biased or exploited, the share of completions that lets them act is the policy's "
                        "doing: it is taken from the records (plots/prediction.csv)."
                      : "");
}
