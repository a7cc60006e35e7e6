/* The folder of a benchmark. */
#include "bench/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "model/model.h"

static const char END_TOKENS[] = "generation_config.json";

rrl_status rrl_bench_scratch_open(char **out) {
    char *dir = NULL;
    RRL_TRY(rrl_strdup(&dir, "rrl-bench-XXXXXX"));
    if (mkdtemp(dir) == NULL) {
        rrl_status rc = RRL_FAIL(RRL_ERR_IO, "rrl bench needs a folder in the working directory: %s", strerror(errno));
        free(dir);
        return rc;
    }
    *out = dir;
    return RRL_OK;
}

void rrl_bench_scratch_close(char **dir) {
    if (!*dir) return;
    (void)rrl_dir_remove(*dir);
    free(*dir);
    *dir = NULL;
}

/* A link in `to` to every file of the folder `from`, an absolute path, but for that of the end tokens. */
static rrl_status link_files(const char *to, const char *from) {
    rrl_status rc = RRL_OK;
    char **names = NULL, *target = NULL, *place = NULL;
    size_t n = 0;
    RRL_GOTO(rrl_dir_list(&names, &n, from));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], END_TOKENS) == 0) continue;
        RRL_GOTO(rrl_path_join(&target, from, names[i]));
        RRL_GOTO(rrl_path_join(&place, to, names[i]));
        if (symlink(target, place) != 0) {
            rc = RRL_FAIL(RRL_ERR_IO, "%s: no link to %s: %s", place, target, strerror(errno));
            goto done;
        }
        free(target);
        free(place);
        target = place = NULL;
    }
done:
    free(target);
    free(place);
    rrl_names_free(&names, n);
    return rc;
}

static rrl_status write_end(const char *dir, int32_t token) {
    char *path = NULL, text[64];
    int len = snprintf(text, sizeof text, "{\"eos_token_id\": %d}\n", token);
    RRL_TRY(rrl_path_join(&path, dir, END_TOKENS));
    rrl_status rc = rrl_file_publish(path, text, (size_t)len);
    free(path);
    return rc;
}

rrl_status rrl_bench_scratch_model(char **out, const char *scratch, const char *model_dir) {
    rrl_status rc = RRL_OK;
    rrl_model_config c;
    char *dir = NULL, *from = NULL;
    RRL_GOTO(rrl_model_config_read(&c, model_dir));
    if ((from = realpath(model_dir, NULL)) == NULL) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: %s", model_dir, strerror(errno));
        goto done;
    }
    RRL_GOTO(rrl_path_join(&dir, scratch, "model"));
    RRL_GOTO(rrl_dir_make(dir));
    RRL_GOTO(link_files(dir, from));
    RRL_GOTO(write_end(dir, c.vocab - 1));
    *out = dir;
    dir = NULL;
done:
    free(dir);
    free(from);
    return rc;
}
