/* A study: arms x levels x seeds x methods, claimed condition by condition by the teams of any number of jobs. */
#ifndef RRL_STUDY_STUDY_H
#define RRL_STUDY_STUDY_H

#include "roles/run.h"

typedef struct {
    char *arm, *method;
    double level; /* NaN = fixed members */
    uint64_t seed;
    char *dir;    /* below the study folder: ARM/level-L/seed-S/METHOD, "level-na" for fixed members */
    bool trains;
    rrl_config *config; /* resolved for this condition */
} rrl_condition;

/** The conditions in their fixed order: arm, level, seed, method. mode fixture: method fixture_verifier_audit. Arms that
 *  share a name may not share a level. The study must outlive the list (texts of the arms are borrowed). Errors:
 *  RRL_ERR_CONFIG. The caller frees with rrl_conditions_free. */
rrl_status rrl_conditions_list(rrl_condition **out, int64_t *n, const rrl_config *study);
void rrl_conditions_free(rrl_condition **c, int64_t n);

/** Run what is not complete; collective over the team. study.json is created exclusively by the first and compared by
 *  the others. Returns RRL_OK when every condition is complete, RRL_ERR_REQUEUE when stopped by a signal, else the status
 *  of the first failure (others went on if experiment.continue_on_error). */
rrl_status rrl_study_run(rrl_team *team, rrl_engine *engine, const rrl_config *study, bool fresh);

/* One condition as found in files. */
typedef struct {
    char *dir, *arm, *method, *status, *reason;
    double level;
    uint64_t seed;
} rrl_condition_state;
/** State of all planned conditions from study.json and the run folders. */
rrl_status rrl_study_state(rrl_condition_state **out, int64_t *n, const char *study_dir);
void rrl_study_state_free(rrl_condition_state **s, int64_t n);

#endif
