/* Reads the parts of a record and checks that they agree with themselves: row counts, offsets and row
 * numbers. */
#include "record/record_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/h5_table.h"

/* --- format and part */

static rrl_status check_text(hid_t file, const char *name, const char *want, const char *path) {
    char *text = NULL;
    RRL_TRY(rrl_h5_attr_get_text(&text, file, name, path));
    bool equal = strcmp(text, want) == 0;
    rrl_status rc =
        equal ? RRL_OK : RRL_FAIL(RRL_ERR_DATA, "%s: %s is \"%s\", expected \"%s\"", path, name, text, want);
    free(text);
    return rc;
}

/* An open file of a known format, the wanted part and the wanted run (digest NULL = any). */
static rrl_status open_part(hid_t *out, const char *path, rrl_record_part part, const char *digest) {
    rrl_status rc = RRL_OK;
    hid_t file = -1;
    int64_t version = 0;
    RRL_GOTO(rrl_h5_open(&file, path));
    RRL_GOTO(check_text(file, "format", RRL_RECORD_FORMAT, path));
    RRL_GOTO(rrl_h5_attr_get(&version, file, "format_version", RRL_COLUMN_I64, path));
    if (version != RRL_RECORD_VERSION)
        RRL_GOTO(RRL_FAIL(RRL_ERR_DATA, "%s: record format version %lld; this program reads version %d", path,
                          (long long)version, RRL_RECORD_VERSION));
    RRL_GOTO(check_text(file, "part", rrl_record_part_text(part), path));
    if (digest) RRL_GOTO(check_text(file, "digest", digest, path));
    *out = file;
    file = -1;
done:
    rrl_h5_drop(&file);
    return rc;
}

/* --- sets */

/* Tokens of completion i start where those of i - 1 end, and every verdict judges a completion that is there.
 */
static rrl_status check_set(const rrl_record_set *s, int64_t n_tokens, const char *path) {
    uint64_t at = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (s->rollouts[i].token_offset != at)
            return RRL_FAIL(RRL_ERR_DATA, "%s: token_offset of rollouts row %lld is %llu, expected %llu",
                            path, (long long)i, (unsigned long long)s->rollouts[i].token_offset,
                            (unsigned long long)at);
        at += s->rollouts[i].tokens;
    }
    if (at != (uint64_t)n_tokens)
        return RRL_FAIL(RRL_ERR_DATA, "%s: rollouts have %llu tokens, the tokens dataset %lld", path,
                        (unsigned long long)at, (long long)n_tokens);
    for (int64_t i = 0; i < s->n_verdicts; i++)
        if (s->verdicts[i].rollout >= (uint64_t)s->n)
            return RRL_FAIL(RRL_ERR_DATA, "%s: row %lld of verdicts judges rollout %llu of %lld", path,
                            (long long)i, (unsigned long long)s->verdicts[i].rollout, (long long)s->n);
    return RRL_OK;
}

static rrl_status get_completions(rrl_record_set *s, hid_t at, bool with_text, const char *path) {
    void *rows = NULL;
    int64_t n_logprobs = 0;
    RRL_TRY(rrl_h5_table_get(&rows, &s->n, at, &rrl_table_rollouts, path));
    s->rollouts = rows;
    RRL_TRY(rrl_h5_table_get(&rows, &s->n_verdicts, at, &rrl_table_verdicts, path));
    s->verdicts = rows;
    RRL_TRY(rrl_h5_rows(&s->n_tokens, at, "tokens", path));
    RRL_TRY(check_set(s, s->n_tokens, path));
    if (!with_text) return RRL_OK;
    RRL_TRY(rrl_h5_texts_get(&s->text, rrl_set_text_bytes, s->rollouts, s->n, at, &rrl_column_text, path));
    RRL_TRY(
        rrl_h5_texts_get(&s->answer, rrl_set_answer_bytes, s->rollouts, s->n, at, &rrl_column_answer, path));
    RRL_TRY(rrl_h5_array_get(&rows, &s->n_tokens, at, &rrl_column_tokens, path));
    s->tokens = rows;
    RRL_TRY(rrl_h5_array_get(&rows, &n_logprobs, at, &rrl_column_logprobs, path));
    s->logprobs = rows;
    if (n_logprobs != s->n_tokens)
        return RRL_FAIL(RRL_ERR_DATA, "%s: %lld tokens, %lld log-probs", path, (long long)s->n_tokens,
                        (long long)n_logprobs);
    return RRL_OK;
}

