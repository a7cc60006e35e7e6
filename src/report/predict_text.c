/* The readable forms of a prediction, and JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "base/memory.h"
#include "base/text.h"
#include "report/predict.h"

enum { CELL_CHARS = 16 };
static const char *const STRATEGIES[] = {
#define X(name, text) text,
    RRL_PREDICT_STRATEGY_LIST(X)
#undef X
};
static const double SUMMARY_PRIOR = 0.3;
static const double PROMISED_ERROR = 1e-6;

/* The sign of J in a character, in a verb. */
static char sign_of(double j) {
    return "-0+"[rrl_predict_sign(j) + 1];
}

static const char *verb_of(double j) {
    static const char *const VERBS[] = {"unlearns", "drifts", "learns"};
    return VERBS[rrl_predict_sign(j) + 1];
}

/* v with three decimals and a sign, "-" if undefined. */
static void number(char out[CELL_CHARS], double v) {
    if (isnan(v))
        snprintf(out, CELL_CHARS, "-");
    else
        snprintf(out, CELL_CHARS, "%+.3f", fabs(v) < 0.0005 ? 0.0 : v);
}

static void updates(char out[CELL_CHARS], double v) {
    if (isnan(v))
        snprintf(out, CELL_CHARS, "-");
    else if (isinf(v))
        snprintf(out, CELL_CHARS, "never");
    else
        snprintf(out, CELL_CHARS, v < 1000 ? "%.2f" : "%.2g", v);
}

/* ".800/.904": without the zeros, so that a table of them fits. */
static void pair(char out[2 * CELL_CHARS], double j, double rho) {
    int n = 0;
    for (int i = 0; i < 2; i++) {
        double v = i ? rho : j;
        if (fabs(v) < 0.9995)
            n += snprintf(out + n, CELL_CHARS, "%s%s.%03.0f", i ? "/" : "", v < 0 ? "-" : "", fabs(v) * 1000);
        else
            n += snprintf(out + n, CELL_CHARS, "%s%.3f", i ? "/" : "", v);
    }
}

/* ---- tables ---- */

/* As the config's keys call it; JSON keeps the short name of the minimum. */
static const char *name_of(int strategy) {
    return strategy == RRL_PREDICT_MINIMUM ? "minimum" : STRATEGIES[strategy];
}

static rrl_status put_title(rrl_buffer *b, const rrl_predict_table *t, const rrl_predict_cell *c) {
    char level[RRL_NUMBER_CHARS] = "fixed";
    if (!isnan(c->level)) rrl_format_g(level, c->level);
    if (t->run)
        RRL_TRY(rrl_buffer_printf(b, "\nthe run"));
    else
        RRL_TRY(rrl_buffer_printf(b, "\narm %s, level %s", c->arm, level));
    RRL_TRY(rrl_buffer_printf(b, ": %d member%s, %s", c->members, c->members == 1 ? "" : "s", c->kind));
    if (t->run && !isnan(c->level)) RRL_TRY(rrl_buffer_printf(b, " %s", level));
    RRL_TRY(rrl_buffer_puts(b, "\n"));
    if (c->refused) return rrl_buffer_printf(b, "  not predicted: %s\n", c->refused);
    const char *first = t->run ? "reward" : "baseline";
    if (c->baseline >= 0) RRL_TRY(rrl_buffer_printf(b, "  %s = %s", first, name_of(c->baseline)));
    if (c->robust >= 0)
        RRL_TRY(rrl_buffer_printf(b, "%s = %s", c->baseline >= 0 ? ", robust" : "  robust",
                                  name_of(c->robust)));
    if (c->baseline >= 0 || c->robust >= 0) RRL_TRY(rrl_buffer_puts(b, "\n"));
    if (c->has_eligible)
        RRL_TRY(rrl_buffer_printf(b, "  bias and exploit may act on %g of right, %g of wrong completions\n",
                                  t->eligible[1], t->eligible[0]));
    if (c->error > PROMISED_ERROR)
        RRL_TRY(rrl_buffer_printf(b, "  error of the quadrature up to %.1g\n", c->error));
    return RRL_OK;
}

static rrl_status put_strategy(rrl_buffer *b, const rrl_predict_table *t, const rrl_predict_cell *c, int s) {
    char j[CELL_CHARS] = "rho^2", sign = ' ', cost[CELL_CHARS] = "", rho[CELL_CHARS];
    rrl_predict_effect first = rrl_predict_effect_at(t, c, s, 0);
    if (s != RRL_PREDICT_POSTERIOR) { /* whose J changes with P(right) */
        sign = sign_of(first.j_eff);
        number(j, first.j_eff);
        updates(cost, first.updates);
    }
    RRL_TRY(rrl_buffer_printf(b, " %-19s %6s %c %7s", name_of(s), j, sign, cost));
    for (int i = 0; i < t->n_priors; i++) {
        number(rho, rrl_predict_effect_at(t, c, s, i).rho);
        RRL_TRY(rrl_buffer_printf(b, " %6s", rho));
    }
    return rrl_buffer_puts(b, "\n");
}

