/* A run that is killed, stopped, damaged or given again ends with the digest of the undisturbed run, whatever the moment
 * and the layout; what a killed run left is readable. Real processes, real signals. */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/random.h"
#include "error_inputs.h"
#include "program.h"
#include "record/record.h"

enum { STEPS = 6, ROWS = 16 /* of a step */, LONG_STEPS = 40 };
static char folder[PROGRAM_PATH];
static char want[65], want_long[65]; /* digests of undisturbed runs of STEPS and LONG_STEPS updates */
static double duration;              /* of the first, seconds */

#define RUN                                                                                                            \
    "train %1$s/configs/train.yaml --quiet --threads 1 dataset.limit=8 experiment.train_dataset.limit=32 "            \
    "generation.max_tokens=16 training.save_steps=2 records.steps_per_segment=1 records.writer_share=1 "                   \
    "output_dir=%2$s/"
#define SHORT "training.max_steps=6 "
#define LONG  "training.max_steps=40 "
#define LONGEST "training.max_steps=600 "
#define JOINED "records.writer_share=0.01 " /* segments and checkpoints that wait are joined; else each is written */
#define SPLIT "parallel.roles.generators=1 parallel.roles.verifiers=1 parallel.roles.learners=1 "

static const char *in(const char *name) {
    static char path[4][PROGRAM_PATH + 128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* before: environment, mpirun; rest: folder name and settings. */
static pid_t start(const char *before, const char *rest) {
    char command[4096];
    size_t n = (size_t)snprintf(command, sizeof command, "%s ", before);
    n += (size_t)snprintf(command + n, sizeof command - n, RUN, RRL_SOURCE_DIR, folder);
    snprintf(command + n, sizeof command - n, "%s", rest);
    return program_start(in("log"), command);
}

/* Exit code of a run that is left alone; its outputs in *e if given. */
static int run(program_end *e, const char *before, const char *rest) {
    program_end mine;
    program_wait(e ? e : &mine, start(before, rest), in("log"), 60);
    int code = e ? e->code : mine.code;
    if (code != 0 && !e) fprintf(stderr, "code %d: %s %s\n%s\n%s\n", code, before, rest, mine.out, mine.err);
    if (!e) program_end_free(&mine);
    return code;
}

/* The digest of a run that nobody disturbs, without which nothing can be compared. */
static void undisturbed(char digest[65], const char *name, const char *rest) {
    char all[256];
    snprintf(all, sizeof all, "%s %s", name, rest);
    if (!CHECK_EQ_INT(run(NULL, "", all), 0) || !CHECK_OK(rrl_record_digest(digest, in(name)))) exit(CHECK_DONE());
}

static bool wait_for(const char *path, double seconds) {
    double until = program_clock() + seconds;
    while (!program_exists(path) && program_clock() < until) program_sleep(0.002);
    return CHECK(program_exists(path));
}

static int check_digest(const char *name, const char *digest) {
    char found[65] = "";
    return CHECK_OK(rrl_record_digest(found, in(name))) && CHECK_EQ_STR(found, digest);
}

/* Complete: no lock, no segment, nothing that differed when it was put again. Temporaries of the dead may lie about. */
static int check_complete(const char *name, const char *digest) {
    char path[128];
    static const char *const GONE[] = {"lock", "quarantine"};
    int good = check_digest(name, digest);
    for (size_t i = 0; i < sizeof GONE / sizeof *GONE; i++) {
        snprintf(path, sizeof path, "%s/%s", name, GONE[i]);
        good &= CHECK(!program_exists(in(path)));
    }
    snprintf(path, sizeof path, "%s/records", name);
    return good & CHECK(!program_has_below(in(path), ".h5"));
}

/* A value of run.json: status, or the number of attempts. */
static int check_run_json(const char *name, const char *status, int attempts) {
    char path[128];
    cJSON *json = NULL;
    const cJSON *list = NULL;
    const char *found = NULL;
    snprintf(path, sizeof path, "%s/run.json", name);
    int good = CHECK_OK(rrl_json_file(&json, in(path), 1 << 20)) &&
               CHECK_OK(rrl_json_string(&found, json, "status", false, "run.json")) && CHECK_EQ_STR(found, status) &&
               CHECK_OK(rrl_json_get(&list, json, "attempts", false, "run.json")) &&
               CHECK_EQ_INT(cJSON_GetArraySize(list), attempts);
    cJSON_Delete(json);
    return good;
}

/* What a killed run left: whole steps from the first on, or nothing yet. */
static int check_readable(void) {
    rrl_record *r = NULL;
    if (!program_exists(in("out/run.h5")) && !program_exists(in("out/records/000000.h5"))) return 1;
    if (!CHECK_OK(rrl_record_read(&r, in("out"), 1))) return 0;
    int good = CHECK_EQ_INT(r->training.n, r->n_rows * ROWS);
    for (int64_t i = 0; i < r->n_rows; i++) good &= CHECK_EQ_INT(r->rows[i].step, i);
    rrl_record_free(&r);
    return good;
}

/* --- killed */

static double uniform(uint32_t i) {
    rrl_rng_key key = {.seed = 20, .purpose = 1, .question = 2};
    return rrl_rng_uniform(&key, i);
}

/* Up to two kills, each at a random moment after the folder is claimed; then undisturbed. */
static void test_random_kills(void) {
    enum { ROUNDS = 10 };
    int died = 0;
    double span = duration; /* follows the machine: a kill that came too late makes the next ones earlier */
    for (uint32_t i = 0; i < ROUNDS; i++) {
        for (uint32_t k = 0; k <= i % 2; k++) {
            program_end e;
            pid_t p = start("", i % 3 ? "out " SHORT JOINED : "out " SHORT);
            if (k == 0) wait_for(in("out/run.json"), 30);
            program_sleep(uniform(2 * i + k) * span);
            kill(p, SIGKILL);
            program_wait(&e, p, in("log"), 30);
            died += e.code == -SIGKILL;
            span *= e.code == -SIGKILL ? 1.1 : 0.6;
            CHECK(e.code == -SIGKILL || e.code == 0);
            program_end_free(&e);
            if (!check_readable()) fprintf(stderr, "  round %u\n", i);
        }
        if (!CHECK_EQ_INT(run(NULL, "", "out " SHORT), 0) || !check_complete("out", want))
            fprintf(stderr, "  round %u\n", i);
        program_remove(in("out"));
    }
    CHECK(died > ROUNDS / 2);
}

/* Killed at visit n of a place where files come to be, n = first, first + step, ... until a run meets none. */
static void test_kill_at(const char *site, int first, int step) {
    for (int n = first;; n += step) {
        char fault[96];
        program_end e;
        snprintf(fault, sizeof fault, "RRL_FAULT=*:%s:%d:kill", site, n);
        int code = run(&e, fault, "out " SHORT);
        int good = CHECK(code == -SIGKILL || code == 0) && check_readable();
        good = good && CHECK_EQ_INT(run(NULL, "", "out " SHORT), 0) && check_complete("out", want);
        if (!good) fprintf(stderr, "  %s\n%s\n", fault, e.err);
        program_end_free(&e);
        program_remove(in("out"));
        if (code != -SIGKILL) {
            CHECK(n > first + 2 * step);
            return;
        }
    }
}

/* Two ranks: one of them dies, or mpirun does. */
static void test_kill_ranks(void) {
    enum { ROUNDS = 6 };
    for (uint32_t i = 0; i < ROUNDS; i++) {
        program_end e;
        pid_t ranks[8];
        double begun = program_clock();
        pid_t p = start("mpirun -n 2", "out " SHORT);
        wait_for(in("out/run.json"), 30);
        int n = program_children(ranks, 8, p);
        CHECK_EQ_INT(n, 2);
        program_sleep(uniform(100 + i) * duration);
        kill(i % 3 < 2 && n == 2 ? ranks[i % 3] : p, SIGKILL);
        program_wait(&e, p, in("log"), 30);
        CHECK(e.code != PROGRAM_TIMED_OUT && program_clock() - begun < 30);
        program_end_free(&e);
        for (int k = 0; k < n; k++) /* without mpirun they notice by themselves */
            for (int tries = 0; kill(ranks[k], 0) == 0 && tries < 2000; tries++) program_sleep(0.01);
        int good = check_readable();
        good &= CHECK_EQ_INT(run(NULL, "mpirun -n 2", "out " SHORT), 0) && check_complete("out", want);
        if (!good) fprintf(stderr, "  round %u\n", i);
        program_remove(in("out"));
    }
}

/* --- asked to stop */

/* Start the long run, wait for a checkpoint, send a signal to the process, or to a rank below mpirun (rank >= 0), and see
 * it end with this code, a checkpoint and one line. */
static void stop(const char *before, const char *rest, const char *checkpoint, int number, int rank, int code) {
    program_end e;
    pid_t ranks[8];
    char path[128];
    pid_t p = start(before, rest);
    snprintf(path, sizeof path, "out/checkpoints/%s/complete", checkpoint);
    wait_for(in("out/lock"), 60); /* the checkpoint may be an earlier run's: that one ends some updates after the signal */
    wait_for(in(path), 60);
    int n = program_children(ranks, 8, p);
    if (rank < 0) kill(p, SIGCONT); /* some sites send this first */
    if (rank < 0) kill(p, number);
    else if (CHECK(n > rank)) kill(ranks[rank], number);
    program_wait(&e, p, in("log"), 60);
    int good = CHECK_EQ_INT(e.code, code);
    good &= CHECK_EQ_INT(program_lines(e.err, "rrl: error: stopped by a signal after step "), 1);
    good &= CHECK_EQ_INT(program_lines(e.err, "rrl: error: "), 1);
    good &= CHECK(!program_exists(in("out/lock")) && !program_exists(in("out/run.h5")));
    good &= check_readable();
    if (!good) fprintf(stderr, "  %s, signal %d\n%s\n", before, number, e.err);
    program_end_free(&e);
}

/* Stopped three times, each time gone on with in another layout and with other sizes of segments. */
static void test_stops(void) {
    stop("", "out " LONG, "step-00000004", SIGTERM, -1, 4);
    check_run_json("out", "checkpointed", 1);
    stop("mpirun -n 2", "out " LONG, "step-00000010", SIGUSR2, 1, 4); /* one rank alone is warned */
    check_run_json("out", "checkpointed", 2);
    stop("", "out " LONG "training.save_steps=3 records.steps_per_segment=5 --threads 2", "step-00000018", SIGUSR1, -1, 4);
    check_run_json("out", "checkpointed", 3);
    CHECK_EQ_INT(run(NULL, "mpirun -n 3", "out " LONG SPLIT), 0);
    check_run_json("out", "complete", 4);
    check_complete("out", want_long);
    program_remove(in("out"));
}

/* mpirun passes SIGUSR2 on at once, and SIGTERM a second later; its own code is then 1. So this run is long. */
static void test_stop_mpirun(void) {
    char longest[65];
    undisturbed(longest, "plain-longest", LONGEST);
    stop("mpirun -n 2", "out " LONGEST, "step-00000004", SIGUSR2, -1, 4);
    stop("mpirun -n 2", "out " LONGEST, "step-00000010", SIGTERM, -1, 1);
    CHECK_EQ_INT(run(NULL, "", "out " LONGEST), 0);
    check_complete("out", longest);
    program_remove(in("out"));
}

/* A signal ends an evaluation where it stands, on whichever rank it arrives; the same command makes it again. */
static void test_stop_in_evaluation(void) {
#define MANY SHORT "generation.num_generations=32 training.batch_size=64 dataset.limit=64 "
    static const struct {
        const char *before, *settings;
        int number, rank;
    } CASES[] = {{"", "out " MANY, SIGTERM, -1},
                 {"mpirun -n 2", "out " MANY, SIGUSR2, 1},
                 {"mpirun -n 3", "out " MANY SPLIT, SIGUSR2, 0}};
    char want_many[65];
    undisturbed(want_many, "plain-many", MANY);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        program_end e;
        pid_t ranks[8], p = start(CASES[i].before, CASES[i].settings);
        wait_for(in("out/checkpoints/step-00000006/complete"), 60);
        int n = program_children(ranks, 8, p);
        if (CHECK(n > CASES[i].rank)) kill(CASES[i].rank < 0 ? p : ranks[CASES[i].rank], CASES[i].number);
        program_wait(&e, p, in("log"), 60);
        int good = CHECK_EQ_INT(e.code, 4);
        good &= CHECK_EQ_INT(program_lines(e.err, "rrl: error: stopped by a signal in the evaluation"), 1);
        good &= CHECK_EQ_INT(program_lines(e.err, "rrl: error: "), 1);
        good &= CHECK(!program_exists(in("out/lock")) && !program_exists(in("out/run.h5")));
        good &= check_run_json("out", "checkpointed", 1);
        if (!good) fprintf(stderr, "  %s %s\n%s\n", CASES[i].before, CASES[i].settings, e.err);
        program_end_free(&e);
        CHECK_EQ_INT(run(NULL, "", "out " MANY), 0);
        check_complete("out", want_many);
        program_remove(in("out"));
    }
}

/* Who asks twice does not want to wait. */
static void test_asked_twice(int number) {
    program_end e;
    pid_t p = start("", "out training.max_steps=100000 generation.num_generations=64 training.batch_size=512");
    wait_for(in("out/run.json"), 60);
    kill(p, number);
    program_sleep(0.02);
    kill(p, number);
    program_wait(&e, p, in("log"), 60);
    CHECK(e.code == 128 + number || e.code == 4); /* 4: a step ended in between */
    CHECK_EQ_INT(program_lines(e.err, "rrl: stopping at the next boundary"), number == SIGINT);
    program_end_free(&e);
    program_remove(in("out"));
}

/* --- damage */

/* A run stopped with checkpoints 4 and 6 at least; newest is the name of the last. */
static void stopped_run(char newest[64]) {
    stop("", "out " LONG, "step-00000006", SIGINT, -1, 4);
    for (int step = LONG_STEPS; step >= 6; step--) {
        char path[128];
        snprintf(newest, 64, "out/checkpoints/step-%08d", step);
        snprintf(path, sizeof path, "%s/complete", newest);
        if (program_exists(in(path))) return;
    }
    CHECK(0);
}

static void append(const char *path, const char *text) {
    FILE *f = fopen(path, "ab");
    if (CHECK(f != NULL)) fputs(text, f), fclose(f);
}

static void test_damaged_checkpoint(void) {
    static const char *const FILES[] = {"tensors.safetensors", "state.json", "complete"};
    program_end e;
    char newest[64], path[128];
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        stopped_run(newest);
        snprintf(path, sizeof path, "%s/%s", newest, FILES[i]);
        CHECK(truncate(in(path), 10) == 0);
        int good = CHECK_EQ_INT(run(&e, "", "out " LONG), 0);
        good &= CHECK(strstr(e.err, "event=checkpoint_skipped damaged=1") != NULL);
        good &= check_complete("out", want_long);
        if (!good) fprintf(stderr, "  %s\n%s\n", path, e.err);
        program_end_free(&e);
        program_remove(in("out"));
    }
}

