/* The folder of a run: one writer, what an existing run allows, its history. */
#include "record/run_folder.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "check.h"
#include "record/lock.h"
#include "record_case.h"
#include "rrl/config.h"

static char *yaml_a, *yaml_b; /* two configurations that differ in learning_rate and seed */
static char digest_a[65], digest_b[65];

static char *yaml_of(const char *text, char digest[65]) {
    rrl_config *c = NULL;
    char *yaml = NULL;
    CHECK_OK(rrl_config_parse(&c, text, strlen(text), "test", ".", NULL, 0));
    CHECK_OK(rrl_config_yaml(&yaml, c, "."));
    CHECK_OK(rrl_config_digest(digest, c, ""));
    rrl_config_close(&c);
    return yaml;
}

static rrl_status open_a(rrl_run_folder **f, rrl_run_state *state, const char *dir, bool fresh) {
    return rrl_run_folder_open(f, state, dir, digest_a, yaml_a, fresh);
}

static int there(const char *dir, const char *name) {
    char path[700];
    snprintf(path, sizeof path, "%s%s", dir, name);
    return rrl_file_exists(path) || rrl_dir_exists(path);
}

static void check_status_text(const char *dir, const char *want, const char *reason_part) {
    char *status = NULL, *reason = NULL;
    if (CHECK_OK(rrl_run_folder_read(&status, &reason, dir))) {
        CHECK_EQ_STR(status, want);
        if (!CHECK(reason_part ? reason && strstr(reason, reason_part) : !reason))
            fprintf(stderr, "reason: %s\n", reason ? reason : "(NULL)");
    }
    free(status);
    free(reason);
}

/* The record that makes a run complete. */
static void record_run(const char *dir) {
    CHECK_OK(case_run(dir, 2, 2, 1, (case_change){.step = -1}));
}

static void test_course(void) {
    rrl_run_folder *f = NULL, *g = NULL;
    rrl_run_state state = RRL_RUN_COMPLETE;
    char below[600];
    snprintf(below, sizeof below, "%s/a/b", case_folder("course"));
    check_status_text(below, "waiting", NULL);
    if (!CHECK_OK(open_a(&f, &state, below, false))) return;
    CHECK_EQ_INT(state, RRL_RUN_NEW);
    check_status_text(below, "running", NULL);
    CHECK(there(below, "/config.yaml"));

    CHECK_STATUS(open_a(&g, &state, below, false), RRL_ERR_BUSY);
    CHECK(strstr(rrl_error_message(), "process") && strstr(rrl_error_message(), "host"));
    CHECK_STATUS(open_a(&g, &state, below, true), RRL_ERR_BUSY); /* --fresh takes nothing from the living */

    CHECK_OK(rrl_run_folder_status(f, "failed", "loss is NaN"));
    rrl_run_folder_close(&f);
    CHECK(!there(below, "/lock"));
    check_status_text(below, "failed", "loss is NaN");

    CHECK_OK(open_a(&f, &state, below, false));
    CHECK_EQ_INT(state, RRL_RUN_CONTINUES);
    CHECK_OK(rrl_run_folder_status(f, "checkpointed", "time limit"));
    rrl_run_folder_close(&f);
    check_status_text(below, "checkpointed", "time limit");

    CHECK_OK(open_a(&f, &state, below, false));
    record_run(below);
    CHECK_OK(rrl_run_folder_status(f, "complete", NULL));
    rrl_run_folder_close(&f);
    check_status_text(below, "complete", NULL);
    CHECK_OK(open_a(&f, &state, below, false));
    CHECK_EQ_INT(state, RRL_RUN_COMPLETE);
    rrl_run_folder_close(&f);

    cJSON *json = NULL; /* the history is whole */
    char path[700];
    snprintf(path, sizeof path, "%s/run.json", below);
    CHECK_OK(rrl_json_file(&json, path, 1 << 20));
    cJSON *attempts = cJSON_GetObjectItem(json, "attempts"),
          *failures = cJSON_GetObjectItem(json, "failures");
    CHECK_EQ_INT(cJSON_GetArraySize(attempts), 3);
    CHECK_EQ_INT(cJSON_GetArraySize(failures), 1);
    CHECK_EQ_STR(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(failures, 0), "reason")),
                 "loss is NaN");
    CHECK_EQ_STR(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(attempts, 0), "status")),
                 "failed");
    CHECK_EQ_STR(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(attempts, 2), "status")),
                 "complete");
    cJSON_Delete(json);
}

