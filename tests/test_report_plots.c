/* What a reader sees of the plots: labels that lie on nothing, y labels inside the picture. */
#include "report/plots.h"

#include <math.h>

#include "base/files.h"
#include "check.h"
#include "report/plot_labels.h"

enum { LEVELS = 5, METHODS = 3, CONDITIONS = (LEVELS + 1) * METHODS, METRICS = 3 };

/* Accuracy and reward of base, baseline, robust at flip levels 0 to 0.6, where two methods all but meet at 0.1 and 0.6, and
 * with fixed members. */
static const double VALUES[LEVELS + 1][METHODS][2] = {
    {{0.40, 0.40}, {0.82, 0.82}, {0.82, 0.82}}, {{0.40, 0.42}, {0.81, 0.75}, {0.812, 0.751}},
    {{0.40, 0.44}, {0.80, 0.68}, {0.75, 0.65}}, {{0.40, 0.48}, {0.64, 0.53}, {0.54, 0.51}},
    {{0.40, 0.52}, {0.11, 0.58}, {0.112, 0.58}}, {{0.40, 0.69}, {0.62, 0.75}, {0.79, 0.79}}};
static const double LEVEL[LEVELS + 1] = {0, 0.1, 0.2, 0.4, 0.6, NAN};
static const char *const METHOD[METHODS] = {"base", "baseline", "robust"};

static rrl_report_condition conditions[CONDITIONS];
static rrl_metric metrics[CONDITIONS][METRICS];
static const rrl_report_condition *rows[CONDITIONS];
static const rrl_report_section section = {rows, CONDITIONS, CONDITIONS, (char *)""};

static void make_conditions(double gap_scale) {
    static const char *const NAMES[METRICS] = {"independent_accuracy", "observed_reward", "reward_hacking_gap"};
    for (int i = 0; i < CONDITIONS; i++) {
        int level = i / METHODS;
        const double *v = VALUES[level][i % METHODS];
        const double value[METRICS] = {v[0], v[1], gap_scale * (v[1] - v[0])};
        for (int k = 0; k < METRICS; k++) {
            metrics[i][k] = (rrl_metric){.value = value[k], .defined = 1};
            metrics[i][k].name = (char *)NAMES[k];
        }
        conditions[i] = (rrl_report_condition){.path = (char *)"a", .kind = (char *)"evaluation",
                                               .arm = (char *)(level < LEVELS ? "flip" : "loophole"),
                                               .method = (char *)METHOD[i % METHODS], .level = LEVEL[level], .seed = 7,
                                               .evaluation = (char *)"test", .n_questions = 2, .metrics = metrics[i],
                                               .n_metrics = METRICS};
        rows[i] = &conditions[i];
    }
}

/* --- reward against correctness */

/* The labels of a block of the script; *n of them. */
static void read_labels(rrl_plot_point *v, int *n, const char *script, const char *block, double from, double to) {
    const char *line = strstr(script, block);
    if (!CHECK(line != NULL)) return;
    for (line = strchr(line, '\n') + 1; strncmp(line, "EOD", 3) != 0; line = strchr(line, '\n') + 1) {
        rrl_plot_point p = {0};
        if (!CHECK_EQ_INT(sscanf(line, "%lf %lf \"%63[^\"]", &p.label_x, &p.label_y, p.text), 3)) return;
        p.label_x = (p.label_x - from) / (to - from) * 400;
        p.label_y = (p.label_y - from) / (to - from) * 340;
        v[(*n)++] = p;
    }
}

static int meet(const rrl_plot_point *a, const rrl_plot_point *b) {
    double width = (rrl_plot_label_width(a->text) + rrl_plot_label_width(b->text)) / 2;
    return fabs(a->label_x - b->label_x) < width - 1e-3 && fabs(a->label_y - b->label_y) < rrl_plot_label_height() - 1e-3;
}

