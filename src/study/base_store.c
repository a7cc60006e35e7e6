/* base/seed-S.h5: an evaluation-only run with clean members in base/seed-S.work, published under its final name. */
#include "study/base_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "record/lock.h"

/* The condition's config with clean members and plain shaping: the same for every level, arm and method. */
static rrl_status clean_config(rrl_config **out, const rrl_condition *c) {
    RRL_TRY(rrl_config_copy(out, c->config));
    for (int64_t i = 0; i < (*out)->training_verifier.n_members; i++) {
        rrl_corruption_config *k = &(*out)->training_verifier.members[i].corruption;
        k->kind = RRL_CORRUPT_NONE;
        k->probability = 0;
        k->seed = 0;
        k->confidence_scale = 1;
    }
    (*out)->reward.strategy = RRL_SHAPE_STANDARD;
    return RRL_OK;
}

/* Recorder only: the run's file moves to its final name, durably. */
static rrl_status publish(const char *work, const char *path) {
    char *from = NULL;
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_path_join(&from, work, "run.h5"));
    if (rrl_file_exists(from)) RRL_GOTO(rrl_file_publish_tmp(from, path));
done:
    free(from);
    return rc;
}

static rrl_status make(rrl_team *team, rrl_engine *engine, const rrl_condition *c, const char *work, const char *path) {
    rrl_status rc = RRL_OK;
    rrl_config *config = NULL;
    rrl_run_result result = {0};
    RRL_GOTO(clean_config(&config, c));
    rrl_run_spec spec = {.config = config, .dir = work, .arm = "base", .method = "base", .level = NAN};
    RRL_GOTO(rrl_run(team, engine, &spec, &result));
    RRL_GOTO(rrl_team_agree(team, team->rank == team->recorder ? publish(work, path) : RRL_OK, "base published"));
done:
    rrl_run_result_free(&result);
    rrl_config_close(&config);
    return rc;
}

static rrl_status exists(rrl_team *team, const char *path, bool *there) {
    int64_t x = team->rank == team->recorder && rrl_file_exists(path);
    RRL_TRY(rrl_team_max(team, &x, 1));
    *there = x != 0;
    return RRL_OK;
}

/* Recorder only: the store's own lock. That of the work folder comes free before the store is published; who waited for
 * it would make the store again. */
static rrl_status lock(const char *place) {
    RRL_TRY(rrl_dir_make(place));
    return rrl_lock_take(place);
}

/* Make the store unless it was published before the lock was ours. RRL_ERR_BUSY: another team makes it. */
static rrl_status make_locked(rrl_team *team, rrl_engine *engine, const rrl_condition *c, const char *work,
                              const char *path, const char *place) {
    bool there = false;
    RRL_TRY(rrl_team_agree(team, team->rank == team->recorder ? lock(place) : RRL_OK, "base locked"));
    rrl_status rc = exists(team, path, &there);
    if (rc == RRL_OK && !there) rc = make(team, engine, c, work, path);
    if (team->rank == team->recorder) rrl_lock_drop(place);
    return rc;
}

/* Try, and wait while another team is at it. */
static rrl_status get(rrl_team *team, rrl_engine *engine, const rrl_condition *c, const char *work, const char *path,
                      const char *place) {
    bool there = false, stop = false;
    RRL_TRY(exists(team, path, &there));
    while (!there) {
        rrl_status rc = make_locked(team, engine, c, work, path, place);
        if (rc != RRL_ERR_BUSY) return rc;
        RRL_TRY(rrl_team_stop(team, &stop));
        if (stop) return RRL_FAIL(RRL_ERR_REQUEUE, "stopped by a signal while another job makes %s", path);
        nanosleep(&(struct timespec){0, 200000000}, NULL);
        RRL_TRY(exists(team, path, &there));
    }
    return RRL_OK;
}

rrl_status rrl_base_store_get(char **out, rrl_team *team, rrl_engine *engine, const rrl_config *study,
                              const rrl_condition *condition) {
    rrl_status rc = RRL_OK;
    rrl_buffer path = {0}, work = {0}, place = {0};
    const unsigned long long seed = condition->seed;
    RRL_GOTO(rrl_buffer_printf(&path, "%s/base/seed-%llu.h5", study->output_dir, seed));
    RRL_GOTO(rrl_buffer_printf(&work, "%s/base/seed-%llu.work", study->output_dir, seed));
    RRL_GOTO(rrl_buffer_printf(&place, "%s/base/seed-%llu.making", study->output_dir, seed));
    RRL_GOTO(get(team, engine, condition, work.data, path.data, place.data));
    *out = path.data;
    path = (rrl_buffer){0};
done:
    rrl_buffer_free(&path);
    rrl_buffer_free(&work);
    rrl_buffer_free(&place);
    return rc;
}
