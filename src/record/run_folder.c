/* The folder of a run and its history. run.json is replaced as a whole at each change; config.yaml is written
 * before it, so a folder with run.json has both. */
#include "record/run_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "record/lock.h"
#include "record/record.h"
#include "record/records_folder.h"
#include "rrl/config.h"

enum { MAX_FILE_BYTES = 64 << 20, RUN_VERSION = 1 };

struct rrl_run_folder {
    char *dir;   /* links followed */
    cJSON *json; /* of run.json */
};

static rrl_status no_memory(void) {
    return RRL_FAIL(RRL_ERR_NOMEM, "memory for run.json");
}

/* --- run.json */

static rrl_status load(cJSON **out, const char *dir) {
    rrl_status rc = RRL_OK;
    char *path = NULL;
    cJSON *json = NULL;
    int64_t version = 0;
    RRL_GOTO(rrl_path_join(&path, dir, "run.json"));
    RRL_GOTO(rrl_json_file(&json, path, MAX_FILE_BYTES));
    RRL_GOTO(rrl_json_int(&version, json, "version", false, path));
    if (version != RUN_VERSION)
        RRL_GOTO(RRL_FAIL(RRL_ERR_DATA, "%s: version %lld; this program reads version %d", path,
                          (long long)version, RUN_VERSION));
    *out = json;
    json = NULL;
done:
    cJSON_Delete(json);
    free(path);
    return rc;
}

static rrl_status save(const rrl_run_folder *f) {
    rrl_status rc = RRL_OK;
    char *path = NULL, *text = cJSON_Print(f->json);
    rrl_buffer b = {0};
    if (!text) RRL_GOTO(no_memory());
    RRL_GOTO(rrl_path_join(&path, f->dir, "run.json"));
    RRL_GOTO(rrl_buffer_printf(&b, "%s\n", text));
    RRL_GOTO(rrl_file_publish(path, b.data, b.len));
done:
    rrl_buffer_free(&b);
    cJSON_free(text);
    free(path);
    return rc;
}

/* Set a text (NULL = null) of an object. */
static rrl_status set_text(cJSON *object, const char *key, const char *text) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    bool ok = text ? cJSON_AddStringToObject(object, key, text) != NULL
                   : cJSON_AddNullToObject(object, key) != NULL;
    return ok ? RRL_OK : no_memory();
}

static rrl_status set_now(cJSON *object, const char *key) {
    char now[32];
    rrl_utc(now);
    return set_text(object, key, now);
}

/* The array of this name, made if it is not there. */
static cJSON *array_of(cJSON *json, const char *key) {
    cJSON *list = cJSON_GetObjectItemCaseSensitive(json, key);
    if (cJSON_IsArray(list)) return list;
    cJSON_DeleteItemFromObjectCaseSensitive(json, key);
    return cJSON_AddArrayToObject(json, key);
}

static cJSON *last_of(cJSON *list) {
    int n = cJSON_GetArraySize(list);
    return n ? cJSON_GetArrayItem(list, n - 1) : NULL;
}

static rrl_status append_object(cJSON **out, cJSON *json, const char *key) {
    cJSON *list = array_of(json, key), *object = cJSON_CreateObject();
    if (!list || !object || !cJSON_AddItemToArray(list, object)) {
        cJSON_Delete(object);
        return no_memory();
    }
    *out = object;
    return RRL_OK;
}

static rrl_status put_process(cJSON *object) {
    rrl_process p;
    rrl_process_self(&p);
    RRL_TRY(set_text(object, "host", p.host));
    if (!cJSON_AddNumberToObject(object, "pid", (double)p.pid)) return no_memory();
    return set_text(object, "job", p.job[0] ? p.job : NULL);
}

/* An attempt that is still open was killed: its process said nothing more. */
static rrl_status close_killed(cJSON *json) {
    cJSON *last = last_of(array_of(json, "attempts"));
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(last, "status");
    if (!cJSON_IsString(status) || strcmp(status->valuestring, "running") != 0) return RRL_OK;
    return set_text(last, "status", "killed");
}

static rrl_status begin_attempt(cJSON *json) {
    cJSON *attempt = NULL;
    RRL_TRY(close_killed(json));
    RRL_TRY(append_object(&attempt, json, "attempts"));
    RRL_TRY(set_now(attempt, "begun_utc"));
    RRL_TRY(put_process(attempt));
    RRL_TRY(set_text(attempt, "status", "running"));
    RRL_TRY(set_text(json, "status", "running"));
    RRL_TRY(set_text(json, "reason", NULL));
    return set_now(json, "changed_utc");
}

static rrl_status set_status(cJSON *json, const char *status, const char *reason) {
    cJSON *last = last_of(array_of(json, "attempts"));
    RRL_TRY(set_text(json, "status", status));
    RRL_TRY(set_text(json, "reason", reason));
    RRL_TRY(set_now(json, "changed_utc"));
    if (last) RRL_TRY(set_text(last, "status", status));
    if (last && strcmp(status, "running") != 0) RRL_TRY(set_now(last, "ended_utc"));
    if (strcmp(status, "failed") != 0) return RRL_OK;
    cJSON *failure = NULL;
    RRL_TRY(append_object(&failure, json, "failures"));
    RRL_TRY(set_now(failure, "utc"));
    RRL_TRY(put_process(failure));
    return set_text(failure, "reason", reason);
}

