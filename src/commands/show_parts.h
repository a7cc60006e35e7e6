/* The views of `rrl show` as text in a buffer; show.c chooses one. */
#ifndef RRL_COMMANDS_SHOW_PARTS_H
#define RRL_COMMANDS_SHOW_PARTS_H

#include "base/memory.h"
#include "record/record.h"
#include "study/study.h"

/* What a summary says besides the record itself. */
typedef struct {
    const char *status, *reason; /* of run.json; NULL = none */
    int64_t max_steps;           /* planned updates; -1 = unknown */
    double remaining_s;          /* estimate from the last updates; NaN = unknown or done */
} rrl_show_progress;

rrl_status rrl_show_summary(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p);
rrl_status rrl_show_summary_json(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p);
/** A run folder without records. */
rrl_status rrl_show_begun_json(rrl_buffer *b, const char *path, const char *status, const char *reason);
/** Conditions of a study and how many are in which state. */
rrl_status rrl_show_study(rrl_buffer *b, const char *path, const rrl_condition_state *s, int64_t n);
rrl_status rrl_show_study_json(rrl_buffer *b, const char *path, const rrl_condition_state *s, int64_t n);
/** Completion n of the named evaluation; NULL = training, or the last evaluation where nothing was trained. The record was
 *  read with text. Errors: RRL_ERR_USAGE (no such completion or evaluation: what there is). */
rrl_status rrl_show_completion(rrl_buffer *b, const rrl_record *r, const char *evaluation, int64_t n);

#endif
