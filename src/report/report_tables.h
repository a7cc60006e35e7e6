/* The tables of the report, described once for every form of it. Used by src/report only. */
#ifndef RRL_REPORT_REPORT_TABLES_H
#define RRL_REPORT_REPORT_TABLES_H

#include "report/compare.h"
#include "report/measured.h"
#include "report/writer.h"

/** Means and deviations across seeds, a row an arm, level and method. */
rrl_status rrl_report_main_table(const rrl_document *d, const rrl_report_numbers *n);
/** Differences of methods in one metric, of statement 1 or 2; nothing where there are none. */
rrl_status rrl_report_difference_table(const rrl_document *d, const rrl_report_numbers *n, const char *metric, bool method);
/** J and correlation, predicted and measured. */
rrl_status rrl_report_prediction_table(const rrl_document *d, const rrl_report_measurements *m);
/** Shares of failures among the evaluation completions of all seeds. */
rrl_status rrl_report_failure_table(const rrl_document *d, const rrl_report_section *s);
/** Totals of each trained run. */
rrl_status rrl_report_training_table(const rrl_document *d, const rrl_report_section *s);

#endif
