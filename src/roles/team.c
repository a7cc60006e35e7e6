/* Dividing ranks into teams and roles; agreements between them. */
#define _GNU_SOURCE
#include "roles/team.h"

#include <sched.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/signals.h"
#include "roles/mailbox.h"

static rrl_status role_of(rrl_role *r, int first, int n, int mine) {
    RRL_TRY(rrl_alloc(&r->rank, (size_t)n, sizeof *r->rank, "role"));
    r->n = n;
    r->index = mine >= first && mine < first + n ? mine - first : -1;
    for (int i = 0; i < n; i++) r->rank[i] = first + i;
    return RRL_OK;
}

static rrl_status set_roles(rrl_team *t, const rrl_roles_config *c) {
    int g = (int)c->generators, v = (int)c->verifiers, l = (int)c->learners;
    t->colocated = g + v + l == 0;
    if (t->colocated) {
        RRL_TRY(role_of(&t->generators, 0, t->size, t->rank));
        RRL_TRY(role_of(&t->verifiers, 0, t->size, t->rank));
        RRL_TRY(role_of(&t->learners, 0, t->size, t->rank));
    } else {
        if (g < 1 || v < 1 || l < 1 || g + v + l != t->size)
            return RRL_FAIL(RRL_ERR_CONFIG,
                            "parallel.roles asks for %d generators + %d verifiers + %d learners = %d ranks, the team has "
                            "%d; start it with mpirun -n %d, or set parallel.ranks_per_team",
                            g, v, l, g + v + l, t->size, g + v + l);
        RRL_TRY(role_of(&t->generators, 0, g, t->rank));
        RRL_TRY(role_of(&t->verifiers, g, v, t->rank));
        RRL_TRY(role_of(&t->learners, g + v, l, t->rank));
    }
    t->recorder = t->learners.rank[0];
    for (int r = 0; r < t->size; r++)
        t->watch.ranks[r].role = t->colocated ? "all" : r < g ? "generator" : r < g + v ? "verifier" : "learner";
    return RRL_OK;
}

/* One communicator a purpose, created once. */
static rrl_status set_communicators(rrl_team *t) {
    bool learner = t->learners.index >= 0;
    if (t->comm == MPI_COMM_NULL) return RRL_OK;
    bool adapter = t->rank == t->learners.rank[0] || (t->generators.index >= 0 && !learner);
    /* learner 0 is rank 0 of the adapter communicator whatever its team rank */
    int key = t->rank == t->learners.rank[0] ? 0 : t->rank + 1;
    if (MPI_Comm_split(t->comm, learner ? 0 : MPI_UNDEFINED, t->rank, &t->learning) != MPI_SUCCESS ||
        MPI_Comm_split(t->comm, adapter ? 0 : MPI_UNDEFINED, key, &t->adapter) != MPI_SUCCESS)
        return RRL_FAIL(RRL_ERR_COMM, "the communicators of a team of %d ranks could not be made", t->size);
    RRL_TRY(rrl_mailbox_open(&t->parts, t));
    return rrl_mailbox_open(&t->scored, t);
}

void rrl_team_start_mpi(void) {
    int started = 0, level = 0;
    MPI_Initialized(&started);
    if (!started) MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
}

/* Cores that the ranks of a node may use together: the union of their affinity masks (mpirun may bind each to its own). */
static int cores_of(MPI_Comm node) {
    cpu_set_t mine, all;
    CPU_ZERO(&mine);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_SET(0, &mine);
    if (node == MPI_COMM_NULL) return CPU_COUNT(&mine);
    MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, node);
    return CPU_COUNT(&all);
}

/* The ranks of this node, of all teams. */
static rrl_status look_at_node(rrl_team *t, MPI_Comm world) {
    MPI_Comm node;
    if (MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS)
        return RRL_FAIL(RRL_ERR_COMM, "the ranks of a node could not be found");
    MPI_Comm_size(node, &t->ranks_on_node);
    t->cores_on_node = cores_of(node);
    rrl_status rc = rrl_node_memory_open(&t->memory, node, t->log);
    MPI_Comm_free(&node);
    return rc;
}

