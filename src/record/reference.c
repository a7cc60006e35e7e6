/* The tables of docs/records.md, written from the column lists. */
#include "base/memory.h"
#include "record/record.h"
#include "record/tables.h"

/* A cell: "|" would end it. */
static rrl_status put_cell(rrl_buffer *b, const char *text) {
    for (; *text; text++) {
        if (*text == '|') RRL_TRY(rrl_buffer_puts(b, "\\"));
        RRL_TRY(rrl_buffer_put(b, text, 1));
    }
    return rrl_buffer_puts(b, " | ");
}

static rrl_status put_column(rrl_buffer *b, const rrl_column *c) {
    RRL_TRY(rrl_buffer_printf(b, "| `%s` | %s | ", c->name, rrl_column_kind_text(c->kind)));
    RRL_TRY(put_cell(b, c->unit[0] ? c->unit : "-"));
    RRL_TRY(put_cell(b, c->missing));
    RRL_TRY(rrl_buffer_puts(b, c->digest ? "yes | " : "no | "));
    RRL_TRY(put_cell(b, c->meaning));
    b->len--; /* the space behind the last bar */
    return rrl_buffer_puts(b, "\n");
}

static rrl_status put_heading(rrl_buffer *b, const char *title, const char *doc) {
    return rrl_buffer_printf(b,
                             "\n### %s\n\n%s.\n\n| column | type | unit | missing | in digest | meaning |\n"
                             "|---|---|---|---|---|---|\n",
                             title, doc);
}

static rrl_status put_table(rrl_buffer *b, const char *title, const rrl_table *t, bool in_digest) {
    RRL_TRY(put_heading(b, title, t->meaning));
    for (int i = 0; i < t->n_columns; i++) {
        rrl_column c = t->columns[i];
        c.digest = c.digest && in_digest;
        RRL_TRY(put_column(b, &c));
    }
    return RRL_OK;
}

static rrl_status put_arrays(rrl_buffer *b) {
    static const rrl_column *const ARRAYS[] = {&rrl_column_text, &rrl_column_answer, &rrl_column_tokens,
                                               &rrl_column_logprobs, &rrl_column_segment_rollouts};
    RRL_TRY(put_heading(b, "Beside the tables",
                        "One-dimensional datasets, each with attributes unit, missing and meaning"));
    for (size_t i = 0; i < sizeof ARRAYS / sizeof *ARRAYS; i++) RRL_TRY(put_column(b, ARRAYS[i]));
    return RRL_OK;
}

rrl_status rrl_record_reference(char **out) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    RRL_GOTO(put_table(&b, "/rollouts", &rrl_table_rollouts, true));
    RRL_GOTO(put_arrays(&b));
    RRL_GOTO(put_table(&b, "/verdicts", &rrl_table_verdicts, true));
    RRL_GOTO(put_table(&b, "/training", &rrl_table_training, true));
    RRL_GOTO(put_table(&b, "/questions", &rrl_table_questions, false));
    RRL_GOTO(put_table(&b, "/members", &rrl_table_members, false));
    RRL_GOTO(put_table(&b, "/evaluation/NAME/metrics", &rrl_table_metrics, true));
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    return rc;
}
