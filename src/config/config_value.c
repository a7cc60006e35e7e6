/* One value: the schema decides its type, so "1e-6" is a number and "no" a text where the key says so. What
 * other YAML readers would take for something else (010, 0x10, 1:30, yes, quoted numbers) is refused with the
 * reason. */
#include "config/config_bind.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/text.h"

static bool is_one_of(const char *text, const char *const *list) {
    for (; *list; list++)
        if (strcmp(text, *list) == 0) return true;
    return false;
}

/* --- numbers */

/* Why text is no number, or NULL if no particular reason is known. */
static const char *number_trouble(const char *text) {
    static const char *const NANS[] = {".nan", ".NaN", ".NAN", "nan", "NaN", "NAN", "-nan", NULL};
    static const char *const INFS[] = {".inf", ".Inf", ".INF",     "+.inf", "-.inf",
                                       "inf",  "-inf", "Infinity", NULL};
    const char *p = text + (*text == '-' || *text == '+');
    if (is_one_of(text, NANS)) return "NaN is no setting; leave the key out for its default";
    if (is_one_of(text, INFS)) return "an infinite value is no setting; write a number in range";
    if (*p == '0' && (p[1] == 'x' || p[1] == 'X' || p[1] == 'o' || p[1] == 'b'))
        return "hexadecimal, octal and binary forms are refused; write the decimal number";
    if (*p == '0' && isdigit((unsigned char)p[1]))
        return "a leading zero is octal to some YAML readers and decimal to others; write it without";
    size_t digits = strspn(p, "0123456789");
    if (digits && p[digits] == ':')
        return "a:b is base 60 to some YAML readers; write the plain decimal number";
    if (digits && p[digits] == '_') return "write the number without underscores";
    if (digits && p[digits] == ',') return "write the number with a point and without commas";
    return NULL;
}

/* The text of a plain scalar, with reasons for what is none. `want` names the type. */
static rrl_status number_text(const char **out, const rrl_binder *b, const rrl_node *node, const char *want) {
    if (node->kind != RRL_NODE_SCALAR)
        return rrl_node_fail(node, b->path, "expects %s; a %s found", want,
                             node->kind == RRL_NODE_SEQUENCE ? "list" : "section");
    if (rrl_node_is_null(node))
        return rrl_node_fail(node, b->path, "expects %s; no value found (leave the key out for its default)",
                             want);
    if (!node->plain)
        return rrl_node_fail(node, b->path,
                             "expects %s; the text \"%.60s\" in quotes found: remove the quotes", want,
                             node->text);
    const char *trouble = number_trouble(node->text);
    if (trouble)
        return rrl_node_fail(node, b->path, "expects %s; '%.60s' found: %s", want, node->text, trouble);
    *out = node->text;
    return RRL_OK;
}

static bool is_integer(const char *text) {
    text += *text == '-' || *text == '+';
    size_t n = strspn(text, "0123456789");
    return n && !text[n];
}

static rrl_status bind_int(int64_t *out, const rrl_binder *b, const rrl_key *k, const rrl_node *node) {
    const char *text = NULL;
    RRL_TRY(number_text(&text, b, node, "a whole number"));
    double real;
    int64_t v = 0;
    if (!is_integer(text)) {
        if (rrl_parse_double(&real, text) && real == floor(real) && fabs(real) < 1e15)
            return rrl_node_fail(node, b->path, "expects a whole number; '%.60s' found: write %.0f", text,
                                 real);
        return rrl_node_fail(node, b->path, "expects a whole number; '%.60s' found", text);
    }
    if (!rrl_parse_int64(&v, text + (*text == '+')) || !(v >= k->int_low && v <= k->int_high)) {
        char high[32];
        snprintf(high, sizeof high, "%lld", (long long)k->int_high);
        return rrl_node_fail(node, b->path, "%.60s is out of range: from %lld to %s is allowed", text,
                             (long long)k->int_low, k->int_high == RRL_SEED_MAX ? "2^63 - 1" : high);
    }
    *out = v;
    return RRL_OK;
}

/* [+-] digits-or-points e [+-] digits: a number that rrl_parse_double refuses for its size only. */
static bool has_exponent_form(const char *text) {
    text += *text == '-' || *text == '+';
    size_t n = strspn(text, "0123456789.");
    if (!n || (text[n] != 'e' && text[n] != 'E')) return false;
    return is_integer(text + n + 1);
}

