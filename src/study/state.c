/* What state a study is in, from its files alone: the plan is study.json, the state the union of the run folders. Nobody
 * is asked to wait, so every file may be replaced or gone between two looks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/lock.h"
#include "record/run_folder.h"
#include "record/run_progress.h"
#include "study/study.h"

enum { MAX_BYTES = 64 << 20 };

typedef struct {
    rrl_condition_state *v;
    size_t n, room;
} state_list;

static void clear(rrl_condition_state *s) {
    free(s->dir);
    free(s->arm);
    free(s->method);
    free(s->status);
    free(s->reason);
}

void rrl_study_state_free(rrl_condition_state **s, int64_t n) {
    for (int64_t i = 0; *s && i < n; i++) clear(&(*s)[i]);
    free(*s);
    *s = NULL;
}

/* --- one run */

static bool exists_in(const char *dir, const char *name) {
    char *path = NULL;
    bool there = rrl_path_join(&path, dir, name) == RRL_OK && (rrl_file_exists(path) || rrl_dir_exists(path));
    free(path);
    return there;
}

/* Seconds since a time as rrl_utc writes it; NaN where it is none. Clocks of two hosts differ, so never below 0. */
static double seconds_since(const char *utc) {
    struct tm t = {0};
    if (sscanf(utc, "%d-%d-%dT%d:%d:%d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec) != 6)
        return NAN;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    return fmax(0, difftime(time(NULL), timegm(&t)));
}

static rrl_status look_at_progress(rrl_condition_state *s) {
    bool known = false;
    rrl_run_progress p;
    RRL_TRY(rrl_run_progress_read(&known, &p, s->dir));
    if (!known) return RRL_OK;
    memcpy(s->phase, p.phase, sizeof s->phase);
    s->step = p.step;
    s->steps = p.steps;
    s->step_s = p.step_s;
    s->quiet_s = seconds_since(p.utc);
    return RRL_OK;
}

/* A complete run did all it had planned, whatever was the last it said; it has no phase and keeps nobody waiting. */
static rrl_status look_at_complete(rrl_condition_state *s) {
    RRL_TRY(look_at_progress(s));
    s->step = s->steps;
    s->phase[0] = 0;
    s->quiet_s = NAN;
    return RRL_OK;
}

static void look_at_holder(rrl_condition_state *s) {
    bool held = false;
    rrl_process p;
    if (rrl_lock_look(&held, NULL, &p, s->dir) != RRL_OK || !held) return; /* it changes hands just now */
    snprintf(s->host, sizeof s->host, "%s", p.host);
    snprintf(s->job, sizeof s->job, "%s", p.job);
    s->pid = p.pid;
}

/* One run folder that cannot be read is no reason to say nothing of the others. */
static rrl_status look_at_run(rrl_condition_state *s) {
    s->step_s = s->quiet_s = NAN;
    rrl_status rc = rrl_run_folder_read(&s->status, &s->reason, s->dir);
    if (rc == RRL_ERR_NOMEM) return rc;
    if (rc != RRL_OK) {
        RRL_TRY(rrl_strdup(&s->reason, rrl_error_message()));
        return rrl_strdup(&s->status, "failed");
    }
    if (strcmp(s->status, "waiting") == 0) return RRL_OK;
    if (strcmp(s->status, "complete") == 0) return look_at_complete(s);
    if (strcmp(s->status, "running") == 0 || strcmp(s->status, "interrupted") == 0) look_at_holder(s);
    return look_at_progress(s);
}

/* Takes dir. seed: NULL = unknown. */
static rrl_status add(state_list *l, char *dir, const char *arm, const char *method, double level,
                      const uint64_t *seed) {
    rrl_status rc = rrl_grow(&l->v, &l->room, l->n + 1, sizeof *l->v, "conditions");
    if (rc != RRL_OK) {
        free(dir);
        return rc;
    }
    rrl_condition_state *s = &l->v[l->n++];
    *s = (rrl_condition_state){.dir = dir, .level = level, .seed = seed ? *seed : 0, .seeded = seed != NULL};
    RRL_TRY(rrl_strdup(&s->arm, arm));
    RRL_TRY(rrl_strdup(&s->method, method));
    return look_at_run(s);
}

/* --- studies */

/* A row of study.json; its folder is written below the study's. */
static rrl_status add_row(state_list *l, const cJSON *item, const char *study_dir, const char *path) {
    const char *arm = NULL, *method = NULL, *below = NULL;
    char *dir = NULL;
    int64_t seed = 0;
    double level = NAN;
    RRL_TRY(rrl_json_string(&arm, item, "arm", false, path));
    RRL_TRY(rrl_json_string(&method, item, "method", false, path));
    RRL_TRY(rrl_json_string(&below, item, "dir", false, path));
    RRL_TRY(rrl_json_double(&level, item, "level", true, path));
    RRL_TRY(rrl_json_int(&seed, item, "seed", false, path));
    if (below[0] == '/' || strstr(below, "..")) /* a study folder that was handed on names nothing outside itself */
        return RRL_FAIL(RRL_ERR_DATA, "%s: dir \"%s\" does not lie below the study", path, below);
    RRL_TRY(rrl_path_join(&dir, study_dir, below));
    return add(l, dir, arm, method, level, &(uint64_t){(uint64_t)seed});
}

static rrl_status add_study(state_list *l, const char *study_dir, const char *path) {
    rrl_status rc = RRL_OK;
    cJSON *json = NULL;
    const cJSON *list = NULL, *item = NULL;
    RRL_GOTO(rrl_json_file(&json, path, MAX_BYTES));
    RRL_GOTO(rrl_json_get(&list, json, "conditions", false, path));
    cJSON_ArrayForEach(item, list) RRL_GOTO(add_row(l, item, study_dir, path));
done:
    cJSON_Delete(json);
    return rc;
}

static rrl_status add_single(state_list *l, const char *dir, const uint64_t *seed) {
    char *copy = NULL;
    RRL_TRY(rrl_strdup(&copy, dir));
    return add(l, copy, "", "", NAN, seed);
}

/* The seed is that of the config it ran with, where that can be read. */
static rrl_status add_folder(state_list *l, const char *dir) {
    rrl_config *c = NULL;
    char *path = NULL;
    uint64_t seed = 0;
    RRL_TRY(rrl_path_join(&path, dir, "config.yaml"));
    rrl_status rc = rrl_file_exists(path) ? rrl_config_open(&c, path, NULL, 0) : RRL_OK;
    free(path);
    if (rc == RRL_ERR_NOMEM) return rc;
    if (c) seed = (uint64_t)c->seed;
    rc = add_single(l, dir, c ? &seed : NULL);
    rrl_config_close(&c);
    return rc;
}

/* How far another configuration went says nothing of this one. */
static rrl_status look_at_difference(rrl_condition_state *s, const rrl_config *config) {
    char *yaml = NULL, *why = NULL;
    rrl_status rc = RRL_OK;
    if (strcmp(s->status, "waiting") == 0) return RRL_OK;
    RRL_GOTO(rrl_config_yaml(&yaml, config, config->base));
    RRL_GOTO(rrl_run_folder_differs(&why, s->dir, yaml));
    if (!why) goto done;
    free(s->reason);
    s->reason = why;
    why = NULL;
    free(s->status);
    s->status = NULL;
    RRL_GOTO(rrl_strdup(&s->status, "other configuration"));
    s->phase[0] = 0;
    s->step = s->steps = 0;
    s->step_s = s->quiet_s = NAN;
done:
    free(yaml);
    free(why);
    return rc;
}

static rrl_status hand_over(rrl_condition_state **out, int64_t *n, state_list *l, rrl_status rc) {
    if (rc == RRL_OK) {
        *out = l->v;
        *n = (int64_t)l->n;
    } else
        rrl_study_state_free(&l->v, (int64_t)l->n);
    return rc;
}

rrl_status rrl_study_state(rrl_condition_state **out, int64_t *n, const char *study_dir) {
    state_list l = {0};
    rrl_status rc = RRL_OK;
    char *plan = NULL;
    RRL_TRY(rrl_path_join(&plan, study_dir, "study.json"));
    if (rrl_file_exists(plan))
        rc = add_study(&l, study_dir, plan);
    else if (exists_in(study_dir, "run.json") || exists_in(study_dir, "run.h5") || exists_in(study_dir, "records"))
        rc = add_folder(&l, study_dir);
    else
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: %s", study_dir,
                      rrl_dir_exists(study_dir) ? "neither a study (study.json) nor a run (run.json)" : "no such folder");
    free(plan);
    return hand_over(out, n, &l, rc);
}

rrl_status rrl_study_run_state(rrl_condition_state **out, int64_t *n, const rrl_config *config) {
    state_list l = {0};
    uint64_t seed = (uint64_t)config->seed;
    rrl_status rc = add_single(&l, config->output_dir, &seed);
    if (rc == RRL_OK) rc = look_at_difference(&l.v[0], config);
    return hand_over(out, n, &l, rc);
}

static rrl_status add_planned(state_list *l, const rrl_condition *c) {
    char *dir = NULL;
    RRL_TRY(rrl_strdup(&dir, c->dir));
    return add(l, dir, c->arm, c->method, c->level, &c->seed);
}

rrl_status rrl_study_plan_state(rrl_condition_state **out, int64_t *n, const rrl_config *study) {
    state_list l = {0};
    rrl_condition *c = NULL;
    int64_t count = 0;
    RRL_TRY(rrl_conditions_list(&c, &count, study));
    rrl_status rc = RRL_OK;
    for (int64_t i = 0; i < count && rc == RRL_OK; i++) rc = add_planned(&l, &c[i]);
    rrl_conditions_free(&c, count);
    return hand_over(out, n, &l, rc);
}

/* --- stores of base completions */

/* "seed-S.work" beside which there is no "seed-S.h5": being made, or why it is not. */
static rrl_status add_store(state_list *l, const char *base, const char *name) {
    const char *dot = strrchr(name, '.');
    char *dir = NULL, digits[32] = "", file[64];
    int64_t seed = 0;
    if (strncmp(name, "seed-", 5) != 0 || !dot || strcmp(dot, ".work") != 0 || dot - name >= 32) return RRL_OK;
    memcpy(digits, name + 5, (size_t)(dot - name) - 5);
    if (!rrl_parse_int64(&seed, digits)) return RRL_OK;
    snprintf(file, sizeof file, "seed-%s.h5", digits);
    if (exists_in(base, file)) return RRL_OK;
    RRL_TRY(rrl_path_join(&dir, base, name));
    RRL_TRY(add(l, dir, "", "base", NAN, &(uint64_t){(uint64_t)seed}));
    if (exists_in(base, file)) { /* published while we looked */
        clear(&l->v[--l->n]);
    }
    return RRL_OK;
}

rrl_status rrl_study_stores_state(rrl_condition_state **out, int64_t *n_out, const char *study_dir) {
    rrl_status rc = RRL_OK;
    state_list l = {0};
    char *base = NULL, **names = NULL;
    size_t n = 0;
    RRL_GOTO(rrl_path_join(&base, study_dir, "base"));
    if (rrl_dir_exists(base)) RRL_GOTO(rrl_dir_list(&names, &n, base));
    for (size_t i = 0; i < n; i++) RRL_GOTO(add_store(&l, base, names[i]));
done:
    rrl_names_free(&names, n);
    free(base);
    return hand_over(out, n_out, &l, rc);
}
