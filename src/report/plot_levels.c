/* A metric against the level, a panel an arm: every seed a point, the mean over seeds with its interval a line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/csv.h"
#include "report/plot_parts.h"

#define INTERVAL_NOTE                                                                                        \
    "Open marks: seeds. Filled marks and lines: mean over seeds. Bars: 95 %% interval about these runs "     \
    "(bootstrap over questions, seeds as they are)."

static const struct {
    const char *file, *metric, *title, *y_label, *caption;
} PICTURES[] = {
    {"independent_accuracy", "independent_accuracy", "Independent accuracy against corruption level",
     "right by the judge (share)", "Share of evaluation completions that the independent judge finds right."},
    {"observed_reward", "observed_reward", "Observed reward against corruption level",
     "mean reward (0 to 1)", "Mean ensemble reward of evaluation completions, before shaping."},
    {"reward_hacking_gap", "reward_hacking_gap", "Reward hacking gap against corruption level",
     "reward - accuracy (share)",
     "Observed reward less accuracy on completions that have a reward: what the verifiers pay beyond what is "
     "right."},
    {"disagreement", "verifier_disagreement", "Disagreement of verifiers against corruption level",
     "mean U (0 to 1)", "U = min(1, 4 x variance of the members' rewards), mean over completions."},
    {"member_agreement", "member_agreement", "Agreement of members against corruption level",
     "pairs that vote alike (share)",
     "Share of pairs of members that give the same vote on a completion; each pair is in member_agreement_pairs.csv."},
    {"extraction_failure", "extraction_failure_rate", "Extraction failure against corruption level",
     "no answer found (share)", "Share of completions in which the parser finds no answer."},
    {"completion_length", "mean_generated_tokens", "Completion length against corruption level",
     "mean length (tokens)", "Mean length of evaluation completions, end token included."},
};

/* What one picture is made of. */
typedef struct {
    const rrl_report_numbers *n;
    const char *metric, *y_label;
    const char **arms, **methods;
    int n_arms, n_methods;
    double low, high; /* of the metric, intervals included */
} levels;

static const rrl_report_aggregate *aggregate_at(const levels *l, size_t i) {
    const rrl_report_condition *c = l->n->section->v[i];
    return rrl_report_find_aggregate(l->n, c->arm, c->level, c->method, l->metric);
}

static void widen(levels *l, double v) {
    if (isnan(v)) return;
    l->low = isnan(l->low) ? v : fmin(l->low, v);
    l->high = isnan(l->high) ? v : fmax(l->high, v);
}

static void measure(levels *l) {
    const rrl_report_section *s = l->n->section;
    l->low = l->high = NAN;
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_aggregate *a = aggregate_at(l, i);
        widen(l, rrl_report_metric(s->v[i], l->metric));
        if (!a) continue;
        widen(l, a->about_runs.low);
        widen(l, a->about_runs.high);
    }
}

/* --- data */

static rrl_status put_data(rrl_buffer *csv, const levels *l) {
    const rrl_report_section *s = l->n->section;
    RRL_TRY(rrl_buffer_puts(csv, "arm,level,method,seed,value,mean,low,high\n"));
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_condition *c = s->v[i];
        const rrl_report_aggregate *a = aggregate_at(l, i);
        if (!c->evaluation || !a) continue;
        RRL_TRY(rrl_csv_text(csv, c->arm));
        RRL_TRY(rrl_csv_level(csv, c->level));
        RRL_TRY(rrl_csv_text(csv, c->method));
        RRL_TRY(rrl_csv_count(csv, c->seed));
        RRL_TRY(rrl_csv_number(csv, rrl_report_metric(c, l->metric)));
        RRL_TRY(rrl_csv_number(csv, a->mean));
        RRL_TRY(rrl_csv_number(csv, a->about_runs.low));
        RRL_TRY(rrl_csv_number(csv, a->about_runs.high));
        RRL_TRY(rrl_csv_end(csv));
    }
    return RRL_OK;
}

/* --- script */

