/* CSV text (RFC 4180, lines end in \n): fields are quoted where they must be, numbers are the shortest decimals that
 * read back to the same double, NaN is an empty field. Used by src/report only. */
#ifndef RRL_REPORT_CSV_H
#define RRL_REPORT_CSV_H

#include "base/memory.h"

/** Append a text field, a number field, the end of a row. A field begins with a comma unless it is the row's first. */
rrl_status rrl_csv_text(rrl_buffer *b, const char *text);
rrl_status rrl_csv_number(rrl_buffer *b, double v);
rrl_status rrl_csv_count(rrl_buffer *b, uint64_t v);
/** A level; NaN = "fixed". */
rrl_status rrl_csv_level(rrl_buffer *b, double level);
rrl_status rrl_csv_end(rrl_buffer *b);

#endif
