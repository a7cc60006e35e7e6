/* A rank that stops answering (SIGSTOP: its connection stays open) ends the job: one line that names both ranks, their
 * roles and the phase, exit code 6, within the timeout and a little. Also where the ranks that are left hear each other. */
#include "check.h"

#include <signal.h>

#include "program.h"

static char folder[PROGRAM_PATH];
static const double TIMEOUT_S = 2, SLACK_S = 20; /* mpirun takes its time to end what is stopped */

#define SPLIT "parallel.roles.generators=1 parallel.roles.verifiers=1 parallel.roles.learners=1 "
static const struct {
    const char *what, *ranks, *settings;
    int stopped;
    const char *lost; /* what the line says of the rank that was stopped */
} CASES[] = {
    {"one of two", "2", "", 1, "rank 1 (all)"},
    {"a generator of three", "3", SPLIT, 0, "rank 0 (generator)"},
    {"the learner of three", "3", SPLIT, 2, "rank 2 (learner)"},
};

static void test_stopped(size_t i) {
    char command[2048], path[PROGRAM_PATH + 64], log[PROGRAM_PATH + 32];
    program_end e;
    pid_t ranks[4];
    snprintf(log, sizeof log, "%s/log", folder);
    snprintf(path, sizeof path, "%s/out/checkpoints/step-00000001/complete", folder);
    snprintf(command, sizeof command,
             "mpirun -n %s train %s/configs/train.yaml --quiet --threads 1 dataset.limit=4 generation.max_tokens=12 "
             "training.max_steps=100000 training.save_steps=1 records.writer_share=1 parallel.timeout_s=%g %soutput_dir=%s/out",
             CASES[i].ranks, RRL_SOURCE_DIR, TIMEOUT_S, CASES[i].settings, folder);
    pid_t job = program_start(log, command);
    for (double until = program_clock() + 60; !program_exists(path) && program_clock() < until;) program_sleep(0.01);
    int n = program_children(ranks, 4, job);
    double begun = program_clock();
    if (CHECK(program_exists(path)) && CHECK_EQ_INT(n, CASES[i].ranks[0] - '0')) kill(ranks[CASES[i].stopped], SIGSTOP);
    program_wait(&e, job, log, TIMEOUT_S + SLACK_S);
    int good = CHECK_EQ_INT(e.code, 6);
    good &= CHECK(program_clock() - begun >= TIMEOUT_S / 2);
    good &= CHECK_EQ_INT(program_lines(e.err, "rrl: error: "), 1);
    good &= CHECK(strstr(e.err, CASES[i].lost) != NULL && strstr(e.err, " waited in phase ") != NULL);
    if (!good) fprintf(stderr, "  %s\n%s\n", CASES[i].what, e.err);
    for (int k = 0; k < n; k++) kill(ranks[k], SIGKILL); /* nothing stays behind, whatever mpirun did */
    program_end_free(&e);
    snprintf(path, sizeof path, "%s/out", folder);
    program_remove(path);
}

int main(void) {
    program_folder(folder, "test_watchdog");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) test_stopped(i);
    if (check_failures == 0) program_remove(folder);
    return CHECK_DONE();
}
