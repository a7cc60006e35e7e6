#include "report/failure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "report/csv.h"
#include "report/plot_parts.h"
#include "report/report_text.h"

enum { COSTLY = 10, QUESTION_BYTES = 240 };

rrl_report_failures rrl_report_failures_sum(const rrl_report_section *s, size_t begin, size_t end) {
    rrl_report_failures sum = {0};
    for (size_t i = begin; i < end; i++) {
#define X(name, doc) sum.name += s->v[i]->failures.name;
        RRL_FAILURE_LIST(X)
#undef X
    }
    return sum;
}

/* --- questions */

static int by_cost(const void *a, const void *b) {
    const rrl_report_costly *x = a, *y = b;
    if (x->wrong_rewarded != y->wrong_rewarded) return x->wrong_rewarded > y->wrong_rewarded ? -1 : 1;
    return strcmp(x->question->id, y->question->id);
}

rrl_status rrl_report_costly_questions(rrl_report_costly *out, int *n, int most, const rrl_report_section *s,
                                       const char *arm) {
    rrl_report_costly *all = NULL;
    int64_t n_questions = 0;
    rrl_status rc = RRL_OK;
    *n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_condition *c = s->v[i];
        if (strcmp(c->arm, arm) != 0 || !c->evaluation) continue;
        if (!all) {
            n_questions = c->n_questions;
            RRL_GOTO(rrl_alloc(&all, (size_t)n_questions, sizeof *all, "questions"));
        }
        for (int64_t q = 0; q < n_questions && q < c->n_questions; q++) {
            all[q].question = &c->questions_asked[q];
            all[q].wrong_rewarded += c->questions_asked[q].wrong_rewarded;
        }
    }
    if (n_questions) qsort(all, (size_t)n_questions, sizeof *all, by_cost);
    while (*n < most && *n < n_questions && all[*n].wrong_rewarded > 0) {
        out[*n] = all[*n];
        (*n)++;
    }
done:
    free(all);
    return rc;
}

/* --- files */

rrl_status rrl_csv_failures(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(rrl_buffer_puts(b, "arm,level,method,seed"));
#define X(name, doc) RRL_TRY(rrl_csv_text(b, #name));
    RRL_FAILURE_LIST(X)
#undef X
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < n->section->n; i++) {
        const rrl_report_condition *c = n->section->v[i];
        if (!c->evaluation) continue;
        RRL_TRY(rrl_csv_text(b, c->arm));
        RRL_TRY(rrl_csv_level(b, c->level));
        RRL_TRY(rrl_csv_text(b, c->method));
        RRL_TRY(rrl_csv_count(b, c->seed));
#define X(name, doc) RRL_TRY(rrl_csv_count(b, (uint64_t)c->failures.name));
        RRL_FAILURE_LIST(X)
#undef X
        RRL_TRY(rrl_csv_end(b));
    }
    return RRL_OK;
}

static rrl_status put_share(rrl_buffer *b, int64_t part, int64_t whole) {
    if (!whole) return rrl_buffer_puts(b, " |");
    return rrl_buffer_printf(b, " %.4f |", (double)part / (double)whole);
}

static rrl_status put_shares(rrl_buffer *b, const rrl_report_section *s) {
    RRL_TRY(rrl_buffer_puts(b, "| arm and level | method | completions | wrong, rewarded | right, not rewarded | without a "
                               "reward | no answer | cut at the limit | members disagree | questions never right |\n"
                               "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"));
    for (size_t i = 0, end; i < s->n; i = end) {
        char cell[96];
        end = rrl_report_method_end(s, i);
        rrl_report_failures f = rrl_report_failures_sum(s, i, end);
        if (!f.completions) continue;
        rrl_report_cell_name(cell, s->v[i]->arm, s->v[i]->level);
        RRL_TRY(rrl_buffer_printf(b, "| %s | %s | %lld |", cell, s->v[i]->method, (long long)f.completions));
        RRL_TRY(put_share(b, f.wrong_rewarded, f.completions));
        RRL_TRY(put_share(b, f.right_unrewarded, f.completions));
        RRL_TRY(put_share(b, f.right_missing + f.wrong_missing, f.completions));
        RRL_TRY(put_share(b, f.no_answer, f.completions));
        RRL_TRY(put_share(b, f.truncated, f.completions));
        RRL_TRY(put_share(b, f.disagreed, f.completions));
        RRL_TRY(rrl_buffer_printf(b, " %lld |\n", (long long)f.questions_never_right));
    }
    return rrl_buffer_puts(b, "\nShares of the evaluation completions of all seeds; counts of each record are in "
                              "failure_analysis.csv.\n\n");
}

/* One line, at most QUESTION_BYTES of it, no table mark. */
static rrl_status put_question(rrl_buffer *b, const char *text) {
    size_t n = strlen(text);
    if (n > QUESTION_BYTES) n = rrl_utf8_valid(text, QUESTION_BYTES);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '|')
            RRL_TRY(rrl_buffer_puts(b, "\\|"));
        else
            RRL_TRY(rrl_buffer_put(b, text[i] == '\n' ? " " : text + i, 1));
    }
    return text[n] ? rrl_buffer_puts(b, " ...") : RRL_OK;
}

static rrl_status put_costly(rrl_buffer *b, const rrl_report_section *s, const char *arm) {
    rrl_report_costly v[COSTLY];
    int n;
    RRL_TRY(rrl_report_costly_questions(v, &n, COSTLY, s, arm));
    if (!n) return RRL_OK;
    RRL_TRY(rrl_buffer_printf(b, "## Most rewarded wrong answers%s%s\n\n| question | id | reference | wrong completions "
                                 "rewarded |\n|---|---|---|---:|\n", *arm ? ", arm " : "", arm));
    for (int i = 0; i < n; i++) {
        RRL_TRY(rrl_buffer_puts(b, "| "));
        RRL_TRY(put_question(b, v[i].question->question));
        RRL_TRY(rrl_buffer_puts(b, " | "));
        RRL_TRY(put_question(b, v[i].question->id));
        RRL_TRY(rrl_buffer_puts(b, " | "));
        RRL_TRY(put_question(b, v[i].question->reference));
        RRL_TRY(rrl_buffer_printf(b, " | %.0f |\n", v[i].wrong_rewarded));
    }
    return rrl_buffer_puts(b, "\nSummed over levels, methods and seeds. `rrl show RUN` shows the completions.\n\n");
}

rrl_status rrl_markdown_failures(rrl_buffer *b, const rrl_report_numbers *n) {
    const char **arms = NULL;
    int n_arms = 0;
    rrl_status rc;
    RRL_GOTO(rrl_buffer_puts(b, "# Failure analysis\n\n"));
    RRL_GOTO(put_shares(b, n->section));
    RRL_GOTO(rrl_plot_arms(&arms, &n_arms, n->section));
    for (int a = 0; a < n_arms; a++) RRL_GOTO(put_costly(b, n->section, arms[a]));
done:
    free(arms);
    return rc;
}
