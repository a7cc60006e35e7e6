/* Every completion of a study as a line of JSON, for tools that read JSONL. Names of fields: docs/export.md. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json_object.h"
#include "report/archive.h"
#include "report/each_record.h"

void rrl_generations_made_free(rrl_generations_made *m) {
    free(m->path);
    rrl_buffer_free(&m->left_out);
    *m = (rrl_generations_made){0};
}

static rrl_status put_truth(rrl_buffer *b, const char *key, float v) {
    return isnan(v) ? rrl_json_put_text(b, key, NULL) : rrl_json_put_bool(b, key, v >= 0.5F);
}

static rrl_status put_question(rrl_buffer *b, const rrl_record_set *s, const rrl_rollout_row *row) {
    bool known = row->question < s->n_questions;
    const rrl_record_question *q = known ? &s->questions[row->question] : NULL;
    RRL_TRY(rrl_json_put_text(b, "example_id", known ? q->id : NULL));
    RRL_TRY(rrl_json_put_text(b, "question", known ? q->question : NULL));
    return rrl_json_put_text(b, "reference", known ? q->reference : NULL);
}

static rrl_status put_run(rrl_buffer *b, const rrl_record *r, const rrl_record_set *s, const char *below) {
    RRL_TRY(rrl_json_put_text(b, "method", r->method));
    RRL_TRY(rrl_json_put_seed(b, "seed", r->seed));
    RRL_TRY(rrl_json_put_text(b, "arm", r->arm));
    RRL_TRY(rrl_json_put_real(b, "corruption_level", r->level));
    RRL_TRY(rrl_json_put_text(b, "split", *s->name ? s->name : "training"));
    return rrl_json_put_text(b, "run", below);
}

static rrl_status put_numbers(rrl_buffer *b, const rrl_rollout_row *row) {
    RRL_TRY(rrl_json_put_float(b, "reward", row->reward));
    RRL_TRY(put_truth(b, "correct", row->correct));
    RRL_TRY(rrl_json_put_float(b, "shaped_reward", row->shaped));
    RRL_TRY(rrl_json_put_float(b, "confidence", row->confidence));
    RRL_TRY(rrl_json_put_float(b, "disagreement", row->disagreement));
    RRL_TRY(rrl_json_put_float(b, "advantage", row->advantage));
    RRL_TRY(rrl_json_put_count(b, "step", row->step));
    RRL_TRY(rrl_json_put_count(b, "sample", row->sample));
    RRL_TRY(rrl_json_put_count(b, "policy_version", row->policy_version));
    RRL_TRY(rrl_json_put_count(b, "generated_tokens", row->tokens));
    return rrl_json_put_bool(b, "truncated", row->finish == RRL_FINISH_LENGTH);
}

/* *at: the first verdict that is not of an earlier completion. */
static rrl_status put_verdicts(rrl_buffer *b, const rrl_record *r, const rrl_record_set *s, int64_t n, int64_t *at) {
    RRL_TRY(rrl_json_open_list(b, "verdicts"));
    for (int64_t k = 0; *at < s->n_verdicts && s->verdicts[*at].rollout == (uint64_t)n; k++, ++*at) {
        const rrl_verdict_row *v = &s->verdicts[*at];
        const rrl_record_member *m = &r->members[v->member];
        RRL_TRY(rrl_json_open_item(b, k));
        RRL_TRY(rrl_json_put_count(b, "member", v->member));
        RRL_TRY(rrl_json_put_text(b, "verifier", m->kind));
        RRL_TRY(rrl_json_put_text(b, "corruption", m->corruption));
        RRL_TRY(rrl_json_put_real(b, "probability", m->probability));
        RRL_TRY(rrl_json_put_float(b, "clean_reward", v->clean));
        RRL_TRY(rrl_json_put_float(b, "reward", v->reward));
        RRL_TRY(rrl_json_put_float(b, "confidence", v->confidence));
        RRL_TRY(rrl_json_put_bool(b, "corrupted", v->corrupted != 0));
        RRL_TRY(rrl_buffer_puts(b, "}"));
    }
    return rrl_buffer_puts(b, "]");
}