static rrl_status get_questions(rrl_record_set *s, hid_t at, const char *path) {
    void *rows = NULL;
    RRL_TRY(rrl_h5_table_get(&rows, &s->n_questions, at, &rrl_table_questions, path));
    s->questions = rows;
    return RRL_OK;
}

static rrl_status get_evaluation(rrl_record_set *s, hid_t evaluations, const char *name, bool with_text,
                                 const char *path) {
    rrl_status rc = RRL_OK;
    hid_t at = -1;
    void *rows = NULL;
    RRL_GOTO(rrl_strdup(&s->name, name));
    RRL_GOTO(rrl_h5_group_open(&at, evaluations, name, path));
    RRL_GOTO(get_questions(s, at, path));
    RRL_GOTO(get_completions(s, at, with_text, path));
    RRL_GOTO(rrl_h5_table_get(&rows, &s->n_metrics, at, &rrl_table_metrics, path));
    s->metrics = rows;
done:
    rrl_h5_drop(&at);
    return rc;
}

/* Names of /evaluation, ascending. */
static herr_t one_name(hid_t group, const char *name, const H5L_info_t *info, void *list) {
    (void)group;
    (void)info;
    rrl_buffer *b = list;
    return rrl_buffer_put(b, name, strlen(name) + 1) == RRL_OK ? 0 : -1;
}

static rrl_status get_evaluations(rrl_record_set **sets, int64_t *n, hid_t file, bool with_text,
                                  const char *path) {
    rrl_status rc = RRL_OK;
    rrl_buffer names = {0};
    hid_t at = -1;
    int64_t count = 0;
    RRL_GOTO(rrl_h5_group_open(&at, file, "evaluation", path));
    if (H5Literate(at, H5_INDEX_NAME, H5_ITER_INC, NULL, one_name, &names) < 0)
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "evaluations cannot be listed"));
    for (size_t i = 0; i < names.len; i++) count += names.data[i] == 0;
    RRL_GOTO(rrl_alloc(sets, (size_t)count + 1, sizeof **sets, "evaluations"));
    const char *name = names.data;
    for (*n = 0; *n < count; name += strlen(name) + 1) {
        ++*n; /* counted first, so that a half-read one is freed with the record */
        RRL_GOTO(get_evaluation(&(*sets)[*n - 1], at, name, with_text, path));
    }
done:
    rrl_buffer_free(&names);
    rrl_h5_drop(&at);
    return rc;
}

/* --- parts */

static rrl_status get_segment(rrl_segment *s, hid_t file, bool with_text, const char *path) {
    void *rows = NULL;
    int64_t n_steps = 0, n = 0, total = 0;
    RRL_TRY(rrl_h5_attr_get(&s->first, file, "first_step", RRL_COLUMN_I64, path));
    RRL_TRY(rrl_h5_attr_get(&n_steps, file, "n_steps", RRL_COLUMN_I64, path));
    RRL_TRY(get_completions(&s->set, file, with_text, path));
    RRL_TRY(rrl_h5_table_get(&rows, &s->n, file, &rrl_table_training, path));
    s->rows = rows;
    RRL_TRY(rrl_h5_array_get(&rows, &n, file, &rrl_column_segment_rollouts, path));
    s->rollouts = rows;
    bool good = n == s->n && n_steps == n && s->first >= 0 && n > 0;
    for (int64_t i = 0; i < n && good; i++) {
        good = s->rollouts[i] >= 0 && s->rollouts[i] <= s->set.n - total && s->rows[i].step == s->first + i;
        total += s->rollouts[i];
    }
    if (!good || total != s->set.n)
        return RRL_FAIL(RRL_ERR_DATA, "%s: its rows are not those of %lld steps from step %lld on", path,
                        (long long)n_steps, (long long)s->first);
    return RRL_OK;
}

