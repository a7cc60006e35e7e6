/* How fast a run goes: what it says of itself for `rrl status`, and whether another step fits before the job's time limit.
 * No result depends on it. */
#ifndef RRL_ROLES_PACE_H
#define RRL_ROLES_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double step_s;    /* seconds of an update, the later ones weighing more; 0 = none yet */
    double longest_s; /* the longest update */
    double save_s;    /* the longest checkpoint */
    double said;      /* rrl_clock() of the last progress.json */
} rrl_pace;

void rrl_pace_step(rrl_pace *p, double seconds);
void rrl_pace_save(rrl_pace *p, double seconds);
/** Write DIR/progress.json, at most once a second unless `now`. That it cannot be written stops nothing. */
void rrl_pace_say(rrl_pace *p, const char *dir, const char *phase, int64_t step, int64_t steps, bool now);
/** Whether an update as long as the longest and a checkpoint no longer fit before SLURM_JOB_END_TIME; false without one,
 *  and before the first update of this process. Local: ranks agree on it. */
bool rrl_pace_time_is_up(const rrl_pace *p);

#endif
