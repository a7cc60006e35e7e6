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
/** Make a config that of one run: the grid it was taken from leaves no trace, so that a study can grow without starting
 *  again. */
void rrl_condition_forget_grid(rrl_config *c, uint64_t seed);

enum { RRL_ALL_CONDITIONS = -1 };
/** Run what is not complete; collective over the team. study.json is created exclusively by the first and compared by
 *  the others. only: this condition of rrl_conditions_list and no other (then there is one team), or RRL_ALL_CONDITIONS.
 *  fresh, with `only`: put the old run of that condition aside. Where others hold what is left, waits for them. Returns
 *  RRL_OK when every condition asked for is complete, RRL_ERR_REQUEUE when stopped by a signal, RRL_ERR_USAGE when there is
 *  no such condition, else the status of the first failure (others went on if experiment.continue_on_error). */
rrl_status rrl_study_run(rrl_team *team, rrl_engine *engine, const rrl_config *study, int64_t only, bool fresh);
/** --fresh: move an existing study folder to NAME.old-N. Local; before any team begins. */
rrl_status rrl_study_put_aside(const rrl_config *study);

/* One run of a study as found in its files. */
typedef struct {
    char *dir, *arm, *method, *status, *reason; /* status as rrl_run_folder_read; reason may be NULL */
    double level;
    uint64_t seed;          /* where seeded; a folder alone may not know it */
    bool seeded;
    char phase[16];         /* "train", "evaluate"; "" = it has not said how far it is */
    int64_t step, steps;    /* updates done and planned; 0 of 0 where nothing is trained */
    double step_s, quiet_s; /* seconds an update takes, and since it last said so; NaN = unknown */
    char host[256], job[64]; /* of the process that holds the folder, "" = none */
    long pid;
} rrl_condition_state;
/** State of all planned conditions, in their order, from study.json and the run folders. Works while others write; what
 *  cannot be read is a condition's "failed", with the reason. study_dir may be the folder of one run: then that is all
 *  there is. Errors: RRL_ERR_DATA (neither). */
rrl_status rrl_study_state(rrl_condition_state **out, int64_t *n, const char *study_dir);
/** The same from a config, also where nothing has begun. */
rrl_status rrl_study_plan_state(rrl_condition_state **out, int64_t *n, const rrl_config *study);
/** The one run of a config, also where it has not begun; status "other configuration", with the reason, where the
 *  config.yaml of its folder says that another one ran there. */
rrl_status rrl_study_run_state(rrl_condition_state **out, int64_t *n, const rrl_config *config);
/** Stores of base completions (base/seed-S.work, method "base") that are not there yet: being made, or why not. */
rrl_status rrl_study_stores_state(rrl_condition_state **out, int64_t *n, const char *study_dir);
void rrl_study_state_free(rrl_condition_state **s, int64_t n);

#endif
