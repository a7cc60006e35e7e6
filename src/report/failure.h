/* Failures of evaluation completions: what was paid though wrong, not paid though right, not answered. Used by src/report
 * only. */
#ifndef RRL_REPORT_FAILURE_H
#define RRL_REPORT_FAILURE_H

#include "base/memory.h"
#include "report/compare.h"

/* Sums over the seeds of one arm, level and method, rows [begin, end) of a section. */
rrl_report_failures rrl_report_failures_sum(const rrl_report_section *s, size_t begin, size_t end);

/* A question and how often its wrong completions were rewarded, over all records of an arm. */
typedef struct {
    const rrl_report_question *question; /* borrowed */
    double wrong_rewarded;
} rrl_report_costly;
/** The `most` questions of an arm with the most such completions, descending, none without any; *n <= most of them. */
rrl_status rrl_report_costly_questions(rrl_report_costly *out, int *n, int most, const rrl_report_section *s,
                                       const char *arm);

/** failure_analysis.csv: a row a record. failure_analysis.md: shares by method, and the questions to look at. */
rrl_status rrl_csv_failures(rrl_buffer *b, const rrl_report_numbers *n);
rrl_status rrl_markdown_failures(rrl_buffer *b, const rrl_report_numbers *n);

#endif
