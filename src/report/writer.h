/* A document in pieces, written as HTML or as Markdown. What the report says is described once (report_page.c,
 * report_tables.c) and goes through one of the two writers below. Used by src/report only. */
#ifndef RRL_REPORT_WRITER_H
#define RRL_REPORT_WRITER_H

#include <stdbool.h>

#include "base/memory.h"
#include "report/plots.h"

/* How a paragraph is meant. */
typedef enum { RRL_PLAIN, RRL_SOFT, RRL_NOTE, RRL_FINDING, RRL_WARNING } rrl_tone;

typedef struct {
    const char *id, *title;
} rrl_chapter;

/* Every text is plain; a writer escapes what its form needs. */
typedef struct {
    /** The document's head, with the way to its n chapters; end closes it. */
    rrl_status (*begin)(rrl_buffer *b, const char *title, const char *subtitle, const rrl_chapter *v, size_t n);
    rrl_status (*end)(rrl_buffer *b);
    rrl_status (*chapter)(rrl_buffer *b, const rrl_chapter *c);
    rrl_status (*chapter_end)(rrl_buffer *b);
    rrl_status (*heading)(rrl_buffer *b, const char *text);
    rrl_status (*paragraph)(rrl_buffer *b, rrl_tone tone, const char *text);
    /** A list of texts, or of facts, whose items have a name (else NULL). */
    rrl_status (*list)(rrl_buffer *b, bool facts);
    rrl_status (*item)(rrl_buffer *b, const char *name, const char *text);
    rrl_status (*list_end)(rrl_buffer *b, bool facts);
    /** A table: its caption ("" = none), the names of its n columns, of which the first n_text hold text. Rows of n cells
     *  follow; the cell NULL is undefined. */
    rrl_status (*table)(rrl_buffer *b, const char *caption, const char *const *columns, size_t n, size_t n_text);
    rrl_status (*row)(rrl_buffer *b);
    rrl_status (*cell)(rrl_buffer *b, const char *text);
    rrl_status (*row_end)(rrl_buffer *b);
    rrl_status (*table_end)(rrl_buffer *b);
    /** A drawing, or the name of its data where there is none; its files are in folder/plots ("" = beside the document). */
    rrl_status (*picture)(rrl_buffer *b, const rrl_picture *p, const char *folder);
    /** Links to n files of a folder. */
    rrl_status (*files)(rrl_buffer *b, const char *lead, const char *folder, const char *const *names, size_t n);
} rrl_writer;

/** One HTML file that opens offline: style and drawings inside, light and dark, printable. */
extern const rrl_writer rrl_html_writer;
/** Markdown with tables; drawings are shown from their files. */
extern const rrl_writer rrl_markdown_writer;

/* A document being written. */
typedef struct {
    rrl_buffer *b;
    const rrl_writer *w;
} rrl_document;

#endif
