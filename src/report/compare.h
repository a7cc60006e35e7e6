/* The numbers of one section: means across seeds, and paired differences of methods. Used by src/report only. */
#ifndef RRL_REPORT_COMPARE_H
#define RRL_REPORT_COMPARE_H

#include "report/resample.h"
#include "report/sections.h"

/* A metric across the seeds of one arm, level and method. Texts are borrowed. */
typedef struct {
    const char *arm, *method, *metric;
    double level;
    int64_t n_seeds; /* where it is defined */
    double mean, std;
    int64_t n_questions;                /* of metrics with a value for each question; 0 = none, then no claims */
    double question_mean;               /* mean over seeds of the mean over questions; the claims are about this */
    rrl_claim about_runs, about_method; /* intervals only: their p is NaN */
} rrl_report_aggregate;

/* A metric of method_a - method_b at one arm and level, paired by question and seed. */
typedef struct {
    const char *arm, *metric, *method_a, *method_b;
    double level;
    int64_t n_seeds, n_questions; /* with at least one pair */
    double mean;                  /* mean over seeds of the mean difference over questions */
    rrl_claim about_runs, about_method; /* Holm: each over all rows of the metric in the section */
} rrl_report_difference;

typedef struct {
    const rrl_report_section *section; /* borrowed */
    rrl_report_aggregate *aggregates;  /* by arm, level, method; metrics as recorded */
    size_t n_aggregates, aggregate_capacity;
    rrl_report_difference *differences; /* by arm, level, metric, method_a, method_b; method_a comes later in the order */
    size_t n_differences, difference_capacity;
} rrl_report_numbers;

/** Work them out with draws keyed by seed. The section must outlive the result. Free with rrl_report_numbers_free. */
rrl_status rrl_report_numbers_make(rrl_report_numbers *out, const rrl_report_section *s, uint64_t seed);
void rrl_report_numbers_free(rrl_report_numbers *n);

/** Rows i .. end of one arm and level: the end of the cell that starts at i. */
size_t rrl_report_cell_end(const rrl_report_section *s, size_t i);
/** Rows i .. end of one arm, level and method. */
size_t rrl_report_method_end(const rrl_report_section *s, size_t i);
/** Seeds that any condition of the section has. */
int64_t rrl_report_seeds(const rrl_report_section *s);
/** Find an aggregate or a difference; NULL if there is none. */
const rrl_report_aggregate *rrl_report_find_aggregate(const rrl_report_numbers *n, const char *arm, double level,
                                                      const char *method, const char *metric);
const rrl_report_difference *rrl_report_find_difference(const rrl_report_numbers *n, const char *arm, double level,
                                                        const char *method_a, const char *method_b, const char *metric);

#endif