static rrl_status put_missing(rrl_buffer *b, const rrl_predict_table *t, const rrl_predict_cell *c) {
    double missing = rrl_predict_effect_at(t, c, RRL_PREDICT_MEAN, 0).missing;
    if (missing < 0.0005) return RRL_OK;
    return rrl_buffer_printf(b, "  without any verdict: %.3f of completions, %s\n", missing,
                             c->views[RRL_PREDICT_MEAN].exclude_missing ? "left out" : "counted as reward 0");
}

static rrl_status put_cell(rrl_buffer *b, const rrl_predict_table *t, const rrl_predict_cell *c) {
    RRL_TRY(put_title(b, t, c));
    if (c->refused) return RRL_OK;
    RRL_TRY(rrl_buffer_printf(b, " %-19s %6s   %7s", "", "J", "updates"));
    for (int i = 0; i < t->n_priors; i++) {
        char prior[RRL_NUMBER_CHARS];
        rrl_format_g(prior, t->priors[i]);
        RRL_TRY(rrl_buffer_printf(b, " %6.6s", prior));
    }
    RRL_TRY(rrl_buffer_puts(b, "\n"));
    for (int s = 0; s < RRL_PREDICT_STRATEGIES; s++) RRL_TRY(put_strategy(b, t, c, s));
    return put_missing(b, t, c);
}

static int prior_at(const rrl_predict_table *t, double p) {
    for (int i = 0; i < t->n_priors; i++)
        if (t->priors[i] == p) return i;
    return -1;
}

/* The reference table: J and rho at P(right) 0.3, a noise a line. */
static rrl_status put_reference(rrl_buffer *b, const rrl_predict_table *t) {
    static const int SHOWN[] = {RRL_PREDICT_MEAN, RRL_PREDICT_MAJORITY, RRL_PREDICT_COMBINED,
                                RRL_PREDICT_MINIMUM, RRL_PREDICT_POSTERIOR};
    enum { N_SHOWN = sizeof SHOWN / sizeof *SHOWN };
    int prior = prior_at(t, SUMMARY_PRIOR);
    if (prior < 0) return RRL_OK;
    RRL_TRY(
        rrl_buffer_puts(b, "\nfor reference: three rule members, P(right) 0.3, J/rho\n noise             "));
    for (int i = 0; i < N_SHOWN; i++) RRL_TRY(rrl_buffer_printf(b, " %11s", name_of(SHOWN[i])));
    RRL_TRY(rrl_buffer_puts(b, "\n"));
    for (size_t k = 0; k < t->n; k++) {
        const rrl_predict_cell *c = &t->cells[k];
        char level[RRL_NUMBER_CHARS];
        if (!c->reference || c->refused) continue;
        rrl_format_g(level, c->level);
        RRL_TRY(rrl_buffer_printf(b, " %-14s %3s", c->kind, level));
        for (int i = 0; i < N_SHOWN; i++) {
            rrl_predict_effect f = rrl_predict_effect_at(t, c, SHOWN[i], prior);
            char cell[2 * CELL_CHARS];
            pair(cell, f.j_eff, f.rho);
            RRL_TRY(rrl_buffer_printf(b, " %11s", cell));
        }
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    return RRL_OK;
}

rrl_status rrl_predict_text(char **out, const rrl_predict_table *t) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    RRL_GOTO(rrl_buffer_puts(
        &b, "J = E[reward | right] - E[reward | wrong]: 1 clean, 0 drifts, below 0 unlearns.\n"
            "updates = what training takes relative to a clean verifier (1/J).\n"
            "rho = correlation of reward and correctness, at each P(right).\n"
            "posterior = P(right | verdicts), the best that can be made of them; J = rho^2.\n"));
    for (size_t i = 0; i < t->n; i++)
        if (!t->cells[i].reference) RRL_GOTO(put_cell(&b, t, &t->cells[i]));
    RRL_GOTO(put_reference(&b, t));
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    return rc;
}

/* ---- JSON ---- */

static rrl_status put_text(rrl_buffer *b, const char *name, const char *value) {
    RRL_TRY(rrl_buffer_printf(b, "\"%s\": ", name));
    return rrl_json_quote(b, value, strlen(value));
}

