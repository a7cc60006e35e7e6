/* The table of config_keys.h as data: what parser, --set, writer, digest, copy and docs walk over. */
#ifndef RRL_CONFIG_TABLE_H
#define RRL_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "rrl/config.h"

typedef enum {
    RRL_KEY_BOOL,
    RRL_KEY_INT,
    RRL_KEY_REAL,
    RRL_KEY_TEXT,
    RRL_KEY_PATH,
    RRL_KEY_NAME,
    RRL_KEY_ENUM,
    RRL_KEY_TEXTS,
    RRL_KEY_INTS,
    RRL_KEY_REALS
} rrl_key_type;

typedef enum { RRL_CLASS_RESULT, RRL_CLASS_LAYOUT, RRL_CLASS_PLACE, RRL_CLASS_INERT } rrl_key_class;

typedef struct {
    const char *name;
    rrl_key_type type;
    rrl_key_class cls;
    size_t offset;                            /* in its section's struct */
    const char *const *texts;                 /* of an ENUM, ending with NULL */
    int64_t int_default, int_low, int_high;   /* BOOL, INT, ENUM; bounds also of INTS */
    double real_default, real_low, real_high; /* REAL; bounds also of REALS */
    const char *text_default; /* TEXT, PATH, NAME; of lists the elements with commas between */
    const char *unit, *doc;
} rrl_key;

typedef struct rrl_section rrl_section;

#define RRL_NO_OFFSET ((size_t)-1)

/* A section in a section, or a list of sections. */
typedef struct {
    const char *name;
    const rrl_section *section;
    size_t offset;            /* of the struct, or of the pointer to the first element */
    size_t count_offset;      /* of a list's int64_t length; RRL_NO_OFFSET = one section */
    const char *default_text; /* YAML: keys under those the file gives; or the list where the file has none */
} rrl_child;

struct rrl_section {
    const rrl_key *keys;
    size_t n_keys;
    const rrl_child *children;
    size_t n_children;
    size_t size;           /* of the struct */
    size_t given_offset;   /* of bool given; RRL_NO_OFFSET = none */
    bool optional;         /* stays out of a resolved file where it was not given */
    const char *shorthand; /* key that a bare scalar in the section's place sets; NULL = none */
    const char *doc;
};

/** The section of rrl_config. */
const rrl_section *rrl_config_root(void);
const rrl_key *rrl_section_key(const rrl_section *s, const char *name);
const rrl_child *rrl_section_child(const rrl_section *s, const char *name);
bool rrl_child_is_list(const rrl_child *c);

/** Address of a key's value, and of element i of a child (0 for one section). */
void *rrl_key_at(const rrl_key *k, void *section);
void *rrl_child_at(const rrl_child *c, void *section, int64_t i);
/** Elements of a child: 1 for one section. */
int64_t rrl_child_count(const rrl_child *c, const void *section);

#endif
