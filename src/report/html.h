/* Pieces of HTML: escaped text, tables, drawings made part of a page. Used by src/report only. */
#ifndef RRL_REPORT_HTML_H
#define RRL_REPORT_HTML_H

#include "base/memory.h"

/** Text with & < > " escaped. */
rrl_status rrl_html_text(rrl_buffer *b, const char *text);
/** A table: its caption ("" = none), the names of its columns, of which the first n_text hold text. */
rrl_status rrl_html_table(rrl_buffer *b, const char *caption, const char *const *columns, size_t n, size_t n_text);
rrl_status rrl_html_table_end(rrl_buffer *b);
/** A row begins; its cells follow. */
rrl_status rrl_html_row(rrl_buffer *b);
rrl_status rrl_html_cell(rrl_buffer *b, const char *text);
/** A number by a printf format for one double; NaN = an empty cell marked as undefined. */
rrl_status rrl_html_number(rrl_buffer *b, const char *format, double v);
/** A level; NaN = "fixed". */
rrl_status rrl_html_level(rrl_buffer *b, double level);
/** An SVG file of gnuplot as part of a page: no prolog and background, black and the colours of the palette follow the
 *  page's style sheet, ids made unique by name. label says what it shows to those who do not see it. */
rrl_status rrl_html_svg(rrl_buffer *b, const char *svg, const char *name, const char *label);
/** The style sheet, without <style>. */
const char *rrl_html_style(void);

#endif
