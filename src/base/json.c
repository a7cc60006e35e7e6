/* JSON on cJSON: strict reading, exact integers, typed members with messages. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json_scan.h"
#include "base/text.h"

/* --- reading a document */

/* What is left of the long integers while the tree is walked in the order of the text. */
typedef struct {
    const rrl_json_long *list;
    size_t n, ordinal;
} long_cursor;

/* Keeps the literal of a long integer as the number's valuestring: cJSON ignores it there and frees it with
 * the item. */
static rrl_status keep_literals(cJSON *item, long_cursor *c) {
    if (cJSON_IsNumber(item) && c->n && c->list->ordinal == c->ordinal) {
        item->valuestring = cJSON_malloc(c->list->len + 1);
        if (!item->valuestring) return RRL_FAIL(RRL_ERR_NOMEM, "JSON: no memory for a number");
        memcpy(item->valuestring, c->list->text, c->list->len);
        item->valuestring[c->list->len] = 0;
        c->list++;
        c->n--;
    }
    c->ordinal += cJSON_IsNumber(item);
    for (cJSON *child = item->child; child && c->n; child = child->next) RRL_TRY(keep_literals(child, c));
    return RRL_OK;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, because a vocabulary is an object of 150,000 keys. */
static rrl_status refuse_duplicates_of(const cJSON *object, const char *where) {
    size_t n = 0;
    for (const cJSON *child = object->child; child; child = child->next) n++;
    if (n < 2) return RRL_OK;
    const char **keys = NULL;
    RRL_TRY(rrl_alloc(&keys, n, sizeof *keys, "JSON keys"));
    size_t i = 0;
    for (const cJSON *child = object->child; child; child = child->next) keys[i++] = child->string;
    qsort(keys, n, sizeof *keys, compare_keys);
    rrl_status rc = RRL_OK;
    for (i = 1; i < n && rc == RRL_OK; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            rc = RRL_FAIL(RRL_ERR_DATA, "%s: key \"%s\" is given twice in one object; remove one", where,
                          keys[i]);
    free(keys);
    return rc;
}

static rrl_status refuse_duplicates(const cJSON *item, const char *where) {
    if (cJSON_IsObject(item)) RRL_TRY(refuse_duplicates_of(item, where));
    for (const cJSON *child = item->child; child; child = child->next)
        if (child->child) RRL_TRY(refuse_duplicates(child, where));
    return RRL_OK;
}

rrl_status rrl_json_parse(cJSON **out, const char *text, size_t len, const char *where) {
    rrl_status rc = RRL_OK;
    rrl_json_long *list = NULL;
    size_t n = 0;
    cJSON *document = NULL;
    RRL_GOTO(rrl_json_scan(&list, &n, text, len, where));
    rrl_c_locale l = rrl_c_locale_enter(); /* cJSON reads numbers with strtod */
    document = cJSON_ParseWithLength(text, len);
    rrl_c_locale_leave(l);
    /* the scanner has let only valid JSON through, so this is memory or a limit of cJSON */
    if (!document)
        RRL_GOTO(RRL_FAIL(RRL_ERR_DATA, "%s: cJSON cannot hold this document (%zu bytes)", where, len));
    RRL_GOTO(keep_literals(document, &(long_cursor){.list = list, .n = n}));
    RRL_GOTO(refuse_duplicates(document, where));
    *out = document;
    document = NULL;
done:
    free(list);
    cJSON_Delete(document);
    return rc;
}

rrl_status rrl_json_file(cJSON **out, const char *path, size_t max_bytes) {
    char *text = NULL;
    size_t len = 0;
    RRL_TRY(rrl_file_read(&text, &len, path, max_bytes));
    rrl_status rc = rrl_json_parse(out, text, len, path);
    free(text);
    return rc;
}

/* --- members */

static const char *kind_of(const cJSON *item) {
    if (cJSON_IsNull(item)) return "null";
    if (cJSON_IsBool(item)) return "true or false";
    if (cJSON_IsNumber(item)) return "a number";
    if (cJSON_IsString(item)) return "a text";
    if (cJSON_IsArray(item)) return "a list";
    return "an object";
}

rrl_status rrl_json_get(const cJSON **out, const cJSON *object, const char *key, bool optional,
                        const char *where) {
    if (!cJSON_IsObject(object))
        return RRL_FAIL(RRL_ERR_DATA, "%s: expected an object with \"%s\", found %s", where, key,
                        object ? kind_of(object) : "nothing");
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item && !optional) return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" is missing", where, key);
    *out = item;
    return RRL_OK;
}

/* The member, or NULL if it is optional and missing or null. */
static rrl_status find(const cJSON **out, const cJSON *object, const char *key, bool optional,
                       const char *where) {
    RRL_TRY(rrl_json_get(out, object, key, optional, where));
    if (optional && cJSON_IsNull(*out)) *out = NULL;
    return RRL_OK;
}

static rrl_status wrong_kind(const cJSON *item, const char *key, const char *wanted, const char *where) {
    return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" must be %s, found %s", where, key, wanted, kind_of(item));
}

rrl_status rrl_json_int(int64_t *out, const cJSON *object, const char *key, bool optional,
                        const char *where) {
    const cJSON *item = NULL;
    RRL_TRY(find(&item, object, key, optional, where));
    if (!item) return RRL_OK;
    if (!cJSON_IsNumber(item)) return wrong_kind(item, key, "an integer", where);
    if (item->valuestring) {
        if (rrl_parse_int64(out, item->valuestring)) return RRL_OK;
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" is %s, which is no 64-bit integer", where, key,
                        item->valuestring);
    }
    /* any other literal has at most 15 digits or an exponent, and a double is exact to 2^53 */
    double v = item->valuedouble;
    if (!(fabs(v) <= 0x1p53) || v != floor(v))
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" must be an integer, found %.17g", where, key, v);
    *out = (int64_t)v;
    return RRL_OK;
}

rrl_status rrl_json_double(double *out, const cJSON *object, const char *key, bool optional,
                           const char *where) {
    const cJSON *item = NULL;
    RRL_TRY(find(&item, object, key, optional, where));
    if (!item) return RRL_OK;
    if (!cJSON_IsNumber(item)) return wrong_kind(item, key, "a number", where);
    *out = item->valuedouble;
    return RRL_OK;
}

rrl_status rrl_json_bool(bool *out, const cJSON *object, const char *key, bool optional, const char *where) {
    const cJSON *item = NULL;
    RRL_TRY(find(&item, object, key, optional, where));
    if (!item) return RRL_OK;
    if (!cJSON_IsBool(item)) return wrong_kind(item, key, "true or false", where);
    *out = cJSON_IsTrue(item);
    return RRL_OK;
}

rrl_status rrl_json_string(const char **out, const cJSON *object, const char *key, bool optional,
                           const char *where) {
    const cJSON *item = NULL;
    RRL_TRY(find(&item, object, key, optional, where));
    if (!item) return RRL_OK;
    if (!cJSON_IsString(item)) return wrong_kind(item, key, "a text", where);
    *out = item->valuestring;
    return RRL_OK;
}