/* Named by hand: the older one is used, a damaged one refused; left-overs of the dead are not looked at. */
static void test_named_checkpoint(void) {
    program_end e;
    char newest[64], rest[1024];
    stopped_run(newest);
    input_write(in("out/records/000003.h5.1-0.tmp"), "half", 4);
    snprintf(rest, sizeof rest, "%s/tensors.safetensors.1-0.tmp", newest);
    input_write(in(rest), "half", 4);
    snprintf(rest, sizeof rest, "%s/state.json", newest);
    append(in(rest), " ");
    snprintf(rest, sizeof rest, "out " LONG "--resume %s/%s", folder, newest);
    CHECK_EQ_INT(run(&e, "", rest), 3);
    CHECK(strstr(e.err, "is damaged or incomplete") != NULL);
    program_end_free(&e);
    CHECK_EQ_INT(run(NULL, "", "out " LONG), 0);
    check_complete("out", want_long);
    program_remove(in("out"));
}

/* --- given again */

static void test_again(void) {
    program_end e;
    struct stat before, after;
    CHECK_EQ_INT(run(NULL, "", "out " SHORT), 0);
    const struct timespec old[2] = {{0}, {0}}; /* what files are worth does not depend on their times */
    CHECK(utimensat(AT_FDCWD, in("out/run.h5"), old, 0) == 0 && stat(in("out/run.h5"), &before) == 0);
    CHECK_EQ_INT(run(&e, "", "out " SHORT), 0);
    CHECK(strstr(e.out, "is complete; nothing was done") != NULL);
    program_end_free(&e);
    CHECK(stat(in("out/run.h5"), &after) == 0 && before.st_ino == after.st_ino && before.st_mtime == after.st_mtime);
    check_run_json("out", "complete", 1);

    CHECK_EQ_INT(run(NULL, "", "out " SHORT "--fresh"), 0);
    check_digest("out.old-1", want);
    check_run_json("out.old-1", "complete", 1);
    CHECK_EQ_INT(run(NULL, "", "out " SHORT "seed=43 --fresh"), 0); /* another run takes the place */
    check_digest("out.old-2", want);
    CHECK(program_exists(in("out/run.h5")) && !program_exists(in("out.old-3")));
    program_remove(in("out"));
    program_remove(in("out.old-1"));
    program_remove(in("out.old-2"));
}

