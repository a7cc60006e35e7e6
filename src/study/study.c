/* Going through the conditions: claim, run, go on. No master: the lock of a run folder decides who runs it, so teams of
 * one mpirun, tasks of a job array and restarts mix freely. */
#include "study/study.h"

#include <stdio.h>
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
    rrl_condition *list; /* [n] */
    int64_t n, first, end; /* conditions [first, end) are asked for */
    bool fresh;            /* put old runs of them aside */
    progress *at;          /* [n] */
    rrl_status first_failure;
    char message[512];
} walk;

static void say_done(const walk *w, const rrl_condition *c, const rrl_run_result *r) {
    if (w->team->rank == w->team->recorder && !r->complete_before)
        rrl_event(w->team->log, RRL_LOG_INFO, "condition", "arm=%s level=%g seed=%llu method=%s accuracy=%.4f s=%.1f",
                  c->arm, c->level, (unsigned long long)c->seed, c->method,
                  r->n_metrics > 0 ? r->metrics[0].value : 0.0, r->seconds);
}

static rrl_status make_spec(rrl_run_spec *spec, char **base, const walk *w, const rrl_condition *c) {
    bool stored = strcmp(c->method, "base") == 0 && w->study->experiment.reuse_base_generations;
    if (stored) RRL_TRY(rrl_base_store_get(base, w->team, w->engine, w->study, c));
    *spec = (rrl_run_spec){.config = c->config, .dir = c->dir, .arm = c->arm, .method = c->method, .level = c->level,
                           .train = c->trains, .base_record = *base, .fresh = w->fresh};
    return RRL_OK;
}

/* Co-schedule conditions; outcome [n] is each one's own end. */
static rrl_status run_some(walk *w, const int64_t *at, int n, rrl_run_result *result, rrl_status *outcome) {
    rrl_status rc = RRL_OK;
    rrl_run_spec *spec = NULL;
    char **base = NULL;
    RRL_GOTO(rrl_alloc(&spec, (size_t)n, sizeof *spec, "fleet"));
    RRL_GOTO(rrl_alloc(&base, (size_t)n, sizeof *base, "fleet"));
    for (int i = 0; i < n; i++) RRL_GOTO(make_spec(&spec[i], &base[i], w, &w->list[at[i]]));
    RRL_GOTO(rrl_run_fleet(w->team, w->engine, spec, n, result, outcome));
done:
    for (int i = 0; base && i < n; i++) free(base[i]);
    free(base);
    free(spec);
    return rc;
}

/* Between conditions too a signal ends the work: what is not begun needs no checkpoint. */
static rrl_status go_on(const walk *w) {
    bool stop = false;
    RRL_TRY(rrl_team_stop(w->team, &stop));
    if (!stop) return RRL_OK;
    w->team->peer_failed = w->team->rank != w->team->recorder; /* one rank prints it */
    return RRL_FAIL(RRL_ERR_REQUEUE, "stopped by a signal between conditions; the same command continues");
}

static void note_held(walk *w, int64_t i, const char *by) {
    if (w->at[i] != HELD_BY_OTHER && w->team->rank == w->team->recorder)
        rrl_event(w->team->log, RRL_LOG_INFO, "held", "dir=%s by=%s", rrl_log_quoted(w->list[i].dir), rrl_log_quoted(by));
    w->at[i] = HELD_BY_OTHER;
}

static void note_failed(walk *w, int64_t i, rrl_status outcome, const char *why) {
    w->at[i] = FAILED;
    if (!w->team->peer_failed)
        rrl_event(w->team->log, RRL_LOG_ERROR, "condition_failed", "dir=%s reason=%s", rrl_log_quoted(w->list[i].dir),
                  rrl_log_quoted(why));
    if (w->first_failure != RRL_OK) return;
    w->first_failure = outcome;
    snprintf(w->message, sizeof w->message, "%s", why);
}

