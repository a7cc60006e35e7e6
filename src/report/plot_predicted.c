/* Prediction against measurement: J of the training reward, and how accuracy moved where J pushes it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/csv.h"
#include "report/measured.h"
#include "report/plot_parts.h"

static rrl_status put_data(rrl_buffer *csv, const rrl_report_measurements *m) {
    RRL_TRY(rrl_buffer_puts(csv, "arm,level,method,n_seeds,predicted_j,measured_j,predicted_rho,measured_rho,"
                                 "eligible_wrong,eligible_right,accuracy_change,low,high\n"));
    for (size_t i = 0; i < m->n; i++) {
        const rrl_report_measured *v = &m->v[i];
        const rrl_report_difference *d = v->accuracy;
        double numbers[] = {v->predicted_j, v->measured_j, v->predicted_rho, v->measured_rho,
                            v->has_eligible ? v->eligible[0] : NAN, v->has_eligible ? v->eligible[1] : NAN,
                            d ? d->mean : NAN, d ? d->about_runs.low : NAN, d ? d->about_runs.high : NAN};
        RRL_TRY(rrl_csv_text(csv, v->arm));
        RRL_TRY(rrl_csv_level(csv, v->level));
        RRL_TRY(rrl_csv_text(csv, v->method));
        RRL_TRY(rrl_csv_count(csv, (uint64_t)v->n_seeds));
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) RRL_TRY(rrl_csv_number(csv, numbers[k]));
        RRL_TRY(rrl_csv_end(csv));
    }
    return RRL_OK;
}

static double seed_j(const rrl_report_numbers *n, const rrl_report_measured *v, size_t i) {
    const rrl_report_condition *c = n->section->v[i];
    bool same = strcmp(c->arm, v->arm) == 0 && strcmp(c->method, v->method) == 0 &&
                rrl_report_order_levels(c->level, v->level) == 0;
    return same ? c->gain.j : NAN;
}

/* $sM: seeds' J; $mM: means' J; $aM: change of accuracy with its interval. */
static rrl_status put_blocks(rrl_buffer *b, const rrl_report_numbers *n, const rrl_report_measurements *m,
                             const char *method, int at) {
    static const char *const NAMES[] = {"s", "m", "a"};
    for (int block = 0; block < 3; block++) {
        RRL_TRY(rrl_buffer_printf(b, "$%s%d << EOD\nNaN NaN NaN NaN\n", NAMES[block], at));
        for (size_t i = 0; i < m->n; i++) {
            const rrl_report_measured *v = &m->v[i];
            const rrl_report_difference *d = v->accuracy;
            if (strcmp(v->method, method) != 0) continue;
            for (size_t j = 0; block == 0 && j < n->section->n; j++)
                if (!isnan(seed_j(n, v, j)))
                    RRL_TRY(rrl_buffer_printf(b, "%.8g %.8g\n", v->predicted_j, seed_j(n, v, j)));
            if (block == 1) RRL_TRY(rrl_buffer_printf(b, "%.8g %.8g\n", v->predicted_j, v->measured_j));
            if (block == 2 && d && !isnan(d->about_runs.low))
                RRL_TRY(rrl_buffer_printf(b, "%.8g %.8g %.8g %.8g\n", v->predicted_j, d->mean, d->about_runs.low,
                                          d->about_runs.high));
        }
        RRL_TRY(rrl_buffer_puts(b, "EOD\n"));
    }
    return RRL_OK;
}

typedef struct {
    double low, high;
} range;

static void widen(range *r, double v) {
    if (isnan(v)) return;
    r->low = fmin(r->low, v);
    r->high = fmax(r->high, v);
}

