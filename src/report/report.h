/* The report, from records alone: a page, a text, tables, plots. */
#ifndef RRL_REPORT_REPORT_H
#define RRL_REPORT_REPORT_H

#include "rrl/status.h"

/** Read every record below dir (a study or a run folder) and write dir/report/: report.html (one file, opens offline),
 *  report.md, hypotheses.csv where a study has some, and for each section the files of RRL_REPORT_CSV_LIST
 *  (report_csv.h) and plots/ (svg, png, pdf by gnuplot, with data and script; without gnuplot a note says so). Records of
 *  different execution kinds, models, data or training settings are never mixed in one table: more than one section gives
 *  folders section-N. Conditions planned in study.json without a record are listed as missing, failed ones with their
 *  reason. dir/report is replaced in one step (report_folder.h), so any number of writers and readers may be at work; what
 *  else lies in it stays. A second call on the same records gives the same bytes, but for the creation date of PDF files.
 *  *table (NULL = not wanted): the main table as text of at most 80 columns, for a terminal; the caller frees it.
 *  Errors: RRL_ERR_DATA (no record and no plan found). */
rrl_status rrl_report_write(char **table, const char *dir);

#endif
