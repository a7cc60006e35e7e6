/* The resolved config as YAML. Every text is written so that this project's parser and others read the same
 * value. */
#include "config/config_write.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* --- scalars */

/* Characters that YAML wants escaped in double quotes: controls, line separators, the byte order mark. */
static bool needs_escape(uint32_t cp) {
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 || cp == 0xfeff ||
           cp == 0xfffe || cp == 0xffff;
}

static rrl_status write_quoted(rrl_buffer *b, const char *text) {
    const char *end = text + strlen(text);
    RRL_TRY(rrl_buffer_puts(b, "\""));
    while (text < end) {
        const char *start = text;
        uint32_t cp = rrl_utf8_next(&text, end);
        if (cp == '"' || cp == '\\')
            RRL_TRY(rrl_buffer_printf(b, "\\%c", (char)cp));
        else if (cp == '\n')
            RRL_TRY(rrl_buffer_puts(b, "\\n"));
        else if (needs_escape(cp))
            RRL_TRY(rrl_buffer_printf(b, "\\u%04" PRIx32, cp));
        else
            RRL_TRY(rrl_buffer_put(b, start, (size_t)(text - start)));
    }
    return rrl_buffer_puts(b, "\"");
}

/* Starts like a name, holds only harmless characters, and is no word with a meaning of its own in some YAML.
 */
static bool is_plain(const char *text) {
    static const char *const WORDS[] = {"null", "true", "false", "yes", "no", "on",
                                        "off",  "y",    "n",     "nan", "inf"};
    if (!isalpha((unsigned char)*text) && *text != '/') return false;
    if (text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@")])
        return false;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        const char *a = text, *w = WORDS[i];
        while (*a && tolower((unsigned char)*a) == *w) a++, w++;
        if (!*a && !*w) return false;
    }
    return true;
}

static rrl_status write_text(rrl_buffer *b, const char *text, rrl_write_style style) {
    return style == RRL_WRITE_YAML && is_plain(text) ? rrl_buffer_puts(b, text) : write_quoted(b, text);
}

static rrl_status write_path(rrl_buffer *b, const char *path, rrl_write_style style, const char *base) {
    size_t n = base ? strlen(base) : 0;
    if (n && strncmp(path, base, n) == 0 && path[n] == '/' && path[n + 1]) path += n + 1;
    return write_text(b, path, style);
}

static rrl_status write_real(rrl_buffer *b, double v, rrl_write_style style) {
    char text[RRL_NUMBER_CHARS];
    rrl_format_double(text, v);
    const char *exponent = strchr(text, 'e');
    if (style == RRL_WRITE_DIGEST || !exponent || strchr(text, '.')) return rrl_buffer_puts(b, text);
    /* YAML 1.1 readers take 1e-06 for a text: 1.0e-06 */
    RRL_TRY(rrl_buffer_put(b, text, (size_t)(exponent - text)));
    RRL_TRY(rrl_buffer_puts(b, ".0"));
    return rrl_buffer_puts(b, exponent);
}

/* --- keys */

static rrl_status write_list(rrl_buffer *b, const rrl_key *k, const void *at, rrl_write_style style) {
    const rrl_texts *texts = at;
    const rrl_ints *ints = at;
    const rrl_reals *reals = at;
    int64_t n = k->type == RRL_KEY_TEXTS ? texts->n : k->type == RRL_KEY_INTS ? ints->n : reals->n;
    RRL_TRY(rrl_buffer_puts(b, "["));
    for (int64_t i = 0; i < n; i++) {
        if (i) RRL_TRY(rrl_buffer_puts(b, ", "));
        if (k->type == RRL_KEY_TEXTS)
            RRL_TRY(write_text(b, texts->v[i], style));
        else if (k->type == RRL_KEY_INTS)
            RRL_TRY(rrl_buffer_printf(b, "%" PRId64, ints->v[i]));
        else
            RRL_TRY(write_real(b, reals->v[i], style));
    }
    return rrl_buffer_puts(b, "]");
}

rrl_status rrl_value_write(rrl_buffer *b, const rrl_key *k, const void *section, rrl_write_style style,
                           const char *base) {
    const void *at = (const char *)section + k->offset;
    switch (k->type) {
    case RRL_KEY_BOOL:
        return rrl_buffer_puts(b, *(const bool *)at ? "true" : "false");
    case RRL_KEY_INT:
        return rrl_buffer_printf(b, "%" PRId64, *(const int64_t *)at);
    case RRL_KEY_REAL:
        return write_real(b, *(const double *)at, style);
    case RRL_KEY_ENUM:
        return rrl_buffer_puts(b, rrl_enum_text(k->texts, *(const int *)at));
    case RRL_KEY_TEXT:
        return write_text(b, *(char *const *)at, style);
    case RRL_KEY_PATH:
    case RRL_KEY_NAME:
        return write_path(b, *(char *const *)at, style, base);
    default:
        return write_list(b, k, at, style);
    }
}

/* --- the document */

typedef struct {
    rrl_buffer text;
    const char *base;
} writer;

static rrl_status indent(writer *w, int depth) {
    return rrl_buffer_printf(&w->text, "%*s", 2 * depth, "");
}

/* dash: the first key of a list element stands behind "- ". */
static rrl_status write_section(writer *w, const rrl_section *s, void *section, int depth, bool dash);

static rrl_status write_child(writer *w, const rrl_child *c, void *section, int depth) {
    int64_t n = rrl_child_count(c, section);
    if (!rrl_child_is_list(c)) {
        void *at = rrl_child_at(c, section, 0);
        size_t given = c->section->given_offset;
        bool left_out = c->section->optional && !*(bool *)((char *)at + given);
        if (left_out) return RRL_OK;
        RRL_TRY(indent(w, depth));
        RRL_TRY(rrl_buffer_printf(&w->text, "%s:\n", c->name));
        return write_section(w, c->section, at, depth + 1, false);
    }
    RRL_TRY(indent(w, depth));
    RRL_TRY(rrl_buffer_printf(&w->text, "%s:%s\n", c->name, n ? "" : " []"));
    for (int64_t i = 0; i < n; i++)
        RRL_TRY(write_section(w, c->section, rrl_child_at(c, section, i), depth + 1, true));
    return RRL_OK;
}

static rrl_status write_section(writer *w, const rrl_section *s, void *section, int depth, bool dash) {
    for (size_t i = 0; i < s->n_keys; i++) {
        RRL_TRY(indent(w, depth));
        if (dash) RRL_TRY(rrl_buffer_puts(&w->text, i ? "  " : "- "));
        RRL_TRY(rrl_buffer_printf(&w->text, "%s: ", s->keys[i].name));
        RRL_TRY(rrl_value_write(&w->text, &s->keys[i], section, RRL_WRITE_YAML, w->base));
        RRL_TRY(rrl_buffer_puts(&w->text, "\n"));
    }
    for (size_t i = 0; i < s->n_children; i++)
        RRL_TRY(write_child(w, &s->children[i], section, depth + dash));
    return RRL_OK;
}

rrl_status rrl_config_yaml(char **out, const rrl_config *c, const char *base) {
    writer w = {.base = base};
    rrl_config view = *c; /* the walkers hand out addresses to write to; nothing is written */
    rrl_status rc = write_section(&w, rrl_config_root(), &view, 0, false);
    if (rc == RRL_OK) {
        *out = w.text.data;
        w.text = (rrl_buffer){0};
    }
    rrl_buffer_free(&w.text);
    return rc;
}
