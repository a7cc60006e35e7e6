/* The data files of one section as text. Used by src/report only. */
#ifndef RRL_REPORT_REPORT_CSV_H
#define RRL_REPORT_REPORT_CSV_H

#include "base/memory.h"
#include "report/failure.h"

/* X(file, function): the files of a section. */
#define RRL_REPORT_CSV_LIST(X)                                                                                         \
    X("summary.csv", rrl_csv_summary)                         /* a row a record: identity and every metric */          \
    X("per_seed.csv", rrl_csv_per_seed)                       /* a row a metric of a record */                         \
    X("summary.json", rrl_json_summary)                       /* the same as objects: null = undefined, level "fixed" */ \
    X("aggregate.csv", rrl_csv_aggregate)                     /* mean and deviation across seeds */                    \
    X("paired_method_differences.csv", rrl_csv_differences)   /* statement 1: method_a - method_b in these runs */     \
    X("method_differences.csv", rrl_csv_method_differences)   /* statement 2: method_a - method_b of the method */     \
    X("intervals.csv", rrl_csv_intervals)                     /* intervals of each metric, both statements */          \
    X("member_agreement_pairs.csv", rrl_csv_agreement)        /* share of equal votes of two members */                \
    X("failure_analysis.csv", rrl_csv_failures)               /* counts of a record's failures */                      \
    X("failure_analysis.md", rrl_markdown_failures)           /* shares, and questions to look at */                   \
    X("training_diagnostics.csv", rrl_csv_diagnostics)        /* totals of training runs */

typedef rrl_status rrl_report_csv(rrl_buffer *b, const rrl_report_numbers *n);
#define X(file, function) rrl_report_csv function;
RRL_REPORT_CSV_LIST(X)
#undef X

#endif
