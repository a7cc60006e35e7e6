/* The Markdown writer. */
#include "report/writer.h"

static rrl_status begin(rrl_buffer *b, const char *title, const char *subtitle, const rrl_chapter *v, size_t n) {
    (void)v, (void)n; /* whoever shows Markdown makes a table of contents of its headings */
    RRL_TRY(rrl_buffer_printf(b, "# %s\n", title));
    return *subtitle ? rrl_buffer_printf(b, "\n%s\n", subtitle) : RRL_OK;
}

static rrl_status nothing(rrl_buffer *b) {
    (void)b;
    return RRL_OK;
}

static rrl_status chapter(rrl_buffer *b, const rrl_chapter *c) {
    return rrl_buffer_printf(b, "\n## %s\n", c->title);
}

static rrl_status heading(rrl_buffer *b, const char *text) {
    return rrl_buffer_printf(b, "\n### %s\n", text);
}

/* On one line: a line that a break made begin with "- base" would be a list. */
static rrl_status paragraph(rrl_buffer *b, rrl_tone tone, const char *text) {
    const char *strong = tone == RRL_WARNING ? "**" : "";
    return rrl_buffer_printf(b, "\n%s%s%s\n", strong, text, strong);
}

static rrl_status list(rrl_buffer *b, bool facts) {
    (void)facts;
    return rrl_buffer_puts(b, "\n");
}

static rrl_status item(rrl_buffer *b, const char *name, const char *text) {
    return rrl_buffer_printf(b, "- %s%s%s\n", name ? name : "", name ? ": " : "", text);
}

static rrl_status list_end(rrl_buffer *b, bool facts) {
    (void)b, (void)facts;
    return RRL_OK;
}

/* No pipe and no line end of its own. */
static rrl_status cell(rrl_buffer *b, const char *text) {
    RRL_TRY(rrl_buffer_puts(b, " "));
    for (const char *p = text ? text : "\xe2\x80\x93"; *p; p++) {
        if (*p == '|')
            RRL_TRY(rrl_buffer_puts(b, "\\|"));
        else
            RRL_TRY(rrl_buffer_put(b, *p == '\n' ? " " : p, 1));
    }
    return rrl_buffer_puts(b, " |");
}

static rrl_status row(rrl_buffer *b) {
    return rrl_buffer_puts(b, "|");
}

static rrl_status row_end(rrl_buffer *b) {
    return rrl_buffer_puts(b, "\n");
}

static rrl_status table(rrl_buffer *b, const char *caption, const char *const *columns, size_t n, size_t n_text) {
    if (*caption) RRL_TRY(rrl_buffer_printf(b, "\n%s:\n", caption));
    RRL_TRY(rrl_buffer_puts(b, "\n|"));
    for (size_t i = 0; i < n; i++) RRL_TRY(cell(b, columns[i]));
    RRL_TRY(rrl_buffer_puts(b, "\n|"));
    for (size_t i = 0; i < n; i++) RRL_TRY(rrl_buffer_puts(b, i < n_text ? "---|" : "---:|"));
    return rrl_buffer_puts(b, "\n");
}

static rrl_status picture(rrl_buffer *b, const rrl_picture *p, const char *folder) {
    const char *slash = *folder ? "/" : "";
    RRL_TRY(rrl_buffer_printf(b, p->svg ? "\n![%s](%s%splots/%s.svg)\n" : "\n%s: data in %s%splots/%s.csv\n", p->title, folder,
                              slash, p->name));
    return paragraph(b, RRL_PLAIN, p->caption);
}

static rrl_status files(rrl_buffer *b, const char *lead, const char *folder, const char *const *names, size_t n) {
    RRL_TRY(rrl_buffer_printf(b, "\n%s\n\n", lead));
    for (size_t i = 0; i < n; i++)
        RRL_TRY(rrl_buffer_printf(b, "- [%s](%s%s%s)\n", names[i], folder, *folder ? "/" : "", names[i]));
    return RRL_OK;
}

const rrl_writer rrl_markdown_writer = {begin, nothing, chapter, nothing, heading, paragraph, list, item,
                                        list_end, table, row, cell, row_end, nothing, picture, files};
