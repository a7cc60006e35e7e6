/* Judging stored completions again: the present answer parser and verifiers on the texts of a record, nothing
 * generated.
 *
 * The result is a record of its own, NAME.rejudged-V.h5 beside NAME.h5 (V = version of the present parser):
 * completions with their new verdicts where a record has them, and the verdicts of NAME.h5 in its group /original.
 * docs/records.md, section Judged again. NAME.h5 is not touched. */
#ifndef RRL_REPORT_REJUDGE_H
#define RRL_REPORT_REJUDGE_H

#include <stdbool.h>

#include "base/memory.h"
#include "record/record.h"

/* What changed in one set of completions. */
typedef struct {
    char *name;             /* "" = training */
    int64_t n;              /* completions */
    int64_t answers;        /* another extracted answer, or none before or after */
    int64_t gained, lost;   /* wrong before and right now; right before and not now */
    int64_t verdicts;       /* member verdicts that differ, clean or corrupted */
    int64_t rewards;        /* completions with another ensemble reward */
    double right_before, right_after, reward_before, reward_after; /* means; NaN = undefined */
} rrl_rejudge_set;

typedef struct {
    rrl_rejudge_set *sets;
    int64_t n_sets;
    char *written;       /* path; NULL = nothing was written */
    rrl_buffer examples; /* a line for each of the first completions that changed */
} rrl_rejudge;

/** Judge the record at path (a .h5 file, or the folder of a complete run) again and, unless `dry`, write the
 *  result. Learning has seen the old verdicts: advantages and /training stay as they are. A second call gives the
 *  same bytes. Errors: RRL_ERR_DATA (no complete record; itself a rejudged one; a bias on metadata that records do
 *  not keep). Free with rrl_rejudge_free. */
rrl_status rrl_rejudge_record(rrl_rejudge *out, const char *path, bool dry);
void rrl_rejudge_free(rrl_rejudge *r);
/** The table of what changed, 80 columns, appended. */
rrl_status rrl_rejudge_table(rrl_buffer *b, const rrl_rejudge *r);

#endif
