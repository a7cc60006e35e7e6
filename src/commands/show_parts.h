/* The views of `rrl show` as text in a buffer; show.c chooses one. */
#ifndef RRL_COMMANDS_SHOW_PARTS_H
#define RRL_COMMANDS_SHOW_PARTS_H

#include <stdbool.h>

#include "base/memory.h"
#include "record/record.h"
#include "study/study.h"

/* What a summary says besides the record itself. */
typedef struct {
    const char *status, *reason; /* of run.json; NULL = none */
    int64_t max_steps;           /* planned updates; -1 = unknown */
    double remaining_s;          /* estimate from the last updates; NaN = unknown or done */
} rrl_show_progress;

rrl_status rrl_show_summary(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p);
rrl_status rrl_show_summary_json(rrl_buffer *b, const rrl_record *r, const rrl_show_progress *p);
rrl_status rrl_show_digest_json(rrl_buffer *b, const char *path, const char *digest);
/** A run folder without records. */
rrl_status rrl_show_begun_json(rrl_buffer *b, const char *path, const char *status, const char *reason);
/** Conditions of a study and how many are in which state. */
rrl_status rrl_show_study(rrl_buffer *b, const char *path, const rrl_condition_state *s, int64_t n);
rrl_status rrl_show_study_json(rrl_buffer *b, const char *path, const rrl_condition_state *s, int64_t n);
/* Which completions a list wants; what is not asked for lets all pass. */
typedef struct {
    const char *evaluation; /* NULL = training, or the last evaluation where nothing was trained */
    const char *question;   /* an id, or a part of a question's text */
    bool right, wrong;      /* by the independent judge */
    double disagreement;    /* least U; < 0 = any */
    int64_t top_wrong;      /* wrong ones by falling reward; 0 = in the order of the record */
    int64_t limit;
} rrl_show_search;

/** The set of completions of that name; as evaluation above. Errors: RRL_ERR_USAGE (what there is). */
rrl_status rrl_show_set(const rrl_record_set **out, const rrl_record *r, const char *evaluation);
/** Completions that match, two lines each of 80 columns: numbers, and how the text ends. The record was read with text. */
rrl_status rrl_show_list(rrl_buffer *b, const rrl_record *r, const rrl_show_search *s, bool json);
/** Completion n of a set: prompt, text, answer, verdicts, ensemble, shaping, advantage. The record was read with text.
 *  Errors: RRL_ERR_USAGE (no such completion or evaluation: what there is). */
rrl_status rrl_show_completion(rrl_buffer *b, const rrl_record *r, const char *evaluation, int64_t n);
rrl_status rrl_show_completion_json(rrl_buffer *b, const rrl_record *r, const char *evaluation, int64_t n);
/** One completion as an object, as rrl_show_completion_json and lists write it. */
rrl_status rrl_show_put_completion(rrl_buffer *b, const rrl_record *r, const rrl_record_set *s, int64_t n);
/** The text around a question as model.prompt_template of the record's config has it, and whether it is sent as a user
 *  message of a chat. The caller frees *out. */
rrl_status rrl_show_prompt(char **out, bool *chat, const rrl_record *r, const char *question);
/** The first verdict of completion n, or of the one that follows. */
int64_t rrl_show_verdicts_of(const rrl_record_set *s, int64_t n);

#endif
