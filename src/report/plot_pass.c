/* pass@k against k, a picture an arm and a panel a level. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "report/csv.h"
#include "report/plot_parts.h"
#include "report/report_text.h"

enum { MAX_KS = 32, METRIC_CHARS = 32 };

typedef struct {
    const rrl_report_numbers *n;
    const char **methods;
    int n_methods;
    long long k[MAX_KS];
    int n_k;
} passes;

static void metric_of(char out[METRIC_CHARS], long long k) {
    snprintf(out, METRIC_CHARS, "pass@%lld", k);
}

static void find_ks(passes *p) {
    const rrl_report_section *s = p->n->section;
    for (size_t i = 0; i < s->n; i++)
        for (int64_t m = 0; m < s->v[i]->n_metrics; m++) {
            const char *name = s->v[i]->metrics[m].name;
            long long k = strncmp(name, "pass@", 5) == 0 ? strtoll(name + 5, NULL, 10) : 0;
            bool known = k <= 0 || p->n_k == MAX_KS;
            for (int j = 0; j < p->n_k && !known; j++) known = p->k[j] == k;
            if (!known) p->k[p->n_k++] = k;
        }
}

/* --- pass@k */

static rrl_status put_pass_data(rrl_buffer *csv, const passes *p, const char *arm) {
    const rrl_report_section *s = p->n->section;
    RRL_TRY(rrl_buffer_puts(csv, "arm,level,method,seed,k,value,mean,low,high\n"));
    for (size_t i = 0; i < s->n; i++)
        for (int j = 0; j < p->n_k; j++) {
            const rrl_report_condition *c = s->v[i];
            char metric[METRIC_CHARS];
            metric_of(metric, p->k[j]);
            const rrl_report_aggregate *a = rrl_report_find_aggregate(p->n, c->arm, c->level, c->method, metric);
            if (strcmp(c->arm, arm) != 0 || !c->evaluation || !a) continue;
            RRL_TRY(rrl_csv_text(csv, c->arm));
            RRL_TRY(rrl_csv_level(csv, c->level));
            RRL_TRY(rrl_csv_text(csv, c->method));
            RRL_TRY(rrl_csv_count(csv, c->seed));
            RRL_TRY(rrl_csv_count(csv, (uint64_t)p->k[j]));
            RRL_TRY(rrl_csv_number(csv, rrl_report_metric(c, metric)));
            RRL_TRY(rrl_csv_number(csv, a->mean));
            RRL_TRY(rrl_csv_number(csv, a->about_runs.low));
            RRL_TRY(rrl_csv_number(csv, a->about_runs.high));
            RRL_TRY(rrl_csv_end(csv));
        }
    return RRL_OK;
}

/* Methods of one k stand side by side: k times a factor, on the logarithmic axis. */
static double beside(const passes *p, long long k, int method) {
    return (double)k * exp2((method - (p->n_methods - 1) / 2.0) * 0.08);
}

static rrl_status put_row(rrl_buffer *b, const double *v, int n) {
    for (int i = 0; i < n; i++) {
        RRL_TRY(rrl_plot_number(b, v[i]));
        RRL_TRY(rrl_buffer_puts(b, i + 1 < n ? " " : "\n"));
    }
    return RRL_OK;
}

/* Rows [begin, end) are the seeds of one arm, level and method. */
static rrl_status put_pass_blocks(rrl_buffer *b, const passes *p, size_t begin, size_t end, int panel,
                                  int method) {
    const rrl_report_section *s = p->n->section;
    char metric[METRIC_CHARS];
    RRL_TRY(rrl_buffer_printf(b, "$seeds%d_%d << EOD\n", panel, method));
    for (size_t i = begin; i < end; i++)
        for (int j = 0; j < p->n_k; j++) {
            metric_of(metric, p->k[j]);
            double v[] = {beside(p, p->k[j], method), rrl_report_metric(s->v[i], metric)};
            RRL_TRY(put_row(b, v, 2));
        }
    RRL_TRY(rrl_buffer_printf(b, "EOD\n$mean%d_%d << EOD\n", panel, method));
    for (int j = 0; j < p->n_k; j++) {
        const rrl_report_condition *c = s->v[begin];
        metric_of(metric, p->k[j]);
        const rrl_report_aggregate *a = rrl_report_find_aggregate(p->n, c->arm, c->level, c->method, metric);
        if (!a) continue;
        double v[] = {beside(p, p->k[j], method), a->mean, a->about_runs.low, a->about_runs.high};
        RRL_TRY(put_row(b, v, 4));
    }
    return rrl_buffer_puts(b, "EOD\n");
}

