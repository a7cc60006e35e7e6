/* Reading a command line against the one list of options, and the help that comes from it. */
#include "commands/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

typedef enum { KIND_FLAG, KIND_INT, KIND_REAL, KIND_TEXT, KIND_LIST } option_kind;

typedef struct {
    const char *field;
    option_kind kind;
    size_t offset;
    int64_t low;
    const char *argument, *doc;
} option;

static const option OPTIONS[] = {
#define X(field, kind, def, low, argument, doc)                                                              \
    {#field, KIND_##kind, offsetof(rrl_options, field), low, argument, doc},
    RRL_OPTION_LIST(X)
#undef X
};
enum { N_OPTIONS = sizeof OPTIONS / sizeof OPTIONS[0], NAME_CHARS = 32, HELP_INDENT = 24, HELP_CHARS = 80 };

static const rrl_options DEFAULTS = {
#define X(field, kind, def, low, argument, doc) .field = def,
    RRL_OPTION_LIST(X)
#undef X
};

/* "--dry-run" of dry_run. */
static void name_of(char out[NAME_CHARS], const option *o) {
    snprintf(out, NAME_CHARS, "--%s", o->field);
    for (char *p = out; *p; p++)
        if (*p == '_') *p = '-';
}

/* The option named by the first len bytes of text, NULL if there is none. */
static const option *find(const char *text, size_t len) {
    for (int i = 0; i < N_OPTIONS; i++) {
        char name[NAME_CHARS];
        name_of(name, &OPTIONS[i]);
        if (strlen(name) == len && memcmp(name, text, len) == 0) return &OPTIONS[i];
    }
    return NULL;
}

static rrl_status unknown(const char *text, size_t len, const char *command, unsigned takes) {
    char names[N_OPTIONS][NAME_CHARS], *given;
    const char *list[N_OPTIONS], *nearest;
    size_t n = 0;
    for (int i = 0; i < N_OPTIONS; i++)
        if (takes & 1u << i) {
            name_of(names[n], &OPTIONS[i]);
            list[n] = names[n];
            n++;
        }
    given = strndup(text, len);
    if (!given) return RRL_FAIL(RRL_ERR_NOMEM, "no memory for an option's name");
    nearest = rrl_nearest_name(given, list, n);
    rrl_status rc = nearest ? RRL_FAIL(RRL_ERR_USAGE, "rrl %s: unknown option %s; did you mean %s?", command,
                                       given, nearest)
                            : RRL_FAIL(RRL_ERR_USAGE, "rrl %s: unknown option %s; see rrl %s --help", command,
                                       given, command);
    free(given);
    return rc;
}

static rrl_status store(rrl_options *out, const option *o, const char *value, const char *command) {
    char *field = (char *)out + o->offset;
    char name[NAME_CHARS];
    name_of(name, o);
    switch (o->kind) {
    case KIND_FLAG:
        *(bool *)field = true;
        break;
    case KIND_TEXT:
        if (!*value)
            return RRL_FAIL(RRL_ERR_USAGE, "rrl %s: %s is empty; expected %s", command, name, o->argument);
        *(const char **)field = value;
        break;
    case KIND_INT:
        if (!rrl_parse_int64((int64_t *)field, value) || *(int64_t *)field < o->low)
            return RRL_FAIL(RRL_ERR_USAGE, "rrl %s: %s %s: expected a whole number of at least %" PRId64,
                            command, name, value, o->low);
        break;
    case KIND_REAL:
        if (!rrl_parse_double((double *)field, value) || !(*(double *)field >= (double)o->low))
            return RRL_FAIL(RRL_ERR_USAGE, "rrl %s: %s %s: expected a number of at least %" PRId64, command, name,
                            value, o->low);
        break;
    case KIND_LIST:
        if (!strchr(value, '=') || value[0] == '=')
            return RRL_FAIL(RRL_ERR_USAGE, "rrl %s: %s %s: expected %s", command, name, value, o->argument);
        ((rrl_option_list *)field)->v[((rrl_option_list *)field)->n++] = value;
        break;
    }
    return RRL_OK;
}

/* The option at argv[*at]; *at moves on to its last word. */
static rrl_status take(rrl_options *out, int *at, int argc, char *const *argv, const char *command,
                       unsigned takes) {
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);
    const option *o = strcmp(word, "-h") == 0 ? find("--help", 6) : find(word, len);
    const char *value = equals ? equals + 1 : NULL;
    char name[NAME_CHARS];
    if (!o) return unknown(word, len, command, takes);
    name_of(name, o);
    if (!(takes & 1u << (o - OPTIONS)))
        return RRL_FAIL(RRL_ERR_USAGE, "rrl %s does not take %s; see rrl %s --help", command, name, command);
    if (o->kind == KIND_FLAG && value)
        return RRL_FAIL(RRL_ERR_USAGE, "rrl %s: %s takes no value, found \"%s\"", command, name, value);
    if (o->kind != KIND_FLAG && !value) {
        if (*at + 1 >= argc)
            return RRL_FAIL(RRL_ERR_USAGE, "rrl %s: %s needs a value: %s %s", command, name, name,
                            o->argument);
        value = argv[++*at];
    }
    return store(out, o, value, command);
}

