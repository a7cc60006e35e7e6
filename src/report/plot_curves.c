/* Learning curves: observed reward and independent accuracy of training completions in one panel, a picture an arm, a
 * row of panels a level, a column a trained method. Where the two part is what a study is about. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/csv.h"
#include "report/plot_parts.h"
#include "report/report_text.h"

enum { MAX_POINTS = 100, WINDOWS = 20 }; /* points drawn of a curve; windows of the running mean in a run */

static double reward_of(const rrl_training_row *r) { return r->observed_reward; }
static double accuracy_of(const rrl_training_row *r) { return r->correct; }

static const struct {
    const char *title, *colour, *dash;
    double (*value)(const rrl_training_row *r);
} CURVES[] = {{"right by the judge", "#009E73", "1", accuracy_of},
              {"observed reward", "#E69F00", "(3,2)", reward_of}}; /* dashed and on top: both show where they agree */
enum { N_CURVES = sizeof CURVES / sizeof *CURVES };

static rrl_status put_data(rrl_buffer *csv, const rrl_report_section *s, const char *arm) {
    RRL_TRY(rrl_buffer_puts(csv, "arm,level,method,seed,update,observed_reward,shaped_reward,"
                                 "independent_accuracy,mean_length,kl,entropy,grad_norm\n"));
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_condition *c = s->v[i];
        if (strcmp(c->arm, arm) != 0) continue;
        for (int64_t j = 0; j < c->steps; j++) {
            const rrl_training_row *r = &c->rows[j];
            double v[] = {r->observed_reward, r->reward, r->correct, r->mean_length, r->kl, r->entropy, r->grad_norm};
            RRL_TRY(rrl_csv_text(csv, c->arm));
            RRL_TRY(rrl_csv_level(csv, c->level));
            RRL_TRY(rrl_csv_text(csv, c->method));
            RRL_TRY(rrl_csv_count(csv, c->seed));
            RRL_TRY(rrl_csv_count(csv, (uint64_t)r->step));
            for (size_t k = 0; k < sizeof v / sizeof *v; k++) RRL_TRY(rrl_csv_number(csv, v[k]));
            RRL_TRY(rrl_csv_end(csv));
        }
    }
    return RRL_OK;
}

/* --- running means */

static int64_t window_of(int64_t steps) {
    int64_t w = steps / WINDOWS;
    return w < 1 ? 1 : w;
}

/* Mean of the curve over `window` updates around j, of the seeds rows [begin, end) that came so far. */
static double smooth(const rrl_report_section *s, size_t begin, size_t end, int64_t j, int64_t window,
                     double (*value)(const rrl_training_row *r)) {
    double sum = 0;
    int64_t n = 0;
    for (size_t i = begin; i < end; i++) {
        const rrl_report_condition *c = s->v[i];
        for (int64_t t = j - window / 2; t < j - window / 2 + window; t++) {
            if (t < 0 || t >= c->steps || j >= c->steps || isnan(value(&c->rows[t]))) continue;
            sum += value(&c->rows[t]);
            n++;
        }
    }
    return n ? sum / (double)n : NAN;
}

static rrl_status put_curve(rrl_buffer *b, const rrl_report_section *s, size_t begin, size_t end, int curve,
                            int64_t steps) {
    int64_t window = window_of(steps), stride = (steps + MAX_POINTS - 1) / MAX_POINTS;
    for (int64_t j = 0; j < steps; j += stride) {
        double v = smooth(s, begin, end, j, window, CURVES[curve].value);
        if (isnan(v)) continue;
        RRL_TRY(rrl_buffer_printf(b, "%lld %.4g\n", (long long)j, v));
    }
    return RRL_OK;
}

/* --- panels */