static int place_of(const passes *p, const char *method) {
    for (int m = 0; m < p->n_methods; m++)
        if (strcmp(p->methods[m], method) == 0) return m;
    return 0;
}

static rrl_status put_k_axis(rrl_buffer *b, const passes *p) {
    long long largest = 1, smallest = p->k[0];
    for (int j = 0; j < p->n_k; j++) {
        largest = p->k[j] > largest ? p->k[j] : largest;
        smallest = p->k[j] < smallest ? p->k[j] : smallest;
    }
    RRL_TRY(rrl_buffer_printf(b, "set logscale x 2\nset xrange [%.6g:%.6g]\nset xtics (",
                              (double)smallest / 1.5, (double)largest * 1.5));
    for (int j = 0; j < p->n_k; j++)
        RRL_TRY(rrl_buffer_printf(b, "%s'%lld' %lld", j ? ", " : "", p->k[j], p->k[j]));
    return rrl_buffer_puts(b, ")\nset yrange [0:1.02]\n");
}

/* The panel of one cell (arm and level), rows [begin, end). */
static rrl_status put_pass_panel(rrl_picture *pic, const passes *p, rrl_panels g, int panel, size_t begin,
                                 size_t end) {
    const rrl_report_section *s = p->n->section;
    rrl_buffer *b = &pic->script;
    char title[96];
    for (size_t i = begin, next; i < end; i = next) {
        next = rrl_report_method_end(s, i);
        RRL_TRY(put_pass_blocks(b, p, i, next, panel, place_of(p, s->v[i]->method)));
    }
    rrl_report_cell_name(title, s->v[begin]->arm, s->v[begin]->level);
    RRL_TRY(rrl_picture_panel(pic, g, panel, title, "k (completions drawn)", "pass@k (share)"));
    for (size_t i = begin, next; i < end; i = next) {
        next = rrl_report_method_end(s, i);
        int m = place_of(p, s->v[i]->method);
        RRL_TRY(rrl_buffer_puts(b, i == begin ? "plot " : "     "));
        RRL_TRY(rrl_plot_series(b, panel, m, rrl_plot_style_of(s->v[i]->method, m), true, 0.75));
        RRL_TRY(rrl_buffer_puts(b, next < end ? ", \\\n" : "\n"));
    }
    return RRL_OK;
}

static int count_cells(const rrl_report_section *s, const char *arm) {
    int n = 0;
    for (size_t i = 0; i < s->n; i = rrl_report_cell_end(s, i)) n += strcmp(s->v[i]->arm, arm) == 0;
    return n;
}

static rrl_status add_pass_picture(rrl_pictures *out, const passes *p, const char *arm, const char *key) {
    const rrl_report_section *s = p->n->section;
    rrl_picture *pic;
    char name[RRL_PICTURE_NAME], title[160];
    int panel = 0;
    rrl_panels g = rrl_panels_of(count_cells(s, arm), 3, count_cells(s, arm) == 1 ? 420 : 250, 220);
    rrl_plot_file_name(name, "pass_at_k", arm);
    snprintf(title, sizeof title, "pass@k%s%.100s", *arm ? ", arm " : "", arm);
    RRL_TRY(rrl_picture_add(&pic, out, name, title,
                            "Chance that at least one of k completions is right (unbiased estimate). Open "
                            "marks: seeds. Filled marks and lines: mean over seeds. Bars: 95 % interval about "
                            "these runs (bootstrap over questions, seeds as they are).",
                            g));
    RRL_TRY(put_pass_data(&pic->csv, p, arm));
    RRL_TRY(rrl_picture_begin(pic));
    RRL_TRY(put_k_axis(&pic->script, p));
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_cell_end(s, i);
        if (strcmp(s->v[i]->arm, arm) == 0) RRL_TRY(put_pass_panel(pic, p, g, panel++, i, end));
    }
    return rrl_picture_end(pic, key);
}

rrl_status rrl_plot_pass_at_k(rrl_pictures *out, const rrl_report_numbers *n) {
    passes p = {.n = n};
    const char **arms = NULL;
    rrl_buffer key = {0};
    int n_arms = 0;
    rrl_status rc;
    find_ks(&p);
    if (!p.n_k) return RRL_OK;
    RRL_GOTO(rrl_plot_arms(&arms, &n_arms, n->section));
    RRL_GOTO(rrl_plot_methods(&p.methods, &p.n_methods, n->section, false));
    RRL_GOTO(rrl_plot_method_key(&key, p.methods, p.n_methods));
    for (int a = 0; a < n_arms; a++) RRL_GOTO(add_pass_picture(out, &p, arms[a], key.data));
done:
    rrl_buffer_free(&key);
    free(arms);
    free(p.methods);
    return rc;
}
