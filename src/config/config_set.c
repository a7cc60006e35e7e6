/* --set a.b[0].c=value: the value becomes a node in the tree before anything is bound, so a set is checked by
 * the same code as the file and the last one wins. */
#include "config/config_bind.h"

#include <string.h>

#include "base/text.h"

/* Where the walk along the key stands. */
typedef struct {
    rrl_binder *b;
    rrl_node place;             /* origin of messages and new nodes */
    const char *rest;           /* what is left of the set's text */
    const rrl_section *section; /* the schema of `node` */
    rrl_node *node;             /* a mapping */
} walker;

static rrl_status syntax(const walker *w, const char *what) {
    return rrl_node_fail(&w->place, "", "%s; write --set section.key=value, or section.list[0].key=value",
                         what);
}

static rrl_status read_name(char **out, walker *w) {
    size_t n = strcspn(w->rest, ".[]=");
    if (n == 0) return syntax(w, "a key is missing");
    RRL_TRY(rrl_arena_text(out, w->b->scratch, w->rest, n));
    w->rest += n;
    return RRL_OK;
}

/* "[12]" */
static rrl_status read_index(int64_t *out, walker *w) {
    size_t digits = strspn(w->rest + 1, "0123456789");
    char number[20];
    if (digits == 0 || digits >= sizeof number || w->rest[1 + digits] != ']')
        return syntax(w, "a list index must be a whole number in brackets");
    memcpy(number, w->rest + 1, digits);
    number[digits] = 0;
    if (!rrl_parse_int64(out, number)) return syntax(w, "a list index must be a whole number in brackets");
    w->rest += digits + 2;
    return RRL_OK;
}

/* The node of the value after '='. A text stands for itself unless it is quoted; all else is YAML. */
static rrl_status read_value(rrl_node **out, const walker *w, const rrl_key *k) {
    const char *text = w->rest + 1;
    bool verbatim = k && (k->type == RRL_KEY_TEXT || k->type == RRL_KEY_PATH || k->type == RRL_KEY_NAME);
    rrl_node *node = NULL;
    if (!verbatim || *text == '"' || *text == '\'')
        RRL_TRY(rrl_yaml_parse(&node, w->b->scratch, text, strlen(text), w->place.origin, true));
    if (!node) { /* verbatim, or nothing at all: null */
        if (rrl_utf8_valid(text, strlen(text)) != strlen(text))
            return rrl_node_fail(&w->place, "", "the value is no UTF-8 text");
        RRL_TRY(rrl_node_new(&node, w->b->scratch, RRL_NODE_SCALAR, &w->place));
        RRL_TRY(rrl_arena_text(&node->text, w->b->scratch, text, strlen(text)));
        node->plain = true;
    }
    *out = node;
    return RRL_OK;
}

static void put(rrl_node *mapping, char *key, rrl_node *child) {
    rrl_node *old = rrl_node_get(mapping, key);
    child->key = key;
    if (old)
        rrl_node_replace(mapping, old, child);
    else
        rrl_node_append(mapping, child);
}

/* Turns `*node` (may be NULL) into a mapping that keys can be put into; a shorthand becomes its key. */
static rrl_status need_mapping(rrl_node **node, const walker *w, const rrl_section *s, const char *name) {
    rrl_node *old = *node, *mapping = NULL;
    if (old && old->kind == RRL_NODE_MAPPING) return RRL_OK;
    if (old && !rrl_node_is_null(old) && (old->kind != RRL_NODE_SCALAR || !s->shorthand))
        return rrl_node_fail(&w->place, "",
                             "%s is no section in the file (line %d); set it whole: %s={key: value}", name,
                             old->line, name);
    RRL_TRY(rrl_node_new(&mapping, w->b->scratch, RRL_NODE_MAPPING, &w->place));
    if (old && !rrl_node_is_null(old)) {
        rrl_node *value = NULL;
        RRL_TRY(rrl_node_new(&value, w->b->scratch, RRL_NODE_SCALAR, old));
        value->text = old->text;
        value->plain = old->plain;
        RRL_TRY(rrl_arena_text(&value->key, w->b->scratch, s->shorthand, strlen(s->shorthand)));
        rrl_node_append(mapping, value);
    }
    *node = mapping;
    return RRL_OK;
}

