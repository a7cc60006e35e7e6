/* The CSV files of one section as text. Used by src/report only. */
#ifndef RRL_REPORT_REPORT_CSV_H
#define RRL_REPORT_REPORT_CSV_H

#include "base/memory.h"
#include "report/compare.h"

/* X(file, function): the files of a section. */
#define RRL_REPORT_CSV_LIST(X)                                                                                         \
    X("summary.csv", rrl_csv_summary)                         /* a row a record: identity and every metric */          \
    X("per_seed.csv", rrl_csv_per_seed)                       /* a row a metric of a record */                         \
    X("aggregate.csv", rrl_csv_aggregate)                     /* mean and deviation across seeds */                    \
    X("paired_method_differences.csv", rrl_csv_differences)   /* method_a - method_b by question and seed */           \
    X("training_diagnostics.csv", rrl_csv_diagnostics)        /* totals of training runs */

typedef rrl_status rrl_report_csv(rrl_buffer *b, const rrl_report_numbers *n);
#define X(file, function) rrl_report_csv function;
RRL_REPORT_CSV_LIST(X)
#undef X

#endif