static rrl_status bind_real(double *out, const rrl_binder *b, const rrl_key *k, const rrl_node *node) {
    const char *text = NULL;
    RRL_TRY(number_text(&text, b, node, "a number"));
    bool shaped = text[strspn(text, "+-0123456789.eE")] == 0; /* rrl_parse_double also knows nan and inf */
    double v = 0;
    if (!shaped || !rrl_parse_double(&v, text)) {
        if (has_exponent_form(text))
            return rrl_node_fail(node, b->path, "'%.60s' is too large for a number", text);
        return rrl_node_fail(node, b->path, "expects a number; '%.60s' found", text);
    }
    size_t mantissa = strcspn(text, "eE");
    if (v == 0 && strcspn(text, "123456789") < mantissa)
        return rrl_node_fail(node, b->path, "'%.60s' is too small to tell from 0; write 0", text);
    if (!(v >= k->real_low && v <= k->real_high)) {
        char low[RRL_NUMBER_CHARS], high[RRL_NUMBER_CHARS];
        rrl_format_double(low, k->real_low);
        rrl_format_double(high, k->real_high);
        return rrl_node_fail(node, b->path, "%.60s is out of range: from %s to %s is allowed", text, low,
                             high);
    }
    *out = v == 0 ? 0 : v; /* no -0: equal settings have equal digests */
    return RRL_OK;
}

/* --- words */

static rrl_status bind_bool(bool *out, const rrl_binder *b, const rrl_node *node) {
    static const char *const TRUE_TEXTS[] = {"true", "True", "TRUE", NULL};
    static const char *const FALSE_TEXTS[] = {"false", "False", "FALSE", NULL};
    static const char *const OLD_TRUE[] = {"yes", "Yes", "YES", "on", "On", "ON", "y", "Y", "1", NULL};
    static const char *const OLD_FALSE[] = {"no", "No", "NO", "off", "Off", "OFF", "n", "N", "0", NULL};
    if (node->kind != RRL_NODE_SCALAR)
        return rrl_node_fail(node, b->path, "expects true or false; a %s found",
                             node->kind == RRL_NODE_SEQUENCE ? "list" : "section");
    bool yes = is_one_of(node->text, TRUE_TEXTS), no = is_one_of(node->text, FALSE_TEXTS);
    if (!node->plain && (yes || no))
        return rrl_node_fail(node, b->path,
                             "expects true or false; the text \"%s\" in quotes found: remove the quotes",
                             node->text);
    if (is_one_of(node->text, OLD_TRUE) || is_one_of(node->text, OLD_FALSE))
        return rrl_node_fail(node, b->path,
                             "expects true or false; '%s' found: YAML readers differ on it, write %s",
                             node->text, is_one_of(node->text, OLD_TRUE) ? "true" : "false");
    if (!yes && !no) return rrl_node_fail(node, b->path, "expects true or false; '%.60s' found", node->text);
    *out = yes;
    return RRL_OK;
}

static rrl_status scalar_of(const char **out, const rrl_binder *b, const rrl_node *node, const char *want) {
    if (node->kind != RRL_NODE_SCALAR)
        return rrl_node_fail(node, b->path, "expects %s; a %s found", want,
                             node->kind == RRL_NODE_SEQUENCE ? "list" : "section");
    *out = node->text;
    return RRL_OK;
}

