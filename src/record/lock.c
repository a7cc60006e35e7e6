#define _GNU_SOURCE /* pipe2, environ */
#include "record/lock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"

enum { MAX_LOCK_BYTES = 1 << 16, MAX_TAKEOVERS = 3 };

/* --- processes */

/* Start and state of a process; false where /proc does not tell (no such process, or no /proc). */
static bool process_stat(unsigned long long *start, char *state, long pid) {
    char path[64], *text = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (rrl_file_read(&text, &n, path, MAX_LOCK_BYTES) != RRL_OK) return false;
    char *p = strrchr(text, ')'); /* the name before it may hold anything */
    bool ok = p && p[1] == ' ';
    if (ok) *state = p[2];
    for (int field = 2; ok && field < 22; field++) ok = (p = strchr(p + 1, ' ')) != NULL;
    if (ok) *start = strtoull(p + 1, NULL, 10);
    free(text);
    return ok;
}

void rrl_process_self(rrl_process *p) {
    char state;
    const char *job = getenv("SLURM_JOB_ID"), *restart = getenv("SLURM_RESTART_COUNT");
    memset(p, 0, sizeof *p);
    if (gethostname(p->host, sizeof p->host - 1) != 0) strcpy(p->host, "unknown");
    p->pid = (long)getpid();
    if (!process_stat(&p->start, &state, p->pid)) p->start = 0;
    snprintf(p->job, sizeof p->job, "%s", job ? job : "");
    p->restart = restart ? strtol(restart, NULL, 10) : 0;
}

void rrl_process_text(char *text, size_t n, const rrl_process *p) {
    int used = snprintf(text, n, "host %s, process %ld", p->host, p->pid);
    if (p->job[0] && used > 0 && (size_t)used < n)
        snprintf(text + used, n - (size_t)used, ", job %s", p->job);
}

/* On this host: dead if there is no such process, if it has ended and nobody asked for its code, or if the
 * number was given to another one since. */
static bool dead_here(const rrl_process *p) {
    unsigned long long start = 0;
    char state = 0;
    if (kill((pid_t)p->pid, 0) != 0 && errno == ESRCH) return true;
    if (!process_stat(&start, &state, p->pid)) return false;
    return state == 'Z' || state == 'X' || (p->start && start != p->start);
}

/* Start squeue with its answer, errors too, to be read from the result; NULL where it cannot be started. No shell: the
 * job's number comes from a file. */
static FILE *ask_slurm(pid_t *child, const char *job) {
    char *const argv[] = {"squeue", "-h", "-j", (char *)job, "-o", "%A %T", NULL};
    posix_spawn_file_actions_t files;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
    bool started = posix_spawn_file_actions_init(&files) == 0;
    if (started) {
        started = posix_spawn_file_actions_adddup2(&files, ends[1], 1) == 0 &&
                  posix_spawn_file_actions_adddup2(&files, ends[1], 2) == 0 &&
                  posix_spawnp(child, argv[0], &files, NULL, argv, environ) == 0;
        posix_spawn_file_actions_destroy(&files);
    }
    close(ends[1]);
    FILE *answer = started ? fdopen(ends[0], "r") : NULL;
    if (!answer) close(ends[0]);
    if (!answer && started) (void)waitpid(*child, NULL, 0);
    return answer;
}

/* Whether Slurm says that the job does not run: it is unknown, ended, or waits for its requeue. Where there is
 * no Slurm or it does not answer, no. An array's number is also that of one of its tasks; squeue lists all. */
static bool job_gone(const char *job) {
    char line[256], id[64], state[64];
    bool waits = false, runs = false, unknown = false;
    pid_t child = 0;
    int code = -1;
    for (const char *c = job; *c; c++)
        if (!isdigit((unsigned char)*c)) return false;
    FILE *answer = ask_slurm(&child, job);
    if (!answer) return false;
    while (fgets(line, sizeof line, answer)) {
        unknown = unknown || strstr(line, "Invalid job id") != NULL;
        if (sscanf(line, "%63s %63s", id, state) != 2 || strcmp(id, job) != 0) continue;
        if (strcmp(state, "PENDING") == 0)
            waits = true;
        else
            runs = true;
    }
    fclose(answer);
    bool answered = waitpid(child, &code, 0) == child && code == 0;
    return !runs && (waits || answered || unknown);
}

