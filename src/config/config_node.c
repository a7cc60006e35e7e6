/* Access to the node tree. */
#include "config/config_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool rrl_node_is_null(const rrl_node *n) {
    if (!n) return true;
    if (n->kind != RRL_NODE_SCALAR || !n->plain) return false;
    static const char *const NULLS[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof NULLS / sizeof *NULLS; i++)
        if (strcmp(n->text, NULLS[i]) == 0) return true;
    return false;
}

rrl_node *rrl_node_get(const rrl_node *n, const char *key) {
    if (!n || n->kind != RRL_NODE_MAPPING) return NULL;
    for (rrl_node *child = n->first; child; child = child->next)
        if (strcmp(child->key, key) == 0) return child;
    return NULL;
}

rrl_node *rrl_node_at(const rrl_node *n, int64_t index) {
    if (!n || n->kind != RRL_NODE_SEQUENCE) return NULL;
    rrl_node *child = n->first;
    while (child && index-- > 0) child = child->next;
    return child;
}

rrl_status rrl_node_new(rrl_node **out, rrl_arena *a, rrl_node_kind kind, const rrl_node *like) {
    rrl_node *n = NULL;
    RRL_TRY(rrl_arena_take(&n, a, 1, sizeof *n));
    n->kind = kind;
    n->origin = like->origin;
    n->line = like->line;
    n->from_set = like->from_set;
    *out = n;
    return RRL_OK;
}

void rrl_node_append(rrl_node *parent, rrl_node *child) {
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->n++;
}

void rrl_node_replace(rrl_node *parent, rrl_node *old, rrl_node *child) {
    rrl_node **link = &parent->first;
    while (*link != old) link = &(*link)->next;
    *link = child;
    child->next = old->next;
    if (parent->last == old) parent->last = child;
}

rrl_status rrl_node_fail(const rrl_node *n, const char *path, const char *fmt, ...) {
    char text[1024], place[32] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n->line) snprintf(place, sizeof place, ":%d", n->line);
    return RRL_FAIL(RRL_ERR_CONFIG, "%s%s: %s%s%s", n->origin, place, path, *path ? ": " : "", text);
}
