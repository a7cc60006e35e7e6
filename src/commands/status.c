/* rrl status DIR|CONFIG: how far each condition is, from files alone. Reads only; rank 0 does it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json_write.h"
#include "base/text.h"
#include "commands/commands.h"
#include "config/config_check.h"
#include "study/study_file.h"

enum { COLUMNS = 80, NAME_COLUMNS = 34, INDENT = 5, SHORT_TEXT = 32 };

/* Conditions, then stores of base completions that are not there yet. */
typedef struct {
    char *dir;
    char *differs; /* what of the config given is not that of study.json; NULL = nothing */
    rrl_condition_state *conditions, *stores;
    int64_t n, n_stores;
} study_status;

static void status_free(study_status *s) {
    rrl_study_state_free(&s->conditions, s->n);
    rrl_study_state_free(&s->stores, s->n_stores);
    free(s->dir);
    free(s->differs);
}

/* --- a terminal */

/* "2.1/s", "3.5/min", "12.0/h"; "" where unknown. */
static void rate_text(char out[SHORT_TEXT], double step_s) {
    static const struct {
        double seconds;
        const char *unit;
    } UNITS[] = {{1, "s"}, {60, "min"}, {3600, "h"}};
    out[0] = 0;
    if (!(step_s > 0)) return;
    int i = 0;
    while (i < 2 && UNITS[i].seconds / step_s < 1) i++;
    snprintf(out, SHORT_TEXT, "%.1f/%s", UNITS[i].seconds / step_s, UNITS[i].unit);
}

static void duration_text(char out[SHORT_TEXT], double s) {
    if (isnan(s)) out[0] = 0;
    else if (s < 120) snprintf(out, SHORT_TEXT, "%.0f s", s);
    else if (s < 7200) snprintf(out, SHORT_TEXT, "%.0f min", s / 60);
    else if (s < 172800) snprintf(out, SHORT_TEXT, "%.0f h", s / 3600);
    else snprintf(out, SHORT_TEXT, "%.0f d", s / 86400);
}

static bool is(const rrl_condition_state *s, const char *status) { return strcmp(s->status, status) == 0; }

/* Updates to come times what one takes; NaN where nothing runs or nothing is known. */
static double remaining(const rrl_condition_state *s) {
    return is(s, "running") && s->steps > 0 ? (double)(s->steps - s->step) * s->step_s : NAN;
}

/* Without a word for much longer than a step and the second between two words takes. */
static bool is_quiet(const rrl_condition_state *s) {
    return is(s, "running") && s->quiet_s > 60 && s->quiet_s > 10 * s->step_s;
}

/* The run's name in the study; the end of one that is too long. */
static void name_text(char out[NAME_COLUMNS + 1], const rrl_condition_state *s, const char *root) {
    size_t n = strlen(root);
    const char *name = strncmp(s->dir, root, n) == 0 && s->dir[n] == '/' ? s->dir + n + 1 : s->dir;
    size_t length = strlen(name);
    if (length <= NAME_COLUMNS) strcpy(out, name);
    else snprintf(out, NAME_COLUMNS + 1, "...%s", name + length - (NAME_COLUMNS - 3));
}

/* Who runs it, that nothing was heard for long, why it ended: below the row. */
static rrl_status put_more(rrl_buffer *b, const rrl_condition_state *s) {
    rrl_buffer more = {0};
    rrl_status rc = RRL_OK;
    char quiet[SHORT_TEXT];
    if (is(s, "running") && s->host[0]) {
        RRL_GOTO(rrl_buffer_printf(&more, "host %s, process %ld", s->host, s->pid));
        if (s->job[0]) RRL_GOTO(rrl_buffer_printf(&more, ", job %s", s->job));
        duration_text(quiet, s->quiet_s);
        if (is_quiet(s)) RRL_GOTO(rrl_buffer_printf(&more, "; no word for %s", quiet));
    }
    if (s->reason && *s->reason) RRL_GOTO(rrl_buffer_printf(&more, "%s%s", more.len ? "; " : "", s->reason));
    if (!more.len) goto done;
    RRL_GOTO(rrl_buffer_printf(b, "%*s", INDENT, ""));
    RRL_GOTO(rrl_buffer_wrap(b, more.data, INDENT, COLUMNS));
done:
    rrl_buffer_free(&more);
    return rc;
}