static void test_labels(const rrl_picture *p) {
    rrl_plot_point v[CONDITIONS];
    const char *script = p->script.data;
    double from = NAN, to = NAN;
    int n = 0;
    CHECK_EQ_INT(sscanf(strstr(script, "set xrange ["), "set xrange [%lf:%lf]", &from, &to), 2);
    read_labels(v, &n, script, "$labels0_0 <<", from, to);
    CHECK_EQ_INT(n, LEVELS); /* base has its levels too */
    read_labels(v, &n, script, "$labels0_1 <<", from, to);
    read_labels(v, &n, script, "$labels0_2 <<", from, to);
    CHECK_EQ_INT(n, LEVELS * METHODS);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (!CHECK(!meet(&v[i], &v[j])))
                fprintf(stderr, "  %s at %g %g, %s at %g %g\n", v[i].text, v[i].label_x, v[i].label_y, v[j].text,
                        v[j].label_x, v[j].label_y);
    CHECK(strstr(script, "set title 'arm loophole, fixed members'") != NULL);
    CHECK(strstr(script, "$labels1_1 using") == NULL); /* one level needs no labels */
}

static void test_places(void) {
    rrl_plot_point v[] = {{.x = 50, .y = 50, .text = "0"}, {.x = 50, .y = 50.5, .text = "0.1"}, /* one place */
                          {.x = 50, .y = 50, .series = 1, .text = "0"}, {.x = 99, .y = 99, .text = "0.6"}};
    rrl_plot_labels_place(v, 4, 100, 100);
    CHECK_EQ_STR(v[0].text, "0, 0.1");
    CHECK_EQ_STR(v[1].text, "");
    CHECK(v[0].label_x > 50 && v[2].label_x < 50);       /* right of it, so the other goes to the left */
    CHECK(v[3].label_x < 91 && v[3].label_y < 95);       /* inside of the panel */
}

/* --- drawings */

/* Where y labels stand: their baseline, from which the text reaches to the left. */
static void test_y_label(const char *svg, const char *name) {
    int labels = 0;
    for (const char *p = svg; (p = strstr(p, "rotate(270)")) != NULL; p++) {
        const char *at = p;
        while (at > svg && *at != '(') at--;
        for (at = p; at > svg && strncmp(at, "translate(", 10) != 0;) at--;
        labels++;
        if (!CHECK(strtod(at + 10, NULL) >= 12)) fprintf(stderr, "  %s: %.20s\n", name, at);
    }
    CHECK(labels > 0);
}

static void test_drawings(double gap_scale, const char *tick) {
    char folder[512];
    rrl_report_numbers numbers = {0};
    rrl_report_study study = {0};
    rrl_pictures p = {0};
    bool ticked = false;
    make_conditions(gap_scale);
    snprintf(folder, sizeof folder, "rm -rf '%s/report_plots'", RRL_BINARY_DIR);
    CHECK(system(folder) == 0);
    snprintf(folder, sizeof folder, "%s/report_plots", RRL_BINARY_DIR);
    CHECK_OK(rrl_report_numbers_make(&numbers, &section, 7));
    CHECK_OK(rrl_pictures_make(&p, &numbers, &study));
    CHECK_OK(rrl_dir_make(folder));
    CHECK_OK(rrl_pictures_publish(&p, folder));
    for (size_t i = 0; i < p.n; i++) {
        if (strcmp(p.v[i].name, "reward_correctness") == 0) test_labels(&p.v[i]);
        if (!p.v[i].svg) continue; /* no gnuplot here */
        test_y_label(p.v[i].svg, p.v[i].name);
        ticked |= strstr(p.v[i].svg, tick) != NULL;
    }
    CHECK(ticked || *p.note);
    rrl_pictures_free(&p);
    rrl_report_numbers_free(&numbers);
}

int main(void) {
    test_places();
    test_drawings(0.7, "-0.05<");
    test_drawings(0.07, "-0.005<");
    return CHECK_DONE();
}
