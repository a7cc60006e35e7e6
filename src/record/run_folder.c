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
#include "base/hash.h"
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

static rrl_status add_failure(cJSON *json, const char *reason) {
    cJSON *failure = NULL;
    RRL_TRY(append_object(&failure, json, "failures"));
    RRL_TRY(set_now(failure, "utc"));
    RRL_TRY(put_process(failure));
    return set_text(failure, "reason", reason);
}

static rrl_status set_status(cJSON *json, const char *status, const char *reason) {
    cJSON *last = last_of(array_of(json, "attempts"));
    RRL_TRY(set_text(json, "status", status));
    RRL_TRY(set_text(json, "reason", reason));
    RRL_TRY(set_now(json, "changed_utc"));
    if (last) RRL_TRY(set_text(last, "status", status));
    if (last && strcmp(status, "running") != 0) RRL_TRY(set_now(last, "ended_utc"));
    return strcmp(status, "failed") == 0 ? add_failure(json, reason) : RRL_OK;
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

/* "key: old -> new; ..." from what ran here to this configuration; NULL where nothing differs or can be read. */
static rrl_status difference(char **keys, const char *dir, const char *config_yaml) {
    rrl_status rc = RRL_OK;
    char *path = NULL, *before = NULL;
    size_t n = 0;
    *keys = NULL;
    RRL_GOTO(rrl_path_join(&path, dir, "config.yaml"));
    if (rrl_file_read(&before, &n, path, MAX_FILE_BYTES) == RRL_OK)
        RRL_GOTO(rrl_config_difference(keys, before, config_yaml));
    for (char *p = *keys; p && *p; p++) /* one line */
        if (*p == '\n') *p = p[1] ? ';' : 0;
done:
    free(path);
    free(before);
    return rc;
}

#define OTHER_CONFIGURATION                                                                                            \
    "holds a run of another configuration: %s; choose another output_dir, or --fresh to move it to %s.old-N"

/* Another configuration ran here: say which keys differ. */
static rrl_status refuse(const char *dir, const char *config_yaml) {
    char *keys = NULL;
    RRL_TRY(difference(&keys, dir, config_yaml));
    rrl_status rc = RRL_FAIL(RRL_ERR_CONFIG, "%s: " OTHER_CONFIGURATION, dir,
                             keys && keys[0] ? keys : "model, data or adapter files differ", dir);
    free(keys);
    return rc;
}

rrl_status rrl_run_folder_differs(char **why, const char *dir, const char *config_yaml) {
    char *keys = NULL;
    rrl_buffer text = {0};
    *why = NULL;
    rrl_status rc = difference(&keys, dir, config_yaml);
    if (rc != RRL_OK) return rc == RRL_ERR_NOMEM ? rc : RRL_OK;
    if (keys && keys[0]) rc = rrl_buffer_printf(&text, OTHER_CONFIGURATION, keys, dir);
    free(keys);
    if (rc == RRL_OK) *why = text.data;
    else rrl_buffer_free(&text);
    return rc;
}

static rrl_status set_sha256(cJSON *json, const char *key, const char *path) {
    char hex[RRL_SHA256_HEX];
    uint8_t sum[RRL_SHA256_BYTES];
    RRL_TRY(rrl_sha256_file(sum, path));
    rrl_sha256_hex(hex, sum);
    return set_text(json, key, hex);
}

/* The digests of what a complete run left. */
static rrl_status set_digests(cJSON *json, const char *dir) {
    rrl_status rc = RRL_OK;
    char *run = NULL, *adapter = NULL, record[65];
    RRL_GOTO(rrl_path_join(&run, dir, "run.h5"));
    RRL_GOTO(rrl_path_join(&adapter, dir, "adapter/adapter_model.safetensors"));
    RRL_GOTO(rrl_record_digest(record, dir));
    RRL_GOTO(set_text(json, "record_digest", record));
    RRL_GOTO(set_sha256(json, "run_sha256", run));
    if (rrl_file_exists(adapter)) RRL_GOTO(set_sha256(json, "adapter_sha256", adapter));
done:
    free(run);
    free(adapter);
    return rc;
}

/* Whether run.h5 is there and the very file that the complete run left. */
static rrl_status is_unchanged(bool *same, const rrl_run_folder *f) {
    rrl_status rc = RRL_OK;
    char *path = NULL, hex[RRL_SHA256_HEX];
    uint8_t sum[RRL_SHA256_BYTES];
    const char *wanted = NULL;
    *same = false;
    RRL_GOTO(rrl_json_string(&wanted, f->json, "run_sha256", true, "run.json"));
    RRL_GOTO(rrl_path_join(&path, f->dir, "run.h5"));
    if (!wanted || !rrl_file_exists(path)) goto done;
    RRL_GOTO(rrl_sha256_file(sum, path));
    rrl_sha256_hex(hex, sum);
    *same = strcmp(hex, wanted) == 0;
done:
    free(path);
    return rc;
}

/* The record of a complete run is lost: the run begins again. Its checkpoints continue that record and no other, so they
 * are set aside; what is left of the record the recorder sets aside. Not where segments can be joined again, nor where
 * run.h5 is what it was and this program cannot read it (a newer version), which is an error. */
static rrl_status give_up_record(rrl_run_folder *f) {
    rrl_status rc = RRL_OK;
    char *records = NULL, *checkpoints = NULL;
    const char *status = NULL;
    bool segments = false, unchanged = false;
    RRL_GOTO(rrl_json_string(&status, f->json, "status", true, "run.json"));
    if (!status || strcmp(status, "complete") != 0) goto done;
    RRL_GOTO(has_entry(&segments, f->dir, "records"));
    RRL_GOTO(is_unchanged(&unchanged, f));
    if (segments || unchanged) goto done;
    RRL_GOTO(rrl_path_join(&records, f->dir, "records"));
    RRL_GOTO(rrl_path_join(&checkpoints, f->dir, "checkpoints"));
    if (rrl_dir_exists(checkpoints)) RRL_GOTO(rrl_quarantine(records, checkpoints));
    RRL_GOTO(add_failure(f->json, "the record was lost or damaged; what was left of the run is in quarantine"));
done:
    free(records);
    free(checkpoints);
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
    if (rrl_record_complete(f->dir) != RRL_OK) return give_up_record(f);
    *state = RRL_RUN_COMPLETE;
    RRL_TRY(rrl_records_remove(f->dir)); /* a kill may have left some */
    RRL_TRY(rrl_json_string(&status, f->json, "status", true, "run.json"));
    if (status && strcmp(status, "complete") == 0) return RRL_OK;
    (void)set_digests(f->json, f->dir); /* they are for rrl repair; without them it checks less */
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

rrl_status rrl_run_folder_complete(rrl_run_folder *f) {
    RRL_TRY(set_digests(f->json, f->dir));
    return rrl_run_folder_status(f, "complete", NULL);
}

/* --- for a repair, which holds the lock and runs nothing */

rrl_status rrl_run_folder_mark(const char *dir, const char *status, const char *reason) {
    rrl_run_folder f = {.dir = (char *)dir};
    RRL_TRY(load(&f.json, dir));
    rrl_status rc = strcmp(status, "complete") == 0 ? rrl_run_folder_complete(&f)
                                                    : rrl_run_folder_status(&f, status, reason);
    cJSON_Delete(f.json);
    return rc;
}

rrl_status rrl_run_folder_restore(const char *dir, const char *digest, const char *config_yaml) {
    rrl_run_folder f = {.dir = (char *)dir};
    rrl_status rc = new_run(&f, dir, digest, config_yaml);
    if (rc == RRL_OK) rc = set_status(f.json, "failed", "run.json was lost and made again from the records");
    if (rc == RRL_OK) rc = save(&f);
    cJSON_Delete(f.json);
    return rc;
}

/* --- reading */

static void copy_digest(char out[65], const char *text) { snprintf(out, 65, "%s", text ? text : ""); }

rrl_status rrl_run_folder_digests(rrl_run_digests *out, const char *dir) {
    rrl_status rc = RRL_OK;
    cJSON *json = NULL;
    const char *run = NULL, *record = NULL, *file = NULL, *adapter = NULL;
    RRL_GOTO(load(&json, dir));
    RRL_GOTO(rrl_json_string(&run, json, "digest", false, "run.json"));
    RRL_GOTO(rrl_json_string(&record, json, "record_digest", true, "run.json"));
    RRL_GOTO(rrl_json_string(&file, json, "run_sha256", true, "run.json"));
    RRL_GOTO(rrl_json_string(&adapter, json, "adapter_sha256", true, "run.json"));
    copy_digest(out->run, run);
    copy_digest(out->record, record);
    copy_digest(out->file, file);
    copy_digest(out->adapter, adapter);
done:
    cJSON_Delete(json);
    return rc;
}

/* What run.json says; "waiting" where there is none. */
typedef struct {
    char *status, *reason; /* reason may be NULL */
} said;

static void said_free(said *s) {
    free(s->status);
    free(s->reason);
    *s = (said){0};
}

static rrl_status what_is_said(said *out, const char *dir) {
    rrl_status rc = RRL_OK;
    cJSON *json = NULL;
    const char *status = "waiting", *reason = NULL;
    said s = {0};
    bool known = false;
    RRL_GOTO(has_entry(&known, dir, "run.json"));
    if (known) {
        RRL_GOTO(load(&json, dir));
        RRL_GOTO(rrl_json_string(&status, json, "status", false, "run.json"));
        RRL_GOTO(rrl_json_string(&reason, json, "reason", true, "run.json"));
    }
    RRL_GOTO(rrl_strdup(&s.status, status));
    if (reason) RRL_GOTO(rrl_strdup(&s.reason, reason));
    *out = s;
    s = (said){0};
done:
    said_free(&s);
    cJSON_Delete(json);
    return rc;
}

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

/* Word and files are not read at one instant. A run that ends between the two looks killed; its word has changed then,
 * and is asked again. */
static rrl_status settled(said *out, rrl_buffer *why, bool *killed, const char *dir) {
    enum { TRIES = 5 };
    rrl_status rc = RRL_OK;
    said s = {0}, again = {0};
    bool alive = true;
    RRL_GOTO(what_is_said(&s, dir));
    for (int i = 0; i < TRIES && strcmp(s.status, "running") == 0; i++) {
        why->len = 0;
        RRL_GOTO(still_running(&alive, why, dir));
        if (alive) break;
        RRL_GOTO(what_is_said(&again, dir));
        bool same = strcmp(again.status, s.status) == 0;
        said_free(&s);
        s = again;
        again = (said){0};
        if (same) break;
        alive = true;
    }
    *killed = !alive;
    *out = s;
    s = (said){0};
done:
    said_free(&s);
    said_free(&again);
    return rc;
}

rrl_status rrl_run_folder_read(char **status, char **reason, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_buffer why = {0};
    said s = {0};
    const char *state = NULL;
    bool killed = false;
    RRL_GOTO(settled(&s, &why, &killed, dir));
    if (killed) state = "interrupted";
    if (!killed && strcmp(s.status, "complete") == 0 && rrl_record_complete(dir) != RRL_OK) {
        state = "failed";
        RRL_GOTO(rrl_buffer_puts(&why, rrl_error_message()));
    }
    if (state) { /* the files say otherwise */
        said_free(&s);
        RRL_GOTO(rrl_strdup(&s.status, state));
        s.reason = why.data;
        why = (rrl_buffer){0};
    }
    *status = s.status;
    *reason = s.reason;
    s = (said){0};
done:
    said_free(&s);
    rrl_buffer_free(&why);
    return rc;
}