static rrl_status put_row(rrl_buffer *b, const char *index, const rrl_condition_state *s, const char *root) {
    char name[NAME_COLUMNS + 1], step[SHORT_TEXT] = "", rate[SHORT_TEXT], left[SHORT_TEXT];
    bool evaluates = strcmp(s->phase, "evaluate") == 0;
    name_text(name, s, root);
    if (s->steps > 0) snprintf(step, sizeof step, "%" PRId64 "/%" PRId64, s->step, s->steps);
    if (evaluates && is(s, "running")) strcpy(step, "evaluating");
    rate_text(rate, is(s, "running") && !evaluates ? s->step_s : NAN);
    duration_text(left, evaluates ? NAN : remaining(s));
    size_t at = b->len;
    RRL_TRY(rrl_buffer_printf(b, "%3s  %-*s %-12s %10s %8s %7s", index, NAME_COLUMNS, name, s->status, step, rate, left));
    while (b->len > at && b->data[b->len - 1] == ' ') b->data[--b->len] = 0;
    RRL_TRY(rrl_buffer_puts(b, "\n"));
    return put_more(b, s);
}

static rrl_status put_counts(rrl_buffer *b, const study_status *s) {
    static const char *const STATES[] = {"complete", "running", "checkpointed", "interrupted", "failed", "waiting",
                                         "other configuration"};
    RRL_TRY(rrl_buffer_printf(b, "%s: %" PRId64 " condition%s", s->dir, s->n, s->n == 1 ? "" : "s"));
    for (size_t k = 0; k < sizeof STATES / sizeof *STATES; k++) {
        int64_t count = 0;
        for (int64_t i = 0; i < s->n; i++) count += is(&s->conditions[i], STATES[k]);
        if (count) RRL_TRY(rrl_buffer_printf(b, ", %" PRId64 " %s", count, STATES[k]));
    }
    return rrl_buffer_puts(b, "\n\n");
}

static rrl_status put_difference(rrl_buffer *b, const study_status *s) {
    rrl_buffer text = {0};
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_buffer_printf(&text, "%s/study.json is that of another configuration, and rrl study would refuse this one "
                               "(%s): what follows is what was made there", s->dir, s->differs));
    RRL_GOTO(rrl_buffer_wrap(b, text.data, 0, COLUMNS));
    RRL_GOTO(rrl_buffer_puts(b, "\n"));
done:
    rrl_buffer_free(&text);
    return rc;
}

static rrl_status put_table(rrl_buffer *b, const study_status *s) {
    char index[24];
    RRL_TRY(put_counts(b, s));
    if (s->differs) RRL_TRY(put_difference(b, s));
    RRL_TRY(rrl_buffer_printf(b, "%3s  %-*s %-12s %10s %8s %7s\n", "#", NAME_COLUMNS, "condition", "state", "step", "rate",
                              "left"));
    for (int64_t i = 0; i < s->n; i++) {
        snprintf(index, sizeof index, "%" PRId64, i);
        RRL_TRY(put_row(b, index, &s->conditions[i], s->dir));
    }
    for (int64_t i = 0; i < s->n_stores; i++) RRL_TRY(put_row(b, "", &s->stores[i], s->dir));
    return RRL_OK;
}

/* --- a program: one condition a line, so that a shell script can read it too */

static rrl_status put_text(rrl_buffer *b, const char *key, const char *text) {
    RRL_TRY(rrl_buffer_printf(b, ", \"%s\": ", key));
    return text && *text ? rrl_json_quote(b, text, strlen(text)) : rrl_buffer_puts(b, "null");
}

static rrl_status put_real(rrl_buffer *b, const char *key, double v) {
    RRL_TRY(rrl_buffer_printf(b, ", \"%s\": ", key));
    return rrl_json_number(b, v);
}