static rrl_status put_panels(rrl_picture *p, rrl_panels g, const rrl_report_measurements *m, const char **methods,
                             int n_methods) {
    rrl_buffer *b = &p->script;
    range x = {0, 0}, j = {0, 0}, change = {0, 0};
    for (size_t i = 0; i < m->n; i++) {
        widen(&x, m->v[i].predicted_j);
        widen(&j, m->v[i].measured_j);
        if (!m->v[i].accuracy) continue;
        widen(&change, m->v[i].accuracy->about_runs.low);
        widen(&change, m->v[i].accuracy->about_runs.high);
    }
    double margin = 0.08 * (x.high - x.low) + 0.02;
    for (int panel = 0; panel < 2; panel++) {
        RRL_TRY(rrl_picture_panel(p, g, panel, panel ? "change of accuracy" : "what the reward is worth",
                                  "predicted J = E[r | right] - E[r | wrong]",
                                  panel ? "" : "measured J in training"));
        if (panel) RRL_TRY(rrl_buffer_puts(b, "set ylabel 'accuracy - base (share)' offset 1.5,0\n"));
        RRL_TRY(rrl_buffer_printf(b, "set xrange [%.6g:%.6g]\n", x.low - margin, x.high + margin));
        RRL_TRY(rrl_plot_range(b, "y", (panel ? change : j).low - 1e-9, (panel ? change : j).high));
        RRL_TRY(rrl_buffer_puts(b, panel ? "set xzeroaxis lt 1 lw 1 lc rgb '#808080'\nset arrow 1 from 0, graph 0 to 0, "
                                           "graph 1 nohead lt 1 lw 1 lc rgb '#808080' dt 4\nplot"
                                         : "plot x with lines lc rgb '#808080' lw 1 dt 4 notitle,"));
        for (int k = 0; k < n_methods; k++) {
            rrl_plot_style s = rrl_plot_style_of(methods[k], k);
            if (panel)
                RRL_TRY(rrl_buffer_printf(b,
                                          " $a%d using 1:3:(0):($4-$3) with vectors nohead lc rgb '%s' lw 1.5 dt 1 "
                                          "notitle, $a%d using 1:2 with points lc rgb '%s' pt %d ps 1 notitle%s",
                                          k, s.colour, k, s.colour, s.mark, k + 1 < n_methods ? "," : "\n"));
            else
                RRL_TRY(rrl_buffer_printf(b,
                                          " $s%d using 1:2 with points lc rgb '%s' pt %d ps 0.6 notitle, $m%d using 1:2 "
                                          "with points lc rgb '%s' pt %d ps 1 notitle%s",
                                          k, s.colour, s.open_mark, k, s.colour, s.mark, k + 1 < n_methods ? "," : "\n"));
        }
    }
    return RRL_OK;
}

/* Marks without lines, and the diagonal. */
static rrl_status put_key(rrl_buffer *key, const char **methods, int n) {
    for (int k = 0; k < n; k++) {
        rrl_plot_style s = rrl_plot_style_of(methods[k], k);
        RRL_TRY(rrl_buffer_printf(key, "NaN with points lc rgb '%s' pt %d ps 1 title ", s.colour, s.mark));
        RRL_TRY(rrl_plot_quote(key, methods[k]));
        RRL_TRY(rrl_buffer_puts(key, ", "));
    }
    return rrl_buffer_puts(key, "NaN with lines lc rgb '#808080' lw 1 dt 4 title 'as predicted | J = 0'");
}

rrl_status rrl_plot_predicted(rrl_pictures *out, const rrl_report_numbers *n, const rrl_report_study *study) {
    rrl_report_measurements m = {0};
    const char **methods = NULL;
    int n_methods = 0;
    rrl_buffer key = {0};
    rrl_picture *p;
    rrl_status rc;
    RRL_GOTO(rrl_report_measure(&m, study, n));
    if (!m.n) goto done;
    RRL_GOTO(rrl_plot_methods(&methods, &n_methods, n->section, true));
    rrl_panels g = rrl_panels_of(2, 2, 400, 300);
    RRL_GOTO(rrl_picture_add(&p, out, "prediction", "Prediction against measurement",
                             "Left: J of the reward that training saw, predicted before anything runs and measured on training "
                             "completions; open marks: seeds, filled: means. Right: accuracy less that of base after "
                             "training, with the 95 % interval about these runs; where J is below 0, it should fall.",
                             g));
    RRL_GOTO(put_data(&p->csv, &m));
    RRL_GOTO(rrl_picture_begin(p));
    for (int k = 0; k < n_methods; k++) RRL_GOTO(put_blocks(&p->script, n, &m, methods[k], k));
    RRL_GOTO(put_panels(p, g, &m, methods, n_methods));
    RRL_GOTO(rrl_buffer_puts(&p->script, "unset arrow\nunset xzeroaxis\n"));
    RRL_GOTO(put_key(&key, methods, n_methods));
    RRL_GOTO(rrl_picture_end(p, key.data));
done:
    rrl_buffer_free(&key);
    free(methods);
    free(m.v);
    return rc;
}
