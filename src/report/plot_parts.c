#include "report/plot_parts.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* Pixels around the panels: on the left there is room for ticks as wide as -0.005 and a label beside them. */
enum { LEFT = 94, RIGHT = 16, TOP = 70, BOTTOM = 92, BETWEEN_X = 76, BETWEEN_Y = 92, KEY_HEIGHT = 34 };

/* --- pictures */

rrl_panels rrl_panels_of(int n, int max_columns, int panel_width, int panel_height) {
    rrl_panels g = {.n = n, .panel_width = panel_width, .panel_height = panel_height};
    g.columns = n < max_columns ? n : max_columns;
    g.rows = (n + g.columns - 1) / g.columns;
    return g;
}

rrl_status rrl_picture_add(rrl_picture **out, rrl_pictures *p, const char *name, const char *title,
                           const char *caption, rrl_panels g) {
    RRL_TRY(rrl_grow(&p->v, &p->capacity, p->n + 1, sizeof *p->v, "pictures"));
    rrl_picture *new = &p->v[p->n];
    *new = (rrl_picture){.width = LEFT + RIGHT + g.columns * g.panel_width + (g.columns - 1) * BETWEEN_X,
                         .height = TOP + BOTTOM + g.rows * g.panel_height + (g.rows - 1) * BETWEEN_Y};
    p->n++;
    snprintf(new->name, sizeof new->name, "%s", name);
    RRL_TRY(rrl_strdup(&new->title, title));
    RRL_TRY(rrl_strdup(&new->caption, caption));
    *out = new;
    return RRL_OK;
}

rrl_status rrl_picture_begin(rrl_picture *p) {
    rrl_buffer *b = &p->script;
    RRL_TRY(rrl_buffer_puts(b, "set encoding utf8\nset multiplot title "));
    RRL_TRY(rrl_plot_quote(b, p->title));
    return rrl_buffer_puts(b, "\nset border 3 lc rgb '#808080'\nset tics out nomirror scale 0.6\nset ytics format '%g'\n"
                              "set grid ytics lt 1 lw 0.5 lc rgb '#B0B0B0'\nset bars small\nunset key\n");
}

rrl_status rrl_picture_panel(rrl_picture *p, rrl_panels g, int i, const char *title, const char *x_label,
                             const char *y_label) {
    int column = i % g.columns, row = i / g.columns;
    double x = LEFT + column * (g.panel_width + BETWEEN_X);
    double y = p->height - TOP - row * (g.panel_height + BETWEEN_Y); /* upper edge, from below */
    rrl_buffer *b = &p->script;
    RRL_TRY(rrl_buffer_printf(b, "set lmargin at screen %.6f\nset rmargin at screen %.6f\n", x / p->width,
                              (x + g.panel_width) / p->width));
    RRL_TRY(rrl_buffer_printf(b, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n", y / p->height,
                              (y - g.panel_height) / p->height));
    RRL_TRY(rrl_buffer_puts(b, "set title "));
    RRL_TRY(rrl_plot_quote(b, title));
    RRL_TRY(rrl_buffer_puts(b, " offset 0,-0.4\nset xlabel "));
    RRL_TRY(rrl_plot_quote(b, x_label));
    RRL_TRY(rrl_buffer_puts(b, " offset 0,0.3\nset ylabel "));
    RRL_TRY(rrl_plot_quote(b, column == 0 ? y_label : ""));
    return rrl_buffer_puts(b, " offset 0.4,0\n");
}

/* An empty plot as wide as the picture: gnuplot breaks a key into lines by the width of its plot. */
rrl_status rrl_picture_end(rrl_picture *p, const char *key) {
    RRL_TRY(rrl_buffer_printf(&p->script,
                              "set lmargin at screen 0\nset rmargin at screen 1\nset bmargin at screen 0\nset "
                              "tmargin at screen %.6f\nunset border\nunset tics\nunset grid\nunset title\nunset "
                              "xlabel\nunset ylabel\nunset logscale\nset xrange [0:1]\nset yrange [0:1]\n",
                              (double)KEY_HEIGHT / p->height));
    return rrl_buffer_printf(&p->script, "set key center center horizontal samplen 4\nplot %s\nunset multiplot\n",
                             key);
}

