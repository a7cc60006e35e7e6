/* Works out means across seeds and paired differences, cell (arm and level) by cell. */
#include "report/compare.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/statistics.h"

typedef const rrl_report_condition *const *conditions;

size_t rrl_report_cell_end(const rrl_report_section *s, size_t i) {
    size_t end = i + 1;
    while (end < s->n && strcmp(s->v[end]->arm, s->v[i]->arm) == 0 &&
           rrl_report_order_levels(s->v[end]->level, s->v[i]->level) == 0)
        end++;
    return end;
}

size_t rrl_report_method_end(const rrl_report_section *s, size_t i) {
    size_t end = i + 1, cell = rrl_report_cell_end(s, i);
    while (end < cell && strcmp(s->v[end]->method, s->v[i]->method) == 0) end++;
    return end;
}

int64_t rrl_report_seeds(const rrl_report_section *s) {
    int64_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        bool earlier = false;
        for (size_t j = 0; j < i && !earlier; j++) earlier = s->v[j]->seed == s->v[i]->seed;
        n += !earlier;
    }
    return n;
}

/* --- values by seed and question */

/* x [n_seeds, n_questions] of the seeds that have a value, NaN = missing. */
typedef struct {
    double *x, *seed_means; /* [n_seeds] */
    int64_t n_seeds, n_questions;
} grid;

static void grid_free(grid *g) {
    free(g->x);
    free(g->seed_means);
}

static rrl_status grid_open(grid *g, size_t max_seeds, int64_t n_questions) {
    *g = (grid){.n_questions = n_questions};
    RRL_TRY(rrl_alloc(&g->x, max_seeds, (size_t)n_questions * sizeof(double), "values of seeds"));
    return rrl_alloc(&g->seed_means, max_seeds, sizeof(double), "means of seeds");
}

/* Add the seed's row a - b, or a where b is NULL; a row without a value is left out. */
static void grid_add(grid *g, const double *a, const double *b) {
    double *row = g->x + g->n_seeds * g->n_questions, sum = 0;
    int64_t n = 0;
    for (int64_t q = 0; a && q < g->n_questions; q++) {
        row[q] = b ? a[q] - b[q] : a[q];
        if (isnan(row[q])) continue;
        sum += row[q];
        n++;
    }
    if (n) g->seed_means[g->n_seeds++] = sum / (double)n;
}

static int64_t questions_with_value(const grid *g) {
    int64_t n = 0;
    for (int64_t q = 0; q < g->n_questions; q++) {
        int any = 0;
        for (int64_t s = 0; s < g->n_seeds; s++) any |= !isnan(g->x[s * g->n_questions + q]);
        n += any;
    }
    return n;
}

/* --- means across seeds */

/* What resampling says of a metric with a value for each question. */
static rrl_status claim_level(rrl_report_aggregate *a, conditions v, size_t count, const rrl_resample *r) {
    grid g = {0};
    double std;
    int64_t n;
    rrl_status rc;
    RRL_GOTO(grid_open(&g, count, r->n_questions));
    for (size_t i = 0; i < count; i++) grid_add(&g, rrl_report_values(v[i], a->metric), NULL);
    if (!g.n_seeds) goto done;
    rrl_mean_std(&a->question_mean, &std, &n, g.seed_means, g.n_seeds);
    a->n_questions = questions_with_value(&g);
    RRL_GOTO(rrl_resample_claims(&a->about_runs, &a->about_method, r, g.x, g.n_seeds));
    a->about_runs.p = a->about_method.p = NAN; /* a level is not compared with 0 */
done:
    grid_free(&g);
    return rc;
}

static rrl_status add_aggregate(rrl_report_numbers *n, conditions v, size_t count, const char *metric,
                                const rrl_resample *r) {
    const rrl_report_condition *c = v[0];
    rrl_report_aggregate a = {.arm = c->arm,
                              .method = c->method,
                              .metric = metric,
                              .level = c->level,
                              .question_mean = NAN,
                              .about_runs = RRL_NO_CLAIM,
                              .about_method = RRL_NO_CLAIM};
    double *values = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&values, count, sizeof *values, "values of a metric"));
    for (size_t i = 0; i < count; i++) values[i] = rrl_report_metric(v[i], metric);
    rrl_mean_std(&a.mean, &a.std, &a.n_seeds, values, (int64_t)count);
    RRL_GOTO(claim_level(&a, v, count, r));
    RRL_GOTO(rrl_grow(&n->aggregates, &n->aggregate_capacity, n->n_aggregates + 1, sizeof a,
                      "means across seeds"));
    n->aggregates[n->n_aggregates++] = a;
done:
    free(values);
    return rc;
}

static const rrl_report_condition *first_evaluated(conditions v, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (v[i]->evaluation) return v[i];
    return NULL;
}

static rrl_status add_aggregates(rrl_report_numbers *n, conditions v, size_t count, const rrl_resample *r) {
    const rrl_report_condition *names = first_evaluated(v, count);
    for (int64_t m = 0; names && m < names->n_metrics; m++)
        RRL_TRY(add_aggregate(n, v, count, names->metrics[m].name, r));
    return RRL_OK;
}

/* --- paired differences */

/* Rows a - b of the seeds that both methods have; both ascend by seed. */
static rrl_status pair_up(grid *out, conditions a, size_t n_a, conditions b, size_t n_b, const char *metric,
                          int64_t n_questions) {
    RRL_TRY(grid_open(out, n_a, n_questions));
    for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
        if (a[i]->seed != b[j]->seed) {
            if (a[i]->seed < b[j]->seed)
                i++;
            else
                j++;
            continue;
        }
        const double *x = rrl_report_values(a[i], metric), *y = rrl_report_values(b[j], metric);
        if (x && y) grid_add(out, x, y);
        i++;
        j++;
    }
    return RRL_OK;
}

