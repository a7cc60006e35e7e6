/* The readable pieces of the report: the terminal table, the finding under it, the words for the two statements. Used by
 * src/report only. */
#ifndef RRL_REPORT_REPORT_TEXT_H
#define RRL_REPORT_REPORT_TEXT_H

#include <stdbool.h>

#include "base/memory.h"
#include "report/compare.h"
#include "report/study_info.h"

enum { RRL_REPORT_COLUMNS = 80, RRL_REPORT_SENTENCE = 512 };

/** The main table of a section in at most RRL_REPORT_COLUMNS columns. */
rrl_status rrl_report_text_table(rrl_buffer *b, const rrl_report_numbers *n);
/** What the numbers say of correctness: where baseline fell below base, and whether robust did too; on one line, in an
 *  empty buffer, which stays empty for a single record. Only differences of means and their intervals are stated. */
rrl_status rrl_report_finding(rrl_buffer *b, const rrl_report_numbers *n);
/** pass@1 before training, how it was measured and what was demanded; false where nothing was measured or demanded. */
bool rrl_report_qualification(char out[RRL_REPORT_SENTENCE], const rrl_report_study *s);
/** What statement 1 (about these runs) or 2 (about the method) is and how it was made, one line. */
void rrl_report_statement_note(char *out, size_t size, const rrl_report_numbers *n, bool method);
/** What fewer than RRL_FEW_SEEDS seeds cannot show. */
void rrl_report_seed_warning(char *out, size_t size, const rrl_report_numbers *n);
/** "path: status (reason)" of a condition without a finished record. */
rrl_status rrl_report_gap_text(rrl_buffer *b, const rrl_report_gap *g);
/** The k of the largest pass@k that was recorded; 0 if none. */
int64_t rrl_report_largest_k(const rrl_report_section *s);
/** "arm level" of a row: "flip 0.4", "loophole fixed", "level 0.2" without an arm, "all" without either. */
void rrl_report_cell_name(char out[96], const char *arm, double level);

#endif