/* The word "complete" is not enough, and a run.h5 without the word is. */
static void test_existence_is_not_success(void) {
    rrl_run_folder *f = NULL;
    rrl_run_state state = RRL_RUN_NEW;
    char path[700];
    const char *dir = case_folder("success");
    CHECK_OK(open_a(&f, &state, dir, false));
    CHECK_OK(rrl_run_folder_status(f, "complete", NULL));
    rrl_run_folder_close(&f);
    check_status_text(dir, "failed", "run.h5");
    CHECK_OK(open_a(&f, &state, dir, false));
    CHECK_EQ_INT(state, RRL_RUN_CONTINUES);
    rrl_run_folder_close(&f);

    record_run(dir);
    CHECK_OK(open_a(&f, &state, dir, false));
    CHECK_EQ_INT(state, RRL_RUN_COMPLETE);
    rrl_run_folder_close(&f);
    check_status_text(dir, "complete", NULL);

    snprintf(path, sizeof path, "%s/run.h5", dir);
    CHECK_EQ_INT(truncate(path, 1000), 0);
    check_status_text(dir, "failed", "truncated");
    CHECK_OK(open_a(&f, &state, dir, false));
    CHECK_EQ_INT(state, RRL_RUN_CONTINUES);
    rrl_run_folder_close(&f);
}

static void test_other_config(void) {
    rrl_run_folder *f = NULL;
    rrl_run_state state = RRL_RUN_NEW;
    char dir[600];
    snprintf(dir, sizeof dir, "%s/run", case_folder("other")); /* moved folders lie beside it */
    CHECK_OK(open_a(&f, &state, dir, false));
    rrl_run_folder_close(&f);
    CHECK_STATUS(rrl_run_folder_open(&f, &state, dir, digest_b, yaml_b, false), RRL_ERR_CONFIG);
    const char *said = rrl_error_message();
    CHECK(strstr(said, "learning_rate: 1e-05 -> 2e-05") && strstr(said, "seed: 1 -> 2") &&
          strstr(said, "--fresh"));
    CHECK(!strchr(said, '\n') && !strstr(said, "output_dir:"));
    CHECK(!there(dir, "/lock")); /* let go again */
    CHECK_STATUS(rrl_run_folder_open(&f, &state, dir, digest_b, yaml_a, false), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "model, data or adapter files differ") != NULL);

    CHECK_OK(rrl_run_folder_open(&f, &state, dir, digest_b, yaml_b, true));
    CHECK_EQ_INT(state, RRL_RUN_NEW);
    CHECK(there(dir, ".old-1/run.json") && !there(dir, ".old-1/lock") && there(dir, "/lock"));
    rrl_run_folder_close(&f);
    CHECK_OK(open_a(&f, &state, dir, true));
    CHECK(there(dir, ".old-1/run.json") && there(dir, ".old-2/run.json"));
    rrl_run_folder_close(&f);

    char path[700];
    snprintf(path, sizeof path, "%s/run.json", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/records", dir);
    CHECK_OK(rrl_dir_make(path));
    CHECK_STATUS(open_a(&f, &state, dir, false), RRL_ERR_CONFIG); /* records of nobody knows what */
}

/* --- locks */

static void write_lock(const char *dir, const char *name, const char *host, long pid, unsigned long long start,
                       const char *job) {
    char path[700], text[600];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(text, sizeof text,
             "{\"host\": \"%s\", \"pid\": %ld, \"start\": %llu, \"job\": \"%s\", \"restart\": 0}\n", host,
             pid, start, job);
    CHECK_OK(rrl_file_publish(path, text, strlen(text)));
}

/* A squeue that answers as told, first in PATH. */
static void fake_squeue(const char *dir, const char *script) {
    char path[700], with[2000];
    snprintf(path, sizeof path, "%s/bin", dir);
    CHECK_OK(rrl_dir_make(path));
    snprintf(with, sizeof with, "%s:%s", path, getenv("PATH"));
    setenv("PATH", with, 1);
    strcat(path, "/squeue");
    CHECK_OK(rrl_file_publish(path, script, strlen(script)));
    chmod(path, 0755);
}

