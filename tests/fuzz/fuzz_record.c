/* A record file of any part, read as each part; the completions of a whole run are made groups again. */
#include <stdlib.h>

#include "fuzz_target.h"
#include "record/record.h"
#include "record/record_file.h"

static void use(const rrl_record_set *s) {
    rrl_group **groups = NULL;
    int64_t n = 0;
    if (rrl_record_groups(&groups, &n, s) != RRL_OK) return;
    for (int64_t i = 0; i < n; i++) rrl_group_free(&groups[i]);
    free(groups);
}

static void read_run(const char *path) {
    rrl_record *r = NULL;
    if (rrl_record_read(&r, path, 1) == RRL_OK) {
        use(&r->training);
        for (int64_t i = 0; i < r->n_evaluations; i++) use(&r->evaluations[i]);
    }
    rrl_record_free(&r);
}

static void read_segment(const char *path) {
    rrl_segment s = {0};
    if (rrl_segment_read(&s, path, NULL, true) == RRL_OK) use(&s.set);
    rrl_segment_clear(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file(data, size);
    if (rrl_record_probe(path, RRL_PART_RUN) == RRL_OK) read_run(path);
    else read_segment(path);
    return 0;
}