/* --- the folder */

static rrl_status has_entry(bool *out, const char *dir, const char *name) {
    struct stat st;
    char *path = NULL;
    RRL_TRY(rrl_path_join(&path, dir, name));
    *out = stat(path, &st) == 0;
    free(path);
    return RRL_OK;
}

/* Makes the folder, follows links once and refuses what cannot be written to. */
static rrl_status prepare(char **real, const char *dir) {
    struct stat st;
    char path[PATH_MAX];
    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        return RRL_FAIL(RRL_ERR_IO, "%s: is a %s, not a folder; choose another output_dir", dir,
                        S_ISREG(st.st_mode)    ? "file"
                        : S_ISFIFO(st.st_mode) ? "pipe"
                                               : "device");
    RRL_TRY(rrl_dir_make(dir));
    if (!realpath(dir, path)) return RRL_FAIL(RRL_ERR_IO, "%s: cannot be resolved: %s", dir, strerror(errno));
    if (access(path, W_OK | X_OK) != 0)
        return RRL_FAIL(RRL_ERR_IO, "%s: cannot be written to: %s", dir, strerror(errno));
    return rrl_strdup(real, path);
}

static rrl_status has_run(bool *out, const char *dir) {
    static const char *const TRACES[] = {"run.json", "run.h5", "records", "checkpoints"};
    *out = false;
    for (size_t i = 0; i < sizeof TRACES / sizeof *TRACES && !*out; i++)
        RRL_TRY(has_entry(out, dir, TRACES[i]));
    return RRL_OK;
}

/* dir, whose lock we hold, becomes dir.old-N; an empty one with our lock takes its place. */
static rrl_status move_away(const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_buffer old = {0};
    struct stat st;
    for (int n = 1; n == 1 || stat(old.data, &st) == 0; n++) {
        old.len = 0;
        RRL_GOTO(rrl_buffer_printf(&old, "%s.old-%d", dir, n));
    }
    if (rrl_fault("fresh.rename") || rename(dir, old.data) != 0)
        RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: cannot be moved to %s: %s", dir, old.data, strerror(errno)));
    rrl_lock_drop(old.data);
    RRL_GOTO(rrl_dir_make(dir));
    RRL_GOTO(rrl_lock_take(dir));
done:
    rrl_buffer_free(&old);
    return rc;
}

static rrl_status new_run(rrl_run_folder *f, const char *dir, const char *digest, const char *config_yaml) {
    rrl_status rc = RRL_OK;
    char *path = NULL;
    struct stat st;
    RRL_GOTO(rrl_path_join(&path, f->dir, "config.yaml"));
    RRL_GOTO(rrl_file_publish(path, config_yaml, strlen(config_yaml)));
    f->json = cJSON_CreateObject();
    if (!f->json || !cJSON_AddStringToObject(f->json, "format", "rrl-run") ||
        !cJSON_AddNumberToObject(f->json, "version", RUN_VERSION))
        RRL_GOTO(no_memory());
    RRL_GOTO(set_text(f->json, "digest", digest));
    RRL_GOTO(set_now(f->json, "created_utc"));
    if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode)) RRL_GOTO(set_text(f->json, "link_to", f->dir));
done:
    free(path);
    return rc;
}

/* Another configuration ran here: say which keys differ. */
static rrl_status refuse(const char *dir, const char *config_yaml) {
    rrl_status rc = RRL_OK;
    char *path = NULL, *before = NULL, *keys = NULL;
    size_t n = 0;
    RRL_GOTO(rrl_path_join(&path, dir, "config.yaml"));
    if (rrl_file_read(&before, &n, path, MAX_FILE_BYTES) == RRL_OK)
        RRL_GOTO(rrl_config_difference(&keys, before, config_yaml));
    for (char *p = keys; p && *p; p++) /* one line */
        if (*p == '\n') *p = p[1] ? ';' : 0;
    rc = RRL_FAIL(RRL_ERR_CONFIG,
                  "%s: holds a run of another configuration: %s; choose another output_dir, or --fresh to "
                  "move it to %s.old-N",
                  dir, keys && keys[0] ? keys : "model, data or adapter files differ", dir);
done:
    free(path);
    free(before);
    free(keys);
    return rc;
}

