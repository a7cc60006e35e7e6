/* Observed reward against accuracy, a panel an arm: on the diagonal, what is paid is what is right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/csv.h"
#include "report/plot_labels.h"
#include "report/plot_parts.h"

static const char ACCURACY[] = "independent_accuracy", REWARD[] = "observed_reward", FIXED[] = "fixed members";

static void level_name(char text[RRL_LABEL_TEXT], double level) {
    char number[RRL_NUMBER_CHARS];
    if (!isnan(level)) rrl_format_g(number, level);
    snprintf(text, RRL_LABEL_TEXT, "%s", isnan(level) ? FIXED : number);
}

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

/* What the panel of an arm is made of. */
typedef struct {
    const rrl_report_numbers *n;
    const char *arm;
    const char **methods; /* [n_methods] */
    int n_methods;
    double limits[2]; /* of both axes, so that the diagonal is one */
    rrl_panels grid;
} panel;

static bool shows(const panel *p, size_t i, int method) {
    const rrl_report_condition *c = p->n->section->v[i];
    return strcmp(c->arm, p->arm) == 0 && strcmp(c->method, p->methods[method]) == 0;
}

static rrl_status put_point(rrl_buffer *b, double x, double y) {
    if (isnan(x) || isnan(y)) return RRL_OK;
    RRL_TRY(rrl_plot_number(b, x));
    RRL_TRY(rrl_buffer_puts(b, " "));
    RRL_TRY(rrl_plot_number(b, y));
    return rrl_buffer_puts(b, "\n");
}

/* Blocks $seedsA_M and $meanA_M of panel A and method M. */
static rrl_status put_blocks(rrl_buffer *b, const panel *p, int at, int m) {
    const rrl_report_section *s = p->n->section;
    for (int pass = 0; pass < 2; pass++) {
        RRL_TRY(rrl_buffer_printf(b, "$%s%d_%d << EOD\n", pass ? "mean" : "seeds", at, m));
        for (size_t i = 0; i < s->n; i++) {
            const rrl_report_condition *c = s->v[i];
            if (!shows(p, i, m)) continue;
            if (!pass)
                RRL_TRY(put_point(b, rrl_report_metric(c, ACCURACY), rrl_report_metric(c, REWARD)));
            else if (rrl_report_method_end(s, i) == i + 1)
                RRL_TRY(put_point(b, mean_of(p->n, c, ACCURACY), mean_of(p->n, c, REWARD)));
        }
        RRL_TRY(rrl_buffer_puts(b, "EOD\n"));
    }
    return RRL_OK;
}

/* --- levels beside their means */

static double pixels(const panel *p, double v, int size) {
    return (v - p->limits[0]) / (p->limits[1] - p->limits[0]) * size;
}

/* Name of a level in *text, and whether the arm has only that one. */
static bool only_level(char text[RRL_LABEL_TEXT], const panel *p) {
    const rrl_report_section *s = p->n->section;
    const rrl_report_condition *first = NULL;
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->v[i]->arm, p->arm) != 0) continue;
        if (first && rrl_report_order_levels(first->level, s->v[i]->level) != 0) return false;
        first = s->v[i];
    }
    level_name(text, first->level);
    return true;
}

/* Points of the panel: first the means, which have a label if the arm has levels, then the seeds. */
static size_t gather(rrl_plot_point *v, const panel *p, bool labels) {
    const rrl_report_section *s = p->n->section;
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int m = 0; m < p->n_methods; m++)
            for (size_t i = 0; i < s->n; i++) {
                const rrl_report_condition *c = s->v[i];
                bool mean = pass == 0;
                if (!shows(p, i, m) || (mean && rrl_report_method_end(s, i) != i + 1)) continue;
                double x = mean ? mean_of(p->n, c, ACCURACY) : rrl_report_metric(c, ACCURACY);
                double y = mean ? mean_of(p->n, c, REWARD) : rrl_report_metric(c, REWARD);
                if (isnan(x) || isnan(y)) continue;
                v[n] = (rrl_plot_point){
                    .x = pixels(p, x, p->grid.panel_width), .y = pixels(p, y, p->grid.panel_height), .series = m};
                if (mean && labels) level_name(v[n].text, c->level);
                n++;
            }
    return n;
}

/* Blocks $labelsA_M. */
static rrl_status put_labels(rrl_buffer *b, const panel *p, int at, bool labels) {
    rrl_plot_point *v = NULL;
    double unit = p->limits[1] - p->limits[0];
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&v, 2 * p->n->section->n, sizeof *v, "points of a plot"));
    size_t n = gather(v, p, labels);
    rrl_plot_labels_place(v, n, p->grid.panel_width, p->grid.panel_height);
    for (int m = 0; m < p->n_methods; m++) {
        RRL_GOTO(rrl_buffer_printf(b, "$labels%d_%d << EOD\n", at, m));
        for (size_t i = 0; i < n; i++)
            if (v[i].series == m && *v[i].text)
                RRL_GOTO(rrl_buffer_printf(b, "%.6g %.6g \"%s\"\n",
                                           p->limits[0] + v[i].label_x / p->grid.panel_width * unit,
                                           p->limits[0] + v[i].label_y / p->grid.panel_height * unit, v[i].text));
        RRL_GOTO(rrl_buffer_puts(b, "EOD\n"));
    }