static void test_locks(void) {
    rrl_process self;
    rrl_process_self(&self);
    CHECK(self.start > 0);
    pid_t dead = fork();
    if (dead == 0) _exit(0);
    waitpid(dead, NULL, 0);
    pid_t alive = fork();
    if (alive == 0)
        for (;;) pause();

    unsetenv("SLURM_JOB_ID");
    const char *dir = case_folder("locks");
    char *saved = strdup(getenv("PATH"));
    const struct {
        const char *what, *host;
        long pid;
        unsigned long long start;
        const char *job, *squeue, *own_job;
        rrl_status want;
    } CASES[] = {
        {"a living process", self.host, alive, 0, "", NULL, NULL, RRL_ERR_BUSY},
        {"a dead process", self.host, dead, 12345, "", NULL, NULL, RRL_OK},
        {"its number was given away", self.host, alive, 1, "", NULL, NULL, RRL_OK},
        {"another host, no job", "elsewhere", dead, 1, "", NULL, NULL, RRL_ERR_BUSY},
        {"a running job", "elsewhere", dead, 1, "77", "#!/bin/sh\necho 77 RUNNING\n", NULL, RRL_ERR_BUSY},
        {"a job that ended", "elsewhere", dead, 1, "77", "#!/bin/sh\nexit 0\n", NULL, RRL_OK},
        {"a job that waits for its requeue", "elsewhere", dead, 1, "77", "#!/bin/sh\necho 77 PENDING\n", NULL,
         RRL_OK},
        {"a task that runs while others of its array wait", "elsewhere", dead, 1, "77",
         "#!/bin/sh\necho 78 PENDING; echo 77 RUNNING\n", NULL, RRL_ERR_BUSY},
        {"a task that waits while others of its array run", "elsewhere", dead, 1, "77",
         "#!/bin/sh\necho 78 RUNNING; echo 77 PENDING\n", NULL, RRL_OK},
        {"an unknown job", "elsewhere", dead, 1, "77",
         "#!/bin/sh\necho 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n", NULL, RRL_OK},
        {"Slurm does not answer", "elsewhere", dead, 1, "77",
         "#!/bin/sh\necho 'Unable to contact' >&2\nexit 1\n", NULL, RRL_ERR_BUSY},
        {"no number", "elsewhere", dead, 1, "7; touch x", "#!/bin/sh\nexit 0\n", NULL, RRL_ERR_BUSY},
        {"this job before its requeue", "elsewhere", dead, 1, "88", NULL, "88", RRL_OK},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        setenv("PATH", saved, 1);
        if (CASES[i].squeue) fake_squeue(dir, CASES[i].squeue);
        if (CASES[i].own_job) {
            setenv("SLURM_JOB_ID", CASES[i].own_job, 1);
            setenv("SLURM_RESTART_COUNT", "1", 1);
        }
        write_lock(dir, "lock", CASES[i].host, CASES[i].pid, CASES[i].start, CASES[i].job);
        rrl_status rc = rrl_lock_take(dir);
        if (rc != CASES[i].want) CHECK_EQ_STR(CASES[i].what, rrl_status_text(rc));
        if (rc == RRL_ERR_BUSY)
            CHECK(strstr(rrl_error_message(), CASES[i].host) && strstr(rrl_error_message(), CASES[i].job));
        rrl_lock_drop(dir);
        CHECK_EQ_INT(there(dir, "/lock"), rc == RRL_ERR_BUSY); /* only our own is removed */
    }
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_RESTART_COUNT");
    setenv("PATH", saved, 1);
    free(saved);
    kill(alive, SIGKILL);
    waitpid(alive, NULL, 0);

    char path[700];
    snprintf(path, sizeof path, "%s/lock", dir);
    CHECK_OK(rrl_file_publish(path, "not ours", 8));
    CHECK_STATUS(rrl_lock_take(dir), RRL_ERR_BUSY);
    unlink(path);
}

/* A rival of test_race: starts when `go` closes, tells the result, and lives until `hold` closes. */
static void rival(const char *dir, int go, int told, int hold) {
    char c;
    (void)!read(go, &c, 1);
    rrl_status rc = rrl_lock_take(dir);
    c = rc == RRL_OK ? 'w' : rc == RRL_ERR_BUSY ? 'l' : '?';
    (void)!write(told, &c, 1);
    (void)!read(hold, &c, 1);
    _exit(0);
}

