/* Commands that only read do not start MPI unless a launcher has started ranks: they work where MPI cannot. That it cannot is
 * shown by a command that works. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "program.h"

static char folder[PROGRAM_PATH];

static const char *in(const char *name) {
    static char path[8][PROGRAM_PATH + 100];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

#define CONFIG RRL_SOURCE_DIR "/configs/train.yaml"

/* One run to look at. */
static void make_run(void) {
    program_end e;
    program_run(&e, in("made"), "train %s --quiet --threads 1 output_dir=%s training.max_steps=1 dataset.limit=4 "
                "generation.max_tokens=8", CONFIG, in("run"));
    if (!CHECK_EQ_INT(e.code, 0)) fprintf(stderr, "%s\n", e.err);
    program_end_free(&e);
}

static void check_read(const char *what, int code, const char *out) {
    program_end e;
    program_run(&e, in("read"), "%s", what);
    if (!CHECK_EQ_INT(e.code, code) || !CHECK(strstr(e.out, out) != NULL))
        fprintf(stderr, "%s\n%s%s\n", what, e.out, e.err);
    program_end_free(&e);
}

/* X(command, exit code, part of what it prints) */
static void read_all(void) {
    char line[4 * PROGRAM_PATH];
#define READ(code, out, ...) (snprintf(line, sizeof line, __VA_ARGS__), check_read(line, code, out))
    READ(0, "training", "show %s", in("run"));
    READ(0, "", "show %s --digest", in("run"));
    READ(0, "complete", "status %s", in("run"));
    READ(0, "looked through", "repair %s --dry-run", in("run"));
    READ(0, "report", "report %s", in("run"));
    READ(0, "nothing", "rejudge %s --dry-run", in("run/run.h5"));
    READ(0, "", "export %s", in("run"));
    READ(0, "", "verify %s", in("run.evidence.tar"));
    READ(0, "flip", "predict %s/configs/quick.yaml", RRL_SOURCE_DIR);
    READ(0, "is valid for study", "validate %s/configs/quick.yaml", RRL_SOURCE_DIR);
    READ(0, "valid for eval only, not for train: generation.temperature is 0",
         "validate %s generation.temperature=0", CONFIG);
    READ(0, "1 waiting", "status %s output_dir=%s", CONFIG, in("unbegun"));
    READ(0, "is valid for train", "train %s --dry-run", CONFIG);
    READ(0, "is valid for study", "study %s/configs/quick.yaml --dry-run", RRL_SOURCE_DIR);
    READ(0, "is complete", "convert %s model.adapter=%s --out %s", CONFIG, in("run/adapter"), in("merged"));
    READ(0, "usage: rrl", "--help");
    READ(0, "rrl ", "--version");
    READ(2, "", "shew");
    READ(2, "", "validate %s/configs/quick.yaml parallel.ranks_per_team=3", RRL_SOURCE_DIR);
#undef READ
}

int main(void) {
    program_end e;
    program_folder(folder, "without_mpi");
    make_run();
    setenv("OMPI_MCA_btl", "nonsense", 1); /* no way to another rank: MPI_Init ends the program */
    program_run(&e, in("works"), "eval %s --quiet --threads 1 output_dir=%s dataset.limit=1", CONFIG, in("eval"));
    if (e.code == 0) CHECK_SKIP("this MPI starts all the same");
    program_end_free(&e);
    read_all();
    program_run(&e, in("ranks"), "mpirun -n 2 show %s --digest", in("run")); /* ranks of a launcher do start it */
    CHECK(e.code != 0);
    program_end_free(&e);
    unsetenv("OMPI_MCA_btl");
    program_run(&e, in("ranks"), "mpirun -n 2 show %s --digest", in("run"));
    CHECK_EQ_INT(e.code, 0);
    CHECK_EQ_INT(program_lines(e.out, ""), 1); /* and one of them speaks */
    program_end_free(&e);
    program_remove(folder);
    return CHECK_DONE();
}
