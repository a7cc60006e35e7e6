/* Temporaries that runs which were killed left behind: files named PATH.PID-K.tmp, PATH.PID.tmp or progress.json.tmp, and
 * folders report.HOST.PID-K.tmp of a report that was being written. Nobody reads them; nothing removes them unasked. */
#ifndef RRL_STUDY_LEFTOVERS_H
#define RRL_STUDY_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

/** Look for them in dir and below (links are not followed), append a line each to text and add their number to *n; clean:
 *  remove them. None of them is one in a run folder that a living process holds; outside of run folders, and for reports
 *  everywhere, one whose PID lives on this host; a report's folder that another host wrote to within the hour. Errors:
 *  RRL_ERR_IO. */
rrl_status rrl_leftovers(rrl_buffer *text, int64_t *n, const char *dir, bool clean);

#endif
