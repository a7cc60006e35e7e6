/* docs/configuration.md: the table in words. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/config_write.h"

static const char INTRODUCTION[] =
    "# Configuration\n"
    "\n"
    "Generated from include/rrl/config_keys.h (`test_config_reference --write`); do not edit.\n"
    "\n"
    "A configuration is one YAML file. It is read strictly: an unknown or repeated key, a wrong type, a "
    "number out of\n"
    "range or NaN ends the program with file, line, key, the nearest known key or the allowed range, and "
    "exit code 2.\n"
    "Every key has a default; a section or key that is left out takes it. `rrl validate` prints what a file "
    "resolves\n"
    "to.\n"
    "\n"
    "- The key decides the type: `1e-6` is a number and `no` a text where the key holds one. `true` and "
    "`false` are the\n"
    "  only booleans (yes, no, on, off are refused). Refused for numbers: quotes, leading zeros (010), 0x10, "
    "1:30, 1_000,\n"
    "  .nan, .inf. Anchors, aliases, tags and second documents are refused.\n"
    "- A list may be written `[a, b]`, as `- a` lines, or as a single value for a list of one.\n"
    "- `null` (or nothing) is allowed where the default means none: empty texts, 0 or -1 that say \"all\" or "
    "\"off\".\n"
    "- Relative paths are relative to the file's folder, or to its parent where that folder is called "
    "configs.\n"
    "- `--set a.b=value` changes one key, later ones win: `--set generation.top_p=1`, `--set "
    "experiment.seeds=[1,2]`,\n"
    "  `--set training_verifier.members[0].corruption.kind=flip` (an index equal to the length adds an "
    "element). The\n"
    "  value is YAML, or the text itself where the key holds text; relative paths are the working "
    "directory's.\n"
    "- Class: *result* changes numbers, is part of the run's digest, and a change refuses to resume; "
    "*layout* and *place*\n"
    "  are free (the digest covers the content of model files and data rows instead of their places); "
    "*inert* is accepted\n"
    "  from other projects' files without effect, which is said once at start.\n";

/* Every section with its paths; sections that share their keys are described once. */
enum { MAX_SECTIONS = 64, PATH_CHARS = 96 };
typedef struct {
    struct {
        const rrl_section *section;
        char path[PATH_CHARS];
    } at[MAX_SECTIONS];
    int n;
} section_list;

static void collect(section_list *l, const rrl_section *s, const char *path) {
    if (l->n == MAX_SECTIONS) return;
    l->at[l->n].section = s;
    snprintf(l->at[l->n].path, PATH_CHARS, "%s", path);
    l->n++;
    for (size_t i = 0; i < s->n_children; i++) {
        char below[PATH_CHARS];
        snprintf(below, sizeof below, "%s%s%s%s", path, *path ? "." : "", s->children[i].name,
                 rrl_child_is_list(&s->children[i]) ? "[]" : "");
        collect(l, s->children[i].section, below);
    }
}

static bool described_before(const section_list *l, int i) {
    for (int j = 0; j < i; j++)
        if (l->at[j].section->keys == l->at[i].section->keys) return true;
    return false;
}

static rrl_status write_title(rrl_buffer *b, const section_list *l, int i) {
    const rrl_section *s = l->at[i].section;
    RRL_TRY(rrl_buffer_puts(b, "\n## "));
    if (!*l->at[i].path) RRL_TRY(rrl_buffer_puts(b, "Top level"));
    for (int j = i; j < l->n && *l->at[i].path; j++)
        if (l->at[j].section->keys == s->keys)
            RRL_TRY(rrl_buffer_printf(b, "%s%s", j == i ? "" : ", ", l->at[j].path));
    return rrl_buffer_printf(b, "\n\n%s\n", s->doc);
}

/* --- one row */

static const char *type_text(rrl_key_type t) {
    switch (t) {
    case RRL_KEY_BOOL:
        return "boolean";
    case RRL_KEY_INT:
        return "whole number";
    case RRL_KEY_REAL:
        return "number";
    case RRL_KEY_TEXT:
        return "text";
    case RRL_KEY_PATH:
        return "path";
    case RRL_KEY_NAME:
        return "name or path";
    case RRL_KEY_ENUM:
        return "word";
    case RRL_KEY_TEXTS:
        return "list of texts";
    case RRL_KEY_INTS:
        return "list of whole numbers";
    case RRL_KEY_REALS:
        return "list of numbers";
    }
    return "?";
}

static const char *class_text(rrl_key_class c) {
    static const char *const TEXTS[] = {"result", "layout", "place", "inert"};
    return TEXTS[c];
}

