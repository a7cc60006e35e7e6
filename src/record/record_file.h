/* The layout of a record file: which datasets and attributes stand where. A file is one part of a run's
 * records:
 *
 *   head        records/000000.h5            /config, /provenance, /questions, /members and the root
 * attributes segment     records/<first step + 1>.h5  completions and training rows of n_steps steps from
 * first_step evaluation  records/evaluation-NAME.h5   /evaluation/NAME run         run.h5 everything
 *
 * Every part names format, version and the run's digest in its root attributes. */
#ifndef RRL_RECORD_RECORD_FILE_H
#define RRL_RECORD_RECORD_FILE_H

#include "record/record_set.h"

/* part, its name in the root attribute "part" */
#define RRL_RECORD_PARTS(X)                                                                                  \
    X(RRL_PART_HEAD, "head")                                                                                 \
    X(RRL_PART_SEGMENT, "segment") X(RRL_PART_EVALUATION, "evaluation") X(RRL_PART_RUN, "run")
typedef enum {
#define X(name, text) name,
    RRL_RECORD_PARTS(X)
#undef X
} rrl_record_part;

/** Value of the root attribute "part". */
const char *rrl_record_part_text(rrl_record_part part);

/* Steps [first, first + n) of a run. */
typedef struct {
    int64_t first, n;
    rrl_training_row *rows; /* [n] */
    int64_t *rollouts;      /* [n] completions that came with each row */
    rrl_record_set set;
    rrl_set_room room;
    size_t rows_room, rollouts_room;
} rrl_segment;

rrl_status rrl_segment_add(rrl_segment *s, rrl_group *const *groups, int n_groups,
                           const rrl_training_row *row);
/** Copy of rows [from, to) of a segment; *out is a zeroed segment. */
rrl_status rrl_segment_slice(rrl_segment *out, const rrl_segment *s, int64_t from, int64_t to);
void rrl_segment_clear(rrl_segment *s);

/** Publish one part. digest is that of the run's config (root attribute). */
rrl_status rrl_segment_publish(const char *path, const rrl_segment *s, const char *digest);
rrl_status rrl_evaluation_publish(const char *path, const rrl_record_set *evaluation, const char *digest);
/** head: texts, members and training.questions; run: all of the record. */
rrl_status rrl_record_publish(const char *path, const rrl_record *r, rrl_record_part part);
/** A run judged again: `now` with its new verdicts as RRL_PART_RUN, and what its verifier had decided before in the group
 *  /original (docs/records.md, section Judged again). source_sha256: of the file that `before` was read from. */
rrl_status rrl_record_publish_rejudged(const char *path, const rrl_record *now, const rrl_record *before,
                                       const char *source_sha256);

/** Read one part. digest (may be NULL) must be the file's. Errors: RRL_ERR_DATA. */
rrl_status rrl_segment_read(rrl_segment *out, const char *path, const char *digest, bool with_text);
rrl_status rrl_evaluation_read(rrl_record_set *out, const char *path, const char *digest, bool with_text);
/** head or run into a zeroed record; digest and path are the record's own. */
rrl_status rrl_record_load(rrl_record *r, const char *path, rrl_record_part part, bool with_text);
/** Open, check format, version, part and that the tables are there; no rows are read. */
rrl_status rrl_record_probe(const char *path, rrl_record_part part);

#endif
