/* The report: tables from records alone - markdown and CSV. */
#ifndef RRL_REPORT_REPORT_H
#define RRL_REPORT_REPORT_H

#include "rrl/status.h"

/** Read every record below dir (a study or a run folder) and write dir/report/: report.md, summary.csv (a row a
 *  condition), per_seed.csv, aggregate.csv (mean and std across seeds), paired_method_differences.csv,
 *  training_diagnostics.csv. Records of different execution kinds, models, data or training settings are never mixed in
 *  one table. Conditions planned in study.json without a record are listed as missing, failed ones with their reason. A
 *  second call on the same records gives the same bytes. Errors: RRL_ERR_DATA (no record found). */
rrl_status rrl_report_write(const char *dir);
/** The main table as text of at most 80 columns, for the terminal; the caller frees *out. */
rrl_status rrl_report_table(char **out, const char *dir);

#endif
