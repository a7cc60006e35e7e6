/* One condition of a study, as a task of a job array runs it; the end of a job's time; a study put aside. */
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "check.h"
#include "program.h"
#include "record/record.h"

static char folder[PROGRAM_PATH];

/* 3 conditions: base, baseline and robust of one level and seed. */
#define STUDY                                                                                                          \
    "study %s/configs/quick.yaml --quiet --threads 1 experiment.seeds=[7] hypotheses=[] "                             \
    "'experiment.arms=[{name: flip, corruption: flip, levels: [0.5], methods: [base, baseline, robust]}]' "           \
    "dataset.limit=4 experiment.train_dataset.limit=16 generation.max_tokens=16 training.max_steps=4 "                \
    "output_dir=%s/"
#define RUN                                                                                                            \
    "train %s/configs/train.yaml --quiet --threads 1 dataset.limit=4 experiment.train_dataset.limit=16 "              \
    "generation.max_tokens=16 training.max_steps=60 output_dir=%s/"

static const char *in(const char *name) {
    enum { ROOM = 2 * PROGRAM_PATH };
    static char path[4][ROOM];
    static int turn;
    turn = (turn + 1) % 4;
    if (snprintf(path[turn], ROOM, "%s/%s", folder, name) >= ROOM) exit(1);
    return path[turn];
}

/* Exit code of a command; *e holds its outputs. */
static int run(program_end *e, const char *before, const char *command, const char *rest) {
    char format[2048], whole[4096];
    snprintf(format, sizeof format, "%s %s%s", before, command, rest);
    snprintf(whole, sizeof whole, format, RRL_SOURCE_DIR, folder);
    program_wait(e, program_start(in("log"), whole), in("log"), 120);
    return e->code;
}

static int check_run(const char *before, const char *rest, int code, const char *said) {
    program_end e;
    int good = CHECK_EQ_INT(run(&e, before, STUDY, rest), code);
    if (said) good &= CHECK(strstr(e.out, said) || strstr(e.err, said));
    if (!good) fprintf(stderr, "%s%s", e.out, e.err);
    program_end_free(&e);
    return good;
}

static void check_digest(const char *a, const char *b) {
    char left[65] = "", right[65] = "-";
    CHECK_OK(rrl_record_digest(left, in(a)));
    CHECK_OK(rrl_record_digest(right, in(b)));
    CHECK_EQ_STR(left, right);
}

/* Tasks in any order, over any number of ranks, make the study; one that is complete does nothing. */
static void test_tasks(void) {
    if (!check_run("", "whole", 0, "report: ")) return;
    check_run("", "tasks --condition 2", 0, "condition 2 of ");
    CHECK(!program_exists(in("tasks/report"))); /* tasks run side by side; the report is a job of its own */
    CHECK(!program_exists(in("tasks/flip/level-0.5/seed-7/baseline")));
    check_run("mpirun -n 2", "tasks --condition 1", 0, "condition 1 of ");
    check_run("", "tasks --condition 0", 0, NULL);
    check_digest("whole", "tasks");
    check_run("", "tasks --condition 1", 0, NULL);
    CHECK(!program_has_below(in("tasks/flip"), ".old-1"));
    check_run("", "tasks --condition 1 --fresh", 0, NULL);
    CHECK(program_exists(in("tasks/flip/level-0.5/seed-7/baseline.old-1/run.h5")));
    check_digest("whole", "tasks");
}

static void test_refused(void) {
    check_run("", "tasks --condition 3", 2, "condition 3: the study has conditions 0 to 2");
    check_run("", "tasks --condition -1", 2, "at least 0");
    check_run("mpirun -n 2", "tasks --condition 1 parallel.ranks_per_team=1", 2, "work for one team");
    program_end e;
    CHECK_EQ_INT(run(&e, "", RUN, "none --condition 1"), 2);
    CHECK(strstr(e.err, "rrl train does not take --condition") != NULL);
    program_end_free(&e);
}

/* Two teams and --fresh: put aside once. */
static void test_fresh(void) {
    check_run("mpirun -n 2", "tasks --fresh", 0, NULL);
    CHECK(program_exists(in("tasks.old-1/study.json")) && !program_exists(in("tasks.old-2")));
    check_digest("whole", "tasks");
}

/* Two teams that want the base completions of one seed at once: they are made once. */
static void test_store_once(void) {
    program_end e;
    rrl_buffer log = {0};
    char *text = NULL;
    size_t n = 0;
    CHECK_EQ_INT(run(&e, "mpirun -n 2", STUDY, "once 'experiment.arms=[{name: flip, corruption: flip, levels: [0.1, 0.2, 0.3, "
                     "0.4], methods: [base]}]'"), 0);
    program_end_free(&e);
    if (CHECK_OK(rrl_file_read(&text, &n, in("once/base/seed-7.work/events.log"), 1 << 20)) &&
        CHECK_OK(rrl_buffer_put(&log, text, n)))
        CHECK_EQ_INT(program_count(log.data, "event=evaluation "), 1);
    CHECK(!program_exists(in("once/base/seed-7.making/lock")));
    free(text);
    rrl_buffer_free(&log);
}

/* A stop that comes while nothing is trained: no further condition begins. */
static void test_stop(void) {
    char command[4096];
    program_end e;
    snprintf(command, sizeof command, STUDY "stopped 'experiment.arms=[{name: flip, corruption: flip, "
             "levels: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1], methods: [base]}]'", RRL_SOURCE_DIR, folder);
    pid_t p = program_start(in("log"), command);
    while (!program_exists(in("stopped/flip/level-0/seed-7/base/run.json"))) program_sleep(0.002);
    kill(p, SIGUSR2);
    program_wait(&e, p, in("log"), 60);
    CHECK_EQ_INT(e.code, 4);
    CHECK(!program_exists(in("stopped/flip/level-1/seed-7/base/run.json")));
    program_end_free(&e);
}

/* SLURM_JOB_END_TIME is near: a checkpoint and exit 4 in time; what is resumed ends as if nothing had been. */
static void test_end_of_time(void) {
    char before[64];
    program_end e;
    time_t end = time(NULL) + 11; /* 10 s are kept for leaving */
    snprintf(before, sizeof before, "SLURM_JOB_END_TIME=%lld", (long long)end);
    CHECK_EQ_INT(run(&e, before, RUN, "timed"), 4);
    CHECK(time(NULL) < end);
    if (!CHECK(strstr(e.err, "stopped before the job's time limit") != NULL)) fprintf(stderr, "%s", e.err);
    program_end_free(&e);
    CHECK_EQ_INT(run(&e, "SLURM_JOB_END_TIME=1", RUN, "timed"), 4); /* each job gets an update further */
    program_end_free(&e);
    CHECK_EQ_INT(run(&e, "SLURM_JOB_END_TIME=99999999999", RUN, "timed"), 0);
    program_end_free(&e);
    CHECK_EQ_INT(run(&e, "SLURM_JOB_END_TIME=soon", RUN, "untimed"), 0);
    program_end_free(&e);
    check_digest("timed", "untimed");
}

int main(void) {
    program_folder(folder, "condition");
    test_tasks();
    test_refused();
    test_fresh();
    test_store_once();
    test_stop();
    test_end_of_time();
    program_remove(folder);
    return CHECK_DONE();
}