/* Blocks $seedsA_M and $meanA_M of arm A and method M; methods stand side by side. */
static rrl_status put_blocks(rrl_buffer *b, const levels *l, int arm, int method, const rrl_plot_axis *axis) {
    const rrl_report_section *s = l->n->section;
    double aside = (method - (l->n_methods - 1) / 2.0) * axis->step * fmin(0.12, 0.5 / l->n_methods);
    for (int pass = 0; pass < 2; pass++) {
        RRL_TRY(rrl_buffer_printf(b, "$%s%d_%d << EOD\n", pass ? "mean" : "seeds", arm, method));
        for (size_t i = 0; i < s->n; i++) {
            const rrl_report_condition *c = s->v[i];
            const rrl_report_aggregate *a = aggregate_at(l, i);
            if (strcmp(c->arm, l->arms[arm]) != 0 || strcmp(c->method, l->methods[method]) != 0 || !a)
                continue;
            bool last = rrl_report_method_end(s, i) == i + 1;
            double v[] = {rrl_plot_place(axis, c->level) + aside, rrl_report_metric(c, l->metric)};
            double mean[] = {v[0], a->mean, a->about_runs.low, a->about_runs.high};
            if (pass && !last) continue;
            for (int j = 0; j < (pass ? 4 : 2); j++) {
                RRL_TRY(rrl_plot_number(b, pass ? mean[j] : v[j]));
                RRL_TRY(rrl_buffer_puts(b, j + 1 < (pass ? 4 : 2) ? " " : "\n"));
            }
        }
        RRL_TRY(rrl_buffer_puts(b, "EOD\n"));
    }
    return RRL_OK;
}

static rrl_status put_series(rrl_buffer *b, const levels *l, int arm, int method) {
    RRL_TRY(rrl_buffer_puts(b, method ? "     " : "plot "));
    RRL_TRY(rrl_plot_series(b, arm, method, rrl_plot_style_of(l->methods[method], method), true, 0.9));
    return rrl_buffer_puts(b, method + 1 < l->n_methods ? ", \\\n" : "\n");
}

static rrl_status put_panel(rrl_picture *p, const levels *l, rrl_panels g, int arm) {
    rrl_plot_axis axis = {0};
    char title[160];
    rrl_status rc;
    RRL_GOTO(rrl_plot_axis_of(&axis, l->n->section, l->arms[arm]));
    for (int m = 0; m < l->n_methods; m++) RRL_GOTO(put_blocks(&p->script, l, arm, m, &axis));
    snprintf(title, sizeof title, "%s%.120s", *l->arms[arm] ? "arm " : "", l->arms[arm]);
    RRL_GOTO(rrl_picture_panel(p, g, arm, title,
                               axis.n == 1 && isnan(axis.v[0]) ? "" : "corruption level (probability of an event)",
                               l->y_label));
    RRL_GOTO(rrl_plot_axis_put(&p->script, &axis));
    for (int m = 0; m < l->n_methods; m++) RRL_GOTO(put_series(&p->script, l, arm, m));
done:
    free(axis.v);
    return rc;
}

static rrl_status add_picture(rrl_pictures *out, levels *l, int which, const char *key) {
    rrl_picture *p;
    char caption[512];
    rrl_panels g = rrl_panels_of(l->n_arms, 2, l->n_arms > 1 ? 400 : 560, 280);
    snprintf(caption, sizeof caption, "%s " INTERVAL_NOTE, PICTURES[which].caption);
    RRL_TRY(rrl_picture_add(&p, out, PICTURES[which].file, PICTURES[which].title, caption, g));
    RRL_TRY(put_data(&p->csv, l));
    RRL_TRY(rrl_picture_begin(p));
    RRL_TRY(rrl_plot_range(&p->script, "y", l->low, l->high));
    for (int a = 0; a < l->n_arms; a++) RRL_TRY(put_panel(p, l, g, a));
    return rrl_picture_end(p, key);
}

rrl_status rrl_plot_levels(rrl_pictures *out, const rrl_report_numbers *n) {
    levels l = {.n = n};
    rrl_buffer key = {0};
    rrl_status rc;
    RRL_GOTO(rrl_plot_arms(&l.arms, &l.n_arms, n->section));
    RRL_GOTO(rrl_plot_methods(&l.methods, &l.n_methods, n->section, false));
    RRL_GOTO(rrl_plot_method_key(&key, l.methods, l.n_methods));
    for (size_t i = 0; i < sizeof PICTURES / sizeof *PICTURES; i++) {
        l.metric = PICTURES[i].metric;
        l.y_label = PICTURES[i].y_label;
        measure(&l);
        if (!isnan(l.low)) RRL_GOTO(add_picture(out, &l, (int)i, key.data));
    }
done:
    rrl_buffer_free(&key);
    free(l.arms);
    free(l.methods);
    return rc;
}
