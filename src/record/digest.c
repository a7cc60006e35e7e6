/* The digest of docs/records.md. Values are fed column by column in table order, each column over all rows,
 * little-endian; a text as u32 length and bytes; every NaN as the one quiet NaN 0x7fc00000 or
 * 0x7ff8000000000000. Texts of completions have their own lengths, so the width of the file's strings does
 * not enter; neither do segments, since a set in memory has offsets of its own. docs/records.md says the same
 * for other readers. */
#include "record/digest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/safetensors.h"
#include "record/tables.h"

enum { PENDING_BYTES = 1 << 16 };

/* Small values are collected: a call of the hash for each would cost more than the hash. */
typedef struct {
    rrl_sha256 *sha;
    rrl_buffer pending;
} feed;

static rrl_status flush(feed *f) {
    rrl_status rc = rrl_sha256_add(f->sha, f->pending.data, f->pending.len);
    f->pending.len = 0;
    return rc;
}

static rrl_status feed_bytes(feed *f, const void *bytes, size_t n) {
    RRL_TRY(rrl_buffer_put(&f->pending, bytes, n));
    return f->pending.len >= PENDING_BYTES ? flush(f) : RRL_OK;
}

static rrl_status feed_text(feed *f, const char *text, int64_t n) {
    uint32_t length = n > 0 ? (uint32_t)n : 0;
    RRL_TRY(feed_bytes(f, &length, sizeof length));
    return length ? feed_bytes(f, text, length) : RRL_OK;
}

static rrl_status feed_f32(feed *f, float v) {
    uint32_t bits = 0x7fc00000u;
    if (!isnan(v)) memcpy(&bits, &v, sizeof bits);
    return feed_bytes(f, &bits, sizeof bits);
}

static rrl_status feed_f64(feed *f, double v) {
    uint64_t bits = 0x7ff8000000000000u;
    if (!isnan(v)) memcpy(&bits, &v, sizeof bits);
    return feed_bytes(f, &bits, sizeof bits);
}

static rrl_status feed_cell(feed *f, const rrl_column *c, const void *row) {
    const void *cell = rrl_column_at(c, row);
    float f32;
    double f64;
    const char *text;
    switch (c->kind) {
    case RRL_COLUMN_F32:
        memcpy(&f32, cell, sizeof f32);
        return feed_f32(f, f32);
    case RRL_COLUMN_F64:
        memcpy(&f64, cell, sizeof f64);
        return feed_f64(f, f64);
    case RRL_COLUMN_TEXT:
        memcpy(&text, cell, sizeof text);
        return feed_text(f, text, text ? (int64_t)strlen(text) : 0);
    default:
        return feed_bytes(f, cell, rrl_column_bytes(c->kind));
    }
}

static rrl_status feed_table(feed *f, const rrl_table *t, const void *rows, int64_t n) {
    for (int i = 0; i < t->n_columns; i++)
        for (int64_t k = 0; k < n && t->columns[i].digest; k++)
            RRL_TRY(feed_cell(f, &t->columns[i], (const char *)rows + (size_t)k * t->row_bytes));
    return RRL_OK;
}

static rrl_status feed_completions(feed *f, const rrl_record_set *s) {
    RRL_TRY(feed_table(f, &rrl_table_rollouts, s->rollouts, s->n));
    for (int64_t i = 0; i < s->n; i++) RRL_TRY(feed_text(f, s->text[i], s->rollouts[i].text_bytes));
    for (int64_t i = 0; i < s->n; i++) RRL_TRY(feed_text(f, s->answer[i], s->rollouts[i].answer_bytes));
    if (s->n_tokens) RRL_TRY(feed_bytes(f, s->tokens, (size_t)s->n_tokens * sizeof *s->tokens));
    for (int64_t i = 0; i < s->n_tokens; i++) RRL_TRY(feed_f32(f, s->logprobs[i]));
    return feed_table(f, &rrl_table_verdicts, s->verdicts, s->n_verdicts);
}

