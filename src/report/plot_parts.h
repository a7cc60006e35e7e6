/* What the makers of pictures share: colours, axes, panels. Used by src/report/plot_*.c only.
 *
 * A picture is a grid of panels. Methods have a colour (Okabe and Ito's, told apart by the colour blind), a mark and a
 * dash each, so that none of the three is needed alone. */
#ifndef RRL_REPORT_PLOT_PARTS_H
#define RRL_REPORT_PLOT_PARTS_H

#include "report/plots.h"

typedef struct {
    int n, columns, rows;
    int panel_width, panel_height; /* pixels of the axes' box */
} rrl_panels;

/** Grid for n panels of at most max_columns columns. */
rrl_panels rrl_panels_of(int n, int max_columns, int panel_width, int panel_height);

/** A new picture at the end of p; texts are copied. The pointer holds until the next one is added. */
rrl_status rrl_picture_add(rrl_picture **out, rrl_pictures *p, const char *name, const char *title,
                           const char *caption, rrl_panels panels);
/** Head of the script: encoding, multiplot, grid, borders. */
rrl_status rrl_picture_begin(rrl_picture *p);
/** Place of panel i, its title, and axis labels; the y label stands in the first column only. */
rrl_status rrl_picture_panel(rrl_picture *p, rrl_panels g, int i, const char *title, const char *x_label,
                             const char *y_label);
/** The key, a strip below all panels: entries are plot commands with a title, separated by commas. Then the end. */
rrl_status rrl_picture_end(rrl_picture *p, const char *key);

/** Text as gnuplot's single-quoted string. */
rrl_status rrl_plot_quote(rrl_buffer *b, const char *text);
/** A number for a script; NaN as NaN. */
rrl_status rrl_plot_number(rrl_buffer *b, double v);
/** Limits of an axis around [low, high] with a margin; it shows nothing below 0 where low is not. put_range writes them,
 *  range is both. */
void rrl_plot_limits(double limits[2], double low, double high);
rrl_status rrl_plot_put_range(rrl_buffer *b, const char *axis, const double limits[2]);
rrl_status rrl_plot_range(rrl_buffer *b, const char *axis, double low, double high);

/** "lc rgb ... pt ..." of a method: the three of the protocol have fixed ones, others by their place. */
typedef struct {
    const char *colour;
    int mark, open_mark, dash;
} rrl_plot_style;
rrl_plot_style rrl_plot_style_of(const char *method, int place);

/** Plot commands of a method m in a panel: blocks $seedsP_M (x y) as open marks, $meanP_M (x y low high) as bars, line and
 *  filled marks. Bars and lines stand apart from marks, because gnuplot paints yerrorbars and linespoints white around a
 *  mark. */
rrl_status rrl_plot_series(rrl_buffer *b, int panel, int m, rrl_plot_style s, bool bars, double mark_size);
/** Key entries of the methods. */
rrl_status rrl_plot_method_key(rrl_buffer *key, const char *const *methods, int n);

/** Distinct arms, and methods in report order, of a section; borrowed texts. The caller frees the arrays. */
rrl_status rrl_plot_arms(const char ***out, int *n, const rrl_report_section *s);
rrl_status rrl_plot_methods(const char ***out, int *n, const rrl_report_section *s, bool trained_only);

/* Levels of an arm as places on the x axis: numbers where they are, fixed members beside them. */
typedef struct {
    double *v; /* [n] levels, NaN = fixed, ascending */
    int n;
    double low, high, step; /* of the axis; step = distance that keeps neighbours apart */
} rrl_plot_axis;
rrl_status rrl_plot_axis_of(rrl_plot_axis *out, const rrl_report_section *s, const char *arm);
double rrl_plot_place(const rrl_plot_axis *a, double level);
/** set xrange, set xtics. */
rrl_status rrl_plot_axis_put(rrl_buffer *b, const rrl_plot_axis *a);

/** Part of a file's name: letters, digits, - and _ of text. */
void rrl_plot_file_name(char out[RRL_PICTURE_NAME], const char *prefix, const char *text);

/* The makers. */
rrl_status rrl_plot_levels(rrl_pictures *p, const rrl_report_numbers *n);
rrl_status rrl_plot_pass_at_k(rrl_pictures *p, const rrl_report_numbers *n);
rrl_status rrl_plot_reward_correctness(rrl_pictures *p, const rrl_report_numbers *n);
rrl_status rrl_plot_curves(rrl_pictures *p, const rrl_report_numbers *n);
rrl_status rrl_plot_predicted(rrl_pictures *p, const rrl_report_numbers *n, const rrl_report_study *study);

#endif
