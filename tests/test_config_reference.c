/* docs/configuration.md is what the table says. `test_config_reference --write` renews it. */
#include "check.h"

#include "base/files.h"
#include "rrl/config.h"

static const char PATH[] = RRL_SOURCE_DIR "/docs/configuration.md";

int main(int argc, char **argv) {
    char *made = NULL, *found = NULL;
    size_t n = 0;
    if (!CHECK_OK(rrl_config_reference(&made))) return CHECK_DONE();
    if (argc > 1 && strcmp(argv[1], "--write") == 0) {
        CHECK_OK(rrl_file_publish(PATH, made, strlen(made)));
    } else if (CHECK_OK(rrl_file_read(&found, &n, PATH, 1 << 20))) {
        CHECK_EQ_INT(n, strlen(made));
        if (!CHECK(strcmp(found, made) == 0))
            fprintf(stderr,
                    "docs/configuration.md is not what the table says; run test_config_reference --write\n");
    }
    /* every key of every section has its row */
    CHECK(strstr(made, "| `learning_rate` | number | 5e-06 | 0 to 10 |") != NULL);
    CHECK(strstr(made, "\n## dataset, experiment.train_dataset, experiment.qualification_dataset\n") != NULL);
    CHECK(strstr(made, "standard, confidence, penalized, combined, conservative") != NULL);
    free(made);
    free(found);
    return CHECK_DONE();
}
