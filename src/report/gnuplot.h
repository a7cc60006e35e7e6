/* Running gnuplot: a child process without a shell, its script a file. Used by src/report only. */
#ifndef RRL_REPORT_GNUPLOT_H
#define RRL_REPORT_GNUPLOT_H

#include <stdbool.h>

#include "rrl/status.h"

enum { RRL_GNUPLOT_NOTE = 256 };

/** Run `gnuplot -d script` in folder dir and wait for it; what it says goes to dir/gnuplot.log. *done tells whether it
 *  ended well; if not, note says why in one line: a report comes without plots too. Errors: RRL_ERR_IO (no process). */
rrl_status rrl_gnuplot_run(bool *done, char note[RRL_GNUPLOT_NOTE], const char *dir, const char *script);

#endif