static rrl_status add_difference(rrl_report_numbers *n, conditions a, size_t n_a, conditions b, size_t n_b,
                                 const char *metric, const rrl_resample *r) {
    rrl_report_difference d = {.arm = a[0]->arm,
                               .level = a[0]->level,
                               .metric = metric,
                               .method_a = a[0]->method,
                               .method_b = b[0]->method,
                               .about_runs = RRL_NO_CLAIM,
                               .about_method = RRL_NO_CLAIM};
    grid g = {0};
    double std;
    rrl_status rc;
    RRL_GOTO(pair_up(&g, a, n_a, b, n_b, metric, r->n_questions));
    rrl_mean_std(&d.mean, &std, &d.n_seeds, g.seed_means, g.n_seeds);
    d.n_questions = questions_with_value(&g);
    if (g.n_seeds) RRL_GOTO(rrl_resample_claims(&d.about_runs, &d.about_method, r, g.x, g.n_seeds));
    RRL_GOTO(
        rrl_grow(&n->differences, &n->difference_capacity, n->n_differences + 1, sizeof d, "differences"));
    n->differences[n->n_differences++] = d;
done:
    grid_free(&g);
    return rc;
}

/* All pairs of methods of the cell [begin, end) in one metric. */
static rrl_status add_pairs(rrl_report_numbers *n, size_t begin, size_t end, const char *metric,
                            const rrl_resample *r) {
    const rrl_report_section *s = n->section;
    for (size_t b = begin, b_end; b < end; b = b_end) {
        b_end = rrl_report_method_end(s, b);
        for (size_t a = b_end, a_end; a < end; a = a_end) {
            a_end = rrl_report_method_end(s, a);
            RRL_TRY(add_difference(n, s->v + a, a_end - a, s->v + b, b_end - b, metric, r));
        }
    }
    return RRL_OK;
}

static rrl_claim *claim_at(rrl_report_numbers *n, size_t i, size_t offset) {
    return (rrl_claim *)((char *)&n->differences[i] + offset);
}

/* Holm over the rows of each metric, for one of the two statements (offset of its claim in a difference). */
static rrl_status adjust(rrl_report_numbers *n, size_t offset) {
    double *p = NULL;
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_alloc(&p, n->n_differences, sizeof *p, "p-values"));
    for (size_t i = 0; i < n->n_differences; i++) {
        const char *metric = n->differences[i].metric;
        bool earlier = false;
        for (size_t j = 0; j < i && !earlier; j++) earlier = strcmp(n->differences[j].metric, metric) == 0;
        if (earlier) continue;
        for (size_t j = i; j < n->n_differences; j++)
            p[j] = strcmp(n->differences[j].metric, metric) == 0 ? claim_at(n, j, offset)->p : NAN;
        RRL_GOTO(rrl_holm(p + i, (int64_t)(n->n_differences - i)));
        for (size_t j = i; j < n->n_differences; j++)
            if (strcmp(n->differences[j].metric, metric) == 0) claim_at(n, j, offset)->p_holm = p[j];
    }
done:
    free(p);
    return rc;
}

static rrl_status compare(rrl_report_numbers *n, const rrl_report_section *s, uint64_t seed) {
    rrl_resample r = {0};
    const rrl_report_condition *names = first_evaluated(s->v, s->n);
    rrl_status rc = RRL_OK;
    n->section = s;
    if (!names) goto done;
    RRL_GOTO(rrl_resample_open(&r, seed, names->n_questions, rrl_report_seeds(s)));
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_method_end(s, i);
        RRL_GOTO(add_aggregates(n, s->v + i, end - i, &r));
    }
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_cell_end(s, i);
        for (int m = 0; m < names->n_paired; m++) RRL_GOTO(add_pairs(n, i, end, names->paired[m], &r));
    }
    RRL_GOTO(adjust(n, offsetof(rrl_report_difference, about_runs)));
    RRL_GOTO(adjust(n, offsetof(rrl_report_difference, about_method)));
done:
    rrl_resample_free(&r);
    return rc;
}

rrl_status rrl_report_numbers_make(rrl_report_numbers *out, const rrl_report_section *s, uint64_t seed) {
    rrl_report_numbers n = {0};
    rrl_status rc = compare(&n, s, seed);
    if (rc == RRL_OK)
        *out = n;
    else
        rrl_report_numbers_free(&n);
    return rc;
}

void rrl_report_numbers_free(rrl_report_numbers *n) {
    free(n->aggregates);
    free(n->differences);
    *n = (rrl_report_numbers){0};
}

const rrl_report_aggregate *rrl_report_find_aggregate(const rrl_report_numbers *n, const char *arm,
                                                      double level, const char *method, const char *metric) {
    for (size_t i = 0; i < n->n_aggregates; i++) {
        const rrl_report_aggregate *a = &n->aggregates[i];
        if (strcmp(a->arm, arm) == 0 && rrl_report_order_levels(a->level, level) == 0 &&
            strcmp(a->method, method) == 0 && strcmp(a->metric, metric) == 0)
            return a;
    }
    return NULL;
}

const rrl_report_difference *rrl_report_find_difference(const rrl_report_numbers *n, const char *arm,
                                                        double level, const char *method_a,
                                                        const char *method_b, const char *metric) {
    for (size_t i = 0; i < n->n_differences; i++) {
        const rrl_report_difference *d = &n->differences[i];
        if (strcmp(d->arm, arm) == 0 && rrl_report_order_levels(d->level, level) == 0 &&
            strcmp(d->method_a, method_a) == 0 && strcmp(d->method_b, method_b) == 0 &&
            strcmp(d->metric, metric) == 0)
            return d;
    }
    return NULL;
}
