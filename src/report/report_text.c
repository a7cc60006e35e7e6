/* The main table for a terminal. */
#include "report/report_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { CELL_CHARS = 64, NAME_COLUMNS = 14 };

int64_t rrl_report_largest_k(const rrl_report_section *s) {
    int64_t largest = 0;
    for (size_t i = 0; i < s->n; i++)
        for (int64_t m = 0; m < s->v[i]->n_metrics; m++) {
            const char *name = s->v[i]->metrics[m].name;
            int64_t k = strncmp(name, "pass@", 5) == 0 ? strtoll(name + 5, NULL, 10) : 0;
            if (k > largest) largest = k;
        }
    return largest;
}

static int width_of(const char *text) {
    int n = 0;
    for (const char *end = text + strlen(text); text < end; n++) rrl_utf8_next(&text, end);
    return n;
}

/* text in exactly `width` columns; what does not fit ends in "~". */
static rrl_status pad(rrl_buffer *b, const char *text, int width) {
    int wide = width_of(text);
    const char *p = text, *end = text + strlen(text);
    for (int i = 0; i < (wide > width ? width - 1 : wide); i++) rrl_utf8_next(&p, end);
    RRL_TRY(rrl_buffer_put(b, text, (size_t)(p - text)));
    if (wide > width) return rrl_buffer_puts(b, "~");
    return rrl_buffer_printf(b, "%*s", width - wide, "");
}

/* A mean with three decimals; empty where undefined. */
static void number(char out[CELL_CHARS], double v) {
    if (isnan(v))
        out[0] = '\0';
    else
        snprintf(out, CELL_CHARS, "%.3f", v);
}

typedef struct {
    int arm, method; /* columns */
} widths;

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* Arm and method as wide as they are, within what the numbers leave of 80 columns (54 of them are taken). */
static widths measure(const rrl_report_section *s) {
    widths w = {3, 6};
    for (size_t i = 0; i < s->n; i++) {
        int arm = width_of(s->v[i]->arm), method = width_of(s->v[i]->method);
        w.arm = arm > w.arm ? arm : w.arm;
        w.method = method > w.method ? method : w.method;
    }
    int left = RRL_REPORT_COLUMNS - 54;
    w.method = smaller(w.method, left - smaller(w.arm, NAME_COLUMNS));
    w.arm = smaller(w.arm, left - w.method);
    return w;
}

static rrl_status put_row(rrl_buffer *b, widths w, const char *arm, const char *level, const char *method,
                          const char *const cells[5]) {
    RRL_TRY(pad(b, arm, w.arm));
    RRL_TRY(rrl_buffer_printf(b, " %6.6s ", level));
    RRL_TRY(pad(b, method, w.method));
    return rrl_buffer_printf(b, " %5s %14s %7s %7s %8s\n", cells[0], cells[1], cells[2], cells[3], cells[4]);
}

static double mean_of(const rrl_report_numbers *n, const rrl_report_condition *c, const char *metric) {
    const rrl_report_aggregate *a = rrl_report_find_aggregate(n, c->arm, c->level, c->method, metric);
    return a ? a->mean : NAN;
}

static rrl_status put_method(rrl_buffer *b, widths w, const rrl_report_numbers *n,
                             const rrl_report_condition *c, const char *pass) {
    const rrl_report_aggregate *a =
        rrl_report_find_aggregate(n, c->arm, c->level, c->method, "independent_accuracy");
    char level[RRL_NUMBER_CHARS] = "fixed", cells[5][CELL_CHARS];
    if (!isnan(c->level)) rrl_format_g(level, c->level);
    snprintf(cells[0], CELL_CHARS, "%lld", a ? (long long)a->n_seeds : 0);
    number(cells[1], a ? a->mean : NAN);
    if (a && !isnan(a->std)) snprintf(cells[1], CELL_CHARS, "%.3f (%.3f)", a->mean, a->std);
    number(cells[2], mean_of(n, c, "observed_reward"));
    number(cells[3], mean_of(n, c, "reward_hacking_gap"));
    number(cells[4], mean_of(n, c, pass));
    return put_row(b, w, c->arm, level, c->method,
                   (const char *const[]){cells[0], cells[1], cells[2], cells[3], cells[4]});
}

rrl_status rrl_report_text_table(rrl_buffer *b, const rrl_report_numbers *n) {
    const rrl_report_section *s = n->section;
    widths w = measure(s);
    char pass[CELL_CHARS];
    snprintf(pass, sizeof pass, "pass@%lld", (long long)rrl_report_largest_k(s));
    RRL_TRY(put_row(b, w, "arm", "level", "method",
                    (const char *const[]){"seeds", "accuracy (sd)", "reward", "gap", pass}));
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_method_end(s, i);
        bool evaluated = false;
        for (size_t j = i; j < end; j++) evaluated |= s->v[j]->evaluation != NULL;
        if (evaluated) RRL_TRY(put_method(b, w, n, s->v[i], pass));
    }
    return RRL_OK;
}

rrl_status rrl_report_gap_text(rrl_buffer *b, const rrl_report_gap *g) {
    RRL_TRY(rrl_buffer_printf(b, "%s: %s", g->path, g->status));
    return *g->reason ? rrl_buffer_printf(b, " (%s)", g->reason) : RRL_OK;
}
