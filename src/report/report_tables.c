#include "report/report_tables.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/failure.h"
#include "report/report_text.h"

/* A column of numbers. */
typedef struct {
    const char *name, *format; /* of printf, for one double */
} column;

enum { MAX_COLUMNS = 20, NAMES = 3 };

/* A table whose rows begin with arm, level and a third name, then numbers. */
static rrl_status start(const rrl_document *d, const char *caption, const char *third, const column *c, size_t n) {
    const char *names[MAX_COLUMNS] = {"arm", "level", third};
    for (size_t i = 0; i < n; i++) names[NAMES + i] = c[i].name;
    return d->w->table(d->b, caption, names, NAMES + n, NAMES);
}

static rrl_status number(const rrl_document *d, const char *format, double v) {
    char text[64];
    if (isnan(v)) return d->w->cell(d->b, NULL);
    snprintf(text, sizeof text, format, v);
    return d->w->cell(d->b, text);
}

static rrl_status names(const rrl_document *d, const char *arm, double level, const char *third) {
    char text[RRL_NUMBER_CHARS] = "fixed";
    if (!isnan(level)) rrl_format_double(text, level);
    RRL_TRY(d->w->row(d->b));
    RRL_TRY(d->w->cell(d->b, arm));
    RRL_TRY(d->w->cell(d->b, text));
    return d->w->cell(d->b, third);
}

static rrl_status numbers(const rrl_document *d, const column *c, const double *v, size_t n) {
    for (size_t i = 0; i < n; i++) RRL_TRY(number(d, c[i].format, v[i]));
    return d->w->row_end(d->b);
}

/* --- main table */

static rrl_status mean_cell(const rrl_document *d, const rrl_report_numbers *n, const rrl_report_condition *c,
                            const char *metric) {
    const rrl_report_aggregate *a = rrl_report_find_aggregate(n, c->arm, c->level, c->method, metric);
    char text[64];
    if (!a || isnan(a->mean)) return d->w->cell(d->b, NULL);
    snprintf(text, sizeof text, isnan(a->std) ? "%.3f" : "%.3f (%.3f)", a->mean, a->std);
    return d->w->cell(d->b, text);
}

rrl_status rrl_report_main_table(const rrl_document *d, const rrl_report_numbers *n) {
    const rrl_report_section *s = n->section;
    char pass[32];
    snprintf(pass, sizeof pass, "pass@%lld", (long long)rrl_report_largest_k(s));
    const struct {
        const char *metric, *name;
    } METRICS[] = {{"independent_accuracy", "accuracy"},
                   {"observed_reward", "observed reward"},
                   {"reward_hacking_gap", "gap"},
                   {"reward_correctness_correlation", "correlation"},
                   {"false_positive_reward_rate", "false positives"},
                   {"false_negative_rate", "false negatives"},
                   {pass, pass}};
    enum { N = sizeof METRICS / sizeof *METRICS };
    column c[1 + N] = {{"seeds", "%.0f"}};
    for (int m = 0; m < N; m++) c[1 + m].name = METRICS[m].name;
    RRL_TRY(start(d, "Evaluation: mean over seeds (standard deviation across seeds, n - 1)", "method", c, 1 + N));
    for (size_t i = 0, end; i < s->n; i = end) {
        double seeds = 0;
        end = rrl_report_method_end(s, i);
        for (size_t j = i; j < end; j++) seeds += s->v[j]->evaluation != NULL;
        if (seeds == 0) continue;
        RRL_TRY(names(d, s->v[i]->arm, s->v[i]->level, s->v[i]->method));
        RRL_TRY(number(d, c[0].format, seeds));
        for (int m = 0; m < N; m++) RRL_TRY(mean_cell(d, n, s->v[i], METRICS[m].metric));
        RRL_TRY(d->w->row_end(d->b));
    }
    return d->w->table_end(d->b);
}

/* --- differences of methods */

rrl_status rrl_report_difference_table(const rrl_document *d, const rrl_report_numbers *n, const char *metric, bool method) {
    static const column C[] = {{"seeds", "%.0f"},       {"questions", "%.0f"}, {"mean", "%+.3f"},
                               {"low", "%+.3f"},        {"high", "%+.3f"},     {"p", "%.3g"},
                               {"p (Holm)", "%.3g"}, {"detectable at 80 %", "%.3f"}};
    char caption[128];
    size_t rows = 0;
    for (size_t i = 0; i < n->n_differences; i++) rows += strcmp(n->differences[i].metric, metric) == 0;
    if (!rows) return RRL_OK;
    snprintf(caption, sizeof caption, "%s, %s (low, high: 95 %% interval)", metric,
             method ? "about the method" : "about these runs");
    RRL_TRY(start(d, caption, "difference", C, sizeof C / sizeof *C));
    for (size_t i = 0; i < n->n_differences; i++) {
        const rrl_report_difference *v = &n->differences[i];
        const rrl_claim *c = method ? &v->about_method : &v->about_runs;
        const double values[] = {(double)v->n_seeds, (double)v->n_questions, v->mean, c->low, c->high, c->p, c->p_holm,
                                 c->smallest};
        char methods[160];
        if (strcmp(v->metric, metric) != 0) continue;
        snprintf(methods, sizeof methods, "%.70s - %.70s", v->method_a, v->method_b);
        RRL_TRY(names(d, v->arm, v->level, methods));
        RRL_TRY(numbers(d, C, values, sizeof C / sizeof *C));
    }
    return d->w->table_end(d->b);
}

