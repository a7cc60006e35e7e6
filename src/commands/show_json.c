/* The summary of a record or a study for programs: one JSON object, undefined values null. */
#include <math.h>
#include <string.h>

#include "base/json_object.h"
#include "commands/show_parts.h"

static rrl_status put_members(rrl_buffer *b, const rrl_record *r) {
    RRL_TRY(rrl_json_open_list(b, "members"));
    for (int32_t i = 0; i < r->n_members; i++) {
        const rrl_record_member *m = &r->members[i];
        RRL_TRY(rrl_json_open_item(b, i));
        RRL_TRY(rrl_json_put_text(b, "kind", m->kind));
        RRL_TRY(rrl_json_put_text(b, "corruption", m->corruption));
        RRL_TRY(rrl_json_put_real(b, "probability", m->probability));
        RRL_TRY(rrl_json_put_seed(b, "seed", m->seed));
        RRL_TRY(rrl_buffer_puts(b, "}"));
    }
    return rrl_buffer_puts(b, "]");
}

static rrl_status put_training(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p) {
    RRL_TRY(rrl_json_key(b, "training"));
    if (r->n_rows == 0) return rrl_buffer_puts(b, "null");
    const rrl_training_row *last = &r->rows[r->n_rows - 1];
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_count(b, "updates", r->n_rows));
    RRL_TRY(rrl_json_put_real(b, "max_steps", p->max_steps < 0 ? NAN : (double)p->max_steps));
    RRL_TRY(rrl_json_put_real(b, "remaining_s", p->remaining_s));
    RRL_TRY(rrl_json_put_count(b, "completions", r->training.n));
    RRL_TRY(rrl_json_key(b, "last"));
    RRL_TRY(rrl_buffer_puts(b, "{"));
#define X(field, type, name, unit, digest, doc) RRL_TRY(rrl_json_put_real(b, name, (double)last->field));
    RRL_TRAINING_COLUMNS(X)
#undef X
    return rrl_buffer_puts(b, "}}");
}

static rrl_status put_evaluations(rrl_buffer *b, const rrl_record *r) {
    RRL_TRY(rrl_json_open_list(b, "evaluations"));
    for (int64_t i = 0; i < r->n_evaluations; i++) {
        const rrl_record_set *s = &r->evaluations[i];
        RRL_TRY(rrl_json_open_item(b, i));
        RRL_TRY(rrl_json_put_text(b, "name", s->name));
        RRL_TRY(rrl_json_put_count(b, "questions", s->n_questions));
        RRL_TRY(rrl_json_put_count(b, "completions", s->n));
        RRL_TRY(rrl_json_key(b, "metrics"));
        RRL_TRY(rrl_buffer_puts(b, "{"));
        for (int64_t m = 0; m < s->n_metrics; m++)
            RRL_TRY(rrl_json_put_real(b, s->metrics[m].name, s->metrics[m].defined ? s->metrics[m].value : NAN));
        RRL_TRY(rrl_buffer_puts(b, "}}"));
    }
    return rrl_buffer_puts(b, "]");
}

rrl_status rrl_show_summary_json(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p) {
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_text(b, "path", r->path));
    RRL_TRY(rrl_json_put_bool(b, "complete", r->complete));
    RRL_TRY(rrl_json_put_text(b, "status", r->complete ? "complete" : p->status));
    RRL_TRY(rrl_json_put_text(b, "reason", p->reason));
    RRL_TRY(rrl_json_put_text(b, "execution_kind", r->execution_kind));
    RRL_TRY(rrl_json_put_text(b, "arm", r->arm));
    RRL_TRY(rrl_json_put_real(b, "level", r->level));
    RRL_TRY(rrl_json_put_text(b, "method", r->method));
    RRL_TRY(rrl_json_put_seed(b, "seed", r->seed));
    RRL_TRY(rrl_json_put_text(b, "numeric_path", r->numeric_path));
    RRL_TRY(rrl_json_put_text(b, "digest", r->digest));
    RRL_TRY(rrl_json_put_text(b, "model_digest", r->model_digest));
    RRL_TRY(rrl_json_put_text(b, "parser_version", r->parser_version));
    RRL_TRY(rrl_json_put_text(b, "rrl_version", r->rrl_version));
    RRL_TRY(rrl_json_put_text(b, "created_utc", r->created_utc));
    RRL_TRY(put_members(b, r));
    RRL_TRY(put_training(b, r, p));
    RRL_TRY(put_evaluations(b, r));
    return rrl_buffer_puts(b, "}\n");
}

rrl_status rrl_show_digest_json(rrl_buffer *b, const char *path, const char *digest) {
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_text(b, "path", path));
    RRL_TRY(rrl_json_put_text(b, "digest", digest));
    return rrl_buffer_puts(b, "}\n");
}

rrl_status rrl_show_begun_json(rrl_buffer *b, const char *path, const char *status, const char *reason) {
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_text(b, "path", path));
    RRL_TRY(rrl_json_put_bool(b, "complete", false));
    RRL_TRY(rrl_json_put_text(b, "status", status));
    RRL_TRY(rrl_json_put_text(b, "reason", reason));
    return rrl_buffer_puts(b, "}\n");
}

rrl_status rrl_show_study_json(rrl_buffer *b, const char *path, const rrl_condition_state *s, int64_t n) {
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_text(b, "path", path));
    RRL_TRY(rrl_json_open_list(b, "conditions"));
    for (int64_t i = 0; i < n; i++) {
        RRL_TRY(rrl_json_open_item(b, i));
        RRL_TRY(rrl_json_put_text(b, "dir", s[i].dir));
        RRL_TRY(rrl_json_put_text(b, "arm", s[i].arm));
        RRL_TRY(rrl_json_put_real(b, "level", s[i].level));
        RRL_TRY(rrl_json_put_count(b, "seed", (int64_t)s[i].seed));
        RRL_TRY(rrl_json_put_text(b, "method", s[i].method));
        RRL_TRY(rrl_json_put_text(b, "status", s[i].status));
        RRL_TRY(rrl_json_put_text(b, "reason", s[i].reason));
        RRL_TRY(rrl_buffer_puts(b, "}"));
    }
    return rrl_buffer_puts(b, "]}\n");
}
