/* Reading question sets. A set is read whole and checked whole before a run may start with it. */
#include "data/questions.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/question_set.h"

static const size_t MAX_FILE = (size_t)1 << 31;

typedef struct {
    const char *text;
    size_t len;
    int64_t number; /* from 1 */
} line;

typedef struct {
    line *data;
    size_t n, capacity;
} lines;

/* ---- lines */

/* All lines; blank ones at the end are no rows. */
static rrl_status split_lines(lines *out, const char *text, size_t len) {
    while (len && memchr(" \t\r\n", text[len - 1], 4)) len--;
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - (text + at)) : len - at;
        RRL_TRY(
            rrl_grow(&out->data, &out->capacity, out->n + 1, sizeof *out->data, "lines of a question file"));
        out->data[out->n] = (line){text + at, n, (int64_t)out->n + 1};
        out->n++;
        at += n + 1;
    }
    return RRL_OK;
}

/* Keep the lines of rows [n], in that order. */
static rrl_status pick_lines(lines *l, const int64_t *rows, int64_t n, const char *path) {
    line *picked = NULL;
    RRL_TRY(rrl_alloc(&picked, (size_t)n, sizeof *picked, "lines of a question file"));
    for (int64_t i = 0; i < n; i++) {
        if ((size_t)rows[i] >= l->n) {
            free(picked);
            return RRL_FAIL(RRL_ERR_DATA,
                            "%s: has %zu rows, the pool wants row %lld; fetch the published file", path, l->n,
                            (long long)rows[i]);
        }
        picked[i] = l->data[rows[i]];
    }
    free(l->data);
    *l = (lines){picked, (size_t)n, (size_t)n};
    return RRL_OK;
}

/* ---- the set */

typedef struct {
    const char *text;
    int64_t row;
} entry;

static int by_text(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int c = strcmp(x->text, y->text);
    return c ? c : (x->row > y->row) - (x->row < y->row);
}

/* Ids (or questions) of a set, sorted. */
static rrl_status sorted_entries(entry **out, const rrl_questions *q, bool ids) {
    RRL_TRY(rrl_alloc(out, (size_t)q->n + 1, sizeof **out, "index of questions"));
    for (int64_t i = 0; i < q->n; i++) (*out)[i] = (entry){ids ? q->rows[i].id : q->rows[i].question, i};
    qsort(*out, (size_t)q->n, sizeof **out, by_text);
    return RRL_OK;
}

static rrl_status refuse_repeated(const rrl_questions *q, const lines *l, bool ids, const char *path) {
    entry *e = NULL;
    RRL_TRY(sorted_entries(&e, q, ids));
    rrl_status rc = RRL_OK;
    for (int64_t i = 1; i < q->n && rc == RRL_OK; i++)
        if (strcmp(e[i - 1].text, e[i].text) == 0)
            rc = RRL_FAIL(RRL_ERR_DATA, "%s, lines %lld and %lld: the same %s: %.80s", path,
                          (long long)l->data[e[i - 1].row].number, (long long)l->data[e[i].row].number,
                          ids ? "id" : "question", e[i].text);
    free(e);
    return rc;
}

/* Shuffle and cut; rows left out are freed. */
static rrl_status order_rows(rrl_questions *q, const rrl_questions_spec *spec) {
    rrl_status rc = RRL_OK;
    rrl_question *rows = NULL;
    int64_t *order = NULL, n = q->n;
    if (spec->shuffle_seed >= 0) {
        RRL_GOTO(rrl_alloc(&order, (size_t)n, sizeof *order, "order of questions"));
        RRL_GOTO(rrl_alloc(&rows, (size_t)n, sizeof *rows, "questions"));
        RRL_GOTO(rrl_numpy_permutation(order, n, (uint64_t)spec->shuffle_seed));
        for (int64_t i = 0; i < n; i++) rows[i] = q->rows[order[i]];
        memcpy(q->rows, rows, (size_t)n * sizeof *rows);
    }
    for (; spec->limit > 0 && q->n > spec->limit; q->n--) rrl_question_free(&q->rows[q->n - 1]);
done:
    free(rows);
    free(order);
    return rc;
}

