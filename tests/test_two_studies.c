/* Two studies one after the other in one process, through the public functions, under a locale that writes a comma: the
 * records are those of a process for each, nothing of the first is left over for the second, and no memory is lost. */
#include "check.h"

#include <locale.h>
#include <malloc.h>
#include <mpi.h>
#include <stdbool.h>

#include "config/config_check.h"
#include "program.h"
#include "record/record.h"
#include "study/study.h"

enum { SETS = 9, LOST_BYTES = 1 << 16 /* what MPI may keep for itself */ };

/* Under the address sanitizer leaks are looked for before MPI ends; what MPI_Init keeps does not count. MPI's libraries and
 * plug-ins stay loaded, so that their leaks have names and can be told from ours, which never call asprintf. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
int dlclose(void *library) __attribute__((visibility("default")));
int dlclose(void *library) {
    (void)library;
    return 0;
}
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "leak_check_at_exit=0";
}
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libmpi\nleak:libopen-pal\nleak:libopen-rte\nleak:libpmix\nleak:libhwloc\nleak:libevent\nleak:mca_\n"
           "leak:vasprintf\n";
}
#else
static int __lsan_do_recoverable_leak_check(void) {
    return 0;
}
static void __lsan_disable(void) {
}
static void __lsan_enable(void) {
}
#endif

static const char *const STUDIES[2][SETS] = {
    {"output_dir=%s/first", "training.max_steps=2", "dataset.limit=4", "experiment.train_dataset.limit=8",
     "generation.max_tokens=12", "training.save_steps=1", "training.lora.r=8", "hypotheses=[]",
     "experiment.arms=[{name: flip, corruption: flip, levels: [0.2], methods: [base, baseline, robust]}]"},
    {"output_dir=%s/second", "training.max_steps=3", "dataset.limit=3", "experiment.train_dataset.limit=6",
     "generation.max_tokens=16", "experiment.seeds=[7]", "training.lora.r=4", "hypotheses=[]",
     "experiment.arms=[{name: lenient, corruption: false_positive, levels: [0.3], methods: [base, robust]}]"},
};

static char folder[PROGRAM_PATH];

static void set_comma_locale(void) {
    static const char *const NAMES[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < 3 && !found; i++) found = setlocale(LC_ALL, NAMES[i]);
    if (!found && system("mkdir -p '" RRL_BINARY_DIR "/locale' && localedef -i de_DE -f UTF-8 '" RRL_BINARY_DIR
                         "/locale/de_DE.UTF-8' >/dev/null 2>&1") != -1) {
        setenv("LOCPATH", RRL_BINARY_DIR "/locale", 1);
        found = setlocale(LC_ALL, "de_DE.UTF-8");
    }
    if (!found) fprintf(stderr, "no locale with a decimal comma here: that part was not tested\n");
}

/* As the command does it. below: folder that takes the place of the test's own in output_dir. */
static rrl_status run_study(int which, const char *below) {
    rrl_status rc = RRL_OK;
    rrl_config *config = NULL;
    rrl_team *team = NULL;
    rrl_engine *engine = NULL;
    char out[PROGRAM_PATH + 64];
    const char *sets[SETS];
    memcpy(sets, STUDIES[which], sizeof sets);
    snprintf(out, sizeof out, STUDIES[which][0], below);
    sets[0] = out;
    RRL_GOTO(rrl_config_open(&config, RRL_SOURCE_DIR "/configs/quick.yaml", sets, SETS));
    RRL_GOTO(rrl_config_check(config, RRL_FOR_STUDY));
    RRL_GOTO(rrl_team_open(&team, MPI_COMM_WORLD, &config->parallel, true, NULL));
    RRL_GOTO(rrl_engine_open(&engine, team, config, rrl_study_trains(config), NULL, 1));
    RRL_GOTO(rrl_study_run(team, engine, config, RRL_ALL_CONDITIONS, false));
done:
    rrl_engine_close(&engine);
    rrl_team_close(&team);
    rrl_config_close(&config);
    return rc;
}

/* The same by a process of its own. */
static void run_program(int which) {
    char command[4096], alone[PROGRAM_PATH + 16];
    program_end e;
    snprintf(alone, sizeof alone, "%s/alone", folder);
    size_t n = (size_t)snprintf(command, sizeof command,
                                "study %s/configs/quick.yaml --quiet --threads 1 ",
                                RRL_SOURCE_DIR);
    n += (size_t)snprintf(command + n, sizeof command - n, STUDIES[which][0], alone);
    for (int i = 1; i < SETS; i++) n += (size_t)snprintf(command + n, sizeof command - n, " '%s'", STUDIES[which][i]);
    program_run(&e, alone, "%s", command);
    if (!CHECK_EQ_INT(e.code, 0)) fprintf(stderr, "%s\n%s\n", command, e.err);
    program_end_free(&e);
}

static void digest_of(char digest[65], const char *below, int which) {
    char path[PROGRAM_PATH + 64];
    snprintf(path, sizeof path, STUDIES[which][0] + strlen("output_dir="), below);
    CHECK_OK(rrl_record_digest(digest, path));
}

static void check_same(const char *below) {
    char alone[PROGRAM_PATH + 16], a[65] = "", b[65] = "";
    snprintf(alone, sizeof alone, "%s/alone", folder);
    for (int which = 0; which < 2; which++) {
        digest_of(a, below, which);
        digest_of(b, alone, which);
        CHECK_EQ_STR(a, b);
    }
}

static size_t in_use(void) {
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

int main(int argc, char **argv) {
    char below[PROGRAM_PATH + 32];
    size_t bytes[3];
    program_folder(folder, "test_two_studies");
    for (int which = 0; which < 2; which++) run_program(which);

    __lsan_disable();
    MPI_Init(&argc, &argv);
    __lsan_enable();
    set_comma_locale();
    for (int round = 0; round < 3; round++) { /* the first pays for what libraries keep */
        snprintf(below, sizeof below, "%s/round-%d", folder, round);
        for (int which = 0; which < 2; which++)
            if (!CHECK_OK(run_study(which, below))) break;
        check_same(below);
        bytes[round] = in_use();
    }
    for (int which = 0; which < 2; which++) CHECK_OK(run_study(which, below)); /* complete: nothing to do */
    check_same(below);
    if (!CHECK(bytes[2] < bytes[1] + LOST_BYTES)) fprintf(stderr, "  %zu bytes, then %zu\n", bytes[1], bytes[2]);
    CHECK_EQ_INT(__lsan_do_recoverable_leak_check(), 0);
    MPI_Finalize();
    if (check_failures == 0) program_remove(folder);
    return CHECK_DONE();
}
