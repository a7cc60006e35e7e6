/* The summary of a record or a study for people. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "commands/show_parts.h"

static rrl_status put_value(rrl_buffer *b, const char *name, double v) {
    return isnan(v) ? rrl_buffer_printf(b, "%s -", name) : rrl_buffer_printf(b, "%s %.4g", name, v);
}

static rrl_status put_level(rrl_buffer *b, double level) {
    char text[RRL_NUMBER_CHARS] = "fixed";
    if (!isnan(level)) rrl_format_double(text, level);
    return rrl_buffer_printf(b, "level %s", text);
}

static rrl_status put_head(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p) {
    RRL_TRY(rrl_buffer_printf(b, "%s: %s", r->path,
                              r->complete ? "complete"
                              : p->status ? p->status
                                          : "not complete"));
    if (!r->complete && p->reason && *p->reason) RRL_TRY(rrl_buffer_printf(b, " (%s)", p->reason));
    RRL_TRY(rrl_buffer_printf(b, "\n%s, method %s", r->execution_kind, r->method));
    if (*r->arm) {
        RRL_TRY(rrl_buffer_printf(b, ", arm %s, ", r->arm));
        RRL_TRY(put_level(b, r->level));
    }
    RRL_TRY(rrl_buffer_printf(b, ", seed %" PRIu64 "\n", r->seed));
    RRL_TRY(rrl_buffer_printf(b, "numeric path %s, answer parser %s, rrl %s, begun %s\n", r->numeric_path,
                              r->parser_version, r->rrl_version, r->created_utc));
    RRL_TRY(rrl_buffer_printf(b, "model %s\nconfig digest %s\n", r->model_digest, r->digest));
    for (int32_t i = 0; i < r->n_members; i++) {
        const rrl_record_member *m = &r->members[i];
        RRL_TRY(rrl_buffer_printf(b, "member %d: %s, %s", i, m->kind, m->corruption));
        if (strcmp(m->corruption, "none") != 0)
            RRL_TRY(rrl_buffer_printf(b, " %.6g, seed %" PRIu64, m->probability, m->seed));
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    return RRL_OK;
}

static rrl_status put_progress(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p) {
    if (p->max_steps > 0)
        RRL_TRY(rrl_buffer_printf(b, " of %" PRId64 " updates (%.0f %%)", p->max_steps,
                                  100.0 * (double)r->n_rows / (double)p->max_steps));
    else
        RRL_TRY(rrl_buffer_puts(b, " updates"));
    return isnan(p->remaining_s) ? RRL_OK
                                 : rrl_buffer_printf(b, ", about %.0f s of training left", p->remaining_s);
}

/* The last update, in lines of 80 columns. */
static rrl_status put_last(rrl_buffer *b, const rrl_training_row *last) {
    rrl_status rc;
    rrl_buffer line = {0};
    RRL_GOTO(rrl_buffer_printf(&line, "step %" PRId64 ":", last->step));
    RRL_GOTO(put_value(&line, " reward", last->reward));
    RRL_GOTO(put_value(&line, ", observed", last->observed_reward));
    RRL_GOTO(put_value(&line, ", accuracy", last->correct));
    RRL_GOTO(put_value(&line, ", KL", last->kl));
    RRL_GOTO(put_value(&line, ", entropy", last->entropy));
    RRL_GOTO(put_value(&line, ", grad norm", last->grad_norm));
    RRL_GOTO(put_value(&line, ", length", last->mean_length));
    RRL_GOTO(put_value(&line, ", seconds", last->step_time));
    RRL_GOTO(rrl_buffer_puts(b, "  "));
    RRL_GOTO(rrl_buffer_wrap(b, line.data, 2, 80));
done:
    rrl_buffer_free(&line);
    return rc;
}

static rrl_status put_training(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p) {
    if (r->n_rows == 0) return RRL_OK;
    const rrl_training_row *last = &r->rows[r->n_rows - 1];
    RRL_TRY(rrl_buffer_printf(b, "training: %" PRId64, r->n_rows));
    RRL_TRY(put_progress(b, r, p));
    RRL_TRY(rrl_buffer_printf(b, "; %" PRId64 " completions, %" PRId64 " tokens\n", r->training.n,
                              last->num_tokens));
    return put_last(b, last);
}

static rrl_status put_evaluation(rrl_buffer *b, const rrl_record_set *s) {
    RRL_TRY(rrl_buffer_printf(b, "evaluation %s: %" PRId64 " questions, %" PRId64 " completions\n", s->name,
                              s->n_questions, s->n));
    for (int64_t i = 0; i < s->n_metrics; i++) {
        const rrl_metric *m = &s->metrics[i];
        RRL_TRY(m->defined ? rrl_buffer_printf(b, "  %-32s %.4f\n", m->name, m->value)
                           : rrl_buffer_printf(b, "  %-32s undefined\n", m->name));
    }
    return RRL_OK;
}

rrl_status rrl_show_summary(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p) {
    RRL_TRY(put_head(b, r, p));
    RRL_TRY(put_training(b, r, p));
    for (int64_t i = 0; i < r->n_evaluations; i++) RRL_TRY(put_evaluation(b, &r->evaluations[i]));
    return RRL_OK;
}

rrl_status rrl_show_study(rrl_buffer *b, const char *path, const rrl_condition_state *s, int64_t n) {
    static const char *const STATES[] = {"complete", "running", "checkpointed", "interrupted", "failed", "waiting"};
    RRL_TRY(rrl_buffer_printf(b, "%s: study of %" PRId64 " conditions", path, n));
    for (size_t k = 0; k < sizeof STATES / sizeof *STATES; k++) {
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++) count += strcmp(s[i].status, STATES[k]) == 0;
        if (count) RRL_TRY(rrl_buffer_printf(b, ", %" PRId64 " %s", count, STATES[k]));
    }
    RRL_TRY(rrl_buffer_puts(b, "\n"));
    for (int64_t i = 0; i < n; i++) {
        RRL_TRY(rrl_buffer_printf(b, "%-12s %s", s[i].status, s[i].dir));
        if (s[i].reason && *s[i].reason) RRL_TRY(rrl_buffer_printf(b, " (%s)", s[i].reason));
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    return RRL_OK;
}
