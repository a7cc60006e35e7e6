/* What a run holds on one rank between setup and end; shared by the files of run.c, not for others. */
#ifndef RRL_ROLES_SESSION_H
#define RRL_ROLES_SESSION_H

#include "device/collective.h"
#include "learn/checkpoint.h"
#include "learn/learner.h"
#include "record/metrics.h"
#include "record/run_folder.h"
#include "roles/generator.h"
#include "roles/judge.h"
#include "roles/run.h"

typedef struct {
    rrl_team *team;
    rrl_engine *engine;
    const rrl_run_spec *spec;
    int32_t place;               /* in the fleet: head.run of its groups */
    const rrl_config *config;
    rrl_judge *judge;
    rrl_adapter *adapter;        /* generators and learners of a run with an adapter */
    rrl_learner *learner;        /* learners of a training run */
    rrl_collective *learners;    /* rows, in host memory; this and the next two are the engine's */
    rrl_collective *gradients;   /* gradient sums, in device memory */
    rrl_collective *publishing;  /* learner 0 -> pure generators, in device memory; NULL where nothing is published */
    rrl_run_folder *folder;      /* recorder */
    rrl_recorder *recorder;      /* recorder */
    char digest[65];             /* of the run; recorder */
    rrl_train_state state;       /* the same on every rank */
    rrl_buffer in_flight;        /* learners: groups of the next step, from the checkpoint resumed from */
    int32_t groups, group_size;  /* of a training step */
    rrl_slot_limits slots;       /* of the whole fleet: its learners share engine->slots */
    double started;
    rrl_run_result *result;
    rrl_status outcome;          /* of this run; the same on every rank */
} rrl_session;

/** The run failed with this thread's message and s->outcome: written to run.json and to the result. */
void rrl_session_failed(rrl_session *s);
/** Turn the log to this run: its name and its events.log. */
void rrl_session_focus(rrl_session *s);
/** All updates of the sessions from their state.step on, co-scheduled: one decode batch a step; collective. A session
 *  whose numbers are not finite too often is left with RRL_ERR_NONFINITE in ->outcome while the others go on.
 *  RRL_ERR_REQUEUE after checkpoints when asked to stop. */
rrl_status rrl_train_loop(rrl_session *const *s, int n);
/** Completions of the evaluation set of the sessions, judged and recorded under "test"; collective. */
rrl_status rrl_evaluate(rrl_session *const *s, int n);
/** Resident memory at most, bytes. */
int64_t rrl_peak_memory(void);
/** JSON of hosts, versions, layout and every rank's work, for /provenance; collective, text on the recorder only (the
 *  caller frees it). work NULL: without the gathered part, local. */
rrl_status rrl_provenance(char **out, rrl_session *s, bool gather);

#endif
