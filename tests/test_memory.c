/* `rrl validate` predicts the memory of a run: within a tenth of the process's peak, from start to end. Activations computed
 * again leave the run's digest as it is. */
#include "check.h"

#include <math.h>

#include "program.h"
#include "record/record.h"

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 }; /* its shadow memory is no part of a plan */
#else
enum { SANITIZED = 0 };
#endif

static const char CONFIG[] = RRL_SOURCE_DIR "/configs/train.yaml dataset.limit=16 training.max_steps=30";

static char folder[PROGRAM_PATH], output[PROGRAM_PATH + 8]; /* output: prefix of what the program prints */

/* MiB that validate tells of a rank; 0 if it says nothing. */
static double predicted(const char *set) {
    program_end e;
    double mib = 0;
    program_run(&e, output, "validate %s %s", CONFIG, set);
    CHECK_EQ_INT(e.code, 0);
    const char *at = strstr(e.out, "a rank about ");
    if (CHECK(at != NULL)) mib = strtod(at + strlen("a rank about "), NULL);
    program_end_free(&e);
    return mib;
}

/* A run; its digest, and its peak as the system counts it, in MiB. */
static double measured(char digest[65], const char *set, const char *name) {
    char path[PROGRAM_PATH + 80];
    program_end e;
    program_run(&e, output, "train %s %s output_dir=%s/%s", CONFIG, set, folder, name);
    if (!CHECK_EQ_INT(e.code, 0)) fprintf(stderr, "%s\n", e.err);
    snprintf(path, sizeof path, "%s/%s/run.h5", folder, name);
    CHECK_OK(rrl_record_digest(digest, path));
    const double peak = e.peak_mib;
    program_end_free(&e);
    return peak;
}

int main(void) {
    static const char *const SETS[] = {"", "training.gradient_checkpointing=true", "training.activation_memory=11"};
    double mib[3];
    char digest[3][65];
    program_folder(folder, "memory");
    snprintf(output, sizeof output, "%s/said", folder);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "run%d", i);
        mib[i] = predicted(SETS[i]);
        const double peak = measured(digest[i], SETS[i], name);
        if (!SANITIZED && !CHECK(fabs(mib[i] - peak) <= 0.1 * peak))
            fprintf(stderr, "  \"%s\": predicted %.1f MiB, measured %.1f\n", SETS[i], mib[i], peak);
        CHECK_EQ_INT(strcmp(digest[i], digest[0]), 0);
    }
    CHECK(mib[1] < mib[2] && mib[2] < mib[0]);
    program_remove(folder);
    return CHECK_DONE();
}
