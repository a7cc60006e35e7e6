/* Records: everything a run made, in HDF5. Writing: segments that appear whole, joined into run.h5 at the end.
 * Reading: run.h5 or the segments of a run in progress. Folder layout and table list: docs/records.md. */
#ifndef RRL_RECORD_RECORD_H
#define RRL_RECORD_RECORD_H

#include "data/questions.h"
#include "learn/training_row.h"
#include "record/schema.h"
#include "rrl/config.h"
#include "rrl/group.h"

/* Attributes of the root. Strings are borrowed. */
typedef struct {
    const char *execution_kind; /* "training", "evaluation", "fixture_audit", "base" */
    const char *arm, *method, *numeric_path, *digest, *config_yaml, *provenance_json;
    const char *model_digest, *parser_version;
    double level; /* NaN = fixed members */
    uint64_t seed;
    const rrl_verifier_config *verifier; /* -> /members */
    const rrl_questions *train;          /* -> /questions; may be NULL */
} rrl_record_header;

/* ---- writing (one recorder a run; not collective) ---- */

typedef struct rrl_recorder rrl_recorder;
/** Start or continue the records of run folder dir (records/ below it). On resume from step `next_step`, existing
 *  segments of later steps are compared with what is put again: equal = kept, different = event replay_mismatch and the
 *  old one moved to quarantine/. Errors: RRL_ERR_IO. */
rrl_status rrl_recorder_open(rrl_recorder **out, const char *dir, const rrl_record_header *h,
                             int64_t steps_per_segment, int64_t next_step);
void rrl_recorder_close(rrl_recorder **r); /* drops an unfinished segment; complete ones stay */
/** Groups (schedule order) and training row of one update. Takes the groups: each is freed once written. Steps ascend.
 *  groups may be none for a further iteration of a batch. Publishes a segment when it is full. */
rrl_status rrl_recorder_step(rrl_recorder *r, rrl_group **groups, int n_groups, const rrl_training_row *row);
/** As rrl_recorder_step, but a full segment stays open: the next step, which is at hand, joins it. */
rrl_status rrl_recorder_join(rrl_recorder *r, rrl_group **groups, int n_groups, const rrl_training_row *row);
/** Close and publish the open segment (before a checkpoint). */
rrl_status rrl_recorder_flush(rrl_recorder *r);
/** Completions of an evaluation in schedule order (groups of all questions; taken), its questions and its metrics.
 *  name: letters, digits, "-", "_" and "."; unique in the run. Published at once. */
rrl_status rrl_recorder_evaluation(rrl_recorder *r, const char *name, const rrl_questions *q, rrl_group **groups,
                                   int64_t n_groups, const rrl_metric *metrics, int n_metrics);
/** Join segments into run.h5: published, read back and compared before the segments are removed. provenance_json
 *  replaces the header's (NULL keeps it). A run with a valid run.h5 is complete, so this is the last act of a run: the
 *  adapter and everything else are in place before. */
rrl_status rrl_recorder_finish(rrl_recorder *r, const char *provenance_json);
/** What putting steps again after a resume found so far: segments equal to what was recorded (kept), and segments that
 *  differ (event replay_mismatch; the old one lies in DIR/quarantine). Either may be NULL. */
void rrl_recorder_replay(const rrl_recorder *r, int64_t *kept, int64_t *mismatches);

/* ---- reading ---- */

/* One set of completions: of training, or of one evaluation. */
typedef struct {
    char *name; /* "" = training */
    int64_t n, n_tokens, n_verdicts;
    rrl_rollout_row *rollouts; /* [n] */
    char **text, **answer;     /* [n], NUL-terminated; lengths in the rows */
    int32_t *tokens;           /* [n_tokens] */
    float *logprobs;           /* [n_tokens] */
    rrl_verdict_row *verdicts; /* [n_verdicts] */
    rrl_metric *metrics;       /* evaluation only */
    int64_t n_metrics;
    rrl_record_question *questions;
    int64_t n_questions;
} rrl_record_set;

typedef struct {
    char *path;
    char *execution_kind, *arm, *method, *numeric_path, *digest, *config_yaml, *provenance_json, *model_digest;
    char *parser_version, *created_utc, *rrl_version;
    double level;
    uint64_t seed;
    int complete; /* 1 = run.h5, 0 = segments */
    int32_t n_members;
    rrl_record_member *members;
    rrl_record_set training;
    rrl_training_row *rows; /* [n_rows] of /training */
    int64_t n_rows;
    rrl_record_set *evaluations;
    int64_t n_evaluations;
} rrl_record;

/** Read a record: a .h5 file, or a run folder (run.h5 if valid, else its segments). what: 1 with text and tokens, 0
 *  tables only. Errors: RRL_ERR_DATA (truncated: path, expected and real size; unknown format or version). */
rrl_status rrl_record_read(rrl_record **out, const char *path, int with_text);
void rrl_record_free(rrl_record **r);
const rrl_record_set *rrl_record_evaluation(const rrl_record *r, const char *name); /* NULL if none */
/** Make the groups of a set again (for judging stored base completions at another level). The caller frees each. */
rrl_status rrl_record_groups(rrl_group ***groups, int64_t *n, const rrl_record_set *s);

/** SHA-256 hex of a run (docs/records.md): tables, texts, tokens and the adapter. path: folder or run.h5 (then
 *  adapter/ beside it, if there). For the folder of a study: SHA-256 of a line "digest  path" for each run below it,
 *  sorted by path (report/, base/ and *.old-N left out). Errors: RRL_ERR_DATA. */
rrl_status rrl_record_digest(char out[65], const char *path);
/** Whether dir has a run.h5 that opens, is of a known version and has the tables; else why not, as RRL_ERR_DATA. Reads
 *  no rows. */
rrl_status rrl_record_complete(const char *dir);
/** The tables of docs/records.md, from the lists of schema.h and training_row.h. The caller frees *out. */
rrl_status rrl_record_reference(char **out);

#endif
