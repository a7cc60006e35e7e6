/* Sections and lists of sections. Every key gets its default first, so a config is whole whatever the file
 * leaves out. */
#include "config/config_bind.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* --- the dotted path of messages: push returns what pop needs */

static size_t path_push(rrl_binder *b, const char *name) {
    size_t n = strlen(b->path);
    snprintf(b->path + n, sizeof b->path - n, "%s%s", n ? "." : "", name);
    return n;
}

static size_t path_push_index(rrl_binder *b, int64_t i) {
    size_t n = strlen(b->path);
    snprintf(b->path + n, sizeof b->path - n, "[%lld]", (long long)i);
    return n;
}

static void path_pop(rrl_binder *b, size_t n) {
    b->path[n] = 0;
}

/* --- unknown names */

/* The dotted path of a section, other than `not`, that has this key, into out; false if none. */
static bool find_elsewhere(char *out, size_t size, const rrl_section *s, const rrl_section * not,
                           const char *name) {
    size_t n = strlen(out);
    if (s != not &&(rrl_section_key(s, name) || rrl_section_child(s, name))) {
        snprintf(out + n, size - n, "%s%s", n ? "." : "", name);
        return true;
    }
    for (size_t i = 0; i < s->n_children; i++) {
        const rrl_child *c = &s->children[i];
        snprintf(out + n, size - n, "%s%s%s", n ? "." : "", c->name, rrl_child_is_list(c) ? "[]" : "");
        if (find_elsewhere(out, size, c->section, not, name)) return true;
        out[n] = 0;
    }
    return false;
}

