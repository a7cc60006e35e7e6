/* Collects steps and publishes them in segments. What it publishes where is known to record_write.c; what lay
 * there from before a kill, to replay.c. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/memory.h"
#include "record/record_file.h"
#include "record/records_folder.h"
#include "record/replay.h"

struct rrl_recorder {
    char *dir;
    int64_t per_segment, next; /* the step that must come next */
    rrl_segment open;
    rrl_replay replay;
};

/* --- opening */

/* Texts of the members as table rows; they borrow from the config. */
static rrl_status member_rows(rrl_record_member **out, int32_t *n, const rrl_verifier_config *v) {
    rrl_record_member *rows = NULL;
    int64_t count = v ? v->n_members : 0;
    RRL_TRY(rrl_alloc(&rows, (size_t)count + 1, sizeof *rows, "verifier members"));
    for (int64_t i = 0; i < count; i++) {
        const rrl_member_config *m = &v->members[i];
        const rrl_corruption_config *c = &m->corruption;
        rows[i] = (rrl_record_member){.kind = (char *)RRL_ENUM_TEXTS(RRL_MEMBER_LIST)[m->kind],
                                      .corruption = (char *)RRL_ENUM_TEXTS(RRL_CORRUPTION_LIST)[c->kind],
                                      .probability = c->probability,
                                      .seed = (uint64_t)c->seed,
                                      .noise_std = c->noise_std,
                                      .confidence_scale = c->confidence_scale,
                                      .bias_key = c->bias_key,
                                      .bias_value = c->bias_value,
                                      .bias_reward = c->bias_reward};
    }
    *out = rows;
    *n = (int32_t)count;
    return RRL_OK;
}

/* Rows of /questions; they borrow from the pool. */
static rrl_status question_rows(rrl_record_question **out, int64_t *n, const rrl_questions *pool) {
    rrl_record_question *rows = NULL;
    int64_t count = pool ? pool->n : 0;
    RRL_TRY(rrl_alloc(&rows, (size_t)count + 1, sizeof *rows, "questions of a record"));
    for (int64_t i = 0; i < count; i++) {
        const rrl_question *q = &pool->rows[i];
        rows[i] = (rrl_record_question){
            .id = q->id, .question = q->question, .reference = q->reference, .klass = q->klass};
    }
    *out = rows;
    *n = count;
    return RRL_OK;
}

/* The time the record was begun: that of the head which is there, else now. */
static rrl_status created(char **out, const char *head) {
    rrl_record *old = NULL;
    char now[32];
    rrl_utc(now);
    if (!rrl_file_exists(head)) return rrl_strdup(out, now);
    RRL_TRY(rrl_alloc(&old, 1, sizeof *old, "record"));
    bool known = rrl_record_load(old, head, RRL_PART_HEAD, false) == RRL_OK;
    rrl_status rc = rrl_strdup(out, known ? old->created_utc : now);
    rrl_record_free(&old);
    return rc;
}

static rrl_status publish_head(const char *records, const rrl_record_header *h) {
    rrl_status rc = RRL_OK;
    char *head = NULL, *begun = NULL;
    rrl_record r = {.execution_kind = (char *)h->execution_kind, /* borrowed, all of it */
                    .arm = (char *)h->arm,
                    .method = (char *)h->method,
                    .numeric_path = (char *)h->numeric_path,
                    .digest = (char *)h->digest,
                    .config_yaml = (char *)h->config_yaml,
                    .provenance_json = (char *)h->provenance_json,
                    .model_digest = (char *)h->model_digest,
                    .parser_version = (char *)h->parser_version,
                    .level = h->level,
                    .seed = h->seed};
    RRL_GOTO(rrl_path_join(&head, records, RRL_RECORDS_HEAD));
    RRL_GOTO(created(&begun, head));
    r.created_utc = begun;
    RRL_GOTO(member_rows(&r.members, &r.n_members, h->verifier));
    RRL_GOTO(question_rows(&r.training.questions, &r.training.n_questions, h->train));
    RRL_GOTO(rrl_record_publish(head, &r, RRL_PART_HEAD));
done:
    free(r.members);
    free(r.training.questions);
    free(begun);
    free(head);
    return rc;
}

/* A complete run has nothing to add. A damaged run.h5 gives way if all of it can be made again. */
static rrl_status check_no_run(const char *dir, const char *records, int64_t next_step) {
    rrl_status rc = RRL_OK;
    char *run = NULL, *head = NULL;
    RRL_GOTO(rrl_path_join(&run, dir, "run.h5"));
    RRL_GOTO(rrl_path_join(&head, records, RRL_RECORDS_HEAD));
    if (!rrl_file_exists(run)) goto done;
    rc = rrl_record_complete(dir);
    if (rc == RRL_OK)
        rc = RRL_FAIL(RRL_ERR_USAGE, "%s: this run is complete; begin anew with --fresh", run);
    else if (rrl_file_exists(head) || next_step == 0)
        rc = rrl_quarantine(records, run);
    else
        rc = rrl_context(
            rc, "the record is lost, and no segments are left to join again; begin anew with --fresh");
done:
    free(run);
    free(head);
    return rc;
}

