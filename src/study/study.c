/* Going through the conditions: claim, run, go on. No master: the lock of a run folder decides who runs it, so teams of
 * one mpirun, tasks of a job array and restarts mix freely. */
#include "study/study.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "base/memory.h"
#include "study/base_store.h"
#include "study/study_file.h"

/* What a team has done with each condition in this process. */
typedef enum { OPEN, DONE, HELD_BY_OTHER, FAILED } progress;

typedef struct {
    rrl_team *team;
    rrl_engine *engine;
    const rrl_config *study;
    rrl_condition *list;
    int64_t n;
    progress *at;
    rrl_status first_failure;
    char message[512];
} walk;

static rrl_status run_one(walk *w, const rrl_condition *c) {
    rrl_status rc = RRL_OK;
    char *base = NULL;
    rrl_run_result result = {0};
    bool stored = strcmp(c->method, "base") == 0 && w->study->experiment.reuse_base_generations;
    if (stored) RRL_GOTO(rrl_base_store_get(&base, w->team, w->engine, w->study, c));
    rrl_run_spec spec = {.config = c->config, .dir = c->dir, .arm = c->arm, .method = c->method, .level = c->level,
                         .train = c->trains, .base_record = base};
    RRL_GOTO(rrl_run(w->team, w->engine, &spec, &result));
    if (w->team->rank == w->team->recorder && !result.complete_before)
        rrl_event(w->team->log, RRL_LOG_INFO, "condition", "arm=%s level=%g seed=%llu method=%s accuracy=%.4f s=%.1f",
                  c->arm, c->level, (unsigned long long)c->seed, c->method,
                  result.n_metrics > 0 ? result.metrics[0].value : 0.0, result.seconds);
done:
    rrl_run_result_free(&result);
    free(base);
    return rc;
}

/* One pass over what is open. Teams start at different places so that they seldom meet at one lock. */
static rrl_status pass(walk *w, bool *moved) {
    *moved = false;
    for (int64_t k = 0; k < w->n; k++) {
        int64_t i = (k + w->n * w->team->index / w->team->count) % w->n;
        if (w->at[i] == DONE || w->at[i] == FAILED) continue;
        rrl_status rc = run_one(w, &w->list[i]);
        if (rc == RRL_ERR_REQUEUE || rc == RRL_ERR_COMM) return rc;
        if (rc == RRL_ERR_BUSY) {
            w->at[i] = HELD_BY_OTHER;
            continue;
        }
        *moved = true;
        w->at[i] = rc == RRL_OK ? DONE : FAILED;
        if (rc == RRL_OK) continue;
        if (!w->team->peer_failed)
            rrl_event(w->team->log, RRL_LOG_ERROR, "condition_failed", "dir=%s reason=%s", rrl_log_quoted(w->list[i].dir),
                      rrl_log_quoted(rrl_error_message()));
        if (w->first_failure == RRL_OK) {
            w->first_failure = rc;
            strncpy(w->message, rrl_error_message(), sizeof w->message - 1);
        }
        if (!w->study->experiment.continue_on_error) return rc;
    }
    return RRL_OK;
}

static bool any(const walk *w, progress p) {
    for (int64_t i = 0; i < w->n; i++)
        if (w->at[i] == p) return true;
    return false;
}

/* Conditions held by others may come free (a team that failed): look again until each has an end. */
static rrl_status run_all(walk *w) {
    bool moved = false;
    do {
        RRL_TRY(pass(w, &moved));
        if (any(w, HELD_BY_OTHER) && !moved) nanosleep(&(struct timespec){0, 500000000}, NULL);
    } while (any(w, OPEN) || any(w, HELD_BY_OTHER));
    if (w->first_failure == RRL_OK) return RRL_OK;
    return RRL_FAIL(w->first_failure, "%s (other conditions went on; the same command tries the failed ones again)",
                    w->message);
}

/* --fresh: an old study is put aside whole, by the first team. */
static rrl_status put_aside(const rrl_config *study) {
    rrl_status rc = RRL_OK;
    rrl_buffer to = {0};
    if (!rrl_dir_exists(study->output_dir)) return RRL_OK;
    for (int i = 1;; i++) {
        to.len = 0;
        RRL_GOTO(rrl_buffer_printf(&to, "%s.old-%d", study->output_dir, i));
        if (!rrl_dir_exists(to.data)) break;
    }
    RRL_GOTO(rrl_file_publish_tmp(study->output_dir, to.data));
done:
    rrl_buffer_free(&to);
    return rc;
}

static rrl_status claim(const rrl_team *team, const rrl_engine *engine, const walk *w) {
    rrl_buffer identity = {0};
    rrl_status rc = RRL_OK;
    if (team->rank != team->recorder) return RRL_OK;
    RRL_GOTO(rrl_buffer_printf(&identity, "model=%s\ndata=%s\nnumeric=%s\n", engine->model_digest, engine->data_digest,
                               engine->device ? rrl_device_numeric_path(engine->device) : "-"));
    RRL_GOTO(rrl_study_file_claim(w->study, w->list, w->n, identity.data));
done:
    rrl_buffer_free(&identity);
    return rc;
}

rrl_status rrl_study_run(rrl_team *team, rrl_engine *engine, const rrl_config *study, bool fresh) {
    rrl_status rc = RRL_OK;
    walk w = {.team = team, .engine = engine, .study = study};
    if (fresh) RRL_GOTO(rrl_team_agree(team, team->rank == team->recorder ? put_aside(study) : RRL_OK, "study put aside"));
    RRL_GOTO(rrl_team_agree(team, rrl_conditions_list(&w.list, &w.n, study), "conditions listed"));
    RRL_GOTO(rrl_alloc(&w.at, (size_t)w.n, sizeof *w.at, "progress"));
    RRL_GOTO(rrl_team_agree(team, claim(team, engine, &w), "study.json"));
    RRL_GOTO(run_all(&w));
done:
    free(w.at);
    rrl_conditions_free(&w.list, w.n);
    return rc;
}