static rrl_status split_world(rrl_team *t, MPI_Comm world, const rrl_parallel_config *p, bool study) {
    const bool alone = world == MPI_COMM_NULL;
    int rank = 0, size = 1, per = (int)p->ranks_per_team;
    if (!alone) {
        rrl_team_start_mpi();
        MPI_Comm_rank(world, &rank);
        MPI_Comm_size(world, &size);
    }
    const rrl_roles_config *r = &p->roles;
    int split = (int)(r->generators + r->verifiers + r->learners);
    if (per == 0) per = split > 0 ? split : study ? 1 : size;
    if (per > size || size % per != 0)
        return RRL_FAIL(RRL_ERR_CONFIG,
                        "%d ranks do not divide into teams of %d (parallel.ranks_per_team or the sum of parallel.roles); "
                        "start a multiple of %d ranks",
                        size, per, per);
    t->index = rank / per;
    t->count = size / per;
    t->rank = rank % per;
    t->size = per;
    t->ranks_on_node = 1;
    if (alone) {
        t->cores_on_node = cores_of(MPI_COMM_NULL);
        return RRL_OK;
    }
    if (MPI_Comm_split(world, t->index, rank, &t->comm) != MPI_SUCCESS)
        return RRL_FAIL(RRL_ERR_COMM, "%d ranks could not be split into teams", size);
    return look_at_node(t, world);
}

/* GPUs of a node are shared out among the ranks of all teams that use one. */
static rrl_status take_turns(rrl_team *t, MPI_Comm world) {
    MPI_Comm node;
    int rank, before = 0, engine = t->generators.index >= 0 || t->learners.index >= 0;
    if (world == MPI_COMM_NULL) return RRL_OK;
    MPI_Comm_rank(world, &rank);
    if (MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node) != MPI_SUCCESS)
        return RRL_FAIL(RRL_ERR_COMM, "the ranks of a node could not find each other");
    MPI_Exscan(&engine, &before, 1, MPI_INT, MPI_SUM, node);
    MPI_Comm_rank(node, &rank);
    t->engine_on_node = rank == 0 ? 0 : before; /* MPI leaves that of the first undefined */
    MPI_Comm_free(&node);
    return RRL_OK;
}

int rrl_team_gpu(const rrl_team *t, int gpus, int ranks_per_gpu) {
    return t->engine_on_node / ranks_per_gpu % gpus;
}

rrl_status rrl_team_open(rrl_team **out, MPI_Comm world, const rrl_parallel_config *p, bool study, rrl_log *log) {
    rrl_status rc = RRL_OK;
    rrl_team *t = NULL;
    RRL_TRY(rrl_alloc(&t, 1, sizeof *t, "team"));
    t->comm = t->learning = t->adapter = MPI_COMM_NULL;
    t->log = log;
    RRL_GOTO(split_world(t, world, p, study));
    t->watch = (rrl_watch){.control = t->comm, .rank = t->rank, .size = t->size, .phase = "setup", .timeout_s = p->timeout_s};
    RRL_GOTO(rrl_alloc(&t->watch.ranks, (size_t)t->size, sizeof *t->watch.ranks, "team"));
    RRL_GOTO(set_roles(t, &p->roles));
    RRL_GOTO(take_turns(t, world));
    RRL_GOTO(set_communicators(t));
    *out = t;
    t = NULL;
done:
    rrl_team_close(&t);
    return rc;
}

void rrl_team_close(rrl_team **tp) {
    rrl_team *t = *tp;
    if (!t) return;
    rrl_mailbox_close(&t->parts);
    rrl_mailbox_close(&t->scored);
    rrl_node_memory_close(&t->memory);
    MPI_Comm *comms[] = {&t->learning, &t->adapter, &t->comm};
    for (size_t i = 0; i < sizeof comms / sizeof comms[0]; i++)
        if (*comms[i] != MPI_COMM_NULL) MPI_Comm_free(comms[i]);
    free(t->generators.rank);
    free(t->verifiers.rank);
    free(t->learners.rank);
    free(t->watch.ranks);
    free(t);
    *tp = NULL;
}

