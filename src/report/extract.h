/* Parts of rrl_report_extract. Used by src/report only. */
#ifndef RRL_REPORT_EXTRACT_H
#define RRL_REPORT_EXTRACT_H

#include "report/report_data.h"

/** Metrics, values for each question, agreement of members and failures of an evaluation. */
rrl_status rrl_report_extract_evaluation(rrl_report_condition *c, const rrl_record_set *s, int n_members);

#endif
