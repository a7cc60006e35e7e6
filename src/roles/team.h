/* A team of ranks, its roles and its communicators; what every rank computes alike. */
#ifndef RRL_ROLES_TEAM_H
#define RRL_ROLES_TEAM_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "device/mpi_wait.h"
#include "roles/node_memory.h"
#include "rrl/config.h"

/* Work of one rank, for /provenance. X(field, unit, meaning) */
#define RRL_WORK_COUNTERS(X)                                                                                           \
    X(groups_generated, "parts", "group parts decoded")                                                                \
    X(prefill_tokens, "tokens", "prompt tokens computed")                                                              \
    X(decode_rows, "tokens", "completion tokens decoded")                                                              \
    X(groups_judged, "groups", "groups verified")                                                                      \
    X(slots_learned, "slots", "training slots")                                                                        \
    X(messages_sent, "messages", "groups sent to other ranks")                                                         \
    X(bytes_sent, "bytes", "bytes sent to other ranks")                                                                \
    X(peak_memory, "bytes", "largest resident size")                                                                   \
    X(shared_memory, "bytes", "of it base weights that the ranks of the node hold once")
typedef struct {
#define X(field, unit, doc) int64_t field;
    RRL_WORK_COUNTERS(X)
#undef X
} rrl_work;

/* Ranks of one role; index = this rank's place, -1 = not one. */
typedef struct {
    int n, index;
    int *rank; /* [n] team ranks */
} rrl_role;

typedef struct {
    MPI_Comm comm;     /* control: agreements, heartbeats */
    struct rrl_mailbox *parts;  /* generators -> verifiers */
    struct rrl_mailbox *scored; /* verifiers -> learners, recorder */
    MPI_Comm learning; /* learners: gradient sums (MPI_COMM_NULL elsewhere) */
    MPI_Comm adapter;  /* learner 0 and pure generators: new adapters (MPI_COMM_NULL elsewhere) */
    int rank, size;
    rrl_node_memory *memory; /* what the ranks of the node hold once, of all teams; NULL = nothing */
    int ranks_on_node, cores_on_node; /* ranks of this job on the node, and the cores they may use together */
    int engine_on_node; /* this rank among those of the node, of all teams, that generate or learn: its turn for a GPU */
    int index, count; /* this team among all teams */
    int64_t epoch;    /* runs begun: groups of a run that failed are told from those of the next */
    rrl_role generators, verifiers, learners;
    int recorder; /* team rank that records: learner 0 */
    bool colocated;
    rrl_watch watch;
    rrl_log *log;
    rrl_work work;
    bool peer_failed; /* another rank has said, or will say, what failed: this one prints nothing */
} rrl_team;

/** MPI, once for the process, for threads of which one calls it. Whoever starts a program with it also ends it. */
void rrl_team_start_mpi(void);
/** Split world into teams of config->parallel.ranks_per_team (0: all ranks, or 1 where `study`); collective over world.
 *  Roles: all ranks everything, or contiguous ranks generators, verifiers, learners. Errors: RRL_ERR_CONFIG when ranks do
 *  not divide or roles do not add up. log is borrowed. Starts MPI where that has not happened. world MPI_COMM_NULL: one rank without MPI, for plans;
 *  nothing below that is collective may be called with it. */
rrl_status rrl_team_open(rrl_team **out, MPI_Comm world, const rrl_parallel_config *p, bool study, rrl_log *log);
void rrl_team_close(rrl_team **t);

/** The GPU of this rank among the `gpus` it sees: ranks that generate or learn take them in turn, ranks_per_gpu a GPU, and
 *  from the first again where there are more ranks. Local. */
int rrl_team_gpu(const rrl_team *t, int gpus, int ranks_per_gpu);

/** Make an error common: every rank returns the worst status; `point` names the place ("after rollout"). Collective.
 *  Where another rank failed, peer_failed is set and the message names it. */
rrl_status rrl_team_agree(rrl_team *t, rrl_status mine, const char *point);
/** Whether any rank was asked to stop (signal); collective, at step boundaries. */
rrl_status rrl_team_stop(rrl_team *t, bool *stop);

/** Largest value of each x [n] over the team, on every rank; collective. n <= 8. */
rrl_status rrl_team_max(rrl_team *t, int64_t *x, int n);

/** Mean over the ranks of each role of x, this rank's value: generators, verifiers, learners; collective. For times: the
 *  order of the sum is MPI's. */
rrl_status rrl_team_role_means(rrl_team *t, double mean[3], double x);

/* Parts of a step: part p of groups 0 .. n_groups-1. A pure function of the layout. */
typedef struct {
    int32_t group, first, count;
    int generator; /* index among generators */
} rrl_part;
int32_t rrl_team_parts(const rrl_team *t, int32_t n_groups, int32_t group_size);
rrl_part rrl_team_part(const rrl_team *t, int32_t n_groups, int32_t group_size, int32_t p);
/** Index of the verifier that joins group g. */
int rrl_team_verifier_of(const rrl_team *t, int32_t group);

#endif
