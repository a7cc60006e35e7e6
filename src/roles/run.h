/* One run by a team: train, evaluate, record - or evaluate alone, or audit verifiers on fixture answers. */
#ifndef RRL_ROLES_RUN_H
#define RRL_ROLES_RUN_H

#include "record/record.h"
#include "roles/engine.h"
#include "roles/team.h"

typedef struct {
    const rrl_config *config; /* resolved for this condition: seed, members, reward */
    const char *dir;          /* run folder */
    const char *arm, *method; /* "" and "train" outside a study */
    double level;             /* NaN = fixed members or outside a study */
    bool train;               /* false = evaluation only */
    const char *base_record;  /* judge these stored completions instead of generating; NULL = none */
    const char *resume;       /* checkpoint folder to resume from; NULL = the newest of dir */
    bool fresh;
} rrl_run_spec;

typedef struct {
    bool complete_before;   /* nothing was done */
    double seconds;
    char message[512];      /* why the outcome is not RRL_OK; "" otherwise */
    rrl_metric *metrics;    /* of the last evaluation; free with rrl_run_result_free; root of the team only */
    int n_metrics;
} rrl_run_result;

/** Collective over the team. Errors are agreed: every rank returns the same status. RRL_ERR_REQUEUE: stopped by a
 *  signal with a checkpoint. RRL_ERR_NONFINITE: training.max_nonfinite reached. */
rrl_status rrl_run(rrl_team *team, rrl_engine *engine, const rrl_run_spec *spec, rrl_run_result *result);
/** n runs co-scheduled over one frozen base: one decode batch a step, an adapter, optimiser, records and checkpoint each;
 *  the records are those of the runs alone. outcome [n] is each run's own (RRL_ERR_BUSY: held by another team;
 *  RRL_ERR_NONFINITE: left the fleet); an error of one that stops all is every run's and is returned. Collective. */
rrl_status rrl_run_fleet(rrl_team *team, rrl_engine *engine, const rrl_run_spec *spec, int n, rrl_run_result *result,
                         rrl_status *outcome);
void rrl_run_result_free(rrl_run_result *r);

#endif
