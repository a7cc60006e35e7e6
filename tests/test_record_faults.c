/* Records under faults: every write, fsync and rename fails, finds a full disk or is the last thing the
 * process does, one visit after the other. After each: what is there can be read, and a resume ends with the
 * digest of the undisturbed run. The file system may refuse locks all the while. */
#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "check.h"
#include "record/record.h"
#include "record_case.h"

enum { STEPS = 5, PER_SEGMENT = 2 };
static const case_change NONE = {.step = -1};

/* Takes the place of the C library's for libhdf5 too: a file system without locks (NFS without its daemon,
 * Lustre without flock). */
static int flock_calls;
__attribute__((visibility("default"))) int flock(int fd, int operation) {
    (void)fd;
    (void)operation;
    flock_calls++;
    errno = ENOLCK;
    return -1;
}

/* A child that records, with a fault; its exit code, or -signal. */
static int run_child(const char *dir, const char *site, int n, const char *kind) {
    char spec[128];
    snprintf(spec, sizeof spec, "*:%s:%d:%s", site, n, kind);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("RRL_FAULT", spec, 1);
        rrl_status rc = case_run(dir, STEPS, PER_SEGMENT, 1, NONE);
        if (rc == RRL_OK) _exit(0);
        int said = strstr(rrl_error_message(),
                          strcmp(kind, "full") ? "Input/output error" : "No space left") != NULL;
        _exit(rc == RRL_ERR_IO && said && strstr(rrl_error_message(), dir) ? 1 : 2);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* What is there must be whole segments: steps 0 .. n - 1 of the run. Returns n. */
static int64_t check_readable(const char *dir) {
    rrl_record *r = NULL;
    char head[600];
    snprintf(head, sizeof head, "%s/records/000000.h5", dir);
    rrl_status rc = rrl_record_read(&r, dir, 1);
    if (rc != RRL_OK) {
        CHECK(!rrl_file_exists(head)); /* nothing was recorded yet */
        return 0;
    }
    int64_t n = r->n_rows;
    CHECK(n % PER_SEGMENT == 0 || n == STEPS);
    for (int64_t i = 0; i < n; i++) CHECK_EQ_INT(r->rows[i].step, i);
    rrl_record_free(&r);
    return n;
}

/* As the trainer does: from the checkpoint of `next` to the end. */
static void resume(const char *dir, int64_t next, const char *wanted) {
    rrl_recorder *r = NULL;
    rrl_questions *q = case_questions();
    rrl_record_header h = case_header(q);
    char digest[65] = "";
    int64_t mismatches = -1;
    if (rrl_record_complete(dir) != RRL_OK && CHECK_OK(rrl_recorder_open(&r, dir, &h, PER_SEGMENT, next))) {
        CHECK_OK(case_steps(r, next, STEPS, NONE));
        CHECK_OK(case_evaluation(r, "final", q));
        rrl_recorder_replay(r, NULL, &mismatches);
        CHECK_EQ_INT(mismatches, 0);
        CHECK_OK(rrl_recorder_finish(r, NULL));
    }
    rrl_recorder_close(&r);
    case_questions_free(&q);
    CHECK_OK(rrl_record_digest(digest, dir));
    CHECK_EQ_STR(digest, wanted);
}

static void loop(const char *site, const char *kind, const char *wanted, int *faults) {
    for (int n = 1; n < 1000; n++) {
        const char *dir = case_folder("faults");
        int code = run_child(dir, site, n, kind);
        if (code == 0) break; /* no n-th visit any more */
        ++*faults;
        if (code != (strcmp(kind, "kill") ? 1 : -SIGKILL)) {
            fprintf(stderr, "%s visit %d, %s: ended with %d\n", site, n, kind, code);
            CHECK(0);
        }
        int64_t steps = check_readable(dir);
        resume(dir, n % 2 ? 0 : steps / 2,
               wanted); /* the checkpoint is older than the records, or there is none */
    }
}

static void test_all_sites(const char *wanted) {
    static const char *const SITES[] = {
        "head.write",    "segment.write", "evaluation.write", "run.write",      "join.remove", "publish.open",
        "publish.write", "publish.fsync", "publish.rename",   "publish.folder", "dir.make"};
    static const char *const KINDS[] = {"kill", "full", "fail"};
    for (size_t s = 0; s < sizeof SITES / sizeof *SITES; s++) {
        int faults = 0;
        for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) loop(SITES[s], KINDS[k], wanted, &faults);
        if (!CHECK(faults >= 3)) fprintf(stderr, "%s is never visited\n", SITES[s]);
    }
}

/* Wait until the child has published its first rows, however slow the machine. */
static void wait_for_rows(const char *dir, pid_t pid) {
    char path[512];
    snprintf(path, sizeof path, "%s/records/000001.h5", dir);
    while (access(path, F_OK) != 0 && kill(pid, 0) == 0) usleep(1000);
}

/* A kill at any time: all segments that have their name are good. */
static void test_random_kills(void) {
    for (int i = 0; i < 8; i++) {
        const char *dir = case_folder("kills");
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) _exit(case_run(dir, 100000, 1, 0, NONE) == RRL_OK ? 0 : 1);
        if (i > 2) wait_for_rows(dir, pid);
        usleep(7000 + 13000 * (unsigned)i);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        rrl_record *r = NULL;
        if (i > 2 && CHECK_OK(rrl_record_read(&r, dir, 1))) {
            CHECK(r->n_rows > 0);
            for (int64_t k = 0; k < r->n_rows; k++) CHECK_EQ_INT(r->rows[k].step, k);
        }
        rrl_record_free(&r);
    }
}

/* A real refusal of the kernel: files may not grow beyond a few KiB. */
static void test_file_limit(void) {
    const char *dir = case_folder("limit");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit small = {20000, 20000};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &small) != 0) _exit(3);
        rrl_status rc = case_run(dir, STEPS, PER_SEGMENT, 1, NONE);
        _exit(rc == RRL_ERR_IO && strstr(rrl_error_message(), "000001.h5: cannot be written: File too large")
                  ? 0
                  : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ_INT(WEXITSTATUS(status), 0);
    CHECK_EQ_INT(check_readable(dir), 0);
}

/* HDF5 reads its variable once, so this needs a fresh process. With locks forced, the refusal of flock is
 * real. */
static int forced_locks(const char *dir) {
    char digest[65];
    CHECK_STATUS(rrl_record_digest(digest, dir), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "set it to FALSE") != NULL);
    CHECK(flock_calls > 0);
    return CHECK_DONE();
}

static void test_forced_locks(const char *dir) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("HDF5_USE_FILE_LOCKING", "TRUE", 1);
        execl("/proc/self/exe", "test_record_faults", dir, (char *)NULL);
        _exit(3);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ_INT(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv) {
    if (argc > 1) return forced_locks(argv[1]);
    char wanted[65];
    char plain[600];
    snprintf(plain, sizeof plain, "%s", case_folder("plain"));
    CHECK_OK(case_run(plain, STEPS, PER_SEGMENT, 1, NONE));
    if (!CHECK_OK(rrl_record_digest(wanted, plain))) return CHECK_DONE();
    test_all_sites(wanted);
    test_random_kills();
    test_file_limit();
    CHECK_EQ_INT(flock_calls, 0); /* nobody asked for a lock that could be refused */
    test_forced_locks(plain);
    return CHECK_DONE();
}