rrl_status rrl_segment_read(rrl_segment *out, const char *path, const char *digest, bool with_text) {
    hid_t file = -1;
    rrl_segment s = {0};
    RRL_TRY(open_part(&file, path, RRL_PART_SEGMENT, digest));
    rrl_status rc = get_segment(&s, file, with_text, path);
    rrl_h5_drop(&file);
    if (rc == RRL_OK)
        *out = s;
    else
        rrl_segment_clear(&s);
    return rc;
}

rrl_status rrl_evaluation_read(rrl_record_set *out, const char *path, const char *digest, bool with_text) {
    rrl_status rc = RRL_OK;
    hid_t file = -1;
    rrl_record_set *sets = NULL;
    int64_t n = 0;
    RRL_GOTO(open_part(&file, path, RRL_PART_EVALUATION, digest));
    RRL_GOTO(get_evaluations(&sets, &n, file, with_text, path));
    if (n != 1) RRL_GOTO(RRL_FAIL(RRL_ERR_DATA, "%s: %lld evaluations, expected 1", path, (long long)n));
    *out = sets[0];
    n = 0;
done:
    for (int64_t i = 0; i < n; i++) rrl_set_clear(&sets[i]);
    free(sets);
    rrl_h5_drop(&file);
    return rc;
}

static rrl_status get_head(rrl_record *r, hid_t file, const char *path) {
    const struct {
        const char *name;
        char **text;
    } texts[] = {{"created_utc", &r->created_utc},
                 {"execution_kind", &r->execution_kind},
                 {"arm", &r->arm},
                 {"method", &r->method},
                 {"numeric_path", &r->numeric_path},
                 {"model_digest", &r->model_digest},
                 {"parser_version", &r->parser_version},
                 {"digest", &r->digest},
                 {"rrl_version", &r->rrl_version}};
    void *rows = NULL;
    int64_t n = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        RRL_TRY(rrl_h5_attr_get_text(texts[i].text, file, texts[i].name, path));
    RRL_TRY(rrl_h5_attr_get(&r->level, file, "level", RRL_COLUMN_F64, path));
    RRL_TRY(rrl_h5_attr_get(&r->seed, file, "seed", RRL_COLUMN_U64, path));
    RRL_TRY(rrl_h5_text_get(&r->config_yaml, file, "config", path));
    RRL_TRY(rrl_h5_text_get(&r->provenance_json, file, "provenance", path));
    RRL_TRY(get_questions(&r->training, file, path));
    RRL_TRY(rrl_h5_table_get(&rows, &n, file, &rrl_table_members, path));
    r->members = rows;
    r->n_members = (int32_t)n;
    return RRL_OK;
}

static rrl_status get_run(rrl_record *r, hid_t file, bool with_text, const char *path) {
    void *rows = NULL;
    RRL_TRY(get_completions(&r->training, file, with_text, path));
    RRL_TRY(rrl_h5_table_get(&rows, &r->n_rows, file, &rrl_table_training, path));
    r->rows = rows;
    return get_evaluations(&r->evaluations, &r->n_evaluations, file, with_text, path);
}

rrl_status rrl_record_load(rrl_record *r, const char *path, rrl_record_part part, bool with_text) {
    hid_t file = -1;
    RRL_TRY(open_part(&file, path, part, NULL));
    rrl_status rc = get_head(r, file, path);
    if (rc == RRL_OK && part == RRL_PART_RUN) rc = get_run(r, file, with_text, path);
    rrl_h5_drop(&file);
    return rc;
}

rrl_status rrl_record_probe(const char *path, rrl_record_part part) {
    rrl_status rc = RRL_OK;
    hid_t file = -1;
    int64_t n = 0;
    static const char *const ALL[] = {"rollouts", "text",     "answer",    "tokens", "logprobs",
                                      "verdicts", "training", "questions", "members"};
    RRL_GOTO(open_part(&file, path, part, NULL));
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL && part == RRL_PART_RUN; i++)
        RRL_GOTO(rrl_h5_rows(&n, file, ALL[i], path));
done:
    rrl_h5_drop(&file);
    return rc;
}
