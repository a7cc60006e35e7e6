/* Reads the record of a run: run.h5 where it is valid, else the segments of a run in progress. */
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "record/record_file.h"
#include "record/records_folder.h"

static rrl_status check_members(const rrl_record *r, const rrl_record_set *s) {
    for (int64_t i = 0; i < s->n_verdicts; i++)
        if (s->verdicts[i].member >= r->n_members)
            return RRL_FAIL(RRL_ERR_DATA, "%s: row %lld of verdicts is of member %d of %d", r->path,
                            (long long)i, s->verdicts[i].member, r->n_members);
    return RRL_OK;
}

static rrl_status check_questions(const rrl_record *r, const rrl_record_set *s) {
    for (int64_t i = 0; i < s->n && s->n_questions; i++)
        if (s->rollouts[i].question >= s->n_questions)
            return RRL_FAIL(RRL_ERR_DATA, "%s: row %lld of rollouts is of question %u of %lld", r->path,
                            (long long)i, s->rollouts[i].question, (long long)s->n_questions);
    return RRL_OK;
}

static rrl_status check_record(const rrl_record *r) {
    RRL_TRY(check_members(r, &r->training));
    RRL_TRY(check_questions(r, &r->training));
    for (int64_t i = 0; i < r->n_evaluations; i++) {
        RRL_TRY(check_members(r, &r->evaluations[i]));
        RRL_TRY(check_questions(r, &r->evaluations[i]));
    }
    return RRL_OK;
}

static rrl_status record_of(rrl_record **out, const char *path) {
    rrl_record *r = NULL;
    RRL_TRY(rrl_alloc(&r, 1, sizeof *r, "record"));
    rrl_status rc = rrl_strdup(&r->path, path);
    if (rc == RRL_OK) rc = rrl_strdup(&r->training.name, "");
    if (rc == RRL_OK)
        *out = r;
    else
        rrl_record_free(&r);
    return rc;
}

static rrl_status read_run(rrl_record **out, const char *path, bool with_text) {
    rrl_status rc = RRL_OK;
    rrl_record *r = NULL;
    RRL_GOTO(record_of(&r, path));
    RRL_GOTO(rrl_record_load(r, path, RRL_PART_RUN, with_text));
    RRL_GOTO(check_record(r));
    r->complete = 1;
    *out = r;
    r = NULL;
done:
    rrl_record_free(&r);
    return rc;
}

/* --- segments */

typedef struct {
    rrl_set_room room;
    size_t rows, evaluations;
} record_room;

/* Steps from `end` on belong to the segment that follows: a kill while one was cut leaves both. */
static rrl_status add_segment(rrl_record *r, record_room *room, rrl_segment *s, int64_t end) {
    rrl_segment cut = {0}, *use = s;
    if (s->first + s->n > end) {
        RRL_TRY(rrl_segment_slice(&cut, s, 0, end - s->first));
        use = &cut;
    }
    rrl_status rc =
        rrl_grow(&r->rows, &room->rows, (size_t)(r->n_rows + use->n), sizeof *r->rows, "training rows");
    if (rc == RRL_OK && use->n) {
        memcpy(r->rows + r->n_rows, use->rows, (size_t)use->n * sizeof *r->rows);
        r->n_rows += use->n;
        rc = rrl_set_add_set(&r->training, &room->room, &use->set);
    }
    rrl_segment_clear(&cut);
    return rc;
}

static rrl_status read_segments(rrl_record *r, record_room *room, const rrl_records_folder *f,
                                bool with_text) {
    for (size_t i = 0; i < f->n_segments; i++) {
        rrl_segment s = {0};
        int64_t end = i + 1 < f->n_segments ? f->segments[i + 1].first : INT64_MAX;
        RRL_TRY(rrl_segment_read(&s, f->segments[i].path, r->digest, with_text));
        rrl_status rc = add_segment(r, room, &s, end);
        rrl_segment_clear(&s);
        RRL_TRY(rc);
    }
    return RRL_OK;
}

static rrl_status read_evaluations(rrl_record *r, record_room *room, const rrl_records_folder *f,
                                   bool with_text) {
    for (size_t i = 0; i < f->n_evaluations; i++) {
        RRL_TRY(rrl_grow(&r->evaluations, &room->evaluations, i + 1, sizeof *r->evaluations, "evaluations"));
        RRL_TRY(rrl_evaluation_read(&r->evaluations[i], f->evaluations[i], r->digest, with_text));
        r->n_evaluations++;
    }
    return RRL_OK;
}

static rrl_status read_folder(rrl_record **out, const char *dir, bool with_text) {
    rrl_status rc = RRL_OK;
    rrl_record *r = NULL;
    rrl_records_folder f = {0};
    record_room room = {0};
    RRL_GOTO(record_of(&r, dir));
    RRL_GOTO(rrl_records_list(&f, dir));
    if (!f.head)
        RRL_GOTO(RRL_FAIL(RRL_ERR_DATA, "%s: no records: neither run.h5 nor records/%s; has the run started?",
                          dir, RRL_RECORDS_HEAD));
    RRL_GOTO(rrl_record_load(r, f.head, RRL_PART_HEAD, with_text));
    RRL_GOTO(read_segments(r, &room, &f, with_text));
    RRL_GOTO(read_evaluations(r, &room, &f, with_text));
    RRL_GOTO(check_record(r));
    *out = r;
    r = NULL;
done:
    rrl_records_free(&f);
    rrl_record_free(&r);
    return rc;
}

rrl_status rrl_record_read_segments(rrl_record **out, const char *dir) {
    return read_folder(out, dir, true);
}

rrl_status rrl_record_read(rrl_record **out, const char *path, int with_text) {
    if (!rrl_dir_exists(path)) return read_run(out, path, with_text != 0);
    rrl_status rc = RRL_OK;
    rrl_record *r = NULL;
    char *run = NULL, *head = NULL;
    RRL_GOTO(rrl_path_join(&run, path, "run.h5"));
    RRL_GOTO(rrl_path_join(&head, path, "records/" RRL_RECORDS_HEAD));
    /* a valid run.h5 wins; a broken one is reported unless the segments are still there */
    if (rrl_file_exists(run)) rc = read_run(&r, run, with_text != 0);
    if (!r && (rc == RRL_OK || (rc == RRL_ERR_DATA && rrl_file_exists(head))))
        rc = read_folder(&r, path, with_text != 0);
    if (rc == RRL_OK) *out = r;
done:
    free(run);
    free(head);
    return rc;
}

rrl_status rrl_record_complete(const char *dir) {
    char *run = NULL;
    RRL_TRY(rrl_path_join(&run, dir, "run.h5"));
    rrl_status rc = rrl_record_probe(run, RRL_PART_RUN);
    free(run);
    return rc;
}
