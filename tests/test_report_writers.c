/* Several writers of one report and a reader beside them: all of them succeed, and whoever looks at any instant finds every
 * file. Works on a copy of the study that test_report makes. */
#define _GNU_SOURCE /* nanosleep, fork */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "check.h"
#include "report/report.h"

enum { WRITERS = 3, PATH_CHARS = 1024 };

static const char *const FILES[] = {"report.html",       "report.md",
                                    "summary.csv",       "training_diagnostics.csv",
                                    "method_differences.csv", "plots/independent_accuracy.csv",
                                    "plots/independent_accuracy.gp", "plots/learning_curves-flip.csv"};
enum { N_FILES = sizeof FILES / sizeof *FILES };

static char root[PATH_CHARS];

static const char *below(const char *name) {
    static char path[2 * PATH_CHARS];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static const char *in_report(const char *name) {
    static char path[PATH_CHARS];
    snprintf(path, sizeof path, "report/%s", name);
    return below(path);
}

static void copy_study(void) {
    char command[3 * PATH_CHARS];
    snprintf(root, sizeof root, "%s/report_writers", RRL_BINARY_DIR);
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s/report_case/study' '%s'", root, RRL_BINARY_DIR, root);
    if (system(command) != 0) exit(1);
}

static int folders_that_begin_with(const char *prefix) {
    char **names = NULL;
    size_t n = 0;
    int found = 0;
    CHECK_OK(rrl_dir_list(&names, &n, root));
    for (size_t i = 0; i < n; i++) found += strncmp(names[i], prefix, strlen(prefix)) == 0;
    rrl_names_free(&names, n);
    return found;
}

/* Have the next exchange fail, as on a file system that has none: a fault comes again when its text changes. */
static void forbid_exchange(int again) {
    CHECK(setenv("RRL_FAULT", again % 2 ? "0:report.exchange:1:fail" : "*:report.exchange:1:fail", 1) == 0);
}

/* A child for each. */
static void start_writers(pid_t child[WRITERS], int exchange) {
    for (int i = 0; i < WRITERS; i++) {
        child[i] = fork();
        if (child[i] != 0) continue;
        int good = 1;
        for (int k = 0; k < 3; k++) {
            if (!exchange) forbid_exchange(k + 1);
            good &= rrl_report_write(NULL, root) == RRL_OK;
        }
        if (!good) fprintf(stderr, "  writer %d: %s\n", i, rrl_error_message());
        _exit(!good);
    }
}

/* Look at all files until every writer is done; *missed counts those that were not there. */
static void look_on(pid_t child[WRITERS], int *missed, int *failed) {
    int running = WRITERS;
    *missed = *failed = 0;
    while (running) {
        for (int i = 0; i < N_FILES; i++) *missed += access(in_report(FILES[i]), R_OK) != 0;
        for (int i = 0; i < WRITERS; i++) {
            int status;
            if (child[i] <= 0 || waitpid(child[i], &status, WNOHANG) != child[i]) continue;
            *failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
            child[i] = 0;
            running--;
        }
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

static void check_whole(void) {
    for (int i = 0; i < N_FILES; i++)
        if (!CHECK(rrl_file_exists(in_report(FILES[i])))) fprintf(stderr, "  %s\n", FILES[i]);
    CHECK_EQ_INT(folders_that_begin_with("report"), 1); /* no temporary is left */
}

static void test_writers(void) {
    pid_t child[WRITERS];
    int missed, failed;
    CHECK_OK(rrl_report_write(NULL, root));
    start_writers(child, 1);
    look_on(child, &missed, &failed);
    CHECK_EQ_INT(failed, 0);
    CHECK_EQ_INT(missed, 0);
    check_whole();
}

/* Where names cannot be exchanged there may be no report for a moment; one stands there at the end. */
static void test_without_exchange(void) {
    pid_t child[WRITERS];
    int missed, failed;
    forbid_exchange(0);
    CHECK_OK(rrl_report_write(NULL, root));
    check_whole();
    start_writers(child, 0);
    look_on(child, &missed, &failed);
    CHECK_EQ_INT(failed, 0);
    check_whole();
    unsetenv("RRL_FAULT");
}

/* What somebody else put there stays, the files of an earlier report go. */
static void test_foreign_files(void) {
    static const char *const KEPT[] = {"notes.txt", "mine/a.csv", "section-9/notes.txt", "plots/mine/a.svg"};
    static const char *const OLD[] = {"section-9/summary.csv", "section-8/plots/a.svg", "plots/a.svg"};
    char *text = NULL, *parent = NULL;
    size_t len;
    for (int i = 0; i < 4 + 3; i++) {
        char path[2 * PATH_CHARS];
        snprintf(path, sizeof path, "%s", in_report(i < 4 ? KEPT[i] : OLD[i - 4]));
        CHECK_OK(rrl_path_parent(&parent, path));
        CHECK_OK(rrl_dir_make(parent));
        CHECK_OK(rrl_file_publish(path, "mine", 4));
        free(parent);
    }
    CHECK_OK(rrl_report_write(NULL, root));
    for (int i = 0; i < 4; i++)
        if (CHECK_OK(rrl_file_read(&text, &len, in_report(KEPT[i]), 100))) {
            CHECK_EQ_STR(text, "mine");
            free(text);
        }
    for (int i = 0; i < 3; i++) CHECK(!rrl_file_exists(in_report(OLD[i])));
    CHECK(!rrl_dir_exists(in_report("section-8")));
    check_whole();
}

/* report may be a link to a folder elsewhere, which stays one; a folder of a killed writer holds no record. */
static void test_link_and_leftover(void) {
    char command[4 * PATH_CHARS];
    snprintf(command, sizeof command, "cd '%s' && mkdir elsewhere && mv report elsewhere/page && ln -s elsewhere/page report"
             " && mkdir -p report.host.4194399-0.tmp/records", root);
    if (!CHECK(system(command) == 0)) return;
    CHECK_OK(rrl_report_write(NULL, root));
    for (int i = 0; i < N_FILES; i++) CHECK(rrl_file_exists(in_report(FILES[i])));
    char target[16] = "";
    CHECK(readlink(below("report"), target, sizeof target - 1) == 14);
    CHECK_EQ_STR(target, "elsewhere/page");
    CHECK(rrl_dir_exists(below("report.host.4194399-0.tmp/records"))); /* nobody removes another's */
    char *md = NULL;
    size_t len;
    if (CHECK_OK(rrl_file_read(&md, &len, in_report("report.md"), 1 << 24))) CHECK(strstr(md, "report.host") == NULL);
    free(md);
}

int main(void) {
    copy_study();
    test_writers();
    CHECK(setenv("PATH", "/nowhere", 1) == 0); /* no gnuplot: quicker, so that writers meet more often */
    test_writers();
    test_without_exchange();
    test_foreign_files();
    CHECK(setenv("PATH", "/usr/bin:/bin", 1) == 0);
    test_link_and_leftover();
    return CHECK_DONE();
}
