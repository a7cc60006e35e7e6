/* One line of a question file: columns, reference after its separator, id, metadata. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "data/json_member.h"
#include "data/question_set.h"

static const char SPACES[] = " \t\r\n\v\f";

static bool blank(const char *text) {
    return text[strspn(text, SPACES)] == 0;
}

/* A number like 1e400 is valid JSON and reads as infinity; nothing here could give it back. */
static bool finite_numbers(const cJSON *item) {
    if (cJSON_IsNumber(item) && !isfinite(item->valuedouble)) return false;
    for (const cJSON *child = item->child; child; child = child->next)
        if (!finite_numbers(child)) return false;
    return true;
}

/* A text, or a number as the file writes it; NULL if the row has no such column. */
static rrl_status column(char **out, const cJSON *row, const char *text, const char *key, const char *where) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, key);
    if (!item || cJSON_IsNull(item)) return RRL_OK;
    if (cJSON_IsString(item)) return rrl_strdup(out, item->valuestring);
    if (cJSON_IsNumber(item)) return rrl_json_member_text(out, row, text, key);
    return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" must be a text", where, key);
}

static void trim(char *text) {
    size_t skip = strspn(text, SPACES), len = strlen(text);
    while (len > skip && strchr(SPACES, text[len - 1])) len--;
    memmove(text, text + skip, len - skip);
    text[len - skip] = 0;
}

static rrl_status cut_reference(char *reference, const char *separator, const char *where) {
    if (separator && *separator) {
        char *after = NULL;
        for (char *p = reference; (p = strstr(p, separator));) after = p += strlen(separator);
        if (!after) return RRL_FAIL(RRL_ERR_DATA, "%s: the answer has no \"%s\" in it", where, separator);
        memmove(reference, after, strlen(after) + 1);
        trim(reference);
    }
    if (blank(reference)) return RRL_FAIL(RRL_ERR_DATA, "%s: the answer is empty", where);
    return RRL_OK;
}

static rrl_status hashed_id(char **out, const char *prefix, const char *question) {
    uint8_t digest[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX];
    rrl_buffer b = {0};
    RRL_TRY(rrl_sha256_of(digest, question, strlen(question)));
    rrl_sha256_hex(hex, digest);
    rrl_status rc = rrl_buffer_printf(&b, "%s%.16s", prefix, hex);
    *out = b.data;
    return rc;
}

/* metadata.class: a text as it is, True, False, None, anything else as the file writes it; "" without one. */
static rrl_status class_of(char **out, const cJSON *metadata, const char *text) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(metadata, "class");
    if (!item) return rrl_strdup(out, "");
    if (cJSON_IsString(item)) return rrl_strdup(out, item->valuestring);
    if (cJSON_IsBool(item)) return rrl_strdup(out, cJSON_IsTrue(item) ? "True" : "False");
    if (cJSON_IsNull(item)) return rrl_strdup(out, "None");
    return rrl_json_member_text(out, metadata, text, "class");
}

/* metadata is kept as the file writes it: 1 and 1.0 differ to those who compare its values. */
static rrl_status read_metadata(rrl_question *q, const cJSON *row, const char *text, const char *where) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, "metadata");
    if (!item || cJSON_IsNull(item)) {
        RRL_TRY(rrl_strdup(&q->metadata, "{}"));
        return rrl_strdup(&q->klass, "");
    }
    if (!cJSON_IsObject(item)) return RRL_FAIL(RRL_ERR_DATA, "%s: \"metadata\" must be an object", where);
    RRL_TRY(rrl_json_member_text(&q->metadata, row, text, "metadata"));
    return class_of(&q->klass, item, q->metadata);
}

static rrl_status read_row(rrl_question *q, const cJSON *row, const char *text,
                           const rrl_questions_spec *spec, const char *where) {
    const char *question = spec->question_column ? spec->question_column : "question";
    const char *answer = spec->answer_column ? spec->answer_column : "answer";
    if (!cJSON_IsObject(row)) return RRL_FAIL(RRL_ERR_DATA, "%s: is no JSON object", where);
    if (!finite_numbers(row)) return RRL_FAIL(RRL_ERR_DATA, "%s: a number is too large for a double", where);
    RRL_TRY(column(&q->question, row, text, question, where));
    RRL_TRY(column(&q->reference, row, text, answer, where));
    if (!q->question || !q->reference)
        return RRL_FAIL(RRL_ERR_DATA, "%s: has no column \"%s\"", where, q->question ? answer : question);
    if (blank(q->question)) return RRL_FAIL(RRL_ERR_DATA, "%s: the question is empty", where);
    RRL_TRY(cut_reference(q->reference, spec->answer_separator, where));
    RRL_TRY(column(&q->id, row, text, spec->id_column ? spec->id_column : "id", where));
    if (!q->id) RRL_TRY(hashed_id(&q->id, spec->id_prefix ? spec->id_prefix : "", q->question));
    if (blank(q->id)) return RRL_FAIL(RRL_ERR_DATA, "%s: the id is empty", where);
    return read_metadata(q, row, text, where);
}

rrl_status rrl_question_read(rrl_question *q, const char *line, size_t len, int64_t number,
                             const rrl_questions_spec *spec) {
    rrl_status rc = RRL_OK;
    rrl_buffer where = {0}, text = {0};
    cJSON *row = NULL;
    q->line = number;
    RRL_GOTO(rrl_buffer_printf(&where, "%s, line %lld", spec->path, (long long)number));
    RRL_GOTO(rrl_buffer_put(&text, line, len)); /* ends in 0 */
    RRL_GOTO(rrl_json_parse(&row, text.data, text.len, where.data));
    RRL_GOTO(read_row(q, row, text.data, spec, where.data));
done:
    cJSON_Delete(row);
    rrl_buffer_free(&where);
    rrl_buffer_free(&text);
    return rc;
}

void rrl_question_free(rrl_question *q) {
    free(q->id);
    free(q->question);
    free(q->reference);
    free(q->metadata);
    free(q->klass);
    *q = (rrl_question){0};
}
