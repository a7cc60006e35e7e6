/* Looking through a run's files, setting aside what is damaged, and making run.h5 or the adapter again where all of it is
 * there. Nothing is deleted but, where that is asked for, what killed runs left over (leftovers.h): what is set aside moves
 * to DIR/quarantine. Afterwards the run's own command goes on from what is whole. */
#ifndef RRL_STUDY_REPAIR_H
#define RRL_STUDY_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/* Counts over what was looked at, and a text for the user. */
typedef struct {
    int64_t runs;       /* run folders with files */
    int64_t set_aside;  /* files and checkpoints (dry: that would be) */
    int64_t made_again; /* files (dry: that would be) */
    int64_t noted;      /* files left in place though something is odd about them */
    int64_t busy;       /* run folders in use, which were not looked into */
    int64_t left_over;  /* temporaries of killed runs (removed, where that was asked for) */
    rrl_buffer text;    /* a line a run, and an indented line for each file that was damaged or made again */
} rrl_repair;

/** Repair a run folder, or all run folders and base completions of a study. dry: look and say only. clean: remove
 *  temporaries of killed runs. A folder whose lock a living process holds is left alone. Adds to r (zeroed at first; free with rrl_repair_free). Errors: RRL_ERR_DATA (no
 *  such folder, or neither a run nor a study), RRL_ERR_IO. */
rrl_status rrl_repair_folder(rrl_repair *r, const char *dir, bool dry, bool clean);
void rrl_repair_free(rrl_repair *r);

#endif
