/* A YAML document as a tree of nodes that know their place. Keys keep the order of the file. */
#ifndef RRL_CONFIG_NODE_H
#define RRL_CONFIG_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config_arena.h"

typedef enum { RRL_NODE_SCALAR, RRL_NODE_SEQUENCE, RRL_NODE_MAPPING } rrl_node_kind;

typedef struct rrl_node rrl_node;
struct rrl_node {
    rrl_node_kind kind;
    const char *origin; /* file name, or "--set KEY=VALUE" */
    int line;           /* in origin; 0 = none worth telling */
    bool from_set;      /* relative paths are the working directory's */
    bool plain;         /* scalar without quotes */
    char *text;         /* of a scalar, NUL-terminated, without NUL inside */
    char *key;          /* in its mapping, else NULL */
    int key_line;
    rrl_node *first, *last, *next; /* children; next sibling */
    int64_t n;
};

/* Bounds of a document. */
enum { RRL_YAML_BYTES = 1 << 20, RRL_YAML_NODES = 10000, RRL_YAML_DEPTH = 32 };

/** Parse one document. Refused with line: more than one document, aliases, anchors, tags, keys that are no
 * plain text, repeated keys (both lines), NUL, invalid UTF-8, more than the bounds above. *out NULL for an
 * empty document. Nodes stand in the arena; `origin` is copied. Errors: RRL_ERR_CONFIG. */
rrl_status rrl_yaml_parse(rrl_node **out, rrl_arena *a, const char *text, size_t len, const char *origin,
                          bool from_set);

/** Whether a node is YAML's null: absent, empty, ~ or null. */
bool rrl_node_is_null(const rrl_node *n);
/** Child of a mapping by key, NULL if none or n is no mapping; element of a sequence. */
rrl_node *rrl_node_get(const rrl_node *n, const char *key);
rrl_node *rrl_node_at(const rrl_node *n, int64_t index);
/** An empty node of a kind with the place of `like`. */
rrl_status rrl_node_new(rrl_node **out, rrl_arena *a, rrl_node_kind kind, const rrl_node *like);
/** Put a child at the end (key NULL for sequences), or in place of the child with that key or index. */
void rrl_node_append(rrl_node *parent, rrl_node *child);
void rrl_node_replace(rrl_node *parent, rrl_node *old, rrl_node *child);
/** Fail with "origin:line: path: message". */
rrl_status rrl_node_fail(const rrl_node *n, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
