/* Every golden file of a folder laid out as tests/golden: model, adapter, losses, gradients, optimiser, sampling,
 * tokenizers, advantages, corruption.
 *
 * Usage: test_golden [DIR]. Exit 1 and a line per failure; files that are not there are failures. */
#include "check.h"

#include "device/device.h"
#include "golden_learn.h"
#include "golden_model.h"
#include "golden_rewards.h"
#include "golden_sampling.h"
#include "golden_tokenizer.h"

enum { THREADS = 2 };

static void say(const char *what, int failures, int checks) {
    if (checks > 0) printf("%-24s %d of %d failed\n", what, failures, checks);
    else printf("%-24s %d failed\n", what, failures);
    CHECK_EQ_INT(failures, 0);
}

static void check_engine(const char *dir) {
    rrl_device *d = NULL;
    int checks = 0;
    if (!CHECK_OK(rrl_cpu_open(&d, "auto", THREADS))) return;
    say("model", golden_model_all(dir, d), 0);
    say("losses and optimiser", golden_learn_all(dir, d), 0);
    int failures = golden_sampling(&checks, d, dir);
    say("sampling", failures, checks);
    CHECK(checks > 0);
    rrl_device_close(&d);
}

static void check_tokenizer(const char *dir, const char *name) {
    char folder[4096];
    int checks = 0;
    snprintf(folder, sizeof folder, "%s/%s", dir, name);
    int failures = golden_tokenizer(&checks, folder);
    say(name, failures, checks);
    CHECK(checks > 0);
}

static void check_rewards(const char *dir) {
    int corruption = 0, advantages = 0;
    int failures = golden_corruption(&corruption, dir);
    say("corruption", failures, corruption);
    failures = golden_advantages(&advantages, dir);
    say("advantages", failures, advantages);
    CHECK(corruption > 0 && advantages > 0);
}

int main(int argc, char **argv) {
    const char *dir = argc > 1 ? argv[1] : RRL_SOURCE_DIR "/tests/golden";
    if (argc > 2) {
        fprintf(stderr, "usage: test_golden [DIR]\n");
        return 1;
    }
    check_engine(dir);
    check_tokenizer(dir, "tokenizer");
    check_tokenizer(dir, "tokenizer-qwen");
    check_rewards(dir);
    return CHECK_DONE();
}
