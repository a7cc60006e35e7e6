/* The hypotheses that were written down before the first run, answered by the numbers of the report: exactly those, in
 * words. Used by src/report only. */
#ifndef RRL_REPORT_HYPOTHESES_H
#define RRL_REPORT_HYPOTHESES_H

#include "report/report_page.h"

/* What a statement's interval and its p, corrected for all answers, say of the expected direction. */
typedef enum {
    RRL_ANSWER_UNKNOWN,   /* not measured */
    RRL_ANSWER_EXPECTED,  /* interval on the expected side, p <= 0.05; for "equal": 0 in the interval */
    RRL_ANSWER_CONTRARY,  /* interval on the other side, p <= 0.05 */
    RRL_ANSWER_UNDECIDED, /* anything else */
} rrl_answer_verdict;

/* One hypothesis at one arm and level. */
typedef struct {
    const rrl_hypothesis_config *hypothesis; /* borrowed */
    const char *arm;                         /* borrowed; NULL = nothing measured anywhere */
    double level, mean;
    int64_t n_seeds, n_questions;
    rrl_claim about_runs, about_method; /* of the contrast as it is written; Holm over all answers */
    rrl_answer_verdict runs, method;
} rrl_report_answer;

typedef struct {
    rrl_report_answer *v;
    size_t n, capacity;
} rrl_report_answers;

/** Answers in the order of the hypotheses, of arms and of levels. Free with rrl_report_answers_free. */
rrl_status rrl_report_answers_make(rrl_report_answers *out, const rrl_report_page *page);
void rrl_report_answers_free(rrl_report_answers *a);
/** An answer in one or more sentences, on one line. */
rrl_status rrl_report_answer_text(rrl_buffer *b, const rrl_report_answer *a);
/** hypotheses.csv. */
rrl_status rrl_report_hypotheses_csv(rrl_buffer *b, const rrl_report_page *page);

#endif