done:
    free(v);
    return rc;
}

/* --- panel */

static rrl_status put_panel(rrl_picture *picture, const panel *p, int at) {
    rrl_buffer *b = &picture->script;
    char title[256], level[RRL_LABEL_TEXT] = "";
    bool one = only_level(level, p), named = one && (*p->arm || strcmp(level, FIXED) != 0);
    for (int m = 0; m < p->n_methods; m++) RRL_TRY(put_blocks(b, p, at, m));
    RRL_TRY(put_labels(b, p, at, !one));
    snprintf(title, sizeof title, "%s%.120s%s%s%s", *p->arm ? "arm " : "", p->arm, named && *p->arm ? ", " : "",
             !named || strcmp(level, FIXED) == 0 ? "" : "level ", !named ? "" : level);
    RRL_TRY(rrl_picture_panel(picture, p->grid, at, title, "right by the judge (share)", "mean reward (0 to 1)"));
    RRL_TRY(rrl_buffer_puts(b, "plot x with lines lc rgb '#808080' lw 1 dt 4 notitle"));
    for (int m = 0; m < p->n_methods; m++) {
        rrl_plot_style s = rrl_plot_style_of(p->methods[m], m);
        RRL_TRY(rrl_buffer_puts(b, ", \\\n     "));
        RRL_TRY(rrl_plot_series(b, at, m, s, false, 0.9));
        if (one) continue;
        RRL_TRY(rrl_buffer_printf(b,
                                  ", \\\n     $labels%d_%d using 1:2:3 with labels center tc rgb '%s' font ',10' notitle",
                                  at, m, s.colour));
    }
    return rrl_buffer_puts(b, "\n");
}

static void limits_of(double limits[2], const rrl_report_section *s) {
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < s->n; i++) {
        double x = rrl_report_metric(s->v[i], ACCURACY), y = rrl_report_metric(s->v[i], REWARD);
        if (isnan(x) || isnan(y)) continue;
        low = fmin(low, fmin(x, y));
        high = fmax(high, fmax(x, y));
    }
    rrl_plot_limits(limits, low, high);
}

static bool any_point(const rrl_report_section *s) {
    for (size_t i = 0; i < s->n; i++)
        if (!isnan(rrl_report_metric(s->v[i], ACCURACY)) && !isnan(rrl_report_metric(s->v[i], REWARD)))
            return true;
    return false;
}

rrl_status rrl_plot_reward_correctness(rrl_pictures *out, const rrl_report_numbers *n) {
    panel p = {.n = n};
    const char **arms = NULL;
    int n_arms = 0;
    rrl_buffer key = {0};
    rrl_picture *picture;
    rrl_status rc;
    if (!any_point(n->section)) return RRL_OK;
    RRL_GOTO(rrl_plot_arms(&arms, &n_arms, n->section));
    RRL_GOTO(rrl_plot_methods(&p.methods, &p.n_methods, n->section, false));
    p.grid = rrl_panels_of(n_arms, 2, 400, 340);
    limits_of(p.limits, n->section);
    RRL_GOTO(rrl_picture_add(&picture, out, "reward_correctness", "Reward against correctness",
                             "Each evaluation: mean ensemble reward against accuracy by the judge. Above the diagonal the "
                             "verifiers pay for more than is right. Open marks: seeds. Filled marks: mean over seeds, joined "
                             "along the levels, which stand beside them; above its panel, where an arm has only one.",
                             p.grid));
    RRL_GOTO(put_data(&picture->csv, n->section));
    RRL_GOTO(rrl_picture_begin(picture));
    RRL_GOTO(rrl_plot_put_range(&picture->script, "x", p.limits));
    RRL_GOTO(rrl_plot_put_range(&picture->script, "y", p.limits));
    for (int a = 0; a < n_arms; a++) {
        p.arm = arms[a];
        RRL_GOTO(put_panel(picture, &p, a));
    }
    RRL_GOTO(rrl_plot_method_key(&key, p.methods, p.n_methods));
    RRL_GOTO(rrl_buffer_puts(&key, ", NaN with lines lc rgb '#808080' lw 1 dt 4 title 'reward = accuracy'"));
    RRL_GOTO(rrl_picture_end(picture, key.data));
done:
    rrl_buffer_free(&key);
    free(arms);
    free(p.methods);
    return rc;
}