/* What an existing run.json allows: to continue, or nothing but to be complete. */
static rrl_status existing_run(rrl_run_folder *f, rrl_run_state *state, const char *digest,
                               const char *config_yaml) {
    const char *before = NULL, *status = NULL;
    RRL_TRY(load(&f->json, f->dir));
    RRL_TRY(rrl_json_string(&before, f->json, "digest", false, "run.json"));
    if (strcmp(before, digest) != 0) return refuse(f->dir, config_yaml);
    *state = RRL_RUN_CONTINUES;
    /* the record decides, not the word "complete": joining is a run's last act, and a lost or damaged run.h5
     * is none */
    if (rrl_record_complete(f->dir) != RRL_OK) return RRL_OK;
    *state = RRL_RUN_COMPLETE;
    RRL_TRY(rrl_records_remove(f->dir)); /* a kill may have left some */
    RRL_TRY(rrl_json_string(&status, f->json, "status", true, "run.json"));
    if (status && strcmp(status, "complete") == 0) return RRL_OK;
    RRL_TRY(set_status(f->json, "complete", NULL));
    return save(f);
}

static rrl_status settle(rrl_run_folder *f, rrl_run_state *state, const char *dir, const char *digest,
                         const char *config_yaml, bool fresh) {
    bool run = false, known = false;
    RRL_TRY(has_run(&run, f->dir));
    if (fresh && run) {
        RRL_TRY(move_away(f->dir));
        run = false;
    }
    RRL_TRY(has_entry(&known, f->dir, "run.json"));
    if (run && !known)
        return RRL_FAIL(RRL_ERR_CONFIG,
                        "%s: holds records but no run.json, so it is unknown whose they are; choose another "
                        "output_dir, or --fresh to move it to %s.old-N",
                        dir, dir);
    *state = RRL_RUN_NEW;
    RRL_TRY(known ? existing_run(f, state, digest, config_yaml) : new_run(f, dir, digest, config_yaml));
    if (*state == RRL_RUN_COMPLETE) return RRL_OK;
    RRL_TRY(begin_attempt(f->json));
    return save(f);
}

rrl_status rrl_run_folder_open(rrl_run_folder **out, rrl_run_state *state, const char *dir,
                               const char *digest, const char *config_yaml, bool fresh) {
    rrl_status rc = RRL_OK;
    rrl_run_folder *f = NULL;
    bool locked = false;
    rrl_run_state found = RRL_RUN_NEW;
    RRL_GOTO(rrl_alloc(&f, 1, sizeof *f, "run folder"));
    RRL_GOTO(prepare(&f->dir, dir));
    RRL_GOTO(rrl_lock_take(f->dir));
    locked = true;
    RRL_GOTO(settle(f, &found, dir, digest, config_yaml, fresh));
    *state = found;
    *out = f;
    f = NULL;
done:
    if (f && locked)
        rrl_run_folder_close(&f);
    else if (f) {
        free(f->dir);
        free(f);
    }
    return rc;
}

void rrl_run_folder_close(rrl_run_folder **f) {
    if (!f || !*f) return;
    rrl_lock_drop((*f)->dir);
    cJSON_Delete((*f)->json);
    free((*f)->dir);
    free(*f);
    *f = NULL;
}

rrl_status rrl_run_folder_status(rrl_run_folder *f, const char *status, const char *reason) {
    RRL_TRY(set_status(f->json, status, reason));
    return save(f);
}

/* --- reading */

/* "running" with a dead holder, or with none, is a run that was killed. */
static rrl_status still_running(bool *alive, rrl_buffer *why, const char *dir) {
    bool held = false, dead = false;
    rrl_process holder;
    char who[512] = "no process holds its lock";
    RRL_TRY(rrl_lock_look(&held, &dead, &holder, dir));
    *alive = held && !dead;
    if (*alive) return RRL_OK;
    if (held) rrl_process_text(who, sizeof who, &holder);
    return rrl_buffer_printf(why, "ended without a word (%s); the same command continues it", who);
}

rrl_status rrl_run_folder_read(char **status, char **reason, const char *dir) {
    rrl_status rc = RRL_OK;
    cJSON *json = NULL;
    const char *said = "waiting", *because = NULL;
    rrl_buffer why = {0};
    char *status_copy = NULL, *reason_copy = NULL;
    bool known = false, alive = true;
    RRL_GOTO(has_entry(&known, dir, "run.json"));
    if (known) {
        RRL_GOTO(load(&json, dir));
        RRL_GOTO(rrl_json_string(&said, json, "status", false, "run.json"));
        RRL_GOTO(rrl_json_string(&because, json, "reason", true, "run.json"));
    }
    if (strcmp(said, "running") == 0) RRL_GOTO(still_running(&alive, &why, dir));
    if (strcmp(said, "complete") == 0 && rrl_record_complete(dir) != RRL_OK) {
        alive = false;
        RRL_GOTO(rrl_buffer_puts(&why, rrl_error_message()));
    }
    RRL_GOTO(rrl_strdup(&status_copy, alive ? said : "failed"));
    if (!alive) because = why.data;
    if (because) RRL_GOTO(rrl_strdup(&reason_copy, because));
    *status = status_copy;
    *reason = reason_copy;
    status_copy = reason_copy = NULL;
done:
    free(status_copy);
    free(reason_copy);
    rrl_buffer_free(&why);
    cJSON_Delete(json);
    return rc;
}