/* Run a fleet of conditions and note how each ended. An error that is no condition's own is returned. */
static rrl_status run_fleet(walk *w, const int64_t *at, int n, bool *moved) {
    rrl_run_result *result = NULL;
    rrl_status rc = RRL_OK, *outcome = NULL;
    RRL_GOTO(rrl_alloc(&result, (size_t)n, sizeof *result, "fleet"));
    RRL_GOTO(rrl_alloc(&outcome, (size_t)n, sizeof *outcome, "fleet"));
    rc = run_some(w, at, n, result, outcome);
    if (rc == RRL_ERR_REQUEUE || rc == RRL_ERR_COMM) goto done;
    for (int i = 0; i < n; i++) {
        rrl_status end = outcome[i] != RRL_OK ? outcome[i] : rc;
        const char *why = result[i].message[0] ? result[i].message : rrl_error_message();
        if (end == RRL_ERR_BUSY) {
            note_held(w, at[i], why);
            continue;
        }
        *moved = true;
        w->at[at[i]] = DONE;
        if (end == RRL_OK) say_done(w, &w->list[at[i]], &result[i]);
        else note_failed(w, at[i], end, why);
    }
    rc = w->first_failure != RRL_OK && !w->study->experiment.continue_on_error ? w->first_failure : RRL_OK;
done:
    for (int i = 0; result && i < n; i++) rrl_run_result_free(&result[i]);
    free(result);
    free(outcome);
    return rc;
}

/* One pass over what is open. Teams start at different places so that they seldom meet at one lock. */
static rrl_status pass(walk *w, bool *moved) {
    rrl_status rc = RRL_OK;
    int64_t n = w->end - w->first, most = w->study->parallel.fleet, *fleet = NULL;
    int size = 0;
    *moved = false;
    RRL_TRY(rrl_alloc(&fleet, (size_t)most, sizeof *fleet, "fleet"));
    for (int64_t k = 0; k < n; k++) {
        int64_t i = w->first + (k + n * w->team->index / w->team->count) % n;
        if (w->at[i] != DONE && w->at[i] != FAILED) fleet[size++] = i;
        if (size == 0 || (size < most && k + 1 < n)) continue;
        RRL_GOTO(go_on(w));
        RRL_GOTO(run_fleet(w, fleet, size, moved));
        size = 0;
    }
done:
    free(fleet);
    return rc;
}

static bool any(const walk *w, progress p) {
    for (int64_t i = w->first; i < w->end; i++)
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
    w->team->peer_failed = w->team->rank != w->team->recorder; /* one rank prints it; the failure itself is an event */
    return RRL_FAIL(w->first_failure, "%s (other conditions went on; the same command tries the failed ones again)",
                    w->message);
}

rrl_status rrl_study_put_aside(const rrl_config *study) {
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

/* The plan, and the part of it that is asked for. */
static rrl_status list_conditions(walk *w, int64_t only) {
    RRL_TRY(rrl_conditions_list(&w->list, &w->n, w->study));
    if (only >= w->n)
        return RRL_FAIL(RRL_ERR_USAGE, "condition %lld: the study has conditions 0 to %lld (rrl validate lists them)",
                        (long long)only, (long long)w->n - 1);
    if (only >= 0 && w->team->count > 1)
        return RRL_FAIL(RRL_ERR_USAGE, "condition %lld alone is work for one team, and the ranks make %d of %d; start %d "
                        "(parallel.ranks_per_team, parallel.roles)", (long long)only, w->team->count, w->team->size,
                        w->team->size);
    w->first = only < 0 ? 0 : only;
    w->end = only < 0 ? w->n : only + 1;
    return RRL_OK;
}

rrl_status rrl_study_run(rrl_team *team, rrl_engine *engine, const rrl_config *study, int64_t only, bool fresh) {
    rrl_status rc = RRL_OK;
    walk w = {.team = team, .engine = engine, .study = study, .fresh = fresh};
    RRL_GOTO(rrl_team_agree(team, list_conditions(&w, only), "conditions listed"));
    RRL_GOTO(rrl_alloc(&w.at, (size_t)w.n, sizeof *w.at, "progress"));
    RRL_GOTO(rrl_team_agree(team, claim(team, engine, &w), "study.json"));
    RRL_GOTO(run_all(&w));
done:
    free(w.at);
    rrl_conditions_free(&w.list, w.n);
    return rc;
}
