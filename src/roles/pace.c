#include "roles/pace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/text.h"
#include "record/run_progress.h"

static const double WEIGHT = 0.1;       /* of the newest update in step_s */
static const double SAY_EVERY_S = 1;
static const double LEAVE_S = 10;       /* to end the ranks, and for the job script to ask for the requeue */

void rrl_pace_step(rrl_pace *p, double seconds) {
    p->step_s = p->step_s > 0 ? (1 - WEIGHT) * p->step_s + WEIGHT * seconds : seconds;
    p->longest_s = fmax(p->longest_s, seconds);
}

void rrl_pace_save(rrl_pace *p, double seconds) { p->save_s = fmax(p->save_s, seconds); }

void rrl_pace_say(rrl_pace *p, const char *dir, const char *phase, int64_t step, int64_t steps, bool now) {
    double clock = rrl_clock();
    if (!now && clock - p->said < SAY_EVERY_S) return;
    rrl_run_progress progress = {.step = step, .steps = steps, .step_s = p->step_s > 0 ? p->step_s : NAN};
    snprintf(progress.phase, sizeof progress.phase, "%s", phase);
    (void)rrl_run_progress_write(dir, &progress);
    p->said = clock;
}

bool rrl_pace_time_is_up(const rrl_pace *p) {
    int64_t end = 0;
    const char *text = getenv("SLURM_JOB_END_TIME");
    if (!text || !rrl_parse_int64(&end, text) || p->longest_s == 0) return false;
    return (double)end - (double)time(NULL) < p->longest_s + p->save_s + LEAVE_S;
}