/* --- prediction */

rrl_status rrl_report_prediction_table(const rrl_document *d, const rrl_report_measurements *m) {
    static const column C[] = {{"seeds", "%.0f"},
                               {"J predicted", "%+.3f"},
                               {"J measured", "%+.3f"},
                               {"correlation predicted", "%+.3f"},
                               {"correlation measured", "%+.3f"},
                               {"accuracy - base", "%+.3f"}};
    RRL_TRY(start(d, "J = E[reward | right] - E[reward | wrong], and Corr(reward, right), of training completions", "method",
                  C, sizeof C / sizeof *C));
    for (size_t i = 0; i < m->n; i++) {
        const rrl_report_measured *v = &m->v[i];
        const double values[] = {(double)v->n_seeds, v->predicted_j,  v->measured_j,
                                 v->predicted_rho,   v->measured_rho, v->accuracy ? v->accuracy->mean : NAN};
        RRL_TRY(names(d, v->arm, v->level, v->method));
        RRL_TRY(numbers(d, C, values, sizeof C / sizeof *C));
    }
    return d->w->table_end(d->b);
}

/* --- failures */

rrl_status rrl_report_failure_table(const rrl_document *d, const rrl_report_section *s) {
    static const column C[] = {{"completions", "%.0f"},       {"wrong, rewarded", "%.3f"}, {"right, not rewarded", "%.3f"},
                               {"without a reward", "%.3f"}, {"no answer", "%.3f"},       {"cut at the limit", "%.3f"},
                               {"members disagree", "%.3f"}, {"questions never right", "%.0f"}};
    RRL_TRY(start(d, "Evaluation completions of all seeds (shares of them)", "method", C, sizeof C / sizeof *C));
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_method_end(s, i);
        rrl_report_failures f = rrl_report_failures_sum(s, i, end);
        double n = (double)f.completions;
        if (!f.completions) continue;
        const double values[] = {n,
                                 (double)f.wrong_rewarded / n,
                                 (double)f.right_unrewarded / n,
                                 (double)(f.right_missing + f.wrong_missing) / n,
                                 (double)f.no_answer / n,
                                 (double)f.truncated / n,
                                 (double)f.disagreed / n,
                                 (double)f.questions_never_right};
        RRL_TRY(names(d, s->v[i]->arm, s->v[i]->level, s->v[i]->method));
        RRL_TRY(numbers(d, C, values, sizeof C / sizeof *C));
    }
    return d->w->table_end(d->b);
}

/* --- training */

rrl_status rrl_report_training_table(const rrl_document *d, const rrl_report_section *s) {
    static const column C[] = {{"seed", "%.0f"},
                               {"updates", "%.0f"},
                               {"observed reward", "%.3f"},
                               {"shaped reward", "%.3f"},
                               {"accuracy", "%.3f"},
                               {"flat groups", "%.3f"},
                               {"KL (nats)", "%.3g"},
                               {"grad norm", "%.3g"},
                               {"B norm", "%.3g"},
                               {"suppressed", "%.0f"},
                               {"missing", "%.0f"},
                               {"seconds", "%.1f"}};
    enum { N = sizeof C / sizeof *C };
    RRL_TRY(start(d, "Totals of each trained run", "method", C, N));
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_condition *c = s->v[i];
        const rrl_report_diagnostics *t = &c->training;
        const double values[N - 1] = {t->steps,
                                      t->observed_reward_mean,
                                      t->shaped_reward_mean,
                                      t->independent_accuracy,
                                      t->zero_variance_fraction,
                                      t->mean_kl,
                                      t->mean_grad_norm,
                                      t->lora_b_norm,
                                      t->suppressed,
                                      t->missing,
                                      t->step_s};
        char seed[32]; /* a seed can have more digits than a double */
        if (!c->trained) continue;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)c->seed);
        RRL_TRY(names(d, c->arm, c->level, c->method));
        RRL_TRY(d->w->cell(d->b, seed));
        RRL_TRY(numbers(d, C + 1, values, N - 1));
    }
    return d->w->table_end(d->b);
}