static rrl_status feed_evaluation(feed *f, const rrl_record_set *s) {
    RRL_TRY(feed_text(f, s->name, (int64_t)strlen(s->name)));
    RRL_TRY(feed_table(f, &rrl_table_questions, s->questions, s->n_questions));
    RRL_TRY(feed_completions(f, s));
    return feed_table(f, &rrl_table_metrics, s->metrics, s->n_metrics);
}

/* Evaluations of a record are in the order of their names. */
static rrl_status feed_record(feed *f, const rrl_record *r) {
    RRL_TRY(feed_completions(f, &r->training));
    RRL_TRY(feed_table(f, &rrl_table_training, r->rows, r->n_rows));
    for (int64_t i = 0; i < r->n_evaluations; i++) RRL_TRY(feed_evaluation(f, &r->evaluations[i]));
    return RRL_OK;
}

/* --- the adapter */

static int by_tensor_name(const void *a, const void *b) {
    const rrl_st_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static rrl_status feed_tensor(feed *f, const rrl_st_tensor *t) {
    rrl_status rc = RRL_OK;
    float *values = NULL;
    RRL_GOTO(feed_text(f, t->name, (int64_t)strlen(t->name)));
    RRL_GOTO(rrl_alloc(&values, (size_t)t->n_elements, sizeof *values, "tensor of an adapter"));
    RRL_GOTO(rrl_safetensors_to_f32(values, t));
    for (int64_t i = 0; i < t->n_elements; i++) RRL_GOTO(feed_f32(f, values[i]));
done:
    free(values);
    return rc;
}

static rrl_status feed_adapter(feed *f, const char *file) {
    rrl_status rc = RRL_OK;
    rrl_safetensors *tensors = NULL;
    const rrl_st_tensor **sorted = NULL;
    RRL_GOTO(rrl_safetensors_open(&tensors, file));
    int64_t n = rrl_safetensors_count(tensors);
    RRL_GOTO(rrl_alloc(&sorted, (size_t)n, sizeof *sorted, "tensors of an adapter"));
    for (int64_t i = 0; i < n; i++) sorted[i] = rrl_safetensors_at(tensors, i);
    if (n) qsort(sorted, (size_t)n, sizeof *sorted, by_tensor_name);
    for (int64_t i = 0; i < n; i++) RRL_GOTO(feed_tensor(f, sorted[i]));
done:
    free(sorted);
    rrl_safetensors_close(&tensors);
    return rc;
}

/* --- digests */

static rrl_status feed_end(feed *f, char out[65]) {
    uint8_t bytes[RRL_SHA256_BYTES];
    RRL_TRY(flush(f));
    RRL_TRY(rrl_sha256_end(f->sha, bytes));
    rrl_sha256_hex(out, bytes);
    return RRL_OK;
}

static void feed_close(feed *f) {
    rrl_sha256_close(&f->sha);
    rrl_buffer_free(&f->pending);
}

rrl_status rrl_segment_digest(char out[65], const rrl_segment *s) {
    feed f = {0};
    rrl_status rc = rrl_sha256_open(&f.sha);
    if (rc == RRL_OK) rc = feed_completions(&f, &s->set);
    if (rc == RRL_OK) rc = feed_table(&f, &rrl_table_training, s->rows, s->n);
    if (rc == RRL_OK) rc = feed_end(&f, out);
    feed_close(&f);
    return rc;
}

rrl_status rrl_evaluation_digest(char out[65], const rrl_record_set *s) {
    feed f = {0};
    rrl_status rc = rrl_sha256_open(&f.sha);
    if (rc == RRL_OK) rc = feed_evaluation(&f, s);
    if (rc == RRL_OK) rc = feed_end(&f, out);
    feed_close(&f);
    return rc;
}

static rrl_status digest_of(char out[65], const rrl_record *r, const char *adapter) {
    feed f = {0};
    rrl_status rc = rrl_sha256_open(&f.sha);
    if (rc == RRL_OK) rc = feed_record(&f, r);
    if (rc == RRL_OK && adapter) rc = feed_adapter(&f, adapter);
    if (rc == RRL_OK) rc = feed_end(&f, out);
    feed_close(&f);
    return rc;
}

rrl_status rrl_record_content_digest(char out[65], const rrl_record *r) {
    return digest_of(out, r, NULL);
}

static rrl_status run_digest(char out[65], const char *path) {
    rrl_status rc = RRL_OK;
    rrl_record *r = NULL;
    char *folder = NULL, *adapter = NULL;
    RRL_GOTO(rrl_dir_exists(path) ? rrl_strdup(&folder, path) : rrl_path_parent(&folder, path));
    RRL_GOTO(rrl_path_join(&adapter, folder, "adapter/adapter_model.safetensors"));
    RRL_GOTO(rrl_record_read(&r, path, 1));
    RRL_GOTO(digest_of(out, r, rrl_file_exists(adapter) ? adapter : NULL));
done:
    free(folder);
    free(adapter);
    rrl_record_free(&r);
    return rc;
}

/* --- studies */

static rrl_status has_entry(bool *out, const char *dir, const char *name) {
    char *path = NULL;
    RRL_TRY(rrl_path_join(&path, dir, name));
    *out = rrl_file_exists(path) || rrl_dir_exists(path);
    free(path);
    return RRL_OK;
}

static rrl_status is_run(bool *out, const char *dir) {
    RRL_TRY(has_entry(out, dir, "run.h5"));
    return *out ? RRL_OK : has_entry(out, dir, "records");
}

/* At the top of a study stand the report and the base completions, which are no runs; below it "base" is a method. */
static bool is_condition_name(const char *name, int depth) {
    if (name[0] == '.' || strstr(name, ".old-")) return false;
    return depth > 0 || (strcmp(name, "report") != 0 && strcmp(name, "base") != 0);
}

/* Lines "digest  path\n" of the runs below dir; below = path from the study's folder, "" at its top. */
static rrl_status study_lines(rrl_buffer *lines, const char *dir, const char *below, int depth) {
    enum { DEEPEST = 6 };
    rrl_status rc = RRL_OK;
    char **names = NULL, *sub = NULL, *path = NULL;
    size_t n = 0;
    RRL_GOTO(rrl_dir_list(&names, &n, dir));
    for (size_t i = 0; i < n; i++) {
        bool run = false;
        RRL_GOTO(rrl_path_join(&sub, dir, names[i]));
        RRL_GOTO(rrl_path_join(&path, below, names[i]));
        if (is_condition_name(names[i], depth) && rrl_dir_exists(sub)) {
            char digest[65];
            RRL_GOTO(is_run(&run, sub));
            if (run) RRL_GOTO(run_digest(digest, sub));
            if (run) RRL_GOTO(rrl_buffer_printf(lines, "%s  %s\n", digest, path));
            if (!run && depth < DEEPEST) RRL_GOTO(study_lines(lines, sub, path, depth + 1));
        }
        free(sub);
        free(path);
        sub = path = NULL;
    }
done:
    free(sub);
    free(path);
    rrl_names_free(&names, n);
    return rc;
}

rrl_status rrl_record_digest(char out[65], const char *path) {
    bool run = true;
    if (rrl_dir_exists(path)) RRL_TRY(is_run(&run, path));
    if (run) return run_digest(out, path);

    rrl_buffer lines = {0};
    uint8_t bytes[RRL_SHA256_BYTES];
    rrl_status rc = study_lines(&lines, path, "", 0);
    if (rc == RRL_OK && lines.len == 0)
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: neither a run nor a study with runs", path);
    if (rc == RRL_OK) rc = rrl_sha256_of(bytes, lines.data, lines.len);
    if (rc == RRL_OK) rrl_sha256_hex(out, bytes);
    rrl_buffer_free(&lines);
    return rc;
}
