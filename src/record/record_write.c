/* Writes the parts of a record; record_load.c reads them in the same order. */
#include "record/record_file.h"

#include <string.h>

#include "record/h5_table.h"

#ifndef RRL_VERSION
#define RRL_VERSION "unknown"
#endif

static const char *or_empty(const char *text) {
    return text ? text : "";
}

/* What every part has. */
static rrl_status put_root(hid_t file, rrl_record_part part, const char *digest, const char *path) {
    int64_t version = RRL_RECORD_VERSION;
    RRL_TRY(rrl_h5_attr_put_text(file, "format", RRL_RECORD_FORMAT, path));
    RRL_TRY(rrl_h5_attr_put(file, "format_version", RRL_COLUMN_I64, &version, path));
    RRL_TRY(rrl_h5_attr_put_text(file, "part", rrl_record_part_text(part), path));
    RRL_TRY(rrl_h5_attr_put_text(file, "rrl_version", RRL_VERSION, path));
    return rrl_h5_attr_put_text(file, "digest", or_empty(digest), path);
}

/* What head and run have beside that. */
static rrl_status put_head(hid_t file, const rrl_record *r, const char *path) {
    const struct {
        const char *name, *text;
    } texts[] = {{"created_utc", r->created_utc},
                 {"execution_kind", r->execution_kind},
                 {"arm", r->arm},
                 {"method", r->method},
                 {"numeric_path", r->numeric_path},
                 {"model_digest", r->model_digest},
                 {"parser_version", r->parser_version}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        RRL_TRY(rrl_h5_attr_put_text(file, texts[i].name, or_empty(texts[i].text), path));
    RRL_TRY(rrl_h5_attr_put(file, "level", RRL_COLUMN_F64, &r->level, path));
    RRL_TRY(rrl_h5_attr_put(file, "seed", RRL_COLUMN_U64, &r->seed, path));
    RRL_TRY(rrl_h5_text_put(file, "config", or_empty(r->config_yaml), path));
    RRL_TRY(rrl_h5_text_put(file, "provenance", or_empty(r->provenance_json), path));
    RRL_TRY(
        rrl_h5_table_put(file, &rrl_table_questions, r->training.questions, r->training.n_questions, path));
    return rrl_h5_table_put(file, &rrl_table_members, r->members, r->n_members, path);
}

/* The completions of a set: six datasets. */
static rrl_status put_completions(hid_t at, const rrl_record_set *s, const char *path) {
    RRL_TRY(rrl_h5_table_put(at, &rrl_table_rollouts, s->rollouts, s->n, path));
    RRL_TRY(rrl_h5_texts_put(at, &rrl_column_text, s->text, rrl_set_text_bytes, s->rollouts, s->n, path));
    RRL_TRY(
        rrl_h5_texts_put(at, &rrl_column_answer, s->answer, rrl_set_answer_bytes, s->rollouts, s->n, path));
    RRL_TRY(rrl_h5_array_put(at, &rrl_column_tokens, s->tokens, s->n_tokens, path));
    RRL_TRY(rrl_h5_array_put(at, &rrl_column_logprobs, s->logprobs, s->n_tokens, path));
    return rrl_h5_table_put(at, &rrl_table_verdicts, s->verdicts, s->n_verdicts, path);
}

static rrl_status put_evaluation(hid_t evaluations, const rrl_record_set *s, const char *path) {
    hid_t at = -1;
    RRL_TRY(rrl_h5_group_make(&at, evaluations, s->name, path));
    rrl_status rc = rrl_h5_table_put(at, &rrl_table_questions, s->questions, s->n_questions, path);
    if (rc == RRL_OK) rc = put_completions(at, s, path);
    if (rc == RRL_OK) rc = rrl_h5_table_put(at, &rrl_table_metrics, s->metrics, s->n_metrics, path);
    rrl_h5_drop(&at);
    return rc;
}

static rrl_status put_evaluations(hid_t file, const rrl_record_set *sets, int64_t n, const char *path) {
    hid_t at = -1;
    rrl_status rc = RRL_OK;
    RRL_TRY(rrl_h5_group_make(&at, file, "evaluation", path));
    for (int64_t i = 0; i < n && rc == RRL_OK; i++) rc = put_evaluation(at, &sets[i], path);
    rrl_h5_drop(&at);
    return rc;
}

static rrl_status put_segment(hid_t file, const rrl_segment *s, const char *path) {
    RRL_TRY(rrl_h5_attr_put(file, "first_step", RRL_COLUMN_I64, &s->first, path));
    RRL_TRY(rrl_h5_attr_put(file, "n_steps", RRL_COLUMN_I64, &s->n, path));
    RRL_TRY(put_completions(file, &s->set, path));
    RRL_TRY(rrl_h5_table_put(file, &rrl_table_training, s->rows, s->n, path));
    return rrl_h5_array_put(file, &rrl_column_segment_rollouts, s->rollouts, s->n, path);
}

rrl_status rrl_segment_publish(const char *path, const rrl_segment *s, const char *digest) {
    rrl_status rc = RRL_OK;
    hid_t file = -1;
    RRL_GOTO(rrl_h5_create(&file, path));
    RRL_GOTO(put_root(file, RRL_PART_SEGMENT, digest, path));
    RRL_GOTO(put_segment(file, s, path));
    RRL_GOTO(rrl_h5_publish(file, path, "segment.write"));
done:
    rrl_h5_drop(&file);
    return rc;
}

rrl_status rrl_evaluation_publish(const char *path, const rrl_record_set *evaluation, const char *digest) {
    rrl_status rc = RRL_OK;
    hid_t file = -1;
    RRL_GOTO(rrl_h5_create(&file, path));
    RRL_GOTO(put_root(file, RRL_PART_EVALUATION, digest, path));
    RRL_GOTO(put_evaluations(file, evaluation, 1, path));
    RRL_GOTO(rrl_h5_publish(file, path, "evaluation.write"));
done:
    rrl_h5_drop(&file);
    return rc;
}

static rrl_status put_run(hid_t file, const rrl_record *r, const char *path) {
    RRL_TRY(put_completions(file, &r->training, path));
    RRL_TRY(rrl_h5_table_put(file, &rrl_table_training, r->rows, r->n_rows, path));
    return put_evaluations(file, r->evaluations, r->n_evaluations, path);
}

rrl_status rrl_record_publish(const char *path, const rrl_record *r, rrl_record_part part) {
    rrl_status rc = RRL_OK;
    hid_t file = -1;
    RRL_GOTO(rrl_h5_create(&file, path));
    RRL_GOTO(put_root(file, part, r->digest, path));
    RRL_GOTO(put_head(file, r, path));
    if (part == RRL_PART_RUN) RRL_GOTO(put_run(file, r, path));
    RRL_GOTO(rrl_h5_publish(file, path, part == RRL_PART_RUN ? "run.write" : "head.write"));
done:
    rrl_h5_drop(&file);
    return rc;
}

/* --- judged again */

/* What a verifier decides of a set; texts and tokens are those of the new one. */
static rrl_status put_decisions(hid_t at, const rrl_record_set *s, const char *path) {
    RRL_TRY(rrl_h5_table_put(at, &rrl_table_rollouts, s->rollouts, s->n, path));
    RRL_TRY(rrl_h5_texts_put(at, &rrl_column_answer, s->answer, rrl_set_answer_bytes, s->rollouts, s->n, path));
    return rrl_h5_table_put(at, &rrl_table_verdicts, s->verdicts, s->n_verdicts, path);
}

static rrl_status put_evaluation_before(hid_t evaluations, const rrl_record_set *s, const char *path) {
    hid_t at = -1;
    RRL_TRY(rrl_h5_group_make(&at, evaluations, s->name, path));
    rrl_status rc = put_decisions(at, s, path);
    if (rc == RRL_OK) rc = rrl_h5_table_put(at, &rrl_table_metrics, s->metrics, s->n_metrics, path);
    rrl_h5_drop(&at);
    return rc;
}

static rrl_status put_before(hid_t file, const rrl_record *r, const char *source_sha256, const char *path) {
    rrl_status rc = RRL_OK;
    hid_t at = -1, evaluations = -1;
    RRL_GOTO(rrl_h5_group_make(&at, file, "original", path));
    RRL_GOTO(rrl_h5_attr_put_text(at, "parser_version", r->parser_version, path));
    RRL_GOTO(rrl_h5_attr_put_text(at, "rrl_version", r->rrl_version, path));
    RRL_GOTO(rrl_h5_attr_put_text(at, "file_sha256", source_sha256, path));
    RRL_GOTO(put_decisions(at, &r->training, path));
    RRL_GOTO(rrl_h5_group_make(&evaluations, at, "evaluation", path));
    for (int64_t i = 0; i < r->n_evaluations; i++)
        RRL_GOTO(put_evaluation_before(evaluations, &r->evaluations[i], path));
done:
    rrl_h5_drop(&evaluations);
    rrl_h5_drop(&at);
    return rc;
}

rrl_status rrl_record_publish_rejudged(const char *path, const rrl_record *now, const rrl_record *before,
                                       const char *source_sha256) {
    rrl_status rc = RRL_OK;
    hid_t file = -1;
    RRL_GOTO(rrl_h5_create(&file, path));
    RRL_GOTO(put_root(file, RRL_PART_RUN, now->digest, path));
    RRL_GOTO(put_head(file, now, path));
    RRL_GOTO(put_run(file, now, path));
    RRL_GOTO(put_before(file, before, source_sha256, path));
    RRL_GOTO(rrl_h5_publish(file, path, "rejudged.write"));
done:
    rrl_h5_drop(&file);
    return rc;
}