enum { MOST_VALUES = 8 };

rrl_status rrl_team_max(rrl_team *t, int64_t *x, int n) {
    MPI_Request req;
    int64_t mine[MOST_VALUES];
    if (n > MOST_VALUES) return RRL_FAIL(RRL_ERR_INTERNAL, "%d values to agree on, at most %d", n, MOST_VALUES);
    for (int i = 0; i < n; i++) mine[i] = x[i];
    if (MPI_Iallreduce(mine, x, n, MPI_INT64_T, MPI_MAX, t->comm, &req) != MPI_SUCCESS)
        return RRL_FAIL(RRL_ERR_COMM, "agreement failed in phase %s", t->watch.phase);
    return rrl_watch_wait(&t->watch, &req);
}

rrl_status rrl_team_role_means(rrl_team *t, double mean[3], double x) {
    MPI_Request req;
    const rrl_role *roles[3] = {&t->generators, &t->verifiers, &t->learners};
    double mine[3];
    for (int i = 0; i < 3; i++) mine[i] = roles[i]->index >= 0 ? x / roles[i]->n : 0;
    if (MPI_Iallreduce(mine, mean, 3, MPI_DOUBLE, MPI_SUM, t->comm, &req) != MPI_SUCCESS)
        return RRL_FAIL(RRL_ERR_COMM, "times of the roles could not be shared in phase %s", t->watch.phase);
    return rrl_watch_wait(&t->watch, &req);
}

rrl_status rrl_team_agree(rrl_team *t, rrl_status mine, const char *point) {
    /* the worst status, and one rank that has it */
    int64_t all[2] = {(int64_t)mine, mine != RRL_OK && !t->peer_failed ? t->rank : -1};
    t->watch.phase = point;
    RRL_TRY(rrl_team_max(t, all, 2));
    if (all[0] == RRL_OK) return RRL_OK;
    if (mine != RRL_OK && all[1] == t->rank) return mine;
    if (mine != RRL_OK && !t->peer_failed) { /* failed alike: the message stays, the other rank says it */
        t->peer_failed = true;
        return mine;
    }
    t->peer_failed = true;
    return RRL_FAIL((rrl_status)all[0], "rank %d failed before the point \"%s\"", (int)all[1], point);
}

rrl_status rrl_team_stop(rrl_team *t, bool *stop) {
    int64_t asked = rrl_signal_stop() ? 1 : 0;
    RRL_TRY(rrl_team_max(t, &asked, 1));
    *stop = asked != 0;
    return RRL_OK;
}

/* Enough parts that no generator idles: with fewer groups than generators each group is cut alike. */
static int32_t parts_per_group(const rrl_team *t, int32_t n_groups, int32_t group_size) {
    int32_t per = (t->generators.n + n_groups - 1) / n_groups;
    return per < 1 ? 1 : per > group_size ? group_size : per;
}

int32_t rrl_team_parts(const rrl_team *t, int32_t n_groups, int32_t group_size) {
    return n_groups * parts_per_group(t, n_groups, group_size);
}

rrl_part rrl_team_part(const rrl_team *t, int32_t n_groups, int32_t group_size, int32_t p) {
    int32_t per = parts_per_group(t, n_groups, group_size), i = p % per;
    int32_t first = (int32_t)((int64_t)group_size * i / per), end = (int32_t)((int64_t)group_size * (i + 1) / per);
    return (rrl_part){.group = p / per, .first = first, .count = end - first, .generator = p % t->generators.n};
}

int rrl_team_verifier_of(const rrl_team *t, int32_t group) { return group % t->verifiers.n; }
