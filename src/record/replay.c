#include "record/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "record/digest.h"

/* --- the list of segments */

static void drop(rrl_replay *p, size_t i) {
    free(p->ahead[i].path);
    memmove(p->ahead + i, p->ahead + i + 1, (p->n_ahead - i - 1) * sizeof *p->ahead);
    p->n_ahead--;
}

/* Takes the path. */
static rrl_status insert(rrl_replay *p, size_t at, rrl_segment_file file) {
    rrl_status rc = rrl_grow(&p->ahead, &p->room, p->n_ahead + 1, sizeof *p->ahead, "segments");
    if (rc != RRL_OK) {
        free(file.path);
        return rc;
    }
    memmove(p->ahead + at + 1, p->ahead + at, (p->n_ahead - at) * sizeof *p->ahead);
    p->ahead[at] = file;
    p->n_ahead++;
    return RRL_OK;
}

/* Publish rows [from, to) of s at path. */
static rrl_status publish_slice(const rrl_replay *p, const char *path, const rrl_segment *s, int64_t from,
                                int64_t to) {
    rrl_segment cut = {0};
    RRL_TRY(rrl_segment_slice(&cut, s, from, to));
    rrl_status rc = rrl_segment_publish(path, &cut, p->digest);
    rrl_segment_clear(&cut);
    return rc;
}

/* Cut segment i in two before step `at`. The tail is durable before the head takes the place of the whole;
 * readers let the later of two overlapping segments have its steps. */
static rrl_status split(rrl_replay *p, size_t i, int64_t at) {
    rrl_status rc = RRL_OK;
    rrl_segment s = {0};
    rrl_segment_file tail = {.first = at, .n = p->ahead[i].first + p->ahead[i].n - at};
    int64_t head = at - p->ahead[i].first;
    RRL_GOTO(rrl_segment_read(&s, p->ahead[i].path, p->digest, true));
    RRL_GOTO(rrl_segment_path(&tail.path, p->records, at));
    RRL_GOTO(publish_slice(p, tail.path, &s, head, s.n));
    RRL_GOTO(publish_slice(p, p->ahead[i].path, &s, 0, head));
    p->ahead[i].n = head;
    RRL_GOTO(insert(p, i + 1, tail));
    tail.path = NULL;
done:
    free(tail.path);
    rrl_segment_clear(&s);
    return rc;
}

/* --- opening */

/* Learn the steps of segment i by reading it whole: existence is not success. */
static rrl_status look_into(rrl_replay *p, size_t i, int64_t next_step, bool *gone) {
    rrl_segment s = {0};
    rrl_segment_file *file = &p->ahead[i];
    *gone = false;
    rrl_status rc = rrl_segment_read(&s, file->path, p->digest, true);
    if (rc == RRL_OK && s.first != file->first)
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: starts at step %lld, its name says %lld", file->path,
                      (long long)s.first, (long long)file->first);
    file->n = rc == RRL_OK ? s.n : 0;
    rrl_segment_clear(&s);
    if (rc != RRL_ERR_DATA) return rc;
    if (file->first < next_step)
        return rrl_context(rc,
                           "recorded before the checkpoint of step %lld and damaged (go on from an earlier "
                           "checkpoint, or begin anew with --fresh)",
                           (long long)next_step);
    RRL_TRY(rrl_quarantine(p->records, file->path)); /* its steps are computed again */
    drop(p, i);
    *gone = true;
    return RRL_OK;
}

/* Overlaps are left by a kill while a segment was cut: finish that cut. */
static rrl_status trim_overlaps(rrl_replay *p) {
    for (size_t i = 0; i + 1 < p->n_ahead; i++) {
        rrl_segment s = {0};
        rrl_segment_file *file = &p->ahead[i];
        int64_t n = p->ahead[i + 1].first - file->first;
        if (file->n <= n) continue;
        RRL_TRY(rrl_segment_read(&s, file->path, p->digest, true));
        rrl_status rc = publish_slice(p, file->path, &s, 0, n);
        rrl_segment_clear(&s);
        RRL_TRY(rc);
        file->n = n;
    }
    return RRL_OK;
}

/* A checkpoint closes the open segment first, so a folder with checkpoints of its own had segments once. */
static rrl_status has_checkpoints(bool *out, const char *dir) {
    rrl_status rc = RRL_OK;
    char *path = NULL, **names = NULL;
    size_t n = 0;
    RRL_GOTO(rrl_path_join(&path, dir, "checkpoints"));
    if (rrl_dir_exists(path)) RRL_GOTO(rrl_dir_list(&names, &n, path));
    *out = n > 0;
done:
    rrl_names_free(&names, n);
    free(path);
    return rc;
}

/* The segments before next_step must reach it without a hole. A folder without any begins there: it continues
 * the checkpoint of another folder. */
static rrl_status check_coverage(const rrl_replay *p, const char *dir, int64_t next_step) {
    int64_t reached = -1;
    bool resumed = false;
    for (size_t i = 0; i < p->n_ahead && p->ahead[i].first < next_step; i++) {
        if (i && p->ahead[i].first != reached)
            return RRL_FAIL(RRL_ERR_DATA, "%s: steps %lld to %lld are missing", p->records,
                            (long long)reached, (long long)p->ahead[i].first - 1);
        reached = p->ahead[i].first + p->ahead[i].n;
    }
    if (reached < 0) {
        RRL_TRY(has_checkpoints(&resumed, dir));
        if (resumed) reached = 0;
    }
    if (reached >= 0 && reached < next_step)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: steps %lld to %lld are missing, though a checkpoint of step %lld is there; "
                        "begin anew with --fresh",
                        p->records, (long long)reached, (long long)next_step - 1, (long long)next_step);
    return RRL_OK;
}