rrl_status rrl_options_parse(rrl_options *out, int argc, char *const *argv, const char *command,
                             unsigned takes, int n_arguments) {
    rrl_options o = DEFAULTS;
    bool words_only = false;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&o.set.v, (size_t)argc, sizeof *o.set.v, "options"));
    RRL_GOTO(rrl_alloc(&o.arguments.v, (size_t)argc, sizeof *o.arguments.v, "arguments"));
    for (int i = 0; i < argc; i++) {
        if (!words_only && strcmp(argv[i], "--") == 0)
            words_only = true;
        else if (!words_only && argv[i][0] == '-' && argv[i][1])
            RRL_GOTO(take(&o, &i, argc, argv, command, takes));
        else
            o.arguments.v[o.arguments.n++] = argv[i];
    }
    bool any_more = n_arguments < 0;
    if (any_more) n_arguments = -n_arguments;
    if ((o.arguments.n < n_arguments || (o.arguments.n > n_arguments && !any_more)) && !o.help && !o.version) {
        rc = o.arguments.n > n_arguments
                 ? RRL_FAIL(RRL_ERR_USAGE, "rrl %s: unexpected argument \"%s\"; see rrl %s --help", command,
                            o.arguments.v[n_arguments], command)
                 : RRL_FAIL(RRL_ERR_USAGE, "rrl %s: %d of %d arguments given; see rrl %s --help", command,
                            o.arguments.n, n_arguments, command);
        goto done;
    }
    *out = o;
    o = (rrl_options){0};
    rc = RRL_OK;
done:
    rrl_options_free(&o);
    return rc;
}

void rrl_options_free(rrl_options *o) {
    free(o->set.v);
    free(o->arguments.v);
    *o = (rrl_options){0};
}

rrl_status rrl_options_help(char **out, const char *command, const char *arguments, const char *summary,
                            const char *example, unsigned takes) {
    rrl_buffer b = {0};
    rrl_status rc;
    RRL_GOTO(rrl_buffer_printf(&b, "rrl %s - %s\n\nusage: rrl %s %s [options]\n\noptions:\n", command,
                               summary, command, arguments));
    for (int i = 0; i < N_OPTIONS; i++) {
        char name[NAME_CHARS], left[2 * NAME_CHARS];
        if (!(takes & 1u << i)) continue;
        name_of(name, &OPTIONS[i]);
        snprintf(left, sizeof left, "%s %s", name, OPTIONS[i].argument);
        RRL_GOTO(rrl_buffer_printf(&b, "  %-*s", HELP_INDENT - 2, left));
        RRL_GOTO(rrl_buffer_wrap(&b, OPTIONS[i].doc, HELP_INDENT, HELP_CHARS));
    }
    RRL_GOTO(rrl_buffer_printf(&b, "\nexample:\n  %s\n", example));
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    return rc;
}
