/* A config from file, text or copy: reads the tree, applies sets, binds, resolves. Checks across keys:
 * config_check.c. */
#include "config/config_bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

/* An empty config with its arena. */
static rrl_status config_new(rrl_config **out) {
    rrl_config *c = NULL;
    rrl_arena *arena = NULL;
    RRL_TRY(rrl_alloc(&c, 1, sizeof *c, "configuration"));
    rrl_status rc = rrl_arena_open(&arena);
    if (rc != RRL_OK) {
        free(c);
        return rc;
    }
    c->arena = arena;
    *out = c;
    return RRL_OK;
}

void rrl_config_close(rrl_config **c) {
    if (!*c) return;
    rrl_arena *arena = (*c)->arena;
    rrl_arena_close(&arena);
    free(*c);
    *c = NULL;
}

rrl_status rrl_config_memory(void *out, rrl_config *c, size_t count, size_t size) {
    return rrl_arena_take(out, c->arena, count, size);
}

rrl_status rrl_config_text(char **out, rrl_config *c, const char *text) {
    return rrl_arena_text(out, c->arena, text, strlen(text));
}

/* --- reading */

/* Absolute form of a folder, as it stands when it does not exist. */
static rrl_status absolute(char **out, rrl_arena *a, const char *folder) {
    char *real = realpath(folder, NULL);
    rrl_status rc = rrl_arena_text(out, a, real ? real : folder, strlen(real ? real : folder));
    free(real);
    return rc;
}

static rrl_status build(rrl_config *c, rrl_binder *b, const char *text, size_t len, const char *const *sets,
                        int n_sets) {
    rrl_node *root = NULL;
    RRL_TRY(rrl_yaml_parse(&root, b->scratch, text, len, c->file, false));
    if (rrl_node_is_null(root))
        return RRL_FAIL(RRL_ERR_CONFIG,
                        "%s: is empty; a configuration needs at least one key ({} = all defaults)", c->file);
    for (int i = 0; i < n_sets; i++) RRL_TRY(rrl_set_apply(&root, b, sets[i]));
    RRL_TRY(rrl_section_bind(b, rrl_config_root(), c, root));
    return rrl_config_resolve(c, b, root);
}

rrl_status rrl_config_parse(rrl_config **out, const char *text, size_t len, const char *where,
                            const char *base, const char *const *sets, int n_sets) {
    rrl_status rc = RRL_OK;
    rrl_config *c = NULL;
    rrl_arena *scratch = NULL;
    char *cwd = NULL;
    RRL_GOTO(config_new(&c));
    RRL_GOTO(rrl_arena_open(&scratch));
    RRL_GOTO(absolute(&cwd, scratch, "."));
    RRL_GOTO(rrl_config_text(&c->file, c, where));
    RRL_GOTO(absolute(&c->base, c->arena, base ? base : "."));
    rrl_binder b = {.arena = c->arena, .scratch = scratch, .base = c->base, .cwd = cwd};
    RRL_GOTO(build(c, &b, text, len, sets, n_sets));
    *out = c;
    c = NULL;
done:
    rrl_arena_close(&scratch);
    rrl_config_close(&c);
    return rc;
}

/* The folder that relative paths of a file are under: the file's own, or its parent where it is called
 * configs. */
static rrl_status base_of(char **out, const char *path) {
    char *folder = NULL, *real = NULL, *parent = NULL;
    RRL_TRY(rrl_path_parent(&folder, path));
    rrl_status rc = RRL_OK;
    real = realpath(folder, NULL);
    if (!real) RRL_GOTO(RRL_FAIL(RRL_ERR_CONFIG, "%s: %s", folder, strerror(errno)));
    const char *name = strrchr(real, '/');
    if (name && strcmp(name, "/configs") == 0) {
        RRL_GOTO(rrl_path_parent(&parent, real));
        *out = parent;
    } else {
        *out = real;
        real = NULL;
    }
done:
    free(folder);
    free(real);
    return rc;
}

