/* A temporary is listed before the lock above it is looked at: who held the lock then has renamed it or is dead by the
 * time it is removed. */
#include "study/leftovers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "record/lock.h"

static const char SUFFIX[] = ".tmp", PROGRESS[] = "progress.json.tmp", REPORT[] = "report.";

/* Whether a name is one that this program gives to temporaries; *pid of its maker, 0 = not in the name. */
static bool is_temporary(long *pid, const char *name) {
    size_t n = strlen(name);
    char *end;
    *pid = 0;
    if (strcmp(name, PROGRESS) == 0) return true;
    if (n <= sizeof SUFFIX || strcmp(name + n - (sizeof SUFFIX - 1), SUFFIX) != 0) return false;
    const char *p = name + n - (sizeof SUFFIX - 1); /* PATH.PID or PATH.PID-K lies before it */
    while (p > name && p[-1] != '.') p--;
    if (p <= name + 1 || *p < '0' || *p > '9') return false;
    *pid = strtol(p, &end, 10);
    if (*end == '-') end += 1 + strspn(end + 1, "0123456789");
    return *pid > 0 && strcmp(end, SUFFIX) == 0;
}

/* Whether somebody may still want it: the holder of the run folder it lies in, or else its maker. A lock's own
 * temporary is made by who does not hold it yet. */
static bool in_use(const char *folder, const char *top, const char *name, long pid) {
    bool held = false, dead = false, found = false;
    rrl_process holder;
    char *at = NULL, *parent = NULL;
    bool maker = pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
    if (strncmp(name, "lock.", 5) == 0) return maker;
    if (rrl_strdup(&at, folder) != RRL_OK) return true;
    while (!found) {
        char *path = NULL;
        found = rrl_path_join(&path, at, "run.json") != RRL_OK || rrl_file_exists(path);
        free(path);
        if (found || strlen(at) <= strlen(top) || rrl_path_parent(&parent, at) != RRL_OK) break;
        free(at);
        at = parent;
        parent = NULL;
    }
    bool used = found ? rrl_lock_look(&held, &dead, &holder, at) != RRL_OK || (held && !dead) : maker;
    free(at);
    return used;
}

/* report.HOST.PID-K.tmp, a report on its way: no lock is held for one. A maker on another host cannot be asked, but
 * writes files all the time. */
static bool report_in_use(const char *name, long pid, const struct stat *st) {
    enum { QUIET_S = 3600 };
    rrl_process self;
    rrl_process_self(&self);
    size_t n = strlen(self.host);
    const char *host = name + sizeof REPORT - 1;
    if (strncmp(host, self.host, n) != 0 || host[n] != '.') return time(NULL) - st->st_mtime < QUIET_S;
    return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

static bool is_report(long *pid, const char *name) {
    return strncmp(name, REPORT, sizeof REPORT - 1) == 0 && is_temporary(pid, name) && *pid > 0;
}

static bool remove_all(const char *path, bool folder) {
    return folder ? rrl_dir_remove(path) : unlink(path) == 0 || errno == ENOENT;
}

static rrl_status look(rrl_buffer *text, int64_t *n, const char *folder, const char *top, bool clean);

static rrl_status look_at(rrl_buffer *text, int64_t *n, const char *folder, const char *name, const char *top, bool clean) {
    struct stat st;
    long pid;
    char *path = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_path_join(&path, folder, name));
    if (lstat(path, &st) != 0) goto done; /* gone since it was listed */
    bool dir = S_ISDIR(st.st_mode), report = dir && is_report(&pid, name);
    if (dir && !report) {
        rc = look(text, n, path, top, clean);
        goto done;
    }
    if (report && report_in_use(name, pid, &st)) goto done;
    if (!dir && (!S_ISREG(st.st_mode) || !is_temporary(&pid, name) || in_use(folder, top, name, pid))) goto done;
    if (clean && !remove_all(path, dir))
        RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: cannot be removed: %s", path, strerror(errno)));
    RRL_GOTO(rrl_buffer_printf(text, "%s %s\n", clean ? "removed " : "left over", path));
    ++*n;
done:
    free(path);
    return rc;
}

static rrl_status look(rrl_buffer *text, int64_t *n, const char *folder, const char *top, bool clean) {
    char **names = NULL;
    size_t count = 0;
    rrl_status rc;
    RRL_GOTO(rrl_dir_list(&names, &count, folder));
    for (size_t i = 0; i < count; i++) RRL_GOTO(look_at(text, n, folder, names[i], top, clean));
done:
    rrl_names_free(&names, count);
    return rc;
}

rrl_status rrl_leftovers(rrl_buffer *text, int64_t *n, const char *dir, bool clean) {
    return look(text, n, dir, dir, clean);
}
