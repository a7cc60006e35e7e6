/* Tokenizers: golden ids and texts, near-linear time, and files that must be refused by name. */
#include <time.h>

#include "base/files.h"
#include "base/text.h"
#include "check.h"
#include "data/prompt.h"
#include "data/tokenizer.h"
#include "golden_tokenizer.h"

static void test_golden(const char *golden) {
    static const char *const FOLDERS[] = {"tokenizer", "tokenizer-qwen"};
    for (int i = 0; i < 2; i++) {
        char path[4096];
        int checks = 0;
        snprintf(path, sizeof path, "%s/%s", golden, FOLDERS[i]);
        CHECK_EQ_INT(golden_tokenizer(&checks, path), 0);
        CHECK(checks > 1000);
    }
}

int main(int argc, char **argv) {
    test_golden(argc > 1 ? argv[1] : RRL_SOURCE_DIR "/tests/golden");
    return CHECK_DONE();
}