rrl_status rrl_config_open(rrl_config **out, const char *path, const char *const *sets, int n_sets) {
    rrl_status rc = RRL_OK;
    char *text = NULL, *base = NULL;
    size_t len = 0;
    if (rrl_dir_exists(path))
        RRL_GOTO(RRL_FAIL(RRL_ERR_CONFIG, "%s: is a folder; name a configuration file in it", path));
    rc = rrl_file_read(&text, &len, path, RRL_YAML_BYTES);
    if (rc == RRL_ERR_DATA ||
        rc == RRL_ERR_IO) /* for the user a file that cannot be read is a wrong command */
        rc = RRL_FAIL(RRL_ERR_CONFIG, "configuration file %s", rrl_error_message());
    if (rc != RRL_OK) goto done;
    RRL_GOTO(base_of(&base, path));
    RRL_GOTO(rrl_config_parse(out, text, len, path, base, sets, n_sets));
done:
    free(text);
    free(base);
    return rc;
}

/* --- copying */

static rrl_status copy_text(char **text, rrl_arena *a) {
    return *text ? rrl_arena_text(text, a, *text, strlen(*text)) : RRL_OK;
}

static rrl_status copy_bytes(void *list, rrl_arena *a, int64_t n, size_t size) {
    void *from, *to;
    memcpy(&from, list, sizeof from);
    RRL_TRY(rrl_arena_take(&to, a, (size_t)n, size));
    if (n) memcpy(to, from, (size_t)n * size);
    memcpy(list, &to, sizeof to);
    return RRL_OK;
}

/* The section holds a bitwise copy; gives it memory of its own. */
static rrl_status own_key(const rrl_key *k, void *section, rrl_arena *a) {
    void *at = rrl_key_at(k, section);
    rrl_texts *texts = at;
    switch (k->type) {
    case RRL_KEY_TEXT:
    case RRL_KEY_PATH:
    case RRL_KEY_NAME:
        return copy_text(at, a);
    case RRL_KEY_INTS:
        return copy_bytes(&((rrl_ints *)at)->v, a, ((rrl_ints *)at)->n, sizeof(int64_t));
    case RRL_KEY_REALS:
        return copy_bytes(&((rrl_reals *)at)->v, a, ((rrl_reals *)at)->n, sizeof(double));
    case RRL_KEY_TEXTS:
        RRL_TRY(copy_bytes(&texts->v, a, texts->n, sizeof *texts->v));
        for (int64_t i = 0; i < texts->n; i++) RRL_TRY(copy_text(&texts->v[i], a));
        return RRL_OK;
    default:
        return RRL_OK;
    }
}

static rrl_status own_section(const rrl_section *s, void *section, rrl_arena *a) {
    for (size_t i = 0; i < s->n_keys; i++) RRL_TRY(own_key(&s->keys[i], section, a));
    for (size_t i = 0; i < s->n_children; i++) {
        const rrl_child *c = &s->children[i];
        int64_t n = rrl_child_count(c, section);
        if (rrl_child_is_list(c)) RRL_TRY(copy_bytes((char *)section + c->offset, a, n, c->section->size));
        for (int64_t j = 0; j < n; j++) RRL_TRY(own_section(c->section, rrl_child_at(c, section, j), a));
    }
    return RRL_OK;
}

rrl_status rrl_config_copy(rrl_config **out, const rrl_config *c) {
    rrl_status rc = RRL_OK;
    rrl_config *copy = NULL;
    RRL_GOTO(config_new(&copy));
    rrl_arena *arena = copy->arena;
    *copy = *c;
    copy->arena = arena;
    RRL_GOTO(copy_text(&copy->file, arena));
    RRL_GOTO(copy_text(&copy->base, arena));
    RRL_GOTO(own_section(rrl_config_root(), copy, arena));
    *out = copy;
    copy = NULL;
done:
    rrl_config_close(&copy);
    return rc;
}
