/* The RESULT keys as sorted lines: their SHA-256 is a run's identity, their difference says why it changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "config/config_write.h"

typedef struct {
    char **v;
    size_t n, capacity;
} lines;

static void lines_free(lines *l) {
    for (size_t i = 0; i < l->n; i++) free(l->v[i]);
    free(l->v);
    *l = (lines){0};
}

/* A file with a chat template counts by its content; an unreadable one by its name (opening it will fail
 * anyway). */
static rrl_status write_template(rrl_buffer *b, const char *path) {
    uint8_t digest[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX];
    if (rrl_sha256_file(digest, path) != RRL_OK) return rrl_buffer_puts(b, path);
    rrl_sha256_hex(hex, digest);
    return rrl_buffer_printf(b, "sha256:%s", hex);
}

static rrl_status add_line(lines *l, const char *prefix, const rrl_key *k, const void *section) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    RRL_GOTO(rrl_buffer_printf(&b, "%s%s=", prefix, k->name));
    const char *name = k->type == RRL_KEY_NAME ? *(char *const *)((const char *)section + k->offset) : "";
    if (*name == '/')
        RRL_GOTO(write_template(&b, name));
    else
        RRL_GOTO(rrl_value_write(&b, k, section, RRL_WRITE_DIGEST, NULL));
    RRL_GOTO(rrl_grow(&l->v, &l->capacity, l->n + 1, sizeof *l->v, "configuration lines"));
    l->v[l->n++] = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    return rc;
}

static rrl_status add_section(lines *l, const char *prefix, const rrl_section *s, void *section) {
    for (size_t i = 0; i < s->n_keys; i++)
        if (s->keys[i].cls == RRL_CLASS_RESULT) RRL_TRY(add_line(l, prefix, &s->keys[i], section));
    for (size_t i = 0; i < s->n_children; i++) {
        const rrl_child *c = &s->children[i];
        int64_t n = rrl_child_count(c, section);
        for (int64_t j = 0; j < n; j++) {
            char path[256];
            if (rrl_child_is_list(c))
                snprintf(path, sizeof path, "%s%s[%lld].", prefix, c->name, (long long)j);
            else
                snprintf(path, sizeof path, "%s%s.", prefix, c->name);
            RRL_TRY(add_section(l, path, c->section, rrl_child_at(c, section, j)));
        }
    }
    return RRL_OK;
}

static size_t key_length(const char *line) {
    return strcspn(line, "=");
}

/* Order of two lines by key alone: keys are unique. */
static int compare_keys(const char *a, const char *b) {
    size_t na = key_length(a), nb = key_length(b);
    int order = strncmp(a, b, na < nb ? na : nb);
    return order ? order : (na > nb) - (na < nb);
}

static int by_key(const void *a, const void *b) {
    return compare_keys(*(char *const *)a, *(char *const *)b);
}

static rrl_status result_lines(lines *l, const rrl_config *c) {
    rrl_config view = *c; /* walked, not changed */
    RRL_TRY(add_section(l, "", rrl_config_root(), &view));
    qsort(l->v, l->n, sizeof *l->v, by_key);
    return RRL_OK;
}

rrl_status rrl_config_digest(char out[65], const rrl_config *c, const char *extra) {
    rrl_status rc = RRL_OK;
    lines l = {0};
    rrl_sha256 *h = NULL;
    uint8_t digest[RRL_SHA256_BYTES];
    RRL_GOTO(result_lines(&l, c));
    RRL_GOTO(rrl_sha256_open(&h));
    for (size_t i = 0; i < l.n; i++) {
        RRL_GOTO(rrl_sha256_add(h, l.v[i], strlen(l.v[i])));
        RRL_GOTO(rrl_sha256_add(h, "\n", 1));
    }
    if (extra) RRL_GOTO(rrl_sha256_add(h, extra, strlen(extra)));
    RRL_GOTO(rrl_sha256_end(h, digest));
    rrl_sha256_hex(out, digest);
done:
    rrl_sha256_close(&h);
    lines_free(&l);
    return rc;
}

/* --- differences */

static rrl_status report(rrl_buffer *out, const char *before, const char *after) {
    const char *any = before ? before : after;
    return rrl_buffer_printf(out, "%.*s: %s -> %s\n", (int)key_length(any), any,
                             before ? before + key_length(before) + 1 : "(none)",
                             after ? after + key_length(after) + 1 : "(none)");
}

static rrl_status merge(rrl_buffer *out, const lines *before, const lines *after) {
    size_t i = 0, j = 0;
    while (i < before->n || j < after->n) {
        int order = i == before->n ? 1 : j == after->n ? -1 : compare_keys(before->v[i], after->v[j]);
        const char *a = order <= 0 ? before->v[i++] : NULL, *b = order >= 0 ? after->v[j++] : NULL;
        if (!a || !b || strcmp(a, b) != 0) RRL_TRY(report(out, a, b));
    }
    return RRL_OK;
}

static rrl_status lines_of_yaml(lines *l, const char *yaml, const char *where) {
    rrl_config *c = NULL;
    RRL_TRY(rrl_config_parse(&c, yaml, strlen(yaml), where, NULL, NULL, 0));
    rrl_status rc = result_lines(l, c);
    rrl_config_close(&c);
    return rc;
}

rrl_status rrl_config_difference(char **out, const char *yaml_old, const char *yaml_new) {
    rrl_status rc = RRL_OK;
    lines before = {0}, after = {0};
    rrl_buffer text = {0};
    RRL_GOTO(lines_of_yaml(&before, yaml_old, "the earlier configuration"));
    RRL_GOTO(lines_of_yaml(&after, yaml_new, "this configuration"));
    RRL_GOTO(merge(&text, &before, &after));
    *out = text.data;
    text = (rrl_buffer){0};
done:
    rrl_buffer_free(&text);
    lines_free(&before);
    lines_free(&after);
    return rc;
}
