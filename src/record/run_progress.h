/* DIR/progress.json: how far a run is, as its recorder last said. It is for `rrl status` alone: no part of the records, no
 * result depends on it, and it may be missing or behind. */
#ifndef RRL_RECORD_RUN_PROGRESS_H
#define RRL_RECORD_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "rrl/status.h"

typedef struct {
    char phase[16];      /* "train" or "evaluate" */
    int64_t step, steps; /* updates done, updates planned */
    double step_s;       /* seconds an update takes now; NaN = not known yet */
    char utc[32];        /* when it was written; set by the writer */
} rrl_run_progress;

/** Replace DIR/progress.json as a whole. Not durable (no fsync): after a crash the old one, or none, is as good. */
rrl_status rrl_run_progress_write(const char *dir, const rrl_run_progress *p);
/** *known false where there is none that can be read. */
rrl_status rrl_run_progress_read(bool *known, rrl_run_progress *p, const char *dir);

#endif