static rrl_status read_set(rrl_questions *q, const rrl_questions_spec *spec, lines *l, const char *text,
                           size_t len) {
    rrl_status rc = RRL_OK;
    int64_t *rows = NULL, n = 0;
    char sha256[RRL_SHA256_HEX] = "";
    RRL_GOTO(split_lines(l, text, len));
    if (l->n == 0) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: has no rows", spec->path);
        goto done;
    }
    if (spec->pool) {
        RRL_GOTO(rrl_pool_read(&rows, &n, sha256, spec->pools, spec->pool));
        RRL_GOTO(pick_lines(l, rows, n, spec->path));
    }
    RRL_GOTO(rrl_alloc(&q->rows, l->n, sizeof *q->rows, "questions"));
    q->n = (int64_t)l->n; /* rows not read yet are empty */
    for (size_t i = 0; i < l->n; i++)
        RRL_GOTO(rrl_question_read(&q->rows[i], l->data[i].text, l->data[i].len, l->data[i].number, spec));
    RRL_GOTO(refuse_repeated(q, l, true, spec->path));
    RRL_GOTO(refuse_repeated(q, l, false, spec->path));
    if (spec->pool) RRL_GOTO(rrl_pool_check(q, sha256, spec->pools, spec->pool, spec->path));
    RRL_GOTO(order_rows(q, spec));
    RRL_GOTO(rrl_questions_seal(q));
done:
    free(rows);
    return rc;
}

rrl_status rrl_questions_open(rrl_questions **out, const rrl_questions_spec *spec) {
    rrl_status rc = RRL_OK;
    rrl_questions *q = NULL;
    char *text = NULL;
    size_t len = 0;
    lines l = {0};
    if (spec->pool && !spec->pools)
        return RRL_FAIL(RRL_ERR_DATA, "pool %s: no pools.json is given", spec->pool);
    if (!rrl_file_exists(spec->path)) return RRL_FAIL(RRL_ERR_DATA, "%s: does not exist", spec->path);
    RRL_GOTO(rrl_file_read(&text, &len, spec->path, MAX_FILE));
    RRL_GOTO(rrl_alloc(&q, 1, sizeof *q, "questions"));
    RRL_GOTO(read_set(q, spec, &l, text, len));
    *out = q;
    q = NULL;
done:
    rrl_questions_close(&q);
    free(l.data);
    free(text);
    return rc;
}

void rrl_questions_close(rrl_questions **q) {
    if (!q || !*q) return;
    for (int64_t i = 0; i < (*q)->n; i++) rrl_question_free(&(*q)->rows[i]);
    free((*q)->rows);
    free(*q);
    *q = NULL;
}

static rrl_status hash_text(rrl_sha256 *h, const char *text) {
    size_t len = strlen(text);
    const uint8_t head[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16), (uint8_t)(len >> 24)};
    RRL_TRY(rrl_sha256_add(h, head, sizeof head));
    return rrl_sha256_add(h, text, len);
}

rrl_status rrl_questions_seal(rrl_questions *q) {
    rrl_status rc = RRL_OK;
    rrl_sha256 *h = NULL;
    uint8_t digest[RRL_SHA256_BYTES];
    RRL_GOTO(rrl_sha256_open(&h));
    for (int64_t i = 0; i < q->n; i++) {
        RRL_GOTO(hash_text(h, q->rows[i].id));
        RRL_GOTO(hash_text(h, q->rows[i].question));
        RRL_GOTO(hash_text(h, q->rows[i].reference));
        RRL_GOTO(hash_text(h, q->rows[i].metadata));
    }
    RRL_GOTO(rrl_sha256_end(h, digest));
    rrl_sha256_hex(q->digest, digest);
done:
    rrl_sha256_close(&h);
    return rc;
}

/* ---- two sets */

/* Appends ids of rows of b whose id (or question) is in a; the first three are named. *n counts all. */
static rrl_status shared_rows(rrl_buffer *names, int64_t *n, const rrl_questions *a, const rrl_questions *b,
                              bool ids) {
    entry *e = NULL;
    rrl_status rc = RRL_OK;
    *n = 0;
    RRL_GOTO(sorted_entries(&e, a, ids));
    for (int64_t i = 0; i < b->n; i++) {
        entry key = {ids ? b->rows[i].id : b->rows[i].question, 0};
        int64_t low = 0, high = a->n; /* first entry >= key: key.row 0 is the smallest of its text */
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (by_text(&e[middle], &key) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == a->n || strcmp(e[low].text, key.text) != 0) continue;
        if (++*n <= 3) RRL_GOTO(rrl_buffer_printf(names, "%s%s", *n > 1 ? ", " : "", b->rows[i].id));
    }
done:
    free(e);
    return rc;
}

rrl_status rrl_questions_disjoint(const rrl_questions *a, const char *name_a, const rrl_questions *b,
                                  const char *name_b) {
    rrl_status rc = RRL_OK;
    rrl_buffer names = {0};
    for (int ids = 1; ids >= 0; ids--) {
        int64_t n = 0;
        RRL_GOTO(shared_rows(&names, &n, a, b, ids != 0));
        if (n) {
            rc = RRL_FAIL(RRL_ERR_DATA,
                          "%s and %s share %lld %s: %s%s; training and test data must be disjoint", name_a,
                          name_b, (long long)n, ids ? "ids" : "questions", names.data, n > 3 ? ", ..." : "");
            goto done;
        }
    }
done:
    rrl_buffer_free(&names);
    return rc;
}