rrl_status rrl_unknown_key(const rrl_section *s, const rrl_node *place, const char *path, const char *name) {
    enum { MAX_NAMES = 64 };
    const char *names[MAX_NAMES];
    size_t n = 0;
    for (size_t i = 0; i < s->n_keys && n < MAX_NAMES; i++) names[n++] = s->keys[i].name;
    for (size_t i = 0; i < s->n_children && n < MAX_NAMES; i++) names[n++] = s->children[i].name;
    char elsewhere[RRL_KEY_PATH_CHARS] = "";
    const char *nearest = rrl_nearest_name(name, names, n);
    if (s != rrl_config_root() && find_elsewhere(elsewhere, sizeof elsewhere, s, s, name)) /* in a part of this one */
        return rrl_node_fail(place, path, "unknown key '%.60s' here; did you mean '%s'?", name, elsewhere);
    if (find_elsewhere(elsewhere, sizeof elsewhere, rrl_config_root(), s, name))
        return rrl_node_fail(place, path, "unknown key '%.60s' here; there is %s", name, elsewhere);
    if (nearest) return rrl_node_fail(place, path, "unknown key '%.60s'; did you mean '%s'?", name, nearest);
    char all[700] = "";
    size_t used = 0;
    for (size_t i = 0; i < n && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    return rrl_node_fail(place, path, "unknown key '%.60s'; known here: %s", name, all);
}

/* --- binding */

static rrl_status bind_keys(rrl_binder *b, const rrl_section *s, void *section, const rrl_node *node) {
    for (size_t i = 0; i < s->n_keys; i++) {
        const rrl_node *value = rrl_node_get(node, s->keys[i].name);
        if (!value) continue;
        size_t mark = path_push(b, s->keys[i].name);
        RRL_TRY(rrl_value_bind(b, &s->keys[i], section, value));
        path_pop(b, mark);
    }
    return RRL_OK;
}

static rrl_status bind_defaults(rrl_binder *b, const rrl_section *s, void *section, const rrl_child *as) {
    for (size_t i = 0; i < s->n_keys; i++) RRL_TRY(rrl_value_bind(b, &s->keys[i], section, NULL));
    if (!as || !as->default_text) return RRL_OK;
    rrl_node *node = NULL;
    RRL_TRY(rrl_yaml_parse(&node, b->scratch, as->default_text, strlen(as->default_text), "default", false));
    return bind_keys(b, s, section, node);
}

static rrl_status bind_section(rrl_binder *b, const rrl_section *s, void *section, const rrl_node *node,
                               const rrl_child *as);

static rrl_status bind_list(rrl_binder *b, const rrl_child *c, void *section, const rrl_node *node) {
    rrl_node *list = NULL;
    if (rrl_node_is_null(node)) {
        if (c->default_text)
            RRL_TRY(rrl_yaml_parse(&list, b->scratch, c->default_text, strlen(c->default_text), "default",
                                   false));
        node = list;
    }
    if (node && node->kind != RRL_NODE_SEQUENCE)
        return rrl_node_fail(node, b->path, "expects a list, one `- ...` an element; a %s found",
                             node->kind == RRL_NODE_MAPPING ? "section" : "single value");
    int64_t n = node ? node->n : 0, i = 0;
    char *first = NULL;
    RRL_TRY(rrl_arena_take(&first, b->arena, (size_t)n, c->section->size));
    for (const rrl_node *item = n ? node->first : NULL; item; item = item->next, i++) {
        size_t mark = path_push_index(b, i);
        RRL_TRY(bind_section(b, c->section, first + (size_t)i * c->section->size, item, NULL));
        path_pop(b, mark);
    }
    memcpy((char *)section + c->offset, &first, sizeof first);
    memcpy((char *)section + c->count_offset, &n, sizeof n);
    return RRL_OK;
}

static rrl_status bind_children(rrl_binder *b, const rrl_section *s, void *section, const rrl_node *node) {
    for (size_t i = 0; i < s->n_children; i++) {
        const rrl_child *c = &s->children[i];
        const rrl_node *value = rrl_node_get(node, c->name);
        size_t mark = path_push(b, c->name);
        if (rrl_child_is_list(c))
            RRL_TRY(bind_list(b, c, section, value));
        else
            RRL_TRY(bind_section(b, c->section, rrl_child_at(c, section, 0), value, c));
        path_pop(b, mark);
    }
    return RRL_OK;
}

/* `corruption: flip` as {kind: flip}. */
static rrl_status expand_shorthand(rrl_node **out, const rrl_binder *b, const rrl_section *s,
                                   const rrl_node *node) {
    rrl_node *mapping = NULL, *value = NULL;
    RRL_TRY(rrl_node_new(&mapping, b->scratch, RRL_NODE_MAPPING, node));
    RRL_TRY(rrl_node_new(&value, b->scratch, RRL_NODE_SCALAR, node));
    *value = *node;
    value->next = NULL;
    RRL_TRY(rrl_arena_text(&value->key, b->scratch, s->shorthand, strlen(s->shorthand)));
    rrl_node_append(mapping, value);
    *out = mapping;
    return RRL_OK;
}

/* `as`: the child this section is bound for, NULL for the root and for list elements. */
static rrl_status bind_section(rrl_binder *b, const rrl_section *s, void *section, const rrl_node *node,
                               const rrl_child *as) {
    RRL_TRY(bind_defaults(b, s, section, as));
    if (rrl_node_is_null(node)) node = NULL;
    rrl_node *expanded = NULL;
    if (node && node->kind == RRL_NODE_SCALAR && s->shorthand) {
        RRL_TRY(expand_shorthand(&expanded, b, s, node));
        node = expanded;
    }
    if (node && node->kind != RRL_NODE_MAPPING)
        return rrl_node_fail(node, b->path, "expects a section, `key: value` lines; a %s found",
                             node->kind == RRL_NODE_SEQUENCE ? "list" : "single value");
    for (const rrl_node *child = node ? node->first : NULL; child; child = child->next) {
        rrl_node place = *child;
        if (place.line) place.line = child->key_line;
        if (!rrl_section_key(s, child->key) && !rrl_section_child(s, child->key))
            return rrl_unknown_key(s, &place, b->path, child->key);
    }
    if (s->given_offset != RRL_NO_OFFSET) *(bool *)((char *)section + s->given_offset) = node != NULL;
    RRL_TRY(bind_keys(b, s, section, node));
    return bind_children(b, s, section, node);
}

rrl_status rrl_section_bind(rrl_binder *b, const rrl_section *s, void *section, const rrl_node *node) {
    return bind_section(b, s, section, node, NULL);
}
