/* The capability gate: pass@1 of the model a study starts from, on validation questions, before anything is trained.
 * It is a run of its own in STUDY/qualification, with records like any other. */
#ifndef RRL_STUDY_QUALIFY_H
#define RRL_STUDY_QUALIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "roles/team.h"
#include "rrl/config.h"

typedef struct {
    double pass1; /* by the independent judge; NaN = undefined */
    int64_t questions, samples; /* samples a question */
    bool greedy;
    bool before;  /* it was measured earlier */
} rrl_qualification;

/** The config of that run. Questions: experiment.qualification_dataset, or dataset where that is not given; one greedy
 *  answer, or generation.* where experiment.qualification_sampled. Training, rewards and grid leave no trace in it, so
 *  the result serves whatever a study trains. The caller closes it. */
rrl_status rrl_qualification_config(rrl_config **out, const rrl_config *study);
/** Measure, or read what was measured; collective over the team. Where another team measures, waits. fresh: puts an old
 *  measurement aside. Errors: those of a run; RRL_ERR_CONFIG where another model or other questions were measured. */
rrl_status rrl_qualification_measure(rrl_qualification *out, rrl_team *team, const rrl_config *study, const char *isa,
                                     int threads, bool fresh);
/** What was measured in study/qualification, from its record; no questions where there is none. Local. */
rrl_status rrl_qualification_read(rrl_qualification *out, const char *study);
/** RRL_ERR_DATA naming both values where pass@1 is below experiment.qualification_min_pass1 (or undefined). Local. */
rrl_status rrl_qualification_demand(const rrl_qualification *q, const rrl_config *study);

#endif
