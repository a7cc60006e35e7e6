/* Works out means across seeds and paired differences, cell (arm and level) by cell. */
#include "report/compare.h"

#include <math.h>
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

/* --- means across seeds */

static rrl_status add_aggregate(rrl_report_numbers *n, conditions v, size_t count, const char *metric) {
    const rrl_report_condition *c = v[0];
    rrl_report_aggregate a = {.arm = c->arm, .method = c->method, .metric = metric, .level = c->level};
    double *values = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&values, count, sizeof *values, "values of a metric"));
    for (size_t i = 0; i < count; i++) values[i] = rrl_report_metric(v[i], metric);
    rrl_mean_std(&a.mean, &a.std, &a.n_seeds, values, (int64_t)count);
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

static rrl_status add_aggregates(rrl_report_numbers *n, conditions v, size_t count) {
    const rrl_report_condition *names = first_evaluated(v, count);
    for (int64_t m = 0; names && m < names->n_metrics; m++)
        RRL_TRY(add_aggregate(n, v, count, names->metrics[m].name));
    return RRL_OK;
}

/* --- paired differences */

/* Rows of differences [n_seeds, n_questions] of the seeds that both methods have. */
typedef struct {
    double *v, *seed_means; /* seed_means [n_seeds] */
    int64_t n_seeds, n_questions;
} pairs;

static rrl_status pair_up(pairs *out, conditions a, size_t n_a, conditions b, size_t n_b, const char *metric,
                          int64_t n_questions) {
    *out = (pairs){.n_questions = n_questions};
    RRL_TRY(rrl_alloc(&out->v, n_a, (size_t)n_questions * sizeof(double), "paired differences"));
    RRL_TRY(rrl_alloc(&out->seed_means, n_a, sizeof(double), "means of seeds"));
    for (size_t i = 0, j = 0; i < n_a && j < n_b;) { /* both ascend by seed */
        if (a[i]->seed != b[j]->seed) {
            if (a[i]->seed < b[j]->seed)
                i++;
            else
                j++;
            continue;
        }
        const double *x = rrl_report_values(a[i], metric), *y = rrl_report_values(b[j], metric);
        double *row = out->v + out->n_seeds * n_questions, sum = 0;
        int64_t n = 0;
        for (int64_t q = 0; x && y && q < n_questions; q++) {
            row[q] = x[q] - y[q];
            if (isnan(row[q])) continue;
            sum += row[q];
            n++;
        }
        if (n) out->seed_means[out->n_seeds++] = sum / (double)n;
        i++;
        j++;
    }
    return RRL_OK;
}

static int64_t questions_with_pair(const pairs *p) {
    int64_t n = 0;
    for (int64_t q = 0; q < p->n_questions; q++) {
        int any = 0;
        for (int64_t s = 0; s < p->n_seeds; s++) any |= !isnan(p->v[s * p->n_questions + q]);
        n += any;
    }
    return n;
}

static rrl_status add_difference(rrl_report_numbers *n, conditions a, size_t n_a, conditions b, size_t n_b,
                                 const char *metric, const rrl_bootstrap *bootstrap) {
    rrl_report_difference d = {.arm = a[0]->arm,
                               .level = a[0]->level,
                               .metric = metric,
                               .method_a = a[0]->method,
                               .method_b = b[0]->method,
                               .p_holm = NAN};
    pairs p = {0};
    double std;
    rrl_status rc;
    RRL_GOTO(pair_up(&p, a, n_a, b, n_b, metric, bootstrap->n_questions));
    rrl_mean_std(&d.mean, &std, &d.n_seeds, p.seed_means, p.n_seeds);
    d.n_questions = questions_with_pair(&p);
    RRL_GOTO(rrl_bootstrap_interval(&d.low, &d.high, bootstrap, p.v, p.n_seeds));
    RRL_GOTO(rrl_sign_flip_p(&d.p, p.seed_means, p.n_seeds));
    RRL_GOTO(
        rrl_grow(&n->differences, &n->difference_capacity, n->n_differences + 1, sizeof d, "differences"));
    n->differences[n->n_differences++] = d;
done:
    free(p.v);
    free(p.seed_means);
    return rc;
}

/* All pairs of methods of the cell [begin, end) in one metric. */
static rrl_status add_pairs(rrl_report_numbers *n, size_t begin, size_t end, const char *metric,
                            const rrl_bootstrap *bootstrap) {
    const rrl_report_section *s = n->section;
    for (size_t b = begin, b_end; b < end; b = b_end) {
        b_end = rrl_report_method_end(s, b);
        for (size_t a = b_end, a_end; a < end; a = a_end) {
            a_end = rrl_report_method_end(s, a);
            RRL_TRY(add_difference(n, s->v + a, a_end - a, s->v + b, b_end - b, metric, bootstrap));
        }
    }
    return RRL_OK;
}

/* Holm over the rows of each metric. */
static rrl_status adjust(rrl_report_numbers *n) {
    double *p = NULL;
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_alloc(&p, n->n_differences, sizeof *p, "p-values"));
    for (size_t i = 0; i < n->n_differences; i++) {
        const char *metric = n->differences[i].metric;
        bool earlier = false;
        for (size_t j = 0; j < i && !earlier; j++) earlier = strcmp(n->differences[j].metric, metric) == 0;
        if (earlier) continue;
        for (size_t j = i; j < n->n_differences; j++)
            p[j] = strcmp(n->differences[j].metric, metric) == 0 ? n->differences[j].p : NAN;
        RRL_GOTO(rrl_holm(p + i, (int64_t)(n->n_differences - i)));
        for (size_t j = i; j < n->n_differences; j++)
            if (strcmp(n->differences[j].metric, metric) == 0) n->differences[j].p_holm = p[j];
    }
done:
    free(p);
    return rc;
}

static rrl_status compare(rrl_report_numbers *n, const rrl_report_section *s) {
    rrl_bootstrap bootstrap = {0};
    const rrl_report_condition *names = first_evaluated(s->v, s->n);
    rrl_status rc = RRL_OK;
    n->section = s;
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_method_end(s, i);
        RRL_GOTO(add_aggregates(n, s->v + i, end - i));
    }
    if (!names) goto done;
    RRL_GOTO(rrl_bootstrap_open(&bootstrap, names->n_questions));
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_cell_end(s, i);
        for (int m = 0; m < names->n_paired; m++)
            RRL_GOTO(add_pairs(n, i, end, names->paired[m], &bootstrap));
    }
    RRL_GOTO(adjust(n));
done:
    rrl_bootstrap_free(&bootstrap);
    return rc;
}

rrl_status rrl_report_numbers_make(rrl_report_numbers *out, const rrl_report_section *s) {
    rrl_report_numbers n = {0};
    rrl_status rc = compare(&n, s);
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
