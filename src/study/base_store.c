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

rrl_status rrl_base_store_get(char **out, rrl_team *team, rrl_engine *engine, const rrl_config *study,
                              const rrl_condition *condition) {
    rrl_status rc = RRL_OK;
    rrl_buffer path = {0}, work = {0};
    bool there = false, stop = false;
    RRL_GOTO(rrl_buffer_printf(&path, "%s/base/seed-%llu.h5", study->output_dir, (unsigned long long)condition->seed));
    RRL_GOTO(rrl_buffer_printf(&work, "%s/base/seed-%llu.work", study->output_dir, (unsigned long long)condition->seed));
    RRL_GOTO(exists(team, path.data, &there));
    while (!there) {
        rc = make(team, engine, condition, work.data, path.data);
        if (rc != RRL_OK && rc != RRL_ERR_BUSY) goto done;
        RRL_GOTO(exists(team, path.data, &there));
        if (there) break;
        RRL_GOTO(rrl_team_stop(team, &stop));
        if (stop) RRL_GOTO(RRL_FAIL(RRL_ERR_REQUEUE, "stopped by a signal while another job makes %s", path.data));
        nanosleep(&(struct timespec){0, 200000000}, NULL); /* another team is at it */
    }
    rc = RRL_OK;
    *out = path.data;
    path = (rrl_buffer){0};
done:
    rrl_buffer_free(&path);
    rrl_buffer_free(&work);
    return rc;
}