/* A run.h5 that is there and is none does not make a run complete: set aside and made again. */
static void test_damaged_result(void) {
    program_end e;
    CHECK_EQ_INT(run(NULL, "", "out " SHORT), 0);
    CHECK(truncate(in("out/run.h5"), 4000) == 0);
    program_run(&e, in("log"), "show %s/out", folder);
    CHECK_EQ_INT(e.code, 3);
    if (!CHECK(strstr(e.err, "truncated: expected ")) || !CHECK(!strstr(e.out, "accuracy")))
        fprintf(stderr, "%s%s\n", e.out, e.err);
    program_end_free(&e);
    for (int gone = 0; gone < 2; gone++) { /* cut, then not there at all */
        if (gone) CHECK(unlink(in("out/run.h5")) == 0);
        CHECK_EQ_INT(run(NULL, "", "out " SHORT), 0);
        check_digest("out", want);
    }
    CHECK(program_exists(in("out/quarantine/run.h5.1")) && !program_exists(in("out/quarantine/run.h5.2")));
    CHECK(program_exists(in("out/quarantine/checkpoints.1")) && program_exists(in("out/quarantine/checkpoints.2")));
    program_remove(in("out"));
}

/* --- a study */

#define STUDY                                                                                                          \
    "study %1$s/configs/quick.yaml --quiet --threads 1 training.max_steps=3 training.save_steps=1 dataset.limit=4 "   \
    "experiment.train_dataset.limit=8 generation.max_tokens=12 output_dir=%2$s/%3$s"