rrl_status rrl_plot_series(rrl_buffer *b, int panel, int m, rrl_plot_style s, bool bars, double mark_size) {
    RRL_TRY(rrl_buffer_printf(b, "$seeds%d_%d using 1:2 with points lc rgb '%s' pt %d ps %.2g notitle, \\\n", panel, m,
                              s.colour, s.open_mark, mark_size * 0.65));
    if (bars)
        RRL_TRY(rrl_buffer_printf(b,
                                  "     $mean%d_%d using 1:3:(0):($4-$3) with vectors nohead lc rgb '%s' lw 1.5 dt 1 "
                                  "notitle, \\\n",
                                  panel, m, s.colour));
    RRL_TRY(rrl_buffer_printf(b, "     $mean%d_%d using 1:2 with lines lc rgb '%s' lw %d dt %d notitle, \\\n", panel, m,
                              s.colour, bars ? 2 : 1, s.dash));
    return rrl_buffer_printf(b, "     $mean%d_%d using 1:2 with points lc rgb '%s' pt %d ps %.2g notitle", panel, m,
                             s.colour, s.mark, mark_size);
}

rrl_status rrl_plot_method_key(rrl_buffer *key, const char *const *methods, int n) {
    for (int m = 0; m < n; m++) {
        rrl_plot_style s = rrl_plot_style_of(methods[m], m);
        RRL_TRY(rrl_buffer_printf(key, "%sNaN with linespoints lc rgb '%s' pt %d ps 0.9 lw 2 dt %d title ",
                                  key->len ? ", " : "", s.colour, s.mark, s.dash));
        RRL_TRY(rrl_plot_quote(key, methods[m]));
    }
    return RRL_OK;
}

/* --- text of scripts */

rrl_status rrl_plot_quote(rrl_buffer *b, const char *text) {
    RRL_TRY(rrl_buffer_puts(b, "'"));
    for (const char *p = text; *p; p++)
        RRL_TRY(rrl_buffer_put(b, *p == '\'' ? "''" : *p == '\n' ? " " : p, *p == '\'' ? 2 : 1));
    return rrl_buffer_puts(b, "'");
}

rrl_status rrl_plot_number(rrl_buffer *b, double v) {
    char text[RRL_NUMBER_CHARS] = "NaN";
    if (!isnan(v)) rrl_format_double(text, v);
    return rrl_buffer_puts(b, text);
}

void rrl_plot_limits(double limits[2], double low, double high) {
    if (!(low <= high)) low = 0, high = 1;
    double margin = high > low ? 0.06 * (high - low) : fmax(0.05, 0.1 * fabs(high));
    limits[0] = low >= 0 ? fmax(low - margin, -0.15 * margin) : low - margin;
    limits[1] = high + margin;
}

rrl_status rrl_plot_put_range(rrl_buffer *b, const char *axis, const double limits[2]) {
    return rrl_buffer_printf(b, "set %srange [%.6g:%.6g]\n", axis, limits[0], limits[1]);
}

rrl_status rrl_plot_range(rrl_buffer *b, const char *axis, double low, double high) {
    double limits[2];
    rrl_plot_limits(limits, low, high);
    return rrl_plot_put_range(b, axis, limits);
}

void rrl_plot_file_name(char out[RRL_PICTURE_NAME], const char *prefix, const char *text) {
    size_t n = (size_t)snprintf(out, RRL_PICTURE_NAME, "%s%s", prefix, *text ? "-" : "");
    for (const char *p = text; *p && n + 1 < RRL_PICTURE_NAME; p++)
        out[n++] = isalnum((unsigned char)*p) || *p == '-' || *p == '_' ? *p : '_';
    out[n] = '\0';
}

/* --- methods and arms */