static bool is_dead(const rrl_process *holder) {
    rrl_process self;
    rrl_process_self(&self);
    if (strcmp(holder->host, self.host) == 0) return dead_here(holder);
    if (!holder->job[0]) return false;
    if (strcmp(holder->job, self.job) == 0) return holder->restart < self.restart; /* the job was requeued */
    return job_gone(holder->job);
}

/* --- the file */

static rrl_status lock_text(rrl_buffer *b) {
    rrl_process p;
    rrl_process_self(&p);
    RRL_TRY(rrl_buffer_puts(b, "{\"host\": "));
    RRL_TRY(rrl_json_quote(b, p.host, strlen(p.host)));
    RRL_TRY(rrl_buffer_printf(b, ", \"pid\": %ld, \"start\": %llu, \"job\": ", p.pid, p.start));
    RRL_TRY(rrl_json_quote(b, p.job, strlen(p.job)));
    return rrl_buffer_printf(b, ", \"restart\": %ld}\n", p.restart);
}

static rrl_status parse(rrl_process *p, const char *text, size_t n, const char *path) {
    rrl_status rc = RRL_OK;
    cJSON *json = NULL;
    const char *host = NULL, *job = NULL;
    int64_t pid = 0, start = 0, restart = 0;
    RRL_GOTO(rrl_json_parse(&json, text, n, path));
    RRL_GOTO(rrl_json_string(&host, json, "host", false, path));
    RRL_GOTO(rrl_json_string(&job, json, "job", false, path));
    RRL_GOTO(rrl_json_int(&pid, json, "pid", false, path));
    RRL_GOTO(rrl_json_int(&start, json, "start", false, path));
    RRL_GOTO(rrl_json_int(&restart, json, "restart", false, path));
    memset(p, 0, sizeof *p);
    snprintf(p->host, sizeof p->host, "%s", host);
    snprintf(p->job, sizeof p->job, "%s", job);
    p->pid = (long)pid;
    p->start = (unsigned long long)start;
    p->restart = (long)restart;
done:
    cJSON_Delete(json);
    return rc;
}

static rrl_status busy(const char *path, const rrl_process *holder) {
    char who[512];
    rrl_process_text(who, sizeof who, holder);
    return RRL_FAIL(RRL_ERR_BUSY,
                    "%.*s: another run is writing here (%s); wait for it, choose another output_dir, or, if it "
                    "is gone, remove %s",
                    (int)(strrchr(path, '/') - path), path, who, path);
}

static rrl_status take(const char *path, const rrl_buffer *mine, int depth);

/* Put my lock in the place of a dead one. Several may find it, and one that looked earlier must not remove the lock of
 * the one that was faster: so only the holder of PATH.takeover, a lock like any other, may replace it, and looks again
 * first. *again: nothing was taken, but the dead lock is gone or about to be. */
static rrl_status take_over(bool *again, const char *path, const char *dead, size_t dead_n, const rrl_buffer *mine,
                            int depth) {
    rrl_status rc = RRL_OK;
    rrl_buffer guard = {0};
    char *text = NULL;
    size_t n = 0;
    bool guarded = false;
    *again = false;
    RRL_GOTO(rrl_buffer_printf(&guard, "%s.takeover", path));
    rc = take(guard.data, mine, depth + 1);
    guarded = rc == RRL_OK;
    if (rc == RRL_ERR_BUSY && depth == 0) {
        *again = true;
        rc = RRL_OK;
    }
    if (!guarded) goto done;
    rc = rrl_file_read(&text, &n, path, MAX_LOCK_BYTES);
    if (rc == RRL_ERR_DATA || (rc == RRL_OK && (n != dead_n || memcmp(text, dead, n) != 0))) {
        *again = true;
        rc = RRL_OK;
    } else if (rc == RRL_OK && rrl_fault("lock.takeover"))
        rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be taken over: %s", path, strerror(errno));
    else if (rc == RRL_OK)
        rc = rrl_file_publish(path, mine->data, mine->len);
done:
    if (guarded) unlink(guard.data);
    free(text);
    rrl_buffer_free(&guard);
    return rc;
}

