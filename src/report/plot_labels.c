/* Each label in turn takes the cheapest of a few places around its point; what was placed before stays. */
#include "report/plot_labels.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const double MARK = 8, GAP = 7; /* size of a mark; distance of a label from the middle of it */

typedef struct {
    double x, y, width, height; /* x, y: the middle */
} box;

double rrl_plot_label_width(const char *text) {
    return 6.0 * (double)strlen(text); /* digits, points and commas; none is wider */
}

double rrl_plot_label_height(void) {
    return 11;
}

static double overlap(box a, box b) {
    double w = fmin(a.x + a.width / 2, b.x + b.width / 2) - fmax(a.x - a.width / 2, b.x - b.width / 2);
    double h = fmin(a.y + a.height / 2, b.y + b.height / 2) - fmax(a.y - a.height / 2, b.y - b.height / 2);
    return w > 0 && h > 0 ? w * h : 0;
}

static box label_of(const rrl_plot_point *p) {
    return (box){p->label_x, p->label_y, rrl_plot_label_width(p->text), rrl_plot_label_height()};
}

/* What it costs to place label i in a box: on another label is worse than on a mark, outside is worst. */
static double cost_of(const rrl_plot_point *v, size_t n, size_t i, box at, box panel) {
    double cost = 16 * (at.width * at.height - overlap(at, panel));
    for (size_t j = 0; j < n; j++) {
        cost += overlap(at, (box){v[j].x, v[j].y, MARK, MARK});
        if (j < i && *v[j].text) cost += 4 * overlap(at, label_of(&v[j]));
    }
    return cost;
}

static void place(rrl_plot_point *v, size_t n, size_t i, box panel) {
    static const int SIDES[][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
    enum { RINGS = 3, N_SIDES = sizeof SIDES / sizeof *SIDES };
    double best = INFINITY;
    box at = {.width = rrl_plot_label_width(v[i].text), .height = rrl_plot_label_height()};
    for (int k = 0; k < RINGS * N_SIDES && best > 0; k++) {
        double away = GAP * (1 + k / N_SIDES);
        at.x = v[i].x + SIDES[k % N_SIDES][0] * (away + at.width / 2);
        at.y = v[i].y + SIDES[k % N_SIDES][1] * (away + at.height / 2);
        double cost = cost_of(v, n, i, at, panel);
        if (!(cost < best)) continue;
        best = cost;
        v[i].label_x = at.x;
        v[i].label_y = at.y;
    }
}

/* Points of a series in one place: the first takes the text of all. */
static void join(rrl_plot_point *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n && *v[i].text; j++) {
            bool same = v[i].series == v[j].series && hypot(v[i].x - v[j].x, v[i].y - v[j].y) < 1;
            size_t used = strlen(v[i].text);
            if (!same || !*v[j].text || used + strlen(v[j].text) + 3 > RRL_LABEL_TEXT) continue;
            snprintf(v[i].text + used, RRL_LABEL_TEXT - used, ", %s", v[j].text);
            v[j].text[0] = '\0';
        }
}

void rrl_plot_labels_place(rrl_plot_point *v, size_t n, double width, double height) {
    box panel = {width / 2, height / 2, width, height};
    join(v, n);
    for (size_t i = 0; i < n; i++)
        if (*v[i].text) place(v, n, i, panel);
}
