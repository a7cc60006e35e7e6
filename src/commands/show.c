/* rrl show FILE|DIR: what is in a record, a run folder or a study folder. Reads only; rank 0 does it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/text.h"
#include "commands/commands.h"
#include "commands/show_parts.h"
#include "record/run_folder.h"

enum { RECENT_STEPS = 20 };

static bool has(const char *dir, const char *name) {
    char *path = NULL;
    bool there = rrl_path_join(&path, dir, name) == RRL_OK && rrl_file_exists(path);
    free(path);
    return there;
}

static bool has_folder(const char *dir, const char *name) {
    char *path = NULL;
    bool there = rrl_path_join(&path, dir, name) == RRL_OK && rrl_dir_exists(path);
    free(path);
    return there;
}

static int64_t planned_steps(const rrl_record *r) {
    rrl_config *c = NULL;
    if (rrl_config_parse(&c, r->config_yaml, strlen(r->config_yaml), r->path, NULL, NULL, 0) != RRL_OK)
        return -1;
    int64_t steps = c->training.max_steps;
    rrl_config_close(&c);
    return steps;
}

/* Updates to come times the mean time of the last ones. */
static double remaining(const rrl_record *r, int64_t max_steps) {
    int64_t recent = r->n_rows < RECENT_STEPS ? r->n_rows : RECENT_STEPS;
    double seconds = 0;
    if (r->complete || recent == 0 || max_steps <= r->n_rows) return NAN;
    for (int64_t i = r->n_rows - recent; i < r->n_rows; i++) seconds += r->rows[i].step_time;
    return seconds / (double)recent * (double)(max_steps - r->n_rows);
}

/* Whether a list of completions is asked for; --evaluation alone only says whose. */
static bool searches(const rrl_options *o) {
    return o->question || o->right || o->wrong || o->disagreement >= 0 || o->top_wrong > 0;
}

static rrl_status check_options(const rrl_options *o) {
    if (o->right && (o->wrong || o->top_wrong > 0))
        return RRL_FAIL(RRL_ERR_USAGE, "rrl show: --right with --wrong or --top-wrong asks for nothing; leave one out");
    if (searches(o) && (o->completion >= 0 || o->digest))
        return RRL_FAIL(RRL_ERR_USAGE, "rrl show: --%s prints one thing; leave the options of a list out",
                        o->digest ? "digest" : "completion");
    return RRL_OK;
}

static rrl_status show_record(rrl_buffer *b, const char *path, const rrl_options *o) {
    rrl_record *r = NULL;
    const rrl_record_set *named = NULL;
    char *status = NULL, *reason = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_record_read(&r, path, o->completion >= 0 || searches(o)));
    if (o->completion >= 0) {
        RRL_GOTO((o->json ? rrl_show_completion_json : rrl_show_completion)(b, r, o->evaluation, o->completion));
        goto done;
    }
    if (searches(o)) {
        rrl_show_search search = {o->evaluation,   o->question,  o->right, o->wrong,
                                  o->disagreement, o->top_wrong, o->limit};
        RRL_GOTO(rrl_show_list(b, r, &search, o->json));
        goto done;
    }
    if (o->evaluation) RRL_GOTO(rrl_show_set(&named, r, o->evaluation)); /* the summary has all; a wrong name is told */
    if (has(path, "run.json")) RRL_GOTO(rrl_run_folder_read(&status, &reason, path));
    rrl_show_progress p = {status, reason, planned_steps(r), NAN};
    p.remaining_s = remaining(r, p.max_steps);
    RRL_GOTO(o->json ? rrl_show_summary_json(b, r, &p) : rrl_show_summary(b, r, &p));
done:
    free(status);
    free(reason);
    rrl_record_free(&r);
    return rc;
}

/* A run without records yet has only its status. */
static rrl_status show_begun(rrl_buffer *b, const char *path, const rrl_options *o) {
    char *status = NULL, *reason = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_run_folder_read(&status, &reason, path));
    if (o->json) {
        RRL_GOTO(rrl_show_begun_json(b, path, status, reason));
        goto done;
    }
    RRL_GOTO(rrl_buffer_printf(b, "%s: %s", path, status));
    if (reason && *reason) RRL_GOTO(rrl_buffer_printf(b, " (%s)", reason));
    RRL_GOTO(rrl_buffer_puts(b, "; nothing is recorded yet\n"));
done:
    free(status);
    free(reason);
    return rc;
}

static rrl_status show_study(rrl_buffer *b, const char *path, const rrl_options *o) {
    rrl_condition_state *s = NULL;
    int64_t n = 0;
    rrl_status rc;
    RRL_GOTO(rrl_study_state(&s, &n, path));
    RRL_GOTO(o->json ? rrl_show_study_json(b, path, s, n) : rrl_show_study(b, path, s, n));
done:
    rrl_study_state_free(&s, n);
    return rc;
}

static rrl_status show_digest(rrl_buffer *b, const char *path, bool json) {
    char digest[65];
    RRL_TRY(rrl_record_digest(digest, path));
    return json ? rrl_show_digest_json(b, path, digest) : rrl_buffer_printf(b, "%s\n", digest);
}

static rrl_status show(rrl_buffer *b, const char *path, const rrl_options *o) {
    RRL_TRY(check_options(o));
    if (o->digest) return show_digest(b, path, o->json);
    if (!has(path, "study.json")) {
        bool begun = has(path, "run.json") && !has(path, "run.h5") && !has_folder(path, "records");
        return begun && o->completion < 0 && !searches(o) ? show_begun(b, path, o) : show_record(b, path, o);
    }
    if (o->completion >= 0 || searches(o))
        return RRL_FAIL(RRL_ERR_USAGE,
                        "%s is a study; completions are those of one run of it, such as ARM/level-L/seed-S/METHOD",
                        path);
    return show_study(b, path, o);
}

rrl_status rrl_command_show(const rrl_options *o, rrl_command_context *ctx) {
    rrl_buffer b = {0};
    if (ctx->rank != 0) return RRL_OK;
    rrl_c_locale locale = rrl_c_locale_enter();
    rrl_status rc = show(&b, o->arguments.v[0], o);
    rrl_c_locale_leave(locale);
    if (rc == RRL_OK && (fwrite(b.data, 1, b.len, stdout) != b.len || fflush(stdout) != 0))
        rc = RRL_FAIL(RRL_ERR_IO, "standard output could not be written");
    rrl_buffer_free(&b);
    return rc;
}