/* One try; *again: it may go better the next time. */
static rrl_status try_take(bool *again, const char *path, const rrl_buffer *mine, int depth) {
    rrl_status rc = rrl_file_create(path, mine->data, mine->len);
    *again = false;
    if (rc != RRL_ERR_BUSY) return rc;
    char *text = NULL;
    size_t n = 0;
    rrl_process holder;
    rc = rrl_file_read(&text, &n, path, MAX_LOCK_BYTES);
    if (rc == RRL_ERR_DATA) { /* let go between the two calls */
        *again = true;
        return RRL_OK;
    }
    RRL_TRY(rc);
    if (parse(&holder, text, n, path) != RRL_OK)
        rc = RRL_FAIL(RRL_ERR_BUSY, "%s: is no lock of this program; if no run is writing here, remove it",
                      path);
    else if (!is_dead(&holder) || depth == MAX_TAKEOVERS)
        rc = busy(path, &holder);
    else
        rc = take_over(again, path, text, n, mine, depth);
    free(text);
    return rc;
}

/* depth: how many dead locks this one stands for; a process killed while it took one over leaves one more. */
static rrl_status take(const char *path, const rrl_buffer *mine, int depth) {
    enum { TRIES = 50 };
    const struct timespec nap = {0, 20000000}; /* the winner publishes meanwhile */
    bool again = true;
    for (int i = 0; i < TRIES && again; i++) {
        if (i > 0) nanosleep(&nap, NULL);
        RRL_TRY(try_take(&again, path, mine, depth));
    }
    return again ? RRL_FAIL(RRL_ERR_BUSY, "%s: is being taken by other processes", path) : RRL_OK;
}

rrl_status rrl_lock_take(const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_buffer mine = {0};
    char *path = NULL;
    RRL_GOTO(rrl_path_join(&path, dir, "lock"));
    RRL_GOTO(lock_text(&mine));
    rc = take(path, &mine, 0);
done:
    rrl_buffer_free(&mine);
    free(path);
    return rc;
}

void rrl_lock_drop(const char *dir) {
    rrl_buffer mine = {0};
    char *path = NULL, *text = NULL;
    size_t n = 0;
    if (rrl_path_join(&path, dir, "lock") == RRL_OK && lock_text(&mine) == RRL_OK &&
        rrl_file_read(&text, &n, path, MAX_LOCK_BYTES) == RRL_OK && n == mine.len &&
        memcmp(text, mine.data, n) == 0)
        unlink(path);
    free(text);
    free(path);
    rrl_buffer_free(&mine);
}

rrl_status rrl_lock_look(bool *held, bool *dead, rrl_process *holder, const char *dir) {
    rrl_status rc = RRL_OK;
    char *path = NULL, *text = NULL;
    size_t n = 0;
    *held = false;
    if (dead) *dead = false;
    RRL_GOTO(rrl_path_join(&path, dir, "lock"));
    if (!rrl_file_exists(path)) goto done;
    rc = rrl_file_read(&text, &n, path, MAX_LOCK_BYTES);
    if (rc == RRL_ERR_DATA && !rrl_file_exists(path)) rc = RRL_OK; /* let go between the two calls */
    if (rc != RRL_OK || !text) goto done;
    RRL_GOTO(parse(holder, text, n, path));
    *held = true;
    if (dead) *dead = is_dead(holder);
done:
    free(path);
    free(text);
    return rc;
}