static rrl_status put_number(rrl_buffer *b, const char *name, double v) {
    RRL_TRY(rrl_buffer_printf(b, ", \"%s\": ", name));
    return rrl_json_number(b, isinf(v) ? (double)NAN : v);
}

static rrl_status put_row(rrl_buffer *b, const rrl_predict_table *t, const rrl_predict_cell *c, int s,
                          int prior, bool first) {
    rrl_predict_effect f = rrl_predict_effect_at(t, c, s, prior);
    RRL_TRY(rrl_buffer_puts(b, first ? "\n  {" : ",\n  {"));
    RRL_TRY(put_text(b, "arm", c->arm));
    RRL_TRY(rrl_buffer_puts(b, ", "));
    RRL_TRY(put_text(b, "kind", c->kind));
    RRL_TRY(put_number(b, "level", c->level));
    RRL_TRY(put_number(b, "p_right", t->priors[prior]));
    RRL_TRY(rrl_buffer_puts(b, ", "));
    RRL_TRY(put_text(b, "strategy", STRATEGIES[s]));
    RRL_TRY(put_number(b, "j_eff", f.j_eff));
    RRL_TRY(put_number(b, "rho", f.rho));
    RRL_TRY(put_number(b, "updates", f.updates));
    RRL_TRY(rrl_buffer_printf(b, ", \"sign\": %d", rrl_predict_sign(f.j_eff)));
    RRL_TRY(put_number(b, "right", f.right));
    RRL_TRY(put_number(b, "wrong", f.wrong));
    RRL_TRY(put_number(b, "missing", f.missing));
    return rrl_buffer_puts(b, "}");
}

rrl_status rrl_predict_json(char **out, const rrl_predict_table *t) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    bool first = true;
    RRL_GOTO(rrl_buffer_puts(&b, "{\"rows\": ["));
    for (size_t k = 0; k < t->n; k++)
        for (int i = 0; i < t->n_priors && !t->cells[k].refused; i++)
            for (int s = 0; s < RRL_PREDICT_STRATEGIES; s++) {
                RRL_GOTO(put_row(&b, t, &t->cells[k], s, i, first));
                first = false;
            }
    RRL_GOTO(rrl_buffer_puts(&b, "\n]}\n"));
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    return rc;
}

/* ---- short form ---- */

static rrl_status put_method(rrl_buffer *b, const rrl_predict_table *t, const rrl_predict_cell *c,
                             const char *name, int s) {
    char j[CELL_CHARS], rho[CELL_CHARS];
    if (s < 0) return RRL_OK;
    rrl_predict_effect f = rrl_predict_effect_at(t, c, s, 0);
    number(j, f.j_eff);
    number(rho, f.rho);
    return rrl_buffer_printf(b, "  %s %s/%s %-8s", name, j, rho, verb_of(f.j_eff));
}

static void trim(rrl_buffer *b) {
    while (b->len > 0 && b->data[b->len - 1] == ' ') b->data[--b->len] = 0;
}

rrl_status rrl_predict_summary(char **out, const rrl_config *c) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    rrl_predict_table t = {0};
    rrl_predict_request request = RRL_PREDICT_REQUEST;
    bool has_eligible = false;
    request.priors = &SUMMARY_PRIOR;
    request.n_priors = 1;
    RRL_TRY(rrl_predict_table_make(&t, c, &request, false));
    RRL_GOTO(
        rrl_buffer_puts(&b, "predictions  J = E[reward|right] - E[reward|wrong] / rho at P(right) 0.3\n"));
    for (size_t i = 0; i < t.n; i++) {
        const rrl_predict_cell *cell = &t.cells[i];
        char level[RRL_NUMBER_CHARS] = "fixed", name[80];
        if (cell->baseline < 0 && cell->robust < 0) continue;
        if (!isnan(cell->level)) rrl_format_g(level, cell->level);
        snprintf(name, sizeof name, "%.40s %s", t.run ? cell->kind : cell->arm, level);
        RRL_GOTO(rrl_buffer_printf(&b, "  %-14s", name));
        if (cell->refused) {
            RRL_GOTO(rrl_buffer_printf(&b, "  not predicted: %s\n", cell->refused));
            continue;
        }
        RRL_GOTO(put_method(&b, &t, cell, t.run ? "reward" : "baseline", cell->baseline));
        RRL_GOTO(put_method(&b, &t, cell, "robust", cell->robust));
        trim(&b);
        RRL_GOTO(rrl_buffer_puts(&b, "\n"));
        has_eligible |= cell->has_eligible;
    }
    if (has_eligible)
        RRL_GOTO(rrl_buffer_puts(&b, "  bias and exploit: as if every completion were open to them\n"));
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_predict_table_free(&t);
    rrl_buffer_free(&b);
    return rc;
}