static rrl_status write_default(rrl_buffer *b, const rrl_key *k) {
    char number[RRL_NUMBER_CHARS];
    switch (k->type) {
    case RRL_KEY_BOOL:
        return rrl_buffer_puts(b, k->int_default ? "true" : "false");
    case RRL_KEY_INT:
        return rrl_buffer_printf(b, "%" PRId64, k->int_default);
    case RRL_KEY_REAL:
        rrl_format_double(number, k->real_default);
        return rrl_buffer_puts(b, number);
    case RRL_KEY_ENUM:
        return rrl_buffer_puts(b, rrl_enum_text(k->texts, (int)k->int_default));
    case RRL_KEY_TEXTS:
    case RRL_KEY_INTS:
    case RRL_KEY_REALS:
        return rrl_buffer_printf(b, "[%s]", k->text_default);
    default:
        return rrl_buffer_puts(b, *k->text_default ? k->text_default : "(empty)");
    }
}

static rrl_status write_range(rrl_buffer *b, const rrl_key *k) {
    char low[RRL_NUMBER_CHARS], high[RRL_NUMBER_CHARS];
    switch (k->type) {
    case RRL_KEY_INT:
    case RRL_KEY_INTS:
        if (k->int_high == RRL_SEED_MAX) return rrl_buffer_printf(b, "%" PRId64 " to 2^63 - 1", k->int_low);
        return rrl_buffer_printf(b, "%" PRId64 " to %" PRId64, k->int_low, k->int_high);
    case RRL_KEY_REAL:
    case RRL_KEY_REALS:
        rrl_format_double(low, k->real_low);
        rrl_format_double(high, k->real_high);
        return rrl_buffer_printf(b, "%s to %s", low, high);
    case RRL_KEY_ENUM:
        for (int i = 0; k->texts[i]; i++) RRL_TRY(rrl_buffer_printf(b, "%s%s", i ? ", " : "", k->texts[i]));
        return RRL_OK;
    default:
        return RRL_OK;
    }
}

/* A bar would end the table's cell, and <split> would be taken for HTML. */
static rrl_status write_cell(rrl_buffer *b, const char *text) {
    for (; *text; text++) {
        if (*text == '|' || *text == '<') RRL_TRY(rrl_buffer_puts(b, "\\"));
        RRL_TRY(rrl_buffer_put(b, text, 1));
    }
    return RRL_OK;
}

static rrl_status write_key(rrl_buffer *b, const rrl_key *k) {
    RRL_TRY(rrl_buffer_printf(b, "| `%s` | %s | ", k->name, type_text(k->type)));
    RRL_TRY(write_default(b, k));
    RRL_TRY(rrl_buffer_puts(b, " | "));
    RRL_TRY(write_range(b, k));
    bool unit = *k->unit && strcmp(k->unit, "1") != 0 && strcmp(k->unit, "path") != 0;
    RRL_TRY(rrl_buffer_printf(b, " | %s | %s | ", unit ? k->unit : "", class_text(k->cls)));
    RRL_TRY(write_cell(b, k->doc));
    return rrl_buffer_puts(b, " |\n");
}

/* Sections below this one that need a word: lists and their defaults. */
static rrl_status write_children(rrl_buffer *b, const rrl_section *s) {
    for (size_t i = 0; i < s->n_children; i++) {
        const rrl_child *c = &s->children[i];
        if (c->default_text)
            RRL_TRY(rrl_buffer_printf(b, "\nDefault of `%s`: `%s`.\n", c->name, c->default_text));
    }
    return RRL_OK;
}

rrl_status rrl_config_reference(char **out) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    section_list *l = NULL;
    RRL_GOTO(rrl_alloc(&l, 1, sizeof *l, "list of sections"));
    collect(l, rrl_config_root(), "");
    RRL_GOTO(rrl_buffer_puts(&b, INTRODUCTION));
    for (int i = 0; i < l->n; i++) {
        const rrl_section *s = l->at[i].section;
        if (described_before(l, i)) continue;
        RRL_GOTO(write_title(&b, l, i));
        RRL_GOTO(rrl_buffer_puts(&b, "\n| key | type | default | range | unit | class | meaning |\n"
                                     "|---|---|---|---|---|---|---|\n"));
        for (size_t k = 0; k < s->n_keys; k++) RRL_GOTO(write_key(&b, &s->keys[k]));
        RRL_GOTO(write_children(&b, s));
    }
    *out = b.data;
    b = (rrl_buffer){0};
done:
    free(l);
    rrl_buffer_free(&b);
    return rc;
}
