/* Node tree -> struct, by the table. */
#ifndef RRL_CONFIG_BIND_H
#define RRL_CONFIG_BIND_H

#include "config/config_node.h"
#include "config/config_table.h"

enum { RRL_KEY_PATH_CHARS = 256 };

/* What binding needs besides node and place. */
typedef struct {
    rrl_arena *arena;              /* of the config */
    rrl_arena *scratch;            /* of nodes */
    const char *base, *cwd;        /* absolute folders for paths of the file and of sets */
    char path[RRL_KEY_PATH_CHARS]; /* dotted key being bound, for messages */
} rrl_binder;

/** Set a key from its node, or from its default (node NULL). Errors: RRL_ERR_CONFIG with place, key, range.
 */
rrl_status rrl_value_bind(rrl_binder *b, const rrl_key *k, void *section, const rrl_node *node);
/** Make a path absolute: below base, or below cwd when the node came from a set; node NULL = base. */
rrl_status rrl_path_bind(char **out, const rrl_binder *b, const char *path, const rrl_node *node);
/** Set all of a section, its children included. node NULL or null = all defaults. */
rrl_status rrl_section_bind(rrl_binder *b, const rrl_section *s, void *section, const rrl_node *node);
/** Fail for a name that is neither key nor child of s, naming the nearest, or where it belongs. */
rrl_status rrl_unknown_key(const rrl_section *s, const rrl_node *place, const char *path, const char *name);

/** The tree with a set "a.b[0].c=value" applied; *root may be NULL before. Errors: RRL_ERR_CONFIG. */
rrl_status rrl_set_apply(rrl_node **root, rrl_binder *b, const char *set);
/** Defaults that depend on other keys (see rrl_config in config.h). */
rrl_status rrl_config_resolve(rrl_config *c, rrl_binder *b, const rrl_node *root);

#endif