static rrl_status bind_enum(int *out, const rrl_binder *b, const rrl_key *k, const rrl_node *node) {
    const char *text = NULL;
    RRL_TRY(scalar_of(&text, b, node, "one word"));
    int v = rrl_enum_value(k->texts, text);
    if (v >= 0) {
        *out = v;
        return RRL_OK;
    }
    char words[512] = "";
    size_t used = 0, n = 0;
    for (; k->texts[n]; n++)
        if (used < sizeof words)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", n ? " | " : "", k->texts[n]);
    const char *nearest = rrl_nearest_name(text, k->texts, n);
    return rrl_node_fail(node, b->path, "expects one of %s; '%.60s' found%s%s%s", words, text,
                         nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
}

rrl_status rrl_path_bind(char **out, const rrl_binder *b, const char *path, const rrl_node *node) {
    while (strncmp(path, "./", 2) == 0) path += 2 + strspn(path + 2, "/");
    char *joined = NULL;
    RRL_TRY(rrl_path_join(&joined, node && node->from_set ? b->cwd : b->base, path));
    size_t n = strlen(joined);
    while (n > 1 && joined[n - 1] == '/') n--;
    rrl_status rc = rrl_arena_text(out, b->arena, joined, n);
    free(joined);
    return rc;
}

static rrl_status bind_text(char **out, const rrl_binder *b, const rrl_key *k, const rrl_node *node) {
    const char *text = k->text_default;
    if (node) RRL_TRY(scalar_of(&text, b, node, k->type == RRL_KEY_PATH ? "a path" : "a text"));
    if (k->type == RRL_KEY_PATH && *text) return rrl_path_bind(out, b, text, node);
    return rrl_arena_text(out, b->arena, text, strlen(text));
}

/* --- lists */

/* The default "1,4,8" as a sequence of plain scalars. */
static rrl_status default_list(rrl_node **out, const rrl_binder *b, const char *text) {
    rrl_node place = {.origin = "default"}, *list = NULL;
    RRL_TRY(rrl_node_new(&list, b->scratch, RRL_NODE_SEQUENCE, &place));
    while (*text) {
        size_t n = strcspn(text, ",");
        rrl_node *item = NULL;
        RRL_TRY(rrl_node_new(&item, b->scratch, RRL_NODE_SCALAR, &place));
        RRL_TRY(rrl_arena_text(&item->text, b->scratch, text, n));
        item->plain = true;
        rrl_node_append(list, item);
        text += n + (text[n] == ',');
    }
    *out = list;
    return RRL_OK;
}

/* A scalar stands for a list of one. */
static rrl_status as_list(rrl_node **out, const rrl_binder *b, const rrl_node *node) {
    if (node->kind == RRL_NODE_MAPPING)
        return rrl_node_fail(node, b->path, "expects a list; a section found");
    rrl_node *list = NULL;
    RRL_TRY(rrl_node_new(&list, b->scratch, RRL_NODE_SEQUENCE, node));
    if (node->kind == RRL_NODE_SEQUENCE) {
        *list = *node;
    } else if (!rrl_node_is_null(node)) {
        rrl_node *item = NULL;
        RRL_TRY(rrl_node_new(&item, b->scratch, RRL_NODE_SCALAR, node));
        *item = *node;
        item->next = NULL;
        rrl_node_append(list, item);
    }
    *out = list;
    return RRL_OK;
}

static rrl_status bind_list(rrl_binder *b, const rrl_key *k, void *at, const rrl_node *node) {
    rrl_node *list = NULL;
    RRL_TRY(node ? as_list(&list, b, node) : default_list(&list, b, k->text_default));
    rrl_texts texts = {.n = list->n};
    rrl_ints ints = {.n = list->n};
    rrl_reals reals = {.n = list->n};
    if (k->type == RRL_KEY_TEXTS)
        RRL_TRY(rrl_arena_take(&texts.v, b->arena, (size_t)list->n, sizeof *texts.v));
    if (k->type == RRL_KEY_INTS) RRL_TRY(rrl_arena_take(&ints.v, b->arena, (size_t)list->n, sizeof *ints.v));
    if (k->type == RRL_KEY_REALS)
        RRL_TRY(rrl_arena_take(&reals.v, b->arena, (size_t)list->n, sizeof *reals.v));
    size_t length = strlen(b->path);
    int64_t i = 0;
    for (const rrl_node *item = list->first; item; item = item->next, i++) {
        snprintf(b->path + length, sizeof b->path - length, "[%lld]", (long long)i);
        const char *text = NULL;
        switch (k->type) {
        case RRL_KEY_INTS:
            RRL_TRY(bind_int(&ints.v[i], b, k, item));
            break;
        case RRL_KEY_REALS:
            RRL_TRY(bind_real(&reals.v[i], b, k, item));
            break;
        default:
            RRL_TRY(scalar_of(&text, b, item, "a text"));
            if (!*text) return rrl_node_fail(item, b->path, "expects a text; an empty one found");
            RRL_TRY(rrl_arena_text(&texts.v[i], b->arena, text, strlen(text)));
        }
        b->path[length] = 0;
    }
    if (k->type == RRL_KEY_TEXTS) *(rrl_texts *)at = texts;
    if (k->type == RRL_KEY_INTS) *(rrl_ints *)at = ints;
    if (k->type == RRL_KEY_REALS) *(rrl_reals *)at = reals;
    return RRL_OK;
}

/* --- any key */

/* Keys whose default means "none" take a null for it, as the reference's files write it. */
static bool null_means_default(const rrl_key *k) {
    switch (k->type) {
    case RRL_KEY_TEXT:
    case RRL_KEY_PATH:
    case RRL_KEY_NAME:
    case RRL_KEY_TEXTS:
    case RRL_KEY_INTS:
    case RRL_KEY_REALS:
        return !*k->text_default;
    case RRL_KEY_INT:
        return k->int_default == k->int_low && k->int_low <= 0;
    case RRL_KEY_REAL:
        return k->real_default == k->real_low && k->real_low < 0;
    default:
        return false;
    }
}

rrl_status rrl_value_bind(rrl_binder *b, const rrl_key *k, void *section, const rrl_node *node) {
    void *at = rrl_key_at(k, section);
    if (node && rrl_node_is_null(node)) {
        if (!null_means_default(k))
            return rrl_node_fail(node, b->path, "has no value; leave the key out for its default");
        node = NULL;
    }
    switch (k->type) {
    case RRL_KEY_BOOL:
        *(bool *)at = k->int_default != 0;
        return node ? bind_bool(at, b, node) : RRL_OK;
    case RRL_KEY_INT:
        *(int64_t *)at = k->int_default;
        return node ? bind_int(at, b, k, node) : RRL_OK;
    case RRL_KEY_REAL:
        *(double *)at = k->real_default;
        return node ? bind_real(at, b, k, node) : RRL_OK;
    case RRL_KEY_ENUM:
        *(int *)at = (int)k->int_default;
        return node ? bind_enum(at, b, k, node) : RRL_OK;
    case RRL_KEY_TEXT:
    case RRL_KEY_PATH:
    case RRL_KEY_NAME:
        return bind_text(at, b, k, node);
    default:
        return bind_list(b, k, at, node);
    }
}