/* The list of a child as the file or the table's default has it. */
static rrl_status need_list(rrl_node **list, const walker *w, const rrl_child *c) {
    if (*list && !rrl_node_is_null(*list)) {
        if ((*list)->kind == RRL_NODE_SEQUENCE) return RRL_OK;
        return rrl_node_fail(&w->place, "", "%s is no list in the file (line %d); set it whole: %s=[...]",
                             c->name, (*list)->line, c->name);
    }
    *list = NULL;
    if (c->default_text)
        return rrl_yaml_parse(list, w->b->scratch, c->default_text, strlen(c->default_text), "default",
                              false);
    return rrl_node_new(list, w->b->scratch, RRL_NODE_SEQUENCE, &w->place);
}

/* list[i] of child c: set whole, or walked into. */
static rrl_status step_element(walker *w, const rrl_child *c, char *name, bool *done) {
    rrl_node *list = rrl_node_get(w->node, name), *element = NULL, *old;
    int64_t i;
    RRL_TRY(read_index(&i, w));
    RRL_TRY(need_list(&list, w, c));
    if (i > list->n)
        return rrl_node_fail(&w->place, "", "%s has %lld elements; index %lld is past its end", name,
                             (long long)list->n, (long long)i);
    if (list != rrl_node_get(w->node, name)) put(w->node, name, list);
    old = element = rrl_node_at(list, i);
    *done = *w->rest == '=';
    if (*done)
        RRL_TRY(read_value(&element, w, NULL));
    else if (*w->rest == '.')
        RRL_TRY(need_mapping(&element, w, c->section, name));
    else
        return syntax(w, "'.key' or '=value' must follow the index");
    if (!old)
        rrl_node_append(list, element);
    else if (old != element)
        rrl_node_replace(list, old, element);
    w->rest++;
    w->node = element;
    w->section = c->section;
    return RRL_OK;
}

/* One name of the key; *done once the value is in. */
static rrl_status step(walker *w, bool *done) {
    char *name = NULL;
    RRL_TRY(read_name(&name, w));
    const rrl_key *k = rrl_section_key(w->section, name);
    const rrl_child *c = k ? NULL : rrl_section_child(w->section, name);
    if (!k && !c) return rrl_unknown_key(w->section, &w->place, "", name);
    if (*w->rest == '=') {
        rrl_node *value = NULL;
        RRL_TRY(read_value(&value, w, k));
        put(w->node, name, value);
        *done = true;
        return RRL_OK;
    }
    if (k)
        return rrl_node_fail(&w->place, "", "%s is a single key: write =value after it%s", name,
                             *w->rest == '[' ? ", a list as [a, b]" : "");
    if (*w->rest == '[' && rrl_child_is_list(c)) return step_element(w, c, name, done);
    if (*w->rest != '.' || rrl_child_is_list(c))
        return rrl_node_fail(&w->place, "", "%s is a %s: go on with %s%s", name,
                             rrl_child_is_list(c) ? "list" : "section", name,
                             rrl_child_is_list(c) ? "[0]." : ".key");
    rrl_node *child = rrl_node_get(w->node, name), *old = child;
    RRL_TRY(need_mapping(&child, w, c->section, name));
    if (child != old) put(w->node, name, child);
    w->rest++;
    w->node = child;
    w->section = c->section;
    return RRL_OK;
}

rrl_status rrl_set_apply(rrl_node **root, rrl_binder *b, const char *set) {
    walker w = {.b = b, .rest = set, .section = rrl_config_root()};
    char *origin = NULL;
    RRL_TRY(rrl_arena_printf(&origin, b->scratch, "--set %s", set));
    w.place = (rrl_node){.origin = origin, .from_set = true};
    if (!strchr(set, '=')) return syntax(&w, "'=' is missing");
    if (!*root) RRL_TRY(rrl_node_new(root, b->scratch, RRL_NODE_MAPPING, &w.place));
    if ((*root)->kind != RRL_NODE_MAPPING) return RRL_OK; /* binding says what is wrong with the file */
    w.node = *root;
    for (bool done = false; !done;) RRL_TRY(step(&w, &done));
    return RRL_OK;
}
