/* The program in bad surroundings: closed or full outputs, a full disk, no memory, a folder in use, a rank that fails or
 * dies. It ends with a clear code and one line, or goes on; the same command then completes with the digest of an
 * undisturbed run. Runs are tiny and real. */
#include "check.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "error_inputs.h"
#include "program.h"
#include "record/record.h"

static char folder[PROGRAM_PATH], want[65]; /* digest of the undisturbed run */

/* Two questions each, two updates with a checkpoint and a segment for each; %D is the folder of the test. */
#define RUN                                                                                                            \
    "train %1$s/configs/train.yaml --quiet --threads 1 training.max_steps=2 training.batch_size=8 "                   \
    "generation.max_tokens=6 training.save_steps=1 records.steps_per_segment=1 records.writer_share=1 "                \
    "dataset.path=%2$s/test.jsonl experiment.train_dataset.path=%2$s/train.jsonl output_dir=%2$s/"

static const char *in(const char *name) {
    static char path[2][PROGRAM_PATH + 64];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* "ENV rest": environment or mpirun before the run, folder name and settings behind it. */
static void run(program_end *e, const char *before, const char *rest) {
    char command[4096];
    size_t n = (size_t)snprintf(command, sizeof command, "%s ", before);
    n += (size_t)snprintf(command + n, sizeof command - n, RUN, RRL_SOURCE_DIR, folder);
    snprintf(command + n, sizeof command - n, "%s", rest);
    program_run(e, in("log"), "%s", command);
}

static int code_of(const char *before, const char *rest) {
    program_end e;
    run(&e, before, rest);
    int code = e.code;
    program_end_free(&e);
    return code;
}

static int check_digest(const char *name) {
    char digest[65] = "";
    return CHECK_OK(rrl_record_digest(digest, in(name))) && CHECK_EQ_STR(digest, want);
}

static void write_questions(const char *name, const char *prefix, int n, int first) {
    char text[8192];
    size_t at = 0;
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "{\"id\": \"%s-%d\", \"question\": \"Ana has %d cups and finds %d. How many?\", "
                               "\"answer\": \"%d\"}\n",
                               prefix, i, first + i, 2 * i, first + 3 * i);
    input_write(in(name), text, at);
}

/* --- outputs */

static void test_streams(void) {
    static const struct {
        const char *what, *where;
        int code;
    } CASES[] = {{"full stdout", ">/dev/full 2>%s/log.err", 1},
                 {"closed stdout", ">&- 2>%s/log.err", 1},
                 {"everything closed", ">&- 2>&- <&-", 1},
                 {"full stderr", ">/dev/null 2>/dev/full", 0},
                 {"closed stderr", ">/dev/null 2>&-", 0}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char command[4096], where[PROGRAM_PATH + 64];
        snprintf(where, sizeof where, CASES[i].where, folder);
        snprintf(command, sizeof command,
                 "exec %s/rrl train %s/configs/train.yaml --verbose --threads 1 --set training.max_steps=2 --set "
                 "training.batch_size=8 --set generation.max_tokens=6 --set dataset.path=%s/test.jsonl --set "
                 "experiment.train_dataset.path=%s/train.jsonl --set output_dir=%s/out %s",
                 RRL_BINARY_DIR, RRL_SOURCE_DIR, folder, folder, folder, where);
        int st = system(command);
        if (!CHECK(WIFEXITED(st)) || !CHECK_EQ_INT(WEXITSTATUS(st), CASES[i].code) || !check_digest("out"))
            fprintf(stderr, "  %s\n", CASES[i].what);
        program_remove(in("out"));
    }
}

/* A reader of the log that goes away does not end the run. */
static void test_reader_gone(void) {
    char command[4096];
    snprintf(command, sizeof command,
             "%s/rrl train %s/configs/train.yaml --verbose --threads 1 --set training.max_steps=2 --set "
             "training.batch_size=8 --set generation.max_tokens=6 --set dataset.path=%s/test.jsonl --set "
             "experiment.train_dataset.path=%s/train.jsonl --set output_dir=%s/out 2>&1 | true",
             RRL_BINARY_DIR, RRL_SOURCE_DIR, folder, folder, folder);
    if (system(command) < 0) CHECK(0);
    check_digest("out");
    program_remove(in("out"));
}

/* --- disk and memory */

/* What a failed run leaves: one line, no lock, no temporary file, nothing that looks complete. */
static int check_failed(const program_end *e, const char *text) {
    int good = CHECK_EQ_INT(e->code, 1);
    good &= CHECK_EQ_INT(program_lines(e->err, "rrl: error: "), 1);
    good &= CHECK(strstr(e->err, text) != NULL);
    good &= CHECK(!program_exists(in("out/lock")));
    good &= CHECK(!program_has_below(in("out"), ".tmp"));
    return good;
}

/* Fail visit n = 1, 2, ... of a site until a run meets none; every `again` th time the command is given again. A run.h5
 * may be there already only if the failure came behind it. */
static void loop(const char *site, const char *kind, const char *text, int step, int again) {
    for (int n = 1; n < 500; n += step) {
        char fault[128];
        program_end e;
        snprintf(fault, sizeof fault, "RRL_FAULT=*:%s:%d:%s", site, n, kind);
        run(&e, fault, "out");
        bool done = e.code == 0;
        int good = done || check_failed(&e, text);
        if (program_exists(in("out/run.h5"))) good &= check_digest("out");
        if (!done && n % again == 0) good &= CHECK_EQ_INT(code_of("", "out"), 0) && check_digest("out");
        if (!good) fprintf(stderr, "  %s\n%s\n", fault, e.err);
        if (done) CHECK(n > 5);
        program_end_free(&e);
        program_remove(in("out"));
        if (done) break;
    }
}