/* Of many who find a dead lock, one gets it; also when one before was killed while it took it over. */
static void test_race(void) {
    enum { RIVALS = 8, ROUNDS = 24 };
    for (int round = 0; round < ROUNDS; round++) {
        const char *dir = case_folder("race");
        rrl_process self;
        rrl_process_self(&self);
        int go[2], told[2], hold[2], won = 0, lost = 0;
        write_lock(dir, "lock", self.host, 4194304 + 5, 1, ""); /* above the largest process number */
        if (round % 2) write_lock(dir, "lock.takeover", self.host, 4194304 + 6, 1, "");
        CHECK(pipe(go) == 0 && pipe(told) == 0 && pipe(hold) == 0);
        fflush(NULL);
        for (int i = 0; i < RIVALS; i++) {
            if (fork() != 0) continue;
            close(go[1]);
            close(hold[1]);
            rival(dir, go[0], told[1], hold[0]);
        }
        close(go[0]);
        close(go[1]);
        close(told[1]);
        for (char c; won + lost < RIVALS && read(told[0], &c, 1) == 1;) {
            CHECK(c == 'w' || c == 'l');
            *(c == 'w' ? &won : &lost) += 1;
        }
        CHECK_EQ_INT(won, 1);
        CHECK_EQ_INT(lost, RIVALS - 1);
        CHECK(!there(dir, "/lock.takeover") && !there(dir, "/lock.takeover.takeover"));
        close(told[0]);
        close(hold[0]);
        close(hold[1]);
        while (wait(NULL) > 0) {}
    }
}

/* A writer that is killed leaves its lock and "running"; the next one takes over and says so. */
static void test_killed(void) {
    rrl_run_folder *f = NULL;
    rrl_run_state state = RRL_RUN_NEW;
    const char *dir = case_folder("killed");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (open_a(&f, &state, dir, false) == RRL_OK) kill(getpid(), SIGKILL);
        _exit(1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status));
    CHECK(there(dir, "/lock"));
    check_status_text(dir, "interrupted", "ended without a word");
    CHECK_OK(open_a(&f, &state, dir, false));
    CHECK_EQ_INT(state, RRL_RUN_CONTINUES);
    rrl_run_folder_close(&f);
    cJSON *json = NULL;
    char path[700];
    snprintf(path, sizeof path, "%s/run.json", dir);
    CHECK_OK(rrl_json_file(&json, path, 1 << 20));
    cJSON *attempts = cJSON_GetObjectItem(json, "attempts");
    CHECK_EQ_INT(cJSON_GetArraySize(attempts), 2);
    CHECK_EQ_STR(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetArrayItem(attempts, 0), "status")),
                 "killed");
    cJSON_Delete(json);
}

/* --- places that are none */

static void test_places(void) {
    rrl_run_folder *f = NULL;
    rrl_run_state state = RRL_RUN_NEW;
    char path[700], link_path[700];
    const char *dir = case_folder("places");
    CHECK_STATUS(open_a(&f, &state, "/dev/null", false), RRL_ERR_IO);
    CHECK(strstr(rrl_error_message(), "device") != NULL);
    snprintf(path, sizeof path, "%s/pipe", dir);
    CHECK_EQ_INT(mkfifo(path, 0600), 0);
    CHECK_STATUS(open_a(&f, &state, path, false), RRL_ERR_IO);
    CHECK(strstr(rrl_error_message(), "pipe") != NULL);
    CHECK_STATUS(open_a(&f, &state, "/proc/nothing/here", false), RRL_ERR_IO);

    snprintf(path, sizeof path, "%s/real", dir);
    CHECK_OK(rrl_dir_make(path));
    snprintf(link_path, sizeof link_path, "%s/link", dir);
    CHECK_EQ_INT(symlink(path, link_path), 0);
    CHECK_OK(open_a(&f, &state, link_path, false));
    rrl_run_folder_close(&f);
    cJSON *json = NULL;
    strcat(path, "/run.json");
    CHECK_OK(rrl_json_file(&json, path, 1 << 20));
    CHECK(cJSON_GetObjectItem(json, "link_to") != NULL);
    cJSON_Delete(json);
    CHECK_OK(open_a(&f, &state, link_path, true)); /* the folder moves, the link stays */
    rrl_run_folder_close(&f);
    struct stat st;
    CHECK(lstat(link_path, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(there(dir, "/real.old-1/run.json") && there(dir, "/real/run.json"));

    if (geteuid() == 0) return; /* root may write anywhere */
    snprintf(path, sizeof path, "%s/readonly", dir);
    CHECK_EQ_INT(mkdir(path, 0500), 0);
    CHECK_STATUS(open_a(&f, &state, path, false), RRL_ERR_IO);
}

int main(void) {
    yaml_a = yaml_of("seed: 1\noutput_dir: a\ntraining:\n  learning_rate: 1e-5\n", digest_a);
    yaml_b = yaml_of("seed: 2\noutput_dir: b\ntraining:\n  learning_rate: 2e-5\n", digest_b);
    if (!yaml_a || !yaml_b) return CHECK_DONE();
    test_course();
    test_existence_is_not_success();
    test_other_config();
    test_locks();
    test_race();
    test_killed();
    test_places();
    free(yaml_a);
    free(yaml_b);
    return CHECK_DONE();
}
