/* Observed reward against accuracy, a panel an arm: on the diagonal, what is paid is what is right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/csv.h"
#include "report/plot_parts.h"

static const char ACCURACY[] = "independent_accuracy", REWARD[] = "observed_reward";

static rrl_status put_data(rrl_buffer *csv, const rrl_report_section *s) {
    RRL_TRY(rrl_buffer_puts(csv, "arm,level,method,seed,independent_accuracy,observed_reward\n"));
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_condition *c = s->v[i];
        if (!c->evaluation) continue;
        RRL_TRY(rrl_csv_text(csv, c->arm));
        RRL_TRY(rrl_csv_level(csv, c->level));
        RRL_TRY(rrl_csv_text(csv, c->method));
        RRL_TRY(rrl_csv_count(csv, c->seed));
        RRL_TRY(rrl_csv_number(csv, rrl_report_metric(c, ACCURACY)));
        RRL_TRY(rrl_csv_number(csv, rrl_report_metric(c, REWARD)));
        RRL_TRY(rrl_csv_end(csv));
    }
    return RRL_OK;
}

static double mean_of(const rrl_report_numbers *n, const rrl_report_condition *c, const char *metric) {
    const rrl_report_aggregate *a = rrl_report_find_aggregate(n, c->arm, c->level, c->method, metric);
    return a ? a->mean : NAN;
}

static rrl_status put_point(rrl_buffer *b, double x, double y, double level) {
    char text[RRL_NUMBER_CHARS] = "\"\"";
    if (isnan(x) || isnan(y)) return RRL_OK;
    if (!isnan(level)) rrl_format_g(text, level);
    RRL_TRY(rrl_plot_number(b, x));
    RRL_TRY(rrl_buffer_puts(b, " "));
    RRL_TRY(rrl_plot_number(b, y));
    return rrl_buffer_printf(b, " %s\n", text);
}

static rrl_status put_blocks(rrl_buffer *b, const rrl_report_numbers *n, const char *arm, const char *method,
                             int panel, int m) {
    const rrl_report_section *s = n->section;
    for (int pass = 0; pass < 2; pass++) {
        RRL_TRY(rrl_buffer_printf(b, "$%s%d_%d << EOD\n", pass ? "mean" : "seeds", panel, m));
        for (size_t i = 0; i < s->n; i++) {
            const rrl_report_condition *c = s->v[i];
            if (strcmp(c->arm, arm) != 0 || strcmp(c->method, method) != 0) continue;
            if (!pass)
                RRL_TRY(put_point(b, rrl_report_metric(c, ACCURACY), rrl_report_metric(c, REWARD), c->level));
            else if (rrl_report_method_end(s, i) == i + 1)
                RRL_TRY(put_point(b, mean_of(n, c, ACCURACY), mean_of(n, c, REWARD), c->level));
        }
        RRL_TRY(rrl_buffer_puts(b, "EOD\n"));
    }
    return RRL_OK;
}

static rrl_status put_panel(rrl_picture *p, const rrl_report_numbers *n, rrl_panels g, int panel,
                            const char *arm, const char **methods, int n_methods) {
    rrl_buffer *b = &p->script;
    char title[160];
    for (int m = 0; m < n_methods; m++) RRL_TRY(put_blocks(b, n, arm, methods[m], panel, m));
    snprintf(title, sizeof title, "%s%.120s", *arm ? "arm " : "", arm);
    RRL_TRY(rrl_picture_panel(p, g, panel, title, "right by the judge (share)", "mean reward (0 to 1)"));
    RRL_TRY(rrl_buffer_puts(b, "plot x with lines lc rgb '#808080' lw 1 dt 4 notitle"));
    for (int m = 0; m < n_methods; m++) {
        rrl_plot_style s = rrl_plot_style_of(methods[m], m);
        RRL_TRY(rrl_buffer_puts(b, ", \\\n     "));
        RRL_TRY(rrl_plot_series(b, panel, m, s, false, 0.9));
        if (strcmp(methods[m], "base") == 0) continue; /* one accuracy at all levels: its labels would overlap */
        RRL_TRY(rrl_buffer_printf(b,
                                  ", \\\n     $mean%d_%d using 1:2:3 with labels left offset 0.7,-0.5 tc rgb "
                                  "'%s' font ',10' notitle",
                                  panel, m, s.colour));
    }
    return rrl_buffer_puts(b, "\n");
}

/* One range for both axes, so that the diagonal is one. */
static rrl_status put_ranges(rrl_buffer *b, const rrl_report_section *s) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < s->n; i++) {
        double x = rrl_report_metric(s->v[i], ACCURACY), y = rrl_report_metric(s->v[i], REWARD);
        if (isnan(x) || isnan(y)) continue;
        low = fmin(low, fmin(x, y));
        high = fmax(high, fmax(x, y));
    }
    RRL_TRY(rrl_plot_range(b, "x", low, high));
    return rrl_plot_range(b, "y", low, high);
}

static bool any_point(const rrl_report_section *s) {
    for (size_t i = 0; i < s->n; i++)
        if (!isnan(rrl_report_metric(s->v[i], ACCURACY)) && !isnan(rrl_report_metric(s->v[i], REWARD)))
            return true;
    return false;
}

rrl_status rrl_plot_reward_correctness(rrl_pictures *out, const rrl_report_numbers *n) {
    const char **arms = NULL, **methods = NULL;
    int n_arms = 0, n_methods = 0;
    rrl_buffer key = {0};
    rrl_picture *p;
    rrl_status rc;
    if (!any_point(n->section)) return RRL_OK;
    RRL_GOTO(rrl_plot_arms(&arms, &n_arms, n->section));
    RRL_GOTO(rrl_plot_methods(&methods, &n_methods, n->section, false));
    rrl_panels g = rrl_panels_of(n_arms, 2, 400, 340);
    RRL_GOTO(rrl_picture_add(&p, out, "reward_correctness", "Reward against correctness",
                             "Each evaluation: mean ensemble reward against accuracy by the judge. Above the "
                             "diagonal the verifiers pay for more than is right. Open marks: seeds. Filled "
                             "marks, joined along the levels that stand beside them: mean over seeds.",
                             g));
    RRL_GOTO(put_data(&p->csv, n->section));
    RRL_GOTO(rrl_picture_begin(p));
    RRL_GOTO(put_ranges(&p->script, n->section));
    for (int a = 0; a < n_arms; a++) RRL_GOTO(put_panel(p, n, g, a, arms[a], methods, n_methods));
    RRL_GOTO(rrl_plot_method_key(&key, methods, n_methods));
    RRL_GOTO(rrl_buffer_puts(&key, ", NaN with lines lc rgb '#808080' lw 1 dt 4 title 'reward = accuracy'"));
    RRL_GOTO(rrl_picture_end(p, key.data));
done:
    rrl_buffer_free(&key);
    free(arms);
    free(methods);
    return rc;
}
