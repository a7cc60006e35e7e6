/* A YAML config: parsed, checked for every command, written and read back to the same digest. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "rrl/config.h"

static void same_again(const rrl_config *c) {
    char *yaml = NULL, first[65], second[65];
    rrl_config *again = NULL;
    fuzz_want(rrl_config_yaml(&yaml, c, NULL) == RRL_OK, "a config is written");
    fuzz_want(rrl_config_parse(&again, yaml, strlen(yaml), "again", "/", NULL, 0) == RRL_OK, "what was written is read");
    fuzz_want(rrl_config_digest(first, c, NULL) == RRL_OK && rrl_config_digest(second, again, NULL) == RRL_OK &&
                  strcmp(first, second) == 0,
              "what was written is the same config");
    rrl_config_close(&again);
    free(yaml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rrl_config *c = NULL;
    char *notes = NULL;
    if (rrl_config_parse(&c, (const char *)data, size, "input", "/", NULL, 0) != RRL_OK) return 0;
    for (int purpose = RRL_FOR_TRAIN; purpose <= RRL_FOR_QUALIFY; purpose++)
        (void)rrl_config_check(c, (rrl_purpose)purpose);
    fuzz_want(rrl_config_notes(&notes, c) == RRL_OK, "notes");
    same_again(c);
    free(notes);
    rrl_config_close(&c);
    return 0;
}
