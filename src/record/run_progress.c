/* Writing and reading progress.json. */
#include "record/run_progress.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"

enum { MAX_BYTES = 1 << 12 };

/* Whole under its name at once; a reader never sees a part. */
static rrl_status replace(const char *path, const char *tmp, const rrl_buffer *text) {
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return RRL_FAIL(RRL_ERR_IO, "%s: cannot be made: %s", tmp, strerror(errno));
    bool whole = write(fd, text->data, text->len) == (ssize_t)text->len;
    if (close(fd) == 0 && whole && rename(tmp, path) == 0) return RRL_OK;
    rrl_status rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    unlink(tmp);
    return rc;
}

rrl_status rrl_run_progress_write(const char *dir, const rrl_run_progress *p) {
    rrl_status rc = RRL_OK;
    char *path = NULL, *tmp = NULL, now[32];
    rrl_buffer text = {0};
    rrl_utc(now);
    RRL_GOTO(rrl_path_join(&path, dir, "progress.json"));
    RRL_GOTO(rrl_path_join(&tmp, dir, "progress.json.tmp"));
    RRL_GOTO(rrl_buffer_printf(&text, "{\"phase\": \"%s\", \"step\": %lld, \"steps\": %lld, \"step_s\": ", p->phase,
                               (long long)p->step, (long long)p->steps));
    RRL_GOTO(rrl_json_number(&text, p->step_s));
    RRL_GOTO(rrl_buffer_printf(&text, ", \"utc\": \"%s\"}\n", now));
    RRL_GOTO(replace(path, tmp, &text));
done:
    rrl_buffer_free(&text);
    free(path);
    free(tmp);
    return rc;
}

static rrl_status parse(rrl_run_progress *p, const cJSON *json, const char *path) {
    const char *phase = NULL, *utc = NULL;
    RRL_TRY(rrl_json_string(&phase, json, "phase", false, path));
    RRL_TRY(rrl_json_string(&utc, json, "utc", false, path));
    RRL_TRY(rrl_json_int(&p->step, json, "step", false, path));
    RRL_TRY(rrl_json_int(&p->steps, json, "steps", false, path));
    RRL_TRY(rrl_json_double(&p->step_s, json, "step_s", true, path));
    snprintf(p->phase, sizeof p->phase, "%s", phase);
    snprintf(p->utc, sizeof p->utc, "%s", utc);
    return RRL_OK;
}

rrl_status rrl_run_progress_read(bool *known, rrl_run_progress *p, const char *dir) {
    char *path = NULL;
    cJSON *json = NULL;
    rrl_run_progress found = {.step_s = NAN};
    *known = false;
    RRL_TRY(rrl_path_join(&path, dir, "progress.json"));
    if (rrl_json_file(&json, path, MAX_BYTES) == RRL_OK && parse(&found, json, path) == RRL_OK) {
        *p = found;
        *known = true;
    }
    cJSON_Delete(json);
    free(path);
    return RRL_OK;
}