/* Block $cP_C: the curves of each seed, blank lines between them; $mP_C: of all seeds together. */
static rrl_status put_blocks(rrl_buffer *b, const rrl_report_section *s, size_t begin, size_t end, int panel,
                             int curve, int64_t steps) {
    RRL_TRY(rrl_buffer_printf(b, "$c%d_%d << EOD\n", panel, curve));
    for (size_t i = begin; i < end; i++) {
        RRL_TRY(put_curve(b, s, i, i + 1, curve, steps));
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    RRL_TRY(rrl_buffer_printf(b, "EOD\n$m%d_%d << EOD\n", panel, curve));
    RRL_TRY(put_curve(b, s, begin, end, curve, steps));
    return rrl_buffer_puts(b, "EOD\n");
}

/* The panel of one arm, level and method, rows [begin, end). */
static rrl_status put_panel(rrl_picture *p, const rrl_report_section *s, rrl_panels g, int panel,
                            size_t begin, size_t end, int64_t steps) {
    rrl_buffer *b = &p->script;
    char cell[96], title[200];
    rrl_report_cell_name(cell, s->v[begin]->arm, s->v[begin]->level);
    snprintf(title, sizeof title, "%s, %.80s", cell, s->v[begin]->method);
    for (int c = 0; c < N_CURVES; c++) RRL_TRY(put_blocks(b, s, begin, end, panel, c, steps));
    RRL_TRY(rrl_picture_panel(p, g, panel, title, "update", "training completions (share)"));
    for (int c = 0; c < N_CURVES; c++)
        RRL_TRY(rrl_buffer_printf(b,
                                  "%s $c%d_%d using 1:2 with lines lc rgb '%s' lw 0.7 dt 1 notitle, \\\n     "
                                  "$m%d_%d using 1:2 with lines lc rgb '%s' lw 2.5 dt %s notitle%s\n",
                                  c ? "    " : "plot", panel, c, CURVES[c].colour, panel, c, CURVES[c].colour,
                                  CURVES[c].dash, c + 1 < N_CURVES ? ", \\" : ""));
    return RRL_OK;
}

/* Range over all that is drawn of an arm. */
static rrl_status put_ranges(rrl_buffer *b, const rrl_report_section *s, const char *arm, int64_t steps) {
    double low = INFINITY, high = -INFINITY;
    int64_t window = window_of(steps);
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->v[i]->arm, arm) != 0) continue;
        for (int64_t j = 0; j < s->v[i]->steps; j++)
            for (int c = 0; c < N_CURVES; c++) {
                double v = smooth(s, i, i + 1, j, window, CURVES[c].value);
                if (isnan(v)) continue;
                low = fmin(low, v);
                high = fmax(high, v);
            }
    }
    RRL_TRY(rrl_buffer_printf(b, "set xrange [0:%lld]\n", (long long)(steps > 1 ? steps - 1 : 1)));
    return rrl_plot_range(b, "y", low, high);
}

static rrl_status end_picture(rrl_picture *p) {
    rrl_buffer key = {0};
    rrl_status rc = RRL_OK;
    for (int c = 0; c < N_CURVES; c++)
        RRL_GOTO(rrl_buffer_printf(&key, "%sNaN with lines lc rgb '%s' lw 2.5 dt %s title '%s'", c ? ", " : "",
                                   CURVES[c].colour, CURVES[c].dash, CURVES[c].title));
    RRL_GOTO(rrl_picture_end(p, key.data));
done:
    rrl_buffer_free(&key);
    return rc;
}

static rrl_status add_picture(rrl_pictures *out, const rrl_report_section *s, const char *arm, int n_panels,
                              int n_columns, int64_t steps) {
    rrl_picture *p;
    char name[RRL_PICTURE_NAME], title[160], caption[512];
    int panel = 0;
    rrl_panels g = rrl_panels_of(n_panels, n_columns, n_columns > 2 ? 260 : 400, 150);
    rrl_plot_file_name(name, "learning_curves", arm);
    snprintf(title, sizeof title, "Learning curves%s%.100s", *arm ? ", arm " : "", arm);
    snprintf(caption, sizeof caption,
             "Training completions: mean ensemble reward before shaping, and share right by the judge, which "
             "training never sees. Running means over %lld update%s. Thin lines: seeds. Thick lines: all seeds.",
             (long long)window_of(steps), window_of(steps) == 1 ? "" : "s");
    RRL_TRY(rrl_picture_add(&p, out, name, title, caption, g));
    RRL_TRY(put_data(&p->csv, s, arm));
    RRL_TRY(rrl_picture_begin(p));
    RRL_TRY(put_ranges(&p->script, s, arm, steps));
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_method_end(s, i);
        if (strcmp(s->v[i]->arm, arm) == 0 && s->v[i]->trained)
            RRL_TRY(put_panel(p, s, g, panel++, i, end, steps));
    }
    return end_picture(p);
}

/* --- */

rrl_status rrl_plot_curves(rrl_pictures *out, const rrl_report_numbers *n) {
    const rrl_report_section *s = n->section;
    const char **arms = NULL, **methods = NULL;
    int n_arms = 0, n_methods = 0;
    rrl_status rc;
    RRL_GOTO(rrl_plot_arms(&arms, &n_arms, s));
    RRL_GOTO(rrl_plot_methods(&methods, &n_methods, s, true));
    for (int a = 0; a < n_arms; a++) {
        int panels = 0;
        int64_t steps = 0;
        for (size_t i = 0; i < s->n; i = rrl_report_method_end(s, i))
            panels += strcmp(s->v[i]->arm, arms[a]) == 0 && s->v[i]->trained;
        for (size_t i = 0; i < s->n; i++)
            if (strcmp(s->v[i]->arm, arms[a]) == 0 && s->v[i]->steps > steps) steps = s->v[i]->steps;
        if (panels) RRL_GOTO(add_picture(out, s, arms[a], panels, n_methods < 3 ? n_methods : 3, steps));
    }
done:
    free(arms);
    free(methods);
    return rc;
}
