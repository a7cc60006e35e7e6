/* libyaml's events -> node tree. Events, not its loader: an alias is refused where it stands, so no document
 * can grow by expansion, and depth is bounded before the parser goes down. */
#include "config/config_node.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/text.h"

typedef struct {
    yaml_parser_t parser;
    yaml_event_t event; /* the one being looked at */
    rrl_arena *arena;
    const char *origin;
    bool from_set;
    int n_nodes;
} reader;

static int event_line(const reader *r) {
    return (int)r->event.start_mark.line + 1;
}

/* A set is one line: its text is the place. */
#define FAIL(r, at, ...)                                                                                     \
    rrl_node_fail(&(rrl_node){.origin = (r)->origin, .line = (r)->from_set ? 0 : (at)}, "", __VA_ARGS__)

static rrl_status next(reader *r) {
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event)) return RRL_OK;
    r->event.type = YAML_NO_EVENT;
    if (r->parser.error == YAML_MEMORY_ERROR) return RRL_FAIL(RRL_ERR_NOMEM, "%s: no memory", r->origin);
    const char *problem = r->parser.problem ? r->parser.problem : "cannot be read";
    if (r->parser.error == YAML_READER_ERROR)
        return FAIL(r, 0, "is no UTF-8 text: %s at byte %zu", problem, r->parser.problem_offset);
    return FAIL(r, (int)r->parser.problem_mark.line + 1, "is no YAML: %s (column %zu)%s%s", problem,
                r->parser.problem_mark.column + 1, r->parser.context ? ", " : "",
                r->parser.context ? r->parser.context : "");
}

/* Anchors and tags would need a meaning that no key here has. */
static rrl_status refuse_extras(const reader *r, const yaml_char_t *anchor, const yaml_char_t *tag) {
    if (anchor)
        return FAIL(r, event_line(r),
                    "anchor &%s: anchors and aliases (&x, *x, <<) are refused; write the value out",
                    (const char *)anchor);
    if (tag)
        return FAIL(r, event_line(r), "tag %s: tags are refused; the key decides the type, so remove it",
                    (const char *)tag);
    return RRL_OK;
}

static rrl_status scalar_text(char **out, const reader *r) {
    const char *value = (const char *)r->event.data.scalar.value;
    size_t n = r->event.data.scalar.length;
    if (memchr(value, 0, n)) return FAIL(r, event_line(r), "a NUL character (\\0) inside a text is refused");
    return rrl_arena_text(out, r->arena, value, n);
}

static rrl_status read_node(rrl_node **out, reader *r, int depth);

static rrl_status read_sequence(rrl_node *node, reader *r, int depth) {
    for (;;) {
        RRL_TRY(next(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT) return RRL_OK;
        rrl_node *child = NULL;
        RRL_TRY(read_node(&child, r, depth + 1));
        rrl_node_append(node, child);
    }
}

static rrl_status read_mapping(rrl_node *node, reader *r, int depth) {
    for (;;) {
        RRL_TRY(next(r));
        if (r->event.type == YAML_MAPPING_END_EVENT) return RRL_OK;
        int line = event_line(r);
        if (r->event.type == YAML_SCALAR_EVENT)
            RRL_TRY(refuse_extras(r, r->event.data.scalar.anchor, r->event.data.scalar.tag));
        else
            return FAIL(r, line, "a key must be a plain name, not a list, section or alias");
        char *key = NULL;
        RRL_TRY(scalar_text(&key, r));
        const rrl_node *twin = rrl_node_get(node, key);
        if (twin && r->from_set) return FAIL(r, line, "key '%s' is given twice; remove one", key);
        if (twin)
            return FAIL(r, line, "key '%s' is given twice, first at line %d; remove one", key,
                        twin->key_line);
        RRL_TRY(next(r));
        rrl_node *child = NULL;
        RRL_TRY(read_node(&child, r, depth + 1));
        child->key = key;
        child->key_line = line;
        rrl_node_append(node, child);
    }
}

/* The node that starts at the present event; afterwards the present event is its last. */
static rrl_status read_node(rrl_node **out, reader *r, int depth) {
    const yaml_event_t *e = &r->event;
    int line = event_line(r);
    if (depth > RRL_YAML_DEPTH) return FAIL(r, line, "is nested deeper than %d levels", RRL_YAML_DEPTH);
    if (++r->n_nodes > RRL_YAML_NODES) return FAIL(r, line, "has more than %d values", RRL_YAML_NODES);
    if (e->type == YAML_ALIAS_EVENT)
        return FAIL(r, line, "alias *%s: anchors and aliases (&x, *x, <<) are refused; write the value out",
                    (const char *)e->data.alias.anchor);

    rrl_node place = {.origin = r->origin, .line = r->from_set ? 0 : line, .from_set = r->from_set},
             *node = NULL;
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        RRL_TRY(refuse_extras(r, e->data.scalar.anchor, e->data.scalar.tag));
        RRL_TRY(rrl_node_new(&node, r->arena, RRL_NODE_SCALAR, &place));
        RRL_TRY(scalar_text(&node->text, r));
        node->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        break;
    case YAML_SEQUENCE_START_EVENT:
        RRL_TRY(refuse_extras(r, e->data.sequence_start.anchor, e->data.sequence_start.tag));
        RRL_TRY(rrl_node_new(&node, r->arena, RRL_NODE_SEQUENCE, &place));
        RRL_TRY(read_sequence(node, r, depth));
        break;
    case YAML_MAPPING_START_EVENT:
        RRL_TRY(refuse_extras(r, e->data.mapping_start.anchor, e->data.mapping_start.tag));
        RRL_TRY(rrl_node_new(&node, r->arena, RRL_NODE_MAPPING, &place));
        RRL_TRY(read_mapping(node, r, depth));
        break;
    default:
        return RRL_FAIL(RRL_ERR_INTERNAL, "%s:%d: unexpected YAML event %d", r->origin, line, (int)e->type);
    }
    *out = node;
    return RRL_OK;
}

static rrl_status read_document(rrl_node **out, reader *r) {
    rrl_node *root = NULL;
    RRL_TRY(next(r)); /* stream start */
    RRL_TRY(next(r));
    if (r->event.type == YAML_DOCUMENT_START_EVENT) {
        RRL_TRY(next(r));
        RRL_TRY(read_node(&root, r, 0));
        RRL_TRY(next(r)); /* document end */
        RRL_TRY(next(r));
        if (r->event.type != YAML_STREAM_END_EVENT)
            return FAIL(r, event_line(r),
                        "a second document (---) is refused; one file is one configuration");
    }
    *out = root;
    return RRL_OK;
}

rrl_status rrl_yaml_parse(rrl_node **out, rrl_arena *a, const char *text, size_t len, const char *origin,
                          bool from_set) {
    reader r = {.arena = a, .from_set = from_set};
    char *name = NULL;
    RRL_TRY(rrl_arena_text(&name, a, origin, strlen(origin)));
    r.origin = name;
    if (len > RRL_YAML_BYTES)
        return FAIL(&r, 0, "%zu bytes are more than the %d allowed", len, RRL_YAML_BYTES);
    size_t valid = rrl_utf8_valid(text, len); /* libyaml would also take UTF-16 */
    if (valid != len) return FAIL(&r, 0, "is no UTF-8 text: invalid byte at offset %zu", valid);
    if (!yaml_parser_initialize(&r.parser))
        return RRL_FAIL(RRL_ERR_NOMEM, "%s: no memory for the YAML parser", origin);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    rrl_status rc = read_document(out, &r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return rc;
}
