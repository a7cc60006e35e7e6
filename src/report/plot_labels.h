/* Places for the labels of points. Used by src/report/plot_*.c only. */
#ifndef RRL_REPORT_PLOT_LABELS_H
#define RRL_REPORT_PLOT_LABELS_H

#include <stddef.h>

enum { RRL_LABEL_TEXT = 64 };

/* Lengths are pixels of the panel, from its lower left corner. */
typedef struct {
    double x, y;               /* of the point */
    int series;                /* whose point it is */
    char text[RRL_LABEL_TEXT]; /* "" = a point without a label */
    double label_x, label_y;   /* middle of the label, set by rrl_plot_labels_place */
} rrl_plot_point;

/** Size of a label in the font of 10 pixels. */
double rrl_plot_label_width(const char *text);
double rrl_plot_label_height(void);

/** Place the labels beside their points: near, not on each other, not on a point, not outside of width x height, as far as
 *  there is room. Labels of a series whose points are one become one, "0.1, 0.2", at the first. The same input gives the
 *  same places. */
void rrl_plot_labels_place(rrl_plot_point *v, size_t n, double width, double height);

#endif