static rrl_status put_item(rrl_buffer *b, int64_t i, const rrl_condition_state *s) {
    RRL_TRY(rrl_buffer_printf(b, "  {\"index\": %" PRId64 ", \"status\": \"%s\"", i, s->status));
    RRL_TRY(put_text(b, "dir", s->dir));
    RRL_TRY(put_text(b, "arm", s->arm));
    RRL_TRY(put_real(b, "level", s->level));
    RRL_TRY(s->seeded ? rrl_buffer_printf(b, ", \"seed\": %" PRIu64, s->seed) : rrl_buffer_puts(b, ", \"seed\": null"));
    RRL_TRY(put_text(b, "method", s->method));
    RRL_TRY(put_text(b, "reason", s->reason));
    RRL_TRY(put_text(b, "phase", s->phase));
    RRL_TRY(rrl_buffer_printf(b, ", \"step\": %" PRId64 ", \"steps\": %" PRId64, s->step, s->steps));
    RRL_TRY(put_real(b, "step_s", s->step_s));
    RRL_TRY(put_real(b, "remaining_s", remaining(s)));
    RRL_TRY(put_real(b, "quiet_s", s->quiet_s));
    RRL_TRY(put_text(b, "host", s->host));
    RRL_TRY(rrl_buffer_printf(b, ", \"pid\": %ld", s->pid));
    RRL_TRY(put_text(b, "job", s->job));
    return rrl_buffer_puts(b, "}");
}

static rrl_status put_items(rrl_buffer *b, const char *key, const rrl_condition_state *s, int64_t n) {
    RRL_TRY(rrl_buffer_printf(b, ",\n \"%s\": [", key));
    for (int64_t i = 0; i < n; i++) {
        RRL_TRY(rrl_buffer_puts(b, i ? ",\n" : "\n"));
        RRL_TRY(put_item(b, i, &s[i]));
    }
    return rrl_buffer_puts(b, "]");
}

static rrl_status put_json(rrl_buffer *b, const study_status *s) {
    RRL_TRY(rrl_buffer_puts(b, "{\"path\": "));
    RRL_TRY(rrl_json_quote(b, s->dir, strlen(s->dir)));
    RRL_TRY(put_text(b, "differs", s->differs));
    RRL_TRY(put_items(b, "conditions", s->conditions, s->n));
    RRL_TRY(put_items(b, "stores", s->stores, s->n_stores));
    return rrl_buffer_puts(b, "}\n");
}

/* --- the command */

/* A config names the folder of its study or run, whether or not that was begun. */
static rrl_status look_at_config(study_status *s, const rrl_options *o) {
    rrl_config *c = NULL;
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_config_open(&c, o->arguments.v[0], o->set.v, o->set.n));
    rrl_purpose purpose = rrl_config_purpose(c);
    RRL_GOTO(rrl_config_check(c, purpose));
    RRL_GOTO(rrl_strdup(&s->dir, c->output_dir));
    if (purpose == RRL_FOR_STUDY) {
        RRL_GOTO(rrl_study_file_differs(&s->differs, c));
        rc = rrl_study_plan_state(&s->conditions, &s->n, c);
    }
    else rc = rrl_study_run_state(&s->conditions, &s->n, c);
done:
    rrl_config_close(&c);
    return rc;
}

static rrl_status look_at_folder(study_status *s, const char *dir) {
    size_t n = strlen(dir);
    RRL_TRY(rrl_strdup(&s->dir, dir));
    while (n > 1 && s->dir[n - 1] == '/') s->dir[--n] = 0;
    return rrl_study_state(&s->conditions, &s->n, s->dir);
}

static rrl_status look(study_status *s, const rrl_options *o) {
    const char *path = o->arguments.v[0];
    bool config = rrl_file_exists(path) && !rrl_dir_exists(path);
    if (!config && o->set.n)
        return RRL_FAIL(RRL_ERR_USAGE, "rrl status: --set changes a config, and %s is a folder", path);
    RRL_TRY(config ? look_at_config(s, o) : look_at_folder(s, path));
    return rrl_study_stores_state(&s->stores, &s->n_stores, s->dir);
}

rrl_status rrl_command_status(const rrl_options *o, rrl_command_context *ctx) {
    study_status s = {0};
    rrl_buffer b = {0};
    if (ctx->rank != 0) return RRL_OK;
    rrl_c_locale locale = rrl_c_locale_enter();
    rrl_status rc = look(&s, o);
    if (rc == RRL_OK) rc = o->json ? put_json(&b, &s) : put_table(&b, &s);
    rrl_c_locale_leave(locale);
    if (rc == RRL_OK && fwrite(b.data, 1, b.len, stdout) != b.len)
        rc = RRL_FAIL(RRL_ERR_IO, "standard output could not be written");
    rrl_buffer_free(&b);
    status_free(&s);
    return rc;
}
