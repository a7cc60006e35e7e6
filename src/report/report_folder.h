/* The folder of a report. Each writer builds into one of its own and puts it in the place of the report before in one
 * step: whoever looks finds a whole report, and of any number of writers each leaves one. Used by src/report only. */
#ifndef RRL_REPORT_REPORT_FOLDER_H
#define RRL_REPORT_REPORT_FOLDER_H

#include <stdbool.h>

#include "rrl/status.h"

/** Make an empty folder for this writer alone, report.HOST.PID-K.tmp beside dir/report (beside what that leads to, if it
 *  is a link). The caller frees *out. Errors: RRL_ERR_IO. */
rrl_status rrl_report_folder_make(char **out, const char *dir);
/** Put fresh in the place of dir/report, then remove the files of the report that stood there. What else lay in it comes
 *  along. fresh is gone afterwards, unless an error came first. A file system that cannot exchange two names has no
 *  report for a moment; there a writer that meets another's new report leaves that one. Errors: RRL_ERR_IO. */
rrl_status rrl_report_folder_publish(const char *fresh, const char *dir);
/** Whether a name is one that rrl_report_folder_make gives. */
bool rrl_report_folder_is_fresh(const char *name);

#endif
