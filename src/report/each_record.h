/* All records of a study or run, one after the other. Used by src/report only. */
#ifndef RRL_REPORT_EACH_RECORD_H
#define RRL_REPORT_EACH_RECORD_H

#include "base/memory.h"
#include "record/record.h"

/** below: path of the run's folder from the study's, "." for a run alone. The record is freed afterwards. */
typedef rrl_status rrl_record_visitor(void *context, const rrl_record *r, const char *below);
/** Visit the qualification, then the conditions in the order of the plan. Of a condition without a record a line with
 *  folder and reason is appended to left_out. *n: records visited. Errors: those of visit, RRL_ERR_DATA (neither a study
 *  nor a run). */
rrl_status rrl_each_record(int64_t *n, rrl_buffer *left_out, const char *dir, int with_text, rrl_record_visitor *visit,
                           void *context);

#endif
