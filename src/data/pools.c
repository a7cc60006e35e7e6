/* pools.json: published subsets of a data set by row number, each with the SHA-256 of its questions. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "data/question_set.h"

enum { MAX_FILE = 64 << 20 };

/* A pool is an object with rows; other members (source) are notes. */
static rrl_status no_such_pool(const cJSON *doc, const char *path, const char *name) {
    rrl_buffer names = {0};
    const cJSON *node;
    rrl_status rc = rrl_buffer_puts(&names, "");
    cJSON_ArrayForEach(node, doc) if (rc == RRL_OK && cJSON_IsObject(node)) rc =
        rrl_buffer_printf(&names, "%s%s", names.len ? ", " : "", node->string);
    if (rc == RRL_OK)
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: has no pool \"%s\"; it has %s", path, name, names.data);
    rrl_buffer_free(&names);
    return rc;
}

static rrl_status read_rows(int64_t *rows, const cJSON *list, const char *path, const char *name) {
    const cJSON *node;
    int64_t n = 0;
    cJSON_ArrayForEach(node, list) {
        double v = cJSON_IsNumber(node) ? node->valuedouble : -1;
        if (!(v >= 0 && v <= 0x1p52) || v != (double)(int64_t)v)
            return RRL_FAIL(RRL_ERR_DATA, "%s: pool %s: row %lld is no line number >= 0", path, name,
                            (long long)n);
        rows[n++] = (int64_t)v;
    }
    return RRL_OK;
}

rrl_status rrl_pool_read(int64_t **rows, int64_t *n, char sha256[65], const char *path, const char *name) {
    rrl_status rc = RRL_OK;
    cJSON *doc = NULL;
    const cJSON *pool, *list = NULL;
    const char *hex = NULL;
    int64_t *made = NULL;
    RRL_GOTO(rrl_json_file(&doc, path, MAX_FILE));
    pool = cJSON_GetObjectItemCaseSensitive(doc, name);
    if (!cJSON_IsObject(pool)) {
        rc = no_such_pool(doc, path, name);
        goto done;
    }
    RRL_GOTO(rrl_json_get(&list, pool, "rows", false, path));
    RRL_GOTO(rrl_json_string(&hex, pool, "sha256_of_questions", false, path));
    if (!cJSON_IsArray(list) || !list->child || strlen(hex) != 64) {
        rc = RRL_FAIL(RRL_ERR_DATA,
                      "%s: pool %s: expected rows (a list) and sha256_of_questions (64 hex digits)", path,
                      name);
        goto done;
    }
    RRL_GOTO(rrl_alloc(&made, (size_t)cJSON_GetArraySize(list), sizeof *made, "rows of a pool"));
    RRL_GOTO(read_rows(made, list, path, name));
    *rows = made;
    made = NULL;
    *n = cJSON_GetArraySize(list);
    memcpy(sha256, hex, 65);
done:
    free(made);
    cJSON_Delete(doc);
    return rc;
}

rrl_status rrl_pool_check(const rrl_questions *q, const char sha256[65], const char *path, const char *name,
                          const char *file) {
    rrl_status rc = RRL_OK;
    rrl_sha256 *h = NULL;
    uint8_t digest[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX];
    RRL_GOTO(rrl_sha256_open(&h));
    for (int64_t i = 0; i < q->n; i++) {
        if (i) RRL_GOTO(rrl_sha256_add(h, "\n", 1));
        RRL_GOTO(rrl_sha256_add(h, q->rows[i].question, strlen(q->rows[i].question)));
    }
    RRL_GOTO(rrl_sha256_end(h, digest));
    rrl_sha256_hex(hex, digest);
    if (strcmp(hex, sha256) != 0)
        rc = RRL_FAIL(
            RRL_ERR_DATA,
            "%s: its rows are not the pool %s of %s: SHA-256 of the questions is %s, expected %s; fetch the "
            "published file",
            file, name, path, hex, sha256);
done:
    rrl_sha256_close(&h);
    return rc;
}