rrl_status rrl_recorder_open(rrl_recorder **out, const char *dir, const rrl_record_header *h,
                             int64_t steps_per_segment, int64_t next_step) {
    rrl_status rc = RRL_OK;
    rrl_recorder *r = NULL;
    char *records = NULL;
    if (steps_per_segment < 1 || next_step < 0 || !h->digest)
        return RRL_FAIL(RRL_ERR_INTERNAL, "recorder with %lld steps a segment from step %lld%s",
                        (long long)steps_per_segment, (long long)next_step, h->digest ? "" : ", no digest");
    RRL_GOTO(rrl_alloc(&r, 1, sizeof *r, "recorder"));
    RRL_GOTO(rrl_strdup(&r->dir, dir));
    r->per_segment = steps_per_segment;
    r->next = next_step;
    RRL_GOTO(rrl_path_join(&records, dir, "records"));
    RRL_GOTO(check_no_run(dir, records, next_step));
    RRL_GOTO(rrl_dir_make(records));
    RRL_GOTO(publish_head(records, h));
    RRL_GOTO(rrl_replay_open(&r->replay, dir, h->digest, next_step));
    *out = r;
    r = NULL;
done:
    free(records);
    rrl_recorder_close(&r);
    return rc;
}

void rrl_recorder_close(rrl_recorder **recorder) {
    if (!recorder || !*recorder) return;
    rrl_recorder *r = *recorder;
    rrl_segment_clear(&r->open);
    rrl_replay_close(&r->replay);
    free(r->dir);
    free(r);
    *recorder = NULL;
}

void rrl_recorder_replay(const rrl_recorder *r, int64_t *kept, int64_t *mismatches) {
    if (kept) *kept = r->replay.kept;
    if (mismatches) *mismatches = r->replay.mismatches;
}

/* --- steps */

rrl_status rrl_recorder_flush(rrl_recorder *r) {
    if (r->open.n == 0) return RRL_OK;
    RRL_TRY(rrl_replay_put(&r->replay, &r->open));
    rrl_segment_clear(&r->open);
    return RRL_OK;
}

/* Adds a step to the open segment, which is published when it has `most` steps or ends where one that is there does. */
static rrl_status add_step(rrl_recorder *r, rrl_group *const *groups, int n_groups, const rrl_training_row *row,
                           int64_t most) {
    if (row->step != r->next)
        return RRL_FAIL(RRL_ERR_INTERNAL, "%s: step %lld was put, step %lld is next", r->dir,
                        (long long)row->step, (long long)r->next);
    RRL_TRY(rrl_segment_add(&r->open, groups, n_groups, row));
    r->next++;
    return r->next >= rrl_replay_end(&r->replay, r->open.first, most) ? rrl_recorder_flush(r) : RRL_OK;
}

/* They were the recorder's in any case. */
static void free_groups(rrl_group **groups, int n) {
    for (int i = 0; i < n; i++) rrl_group_free(&groups[i]);
}

rrl_status rrl_recorder_step(rrl_recorder *r, rrl_group **groups, int n_groups, const rrl_training_row *row) {
    rrl_status rc = add_step(r, groups, n_groups, row, r->per_segment);
    free_groups(groups, n_groups);
    return rc;
}

rrl_status rrl_recorder_join(rrl_recorder *r, rrl_group **groups, int n_groups, const rrl_training_row *row) {
    rrl_status rc = add_step(r, groups, n_groups, row, INT64_MAX - r->next);
    free_groups(groups, n_groups);
    return rc;
}

/* --- evaluations */

/* questions and metrics borrow; only the completions are the set's own. */
static rrl_status put_evaluation(rrl_recorder *r, const char *name, const rrl_questions *q,
                                 rrl_group *const *groups, int64_t n_groups, const rrl_metric *metrics,
                                 int n_metrics) {
    rrl_status rc = RRL_OK;
    rrl_record_question *questions = NULL;
    rrl_set_room room = {0};
    rrl_record_set s = {0};
    int64_t n_questions = 0;
    RRL_GOTO(question_rows(&questions, &n_questions, q));
    for (int64_t i = 0; i < n_groups; i++) RRL_GOTO(rrl_set_add_group(&s, &room, groups[i]));
    rrl_record_set whole = s;
    whole.name = (char *)name;
    whole.questions = questions;
    whole.n_questions = n_questions;
    whole.metrics = (rrl_metric *)metrics;
    whole.n_metrics = n_metrics;
    RRL_GOTO(rrl_replay_put_evaluation(&r->replay, &whole));
done:
    free(questions);
    rrl_set_clear(&s);
    return rc;
}

rrl_status rrl_recorder_evaluation(rrl_recorder *r, const char *name, const rrl_questions *q,
                                   rrl_group **groups, int64_t n_groups, const rrl_metric *metrics,
                                   int n_metrics) {
    rrl_status rc = put_evaluation(r, name, q, groups, n_groups, metrics, n_metrics);
    for (int64_t i = 0; i < n_groups; i++) rrl_group_free(&groups[i]);
    return rc;
}

/* --- the end */

rrl_status rrl_recorder_finish(rrl_recorder *r, const char *provenance_json) {
    RRL_TRY(rrl_recorder_flush(r));
    RRL_TRY(rrl_replay_end_of_run(&r->replay));
    RRL_TRY(rrl_records_join(r->dir, provenance_json));
    return rrl_records_remove(r->dir);
}