rrl_plot_style rrl_plot_style_of(const char *method, int place) {
    static const struct {
        const char *method;
        rrl_plot_style style;
    } FIXED[] = {{"base", {"#808080", 5, 4, 3}},
                 {"baseline", {"#D55E00", 7, 6, 1}},
                 {"robust", {"#0072B2", 9, 8, 2}}};
    static const rrl_plot_style OTHERS[] = {
        {"#009E73", 11, 10, 4}, {"#CC79A7", 13, 12, 5}, {"#E69F00", 15, 14, 1}, {"#56B4E9", 5, 4, 2}};
    for (int i = 0; i < 3; i++)
        if (strcmp(method, FIXED[i].method) == 0) return FIXED[i].style;
    return OTHERS[place % 4];
}

static bool among(const char *const *v, int n, const char *text) {
    for (int i = 0; i < n; i++)
        if (strcmp(v[i], text) == 0) return true;
    return false;
}

rrl_status rrl_plot_arms(const char ***out, int *n, const rrl_report_section *s) {
    const char **v;
    RRL_TRY(rrl_alloc(&v, s->n, sizeof *v, "arms"));
    *n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!among(v, *n, s->v[i]->arm)) v[(*n)++] = s->v[i]->arm;
    *out = v;
    return RRL_OK;
}

static int by_method(const void *a, const void *b) {
    return rrl_report_order_methods(*(const char *const *)a, *(const char *const *)b);
}

rrl_status rrl_plot_methods(const char ***out, int *n, const rrl_report_section *s, bool trained_only) {
    const char **v;
    RRL_TRY(rrl_alloc(&v, s->n, sizeof *v, "methods"));
    *n = 0;
    for (size_t i = 0; i < s->n; i++)
        if ((s->v[i]->trained || !trained_only) && !among(v, *n, s->v[i]->method))
            v[(*n)++] = s->v[i]->method;
    if (*n) qsort(v, (size_t)*n, sizeof *v, by_method);
    *out = v;
    return RRL_OK;
}

/* --- levels */

rrl_status rrl_plot_axis_of(rrl_plot_axis *out, const rrl_report_section *s, const char *arm) {
    rrl_plot_axis a = {.low = NAN, .high = NAN, .step = 1};
    RRL_TRY(rrl_alloc(&a.v, s->n, sizeof *a.v, "levels"));
    for (size_t i = 0; i < s->n; i++) {
        double level = s->v[i]->level;
        if (strcmp(s->v[i]->arm, arm) != 0) continue;
        if (a.n && rrl_report_order_levels(a.v[a.n - 1], level) == 0) continue;
        if (a.n && !isnan(level)) a.step = fmin(a.step, level - a.v[a.n - 1]);
        a.v[a.n++] = level;
    }
    a.low = a.n ? rrl_plot_place(&a, a.v[0]) : 0;
    a.high = a.n ? rrl_plot_place(&a, a.v[a.n - 1]) : 0;
    *out = a;
    return RRL_OK;
}

double rrl_plot_place(const rrl_plot_axis *a, double level) {
    if (!isnan(level)) return level;
    double last = 0;
    for (int i = 0; i < a->n; i++)
        if (!isnan(a->v[i])) last = a->v[i];
    return a->n > 1 ? last + a->step : 0;
}

rrl_status rrl_plot_axis_put(rrl_buffer *b, const rrl_plot_axis *a) {
    RRL_TRY(rrl_buffer_printf(b, "set xrange [%.6g:%.6g]\nset xtics (", a->low - 0.5 * a->step,
                              a->high + 0.5 * a->step));
    for (int i = 0; i < a->n; i++) {
        char text[RRL_NUMBER_CHARS] = "fixed members";
        if (!isnan(a->v[i])) rrl_format_g(text, a->v[i]);
        RRL_TRY(rrl_buffer_printf(b, "%s'%s' %.6g", i ? ", " : "", text, rrl_plot_place(a, a->v[i])));
    }
    return rrl_buffer_puts(b, ")\n");
}
