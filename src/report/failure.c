#include "report/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "report/csv.h"
#include "report/plot_parts.h"
#include "report/report_tables.h"

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

/* At most QUESTION_BYTES of a text. */
static rrl_status short_cell(const rrl_document *d, const char *text) {
    char cut[QUESTION_BYTES + 8];
    size_t n = strlen(text);
    if (n > QUESTION_BYTES) n = rrl_utf8_valid(text, QUESTION_BYTES);
    snprintf(cut, sizeof cut, "%.*s%s", (int)n, text, text[n] ? " ..." : "");
    return d->w->cell(d->b, cut);
}

static rrl_status costly_table(const rrl_document *d, const rrl_report_section *s, const char *arm) {
    static const char *const COLUMNS[] = {"question", "id", "reference", "wrong completions rewarded"};
    char title[128], count[32];
    rrl_report_costly v[COSTLY];
    int n;
    RRL_TRY(rrl_report_costly_questions(v, &n, COSTLY, s, arm));
    if (!n) return RRL_OK;
    snprintf(title, sizeof title, "Most rewarded wrong answers%s%.64s", *arm ? ", arm " : "", arm);
    RRL_TRY(d->w->heading(d->b, title));
    RRL_TRY(d->w->table(d->b, "", COLUMNS, sizeof COLUMNS / sizeof *COLUMNS, 3));
    for (int i = 0; i < n; i++) {
        RRL_TRY(d->w->row(d->b));
        RRL_TRY(short_cell(d, v[i].question->question));
        RRL_TRY(short_cell(d, v[i].question->id));
        RRL_TRY(short_cell(d, v[i].question->reference));
        snprintf(count, sizeof count, "%.0f", v[i].wrong_rewarded);
        RRL_TRY(d->w->cell(d->b, count));
        RRL_TRY(d->w->row_end(d->b));
    }
    RRL_TRY(d->w->table_end(d->b));
    return d->w->paragraph(d->b, RRL_NOTE, "Summed over levels, methods and seeds. `rrl show RUN` shows the completions.");
}

rrl_status rrl_markdown_failures(rrl_buffer *b, const rrl_report_numbers *n) {
    const rrl_document d = {b, &rrl_markdown_writer};
    const char **arms = NULL;
    int n_arms = 0;
    rrl_status rc;
    RRL_GOTO(d.w->begin(b, "Failure analysis", "Counts of each record are in failure_analysis.csv.", NULL, 0));
    RRL_GOTO(rrl_report_failure_table(&d, n->section));
    RRL_GOTO(rrl_plot_arms(&arms, &n_arms, n->section));
    for (int a = 0; a < n_arms; a++) RRL_GOTO(costly_table(&d, n->section, arms[a]));
done:
    free(arms);
    return rc;
}