/* The log is no result: a run whose events.log cannot be written goes on. */
static void test_log_disk_full(void) {
    CHECK(mkdir(in("out"), 0777) == 0 && symlink("/dev/full", in("out/events.log")) == 0);
    CHECK_EQ_INT(code_of("", "out"), 0);
    check_digest("out");
    program_remove(in("out"));
}

static bool fails_without_memory(int n) {
    char fault[64];
    program_end e;
    snprintf(fault, sizeof fault, "RRL_FAULT=*:memory.alloc:%d:fail", n);
    run(&e, fault, "out");
    bool failed = e.code != 0;
    if ((failed && !check_failed(&e, "no memory for")) || (failed && program_exists(in("out/run.h5"))))
        fprintf(stderr, "  %s\n%s\n", fault, e.err);
    if (!failed) check_digest("out");
    program_end_free(&e);
    program_remove(in("out"));
    return failed;
}

/* The last allocation of a run is found by doubling; then one in every 30th part fails. */
static void test_no_memory(void) {
    enum { PARTS = 30, MOST = 1 << 20 };
    int end = 64;
    while (end < MOST && fails_without_memory(end)) end *= 2;
    CHECK(end > 512 && end < MOST);
    for (int i = 1; i < PARTS; i++) fails_without_memory(end / 2 * i / PARTS + i);
}

/* --- a folder in use */

static bool wait_for(const char *path, double seconds) {
    double until = program_clock() + seconds;
    while (!program_exists(path) && program_clock() < until) program_sleep(0.005);
    return program_exists(path);
}

static void test_in_use(void) {
    char command[4096], holder[64];
    program_end e;
    snprintf(command, sizeof command, RUN "out training.max_steps=100000", RRL_SOURCE_DIR, folder);
    pid_t first = program_start(in("first"), command);
    CHECK(wait_for(in("out/checkpoints"), 30));
    run(&e, "", "out training.max_steps=100000");
    snprintf(holder, sizeof holder, "process %d", (int)first);
    CHECK_EQ_INT(e.code, 2);
    CHECK_EQ_INT(program_lines(e.err, "rrl: error: "), 1);
    if (!CHECK(strstr(e.err, "another run is writing here") && strstr(e.err, holder))) fprintf(stderr, "%s\n", e.err);
    program_end_free(&e);
    kill(first, SIGTERM);
    program_wait(&e, first, in("first"), 30);
    CHECK_EQ_INT(e.code, 4);
    CHECK(!program_exists(in("out/lock")));
    program_end_free(&e);
    program_remove(in("out"));
}

/* --- one rank of several */

#define SPLIT "out parallel.roles.generators=1 parallel.roles.verifiers=1 parallel.roles.learners=1"

/* Run on three ranks of one role each with one visit of a site going wrong on one rank; n goes down until the run meets
 * it. */
static void run_with_fault(program_end *e, char fault[128], int rank, const char *site, int n, const char *kind) {
    for (;; n = n * 9 / 10) {
        snprintf(fault, 128, "RRL_FAULT=%d:%s:%d:%s mpirun -n 3", rank, site, n, kind);
        run(e, fault, SPLIT);
        if (e->code != 0 || n < 10) return;
        program_end_free(e);
        program_remove(in("out"));
    }
}

static void check_continued(const char *fault) {
    int good = CHECK(!program_exists(in("out/run.h5")));
    good &= CHECK_EQ_INT(code_of("mpirun -n 3", SPLIT), 0) && check_digest("out");
    if (!good) fprintf(stderr, "  %s\n", fault);
    program_remove(in("out"));
}

/* Where one rank fails, all end together, with one line and its code. */
static void test_one_rank(void) {
    static const struct {
        int rank;
        const char *site;
        int n;
        const char *kind, *text;
    } CASES[] = {{2, "publish.write", 7, "full", "No space left"},
                 {0, "memory.alloc", 1200, "fail", "no memory for"},
                 {1, "memory.alloc", 1200, "fail", "no memory for"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char fault[128];
        program_end e;
        run_with_fault(&e, fault, CASES[i].rank, CASES[i].site, CASES[i].n, CASES[i].kind);
        if (!check_failed(&e, CASES[i].text)) fprintf(stderr, "  %s\n%s\n", fault, e.err);
        program_end_free(&e);
        check_continued(fault);
    }
}

/* A rank that dies takes the job with it, soon. */
static void test_rank_dies(void) {
    static const struct {
        int rank;
        const char *site;
        int n;
    } CASES[] = {{0, "memory.alloc", 1200}, {2, "publish.rename", 12}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char fault[128];
        program_end e;
        double start = program_clock();
        run_with_fault(&e, fault, CASES[i].rank, CASES[i].site, CASES[i].n, "kill");
        if (!CHECK(e.code == 128 + SIGKILL || e.code == -SIGKILL)) fprintf(stderr, "  %d\n%s\n", e.code, e.err);
        CHECK(program_clock() - start < 40);
        program_end_free(&e);
        check_continued(fault);
    }
}

int main(void) {
    program_folder(folder, "test_surroundings");
    write_questions("train.jsonl", "train", 2, 3);
    write_questions("test.jsonl", "test", 2, 40);
    if (!CHECK_EQ_INT(code_of("", "plain"), 0) || !CHECK_OK(rrl_record_digest(want, in("plain")))) return CHECK_DONE();
    test_streams();
    test_reader_gone();
    loop("publish.write", "full", "No space left", 1, 5);
    loop("publish.rename", "fail", "Input/output error", 3, 3);
    test_log_disk_full();
    test_no_memory();
    test_in_use();
    test_one_rank();
    test_rank_dies();
    if (check_failures == 0) program_remove(folder);
    return CHECK_DONE();
}