static rrl_status take_list(rrl_replay *p, const char *dir) {
    rrl_records_folder f = {0};
    RRL_TRY(rrl_records_list(&f, dir));
    p->ahead = f.segments;
    p->n_ahead = p->room = f.n_segments;
    f.segments = NULL;
    f.n_segments = 0;
    rrl_records_free(&f);
    return RRL_OK;
}

rrl_status rrl_replay_open(rrl_replay *p, const char *dir, const char *digest, int64_t next_step) {
    rrl_status rc = RRL_OK;
    rrl_replay made = {0};
    bool gone;
    RRL_GOTO(rrl_path_join(&made.records, dir, "records"));
    RRL_GOTO(rrl_strdup(&made.digest, digest));
    RRL_GOTO(take_list(&made, dir));
    for (size_t i = 0; i < made.n_ahead; i += !gone) RRL_GOTO(look_into(&made, i, next_step, &gone));
    RRL_GOTO(trim_overlaps(&made));
    RRL_GOTO(check_coverage(&made, dir, next_step));
    for (size_t i = 0; i < made.n_ahead; i++)
        if (made.ahead[i].first < next_step && made.ahead[i].first + made.ahead[i].n > next_step)
            RRL_GOTO(split(&made, i, next_step));
    while (made.n_ahead && made.ahead[0].first < next_step) drop(&made, 0);
    *p = made;
    made = (rrl_replay){0};
done:
    rrl_replay_close(&made);
    return rc;
}

void rrl_replay_close(rrl_replay *p) {
    for (size_t i = 0; i < p->n_ahead; i++) free(p->ahead[i].path);
    free(p->ahead);
    free(p->records);
    free(p->digest);
    *p = (rrl_replay){0};
}

/* --- putting */

int64_t rrl_replay_end(const rrl_replay *p, int64_t first, int64_t most) {
    int64_t end = first + most;
    for (size_t i = 0; i < p->n_ahead; i++) {
        if (p->ahead[i].first == first) return first + p->ahead[i].n;
        if (p->ahead[i].first > first && p->ahead[i].first < end) end = p->ahead[i].first;
    }
    return end;
}

/* *equal: the segment that is there has this content; an unreadable one has not. */
static rrl_status equal_segment(bool *equal, const rrl_replay *p, const char *path, const rrl_segment *s) {
    char ours[65], theirs[65];
    rrl_segment old = {0};
    *equal = false;
    rrl_status rc = rrl_segment_read(&old, path, p->digest, true);
    if (rc == RRL_OK) rc = rrl_segment_digest(theirs, &old);
    rrl_segment_clear(&old);
    if (rc == RRL_ERR_DATA) return RRL_OK;
    RRL_TRY(rc);
    RRL_TRY(rrl_segment_digest(ours, s));
    *equal = strcmp(ours, theirs) == 0;
    return RRL_OK;
}

rrl_status rrl_replay_put(rrl_replay *p, const rrl_segment *s) {
    rrl_status rc = RRL_OK;
    bool equal = false;
    char *path = NULL;
    RRL_GOTO(rrl_segment_path(&path, p->records, s->first));
    size_t i = 0;
    while (i < p->n_ahead && p->ahead[i].first != s->first) i++;
    if (i < p->n_ahead) {
        if (p->ahead[i].n > s->n) RRL_GOTO(split(p, i, s->first + s->n));
        RRL_GOTO(equal_segment(&equal, p, path, s));
        if (equal)
            p->kept++;
        else {
            RRL_GOTO(rrl_quarantine_copy(p->records, path)); /* then replaced in one step */
            p->mismatches++;
        }
    }
    if (!equal) RRL_GOTO(rrl_segment_publish(path, s, p->digest));
    if (i < p->n_ahead) drop(p, i);
done:
    free(path);
    return rc;
}

static rrl_status equal_evaluation(bool *equal, const rrl_replay *p, const char *path,
                                   const rrl_record_set *s) {
    char ours[65], theirs[65];
    rrl_record_set old = {0};
    *equal = false;
    rrl_status rc = rrl_evaluation_read(&old, path, p->digest, true);
    if (rc == RRL_OK) rc = rrl_evaluation_digest(theirs, &old);
    rrl_set_clear(&old);
    if (rc == RRL_ERR_DATA) return RRL_OK;
    RRL_TRY(rc);
    RRL_TRY(rrl_evaluation_digest(ours, s));
    *equal = strcmp(ours, theirs) == 0;
    return RRL_OK;
}

rrl_status rrl_replay_put_evaluation(rrl_replay *p, const rrl_record_set *s) {
    rrl_status rc = RRL_OK;
    bool equal = false;
    char *path = NULL;
    RRL_GOTO(rrl_evaluation_path(&path, p->records, s->name));
    if (rrl_file_exists(path)) {
        RRL_GOTO(equal_evaluation(&equal, p, path, s));
        if (equal)
            p->kept++;
        else {
            RRL_GOTO(rrl_quarantine_copy(p->records, path));
            p->mismatches++;
        }
    }
    if (!equal) RRL_GOTO(rrl_evaluation_publish(path, s, p->digest));
done:
    free(path);
    return rc;
}

rrl_status rrl_replay_end_of_run(rrl_replay *p) {
    while (p->n_ahead) {
        RRL_TRY(rrl_quarantine(p->records, p->ahead[0].path));
        p->mismatches++;
        drop(p, 0);
    }
    return RRL_OK;
}