static rrl_status put_completion(rrl_buffer *b, const rrl_record *r, const rrl_record_set *s, const char *below,
                                 int64_t n, int64_t *verdict) {
    const rrl_rollout_row *row = &s->rollouts[n];
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(put_question(b, s, row));
    RRL_TRY(rrl_json_put_bytes(b, "response", s->text[n], row->text_bytes));
    RRL_TRY(row->answer_bytes < 0 ? rrl_json_put_text(b, "extracted_answer", NULL)
                                  : rrl_json_put_bytes(b, "extracted_answer", s->answer[n], (size_t)row->answer_bytes));
    RRL_TRY(put_numbers(b, row));
    RRL_TRY(put_run(b, r, s, below));
    RRL_TRY(put_verdicts(b, r, s, n, verdict));
    return rrl_buffer_puts(b, "}\n");
}

static rrl_status write_set(rrl_generations_made *out, FILE *to, const rrl_record *r, const rrl_record_set *s,
                            const char *below) {
    rrl_status rc = RRL_OK;
    rrl_buffer line = {0};
    int64_t verdict = 0;
    for (int64_t i = 0; i < s->n; i++) {
        line.len = 0;
        RRL_GOTO(put_completion(&line, r, s, below, i, &verdict));
        if (fwrite(line.data, 1, line.len, to) != line.len) RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s", strerror(errno)));
        out->lines++;
    }
done:
    rrl_buffer_free(&line);
    return rc;
}

typedef struct {
    rrl_generations_made *out;
    FILE *to;
} writer;

static rrl_status write_run(void *context, const rrl_record *r, const char *below) {
    writer *w = context;
    RRL_TRY(write_set(w->out, w->to, r, &r->training, below));
    for (int64_t i = 0; i < r->n_evaluations; i++) RRL_TRY(write_set(w->out, w->to, r, &r->evaluations[i], below));
    return RRL_OK;
}

static rrl_status write_all(rrl_generations_made *out, FILE *to, const char *dir) {
    writer w = {out, to};
    return rrl_each_record(&out->records, &out->left_out, dir, 1, write_run, &w);
}

static rrl_status publish(rrl_generations_made *out, const char *dir, const char *path) {
    rrl_status rc;
    rrl_buffer tmp = {0};
    FILE *to = NULL;
    RRL_GOTO(rrl_buffer_printf(&tmp, "%s.%ld.tmp", path, (long)getpid()));
    if (!(to = fopen(tmp.data, "wb"))) RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: %s", tmp.data, strerror(errno)));
    RRL_GOTO(rrl_context(write_all(out, to, dir), "%s", path));
    bool written = fclose(to) == 0;
    to = NULL;
    if (!written) RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: %s", tmp.data, strerror(errno)));
    RRL_GOTO(rrl_file_publish_tmp(tmp.data, path));
done:
    if (to) fclose(to);
    if (rc != RRL_OK && tmp.data) unlink(tmp.data);
    rrl_buffer_free(&tmp);
    return rc;
}

rrl_status rrl_generations_write(rrl_generations_made *out, const char *dir, const char *path) {
    rrl_status rc;
    rrl_generations_made m = {0};
    rrl_buffer to = {0};
    char *real = realpath(dir, NULL);
    if (!real) return RRL_FAIL(RRL_ERR_DATA, "%s: %s", dir, strerror(errno));
    RRL_GOTO(path ? rrl_buffer_puts(&to, path) : rrl_buffer_printf(&to, "%s.generations.jsonl", real));
    RRL_GOTO(publish(&m, real, to.data));
    m.path = to.data;
    to = (rrl_buffer){0};
    *out = m;
    m = (rrl_generations_made){0};
done:
    rrl_generations_made_free(&m);
    rrl_buffer_free(&to);
    free(real);
    return rc;
}