static void test_killed_study(void) {
    char command[2][4096], digest[2][65] = {"", ""};
    program_end e;
    for (int i = 0; i < 2; i++)
        snprintf(command[i], sizeof command[i], STUDY, RRL_SOURCE_DIR, folder, i ? "killed" : "whole");
    program_run(&e, in("log"), "%s", command[0]);
    if (!CHECK_EQ_INT(e.code, 0)) fprintf(stderr, "%s\n", e.err);
    program_end_free(&e);
    for (int k = 0; k < 3; k++) {
        pid_t p = program_start(in("log"), command[1]);
        if (k == 0) wait_for(in("killed/study.json"), 30);
        program_sleep(0.2 + 2 * duration * uniform((uint32_t)(200 + k)));
        kill(p, SIGKILL);
        program_wait(&e, p, in("log"), 30);
        program_end_free(&e);
    }
    program_run(&e, in("log"), "mpirun -n 2 %s", command[1]); /* two teams */
    if (!CHECK_EQ_INT(e.code, 0)) fprintf(stderr, "%s\n", e.err);
    program_end_free(&e);
    CHECK_OK(rrl_record_digest(digest[0], in("whole")));
    CHECK_OK(rrl_record_digest(digest[1], in("killed")));
    CHECK_EQ_STR(digest[0], digest[1]);
}

/* --- all */

int main(int argc, char **argv) {
    program_folder(folder, "test_resume");
    signal(SIGINT, SIG_DFL); /* a background job has it ignored, and so would the program */
    double begun = program_clock();
    undisturbed(want, "plain", SHORT);
    duration = program_clock() - begun;
    undisturbed(want_long, "plain-long", LONG);
    CHECK(strcmp(want, want_long) != 0);
    bool ranks = argc > 1 && strcmp(argv[1], "ranks") == 0;
    if (ranks) {
        test_kill_ranks();
        test_stops();
        test_stop_mpirun();
        test_killed_study();
    } else {
        test_random_kills();
        test_kill_at("publish.rename", 1, 3);
        test_kill_at("publish.folder", 2, 7);
        test_kill_at("publish.write", 3, 7);
        test_stop_in_evaluation();
        test_asked_twice(SIGTERM);
        test_asked_twice(SIGINT);
        test_damaged_checkpoint();
        test_named_checkpoint();
        test_again();
        test_damaged_result();
    }
    if (check_failures == 0) program_remove(folder);
    return CHECK_DONE();
}
