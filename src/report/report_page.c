/* The report in the order of its reader: what was asked and answered, what was found, the numbers behind it, the
 * pictures, what training did, what is missing, where it came from. */
#include "report/report_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/hypotheses.h"
#include "report/measured.h"
#include "report/report_csv.h"
#include "report/report_tables.h"
#include "report/report_text.h"

static const rrl_chapter HYPOTHESES = {"hypotheses", "Hypotheses"}, QUALIFICATION = {"qualification", "Qualification"},
                         GAPS = {"gaps", "Not complete"}, PROVENANCE = {"provenance", "Provenance"};

typedef struct {
    char id[32], title[64];
} section_name;

static section_name name_of(const rrl_report_page *page, size_t i) {
    section_name name = {"", "Results"};
    snprintf(name.id, sizeof name.id, "section-%zu", i + 1);
    if (page->n > 1) snprintf(name.title, sizeof name.title, "Section %zu of %zu", i + 1, page->n);
    return name;
}

static const char *plural(size_t n) {
    return n == 1 ? "" : "s";
}

/* --- hypotheses and qualification */

static rrl_status answer(const rrl_document *d, const rrl_report_answer *a) {
    rrl_buffer text = {0};
    rrl_status rc;
    RRL_GOTO(rrl_report_answer_text(&text, a));
    RRL_GOTO(d->w->item(d->b, NULL, text.data));
done:
    rrl_buffer_free(&text);
    return rc;
}

static rrl_status answers(const rrl_document *d, const rrl_report_answers *a) {
    for (size_t i = 0, end; i < a->n; i = end) {
        RRL_TRY(d->w->heading(d->b, a->v[i].hypothesis->name));
        RRL_TRY(d->w->list(d->b, false));
        for (end = i; end < a->n && a->v[end].hypothesis == a->v[i].hypothesis; end++) RRL_TRY(answer(d, &a->v[end]));
        RRL_TRY(d->w->list_end(d->b, false));
    }
    return RRL_OK;
}

static rrl_status hypotheses(const rrl_document *d, const rrl_report_page *page) {
    static const char *const FILE_NAME = "hypotheses.csv";
    rrl_report_answers a = {0};
    rrl_status rc;
    RRL_GOTO(rrl_report_answers_make(&a, page));
    if (!a.n) goto done;
    RRL_GOTO(d->w->chapter(d->b, &HYPOTHESES));
    RRL_GOTO(d->w->paragraph(
        d->b, page->study->hypotheses_unchanged ? RRL_SOFT : RRL_WARNING,
        page->study->hypotheses_unchanged
            ? "Written down before the first run; their digest in study.json is that of the text answered here. Holm's "
              "correction counts all answers of one statement as one family."
            : "Warning: these hypotheses do not have the digest that study.json recorded before the first run, so they "
              "were changed after it."));
    RRL_GOTO(answers(d, &a));
    RRL_GOTO(d->w->files(d->b, "As a file:", "", &FILE_NAME, 1));
    RRL_GOTO(d->w->chapter_end(d->b));
done:
    rrl_report_answers_free(&a);
    return rc;
}

static rrl_status qualification(const rrl_document *d, const rrl_report_study *s) {
    char text[RRL_REPORT_SENTENCE];
    if (!rrl_report_qualification(text, s)) return RRL_OK;
    RRL_TRY(d->w->chapter(d->b, &QUALIFICATION));
    RRL_TRY(d->w->paragraph(d->b, RRL_PLAIN, text));
    return d->w->chapter_end(d->b);
}

/* --- the parts of a section */

static rrl_status section_head(const rrl_document *d, const rrl_report_section *s) {
    const rrl_report_condition *c = s->v[0];
    char text[512], evaluation[256] = "";
    size_t seeds = (size_t)rrl_report_seeds(s);
    for (size_t i = 0; i < s->n && !c->evaluation; i++)
        if (s->v[i]->evaluation) c = s->v[i];
    if (c->evaluation)
        snprintf(evaluation, sizeof evaluation, " Evaluation \"%.64s\": %lld questions, %lld completions a record.",
                 c->evaluation, (long long)c->n_questions, (long long)c->n_completions);
    snprintf(text, sizeof text, "%zu record%s, %zu seed%s.%s", s->n, plural(s->n), seeds, plural(seeds), evaluation);
    RRL_TRY(d->w->paragraph(d->b, RRL_SOFT, text));
    if (!*s->difference) return RRL_OK;
    RRL_TRY(d->w->paragraph(d->b, RRL_PLAIN, "Differs from section 1 in:"));
    RRL_TRY(d->w->list(d->b, false));
    for (const char *line = s->difference; *line;) {
        size_t len = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1), line);
        RRL_TRY(d->w->item(d->b, NULL, text));
        line += len + (line[len] == '\n');
    }
    return d->w->list_end(d->b, false);
}

static rrl_status finding(const rrl_document *d, const rrl_report_numbers *n) {
    rrl_buffer text = {0};
    rrl_status rc;
    RRL_GOTO(rrl_report_finding(&text, n));
    if (text.len) RRL_GOTO(d->w->paragraph(d->b, RRL_FINDING, text.data));
done:
    rrl_buffer_free(&text);
    return rc;
}

static rrl_status results(const rrl_document *d, const rrl_report_numbers *n) {
    if (!n->n_aggregates) return d->w->paragraph(d->b, RRL_PLAIN, "No evaluation is recorded yet.");
    RRL_TRY(finding(d, n));
    RRL_TRY(rrl_report_main_table(d, n));
    return d->w->paragraph(d->b, RRL_NOTE,
                           "Accuracy is the independent judge's, which training never sees. Gap = observed reward - accuracy "
                           "on the completions that have a reward. Correlation is between reward and being right. A dash is "
                           "an undefined value, never 0.");
}

static rrl_status pictures(const rrl_document *d, const rrl_pictures *p, const char *folder) {
    if (!p->n) return RRL_OK;
    RRL_TRY(d->w->heading(d->b, "Pictures"));
    if (*p->note) RRL_TRY(d->w->paragraph(d->b, RRL_NOTE, p->note));
    for (size_t i = 0; i < p->n; i++) RRL_TRY(d->w->picture(d->b, &p->v[i], folder));
    return RRL_OK;
}

static rrl_status statement(const rrl_document *d, const rrl_report_numbers *n, bool method) {
    char pass[32], text[1024];
    if (!n->n_differences) return RRL_OK;
    RRL_TRY(d->w->heading(d->b, method ? "Statement 2: about the method" : "Statement 1: about these runs"));
    rrl_report_statement_note(text, sizeof text, n, method);
    RRL_TRY(d->w->paragraph(d->b, RRL_PLAIN, text));
    if (method && rrl_report_seeds(n->section) < RRL_FEW_SEEDS) {
        rrl_report_seed_warning(text, sizeof text, n);
        RRL_TRY(d->w->paragraph(d->b, RRL_WARNING, text));
    }
    snprintf(pass, sizeof pass, "pass@%lld", (long long)rrl_report_largest_k(n->section));
    RRL_TRY(rrl_report_difference_table(d, n, "independent_accuracy", method));
    RRL_TRY(rrl_report_difference_table(d, n, "reward_hacking_gap", method));
    return rrl_report_difference_table(d, n, pass, method);
}

static rrl_status prediction(const rrl_document *d, const rrl_report_page *page, const rrl_report_numbers *n) {
    rrl_report_measurements m = {0};
    char text[RRL_REPORT_SENTENCE];
    rrl_status rc;
    RRL_GOTO(rrl_report_measure(&m, page->study, n));
    if (!m.n) goto done;
    RRL_GOTO(d->w->heading(d->b, "Prediction against measurement"));
    rrl_report_signs(text, sizeof text, &m);
    RRL_GOTO(d->w->paragraph(d->b, RRL_PLAIN, text));
    RRL_GOTO(rrl_report_prediction_table(d, &m));
done:
    free(m.v);
    return rc;
}

static rrl_status failures(const rrl_document *d, const rrl_report_numbers *n) {
    if (!n->n_aggregates) return RRL_OK;
    RRL_TRY(d->w->heading(d->b, "Failures"));
    RRL_TRY(rrl_report_failure_table(d, n->section));
    return d->w->paragraph(d->b, RRL_NOTE,
                           "Rewarded: ensemble reward of at least 0.5. Questions to look at: failure_analysis.md.");
}

static rrl_status training(const rrl_document *d, const rrl_report_section *s) {
    size_t trained = 0;
    for (size_t i = 0; i < s->n; i++) trained += s->v[i]->trained;
    if (!trained) return RRL_OK;
    RRL_TRY(d->w->heading(d->b, "Training"));
    RRL_TRY(rrl_report_training_table(d, s));
    return d->w->paragraph(d->b, RRL_NOTE,
                           "Means over all training completions or updates; more columns are in training_diagnostics.csv.");
}

/* --- chapters */

static rrl_status section(const rrl_document *d, const rrl_report_page *page, size_t i) {
#define X(file, function) file,
    static const char *const FILES[] = {RRL_REPORT_CSV_LIST(X)};
#undef X
    const rrl_report_numbers *n = &page->numbers[i];
    section_name name = name_of(page, i);
    RRL_TRY(d->w->chapter(d->b, &(rrl_chapter){name.id, name.title}));
    RRL_TRY(section_head(d, n->section));
    RRL_TRY(results(d, n));
    RRL_TRY(pictures(d, &page->pictures[i], page->folders[i]));
    RRL_TRY(statement(d, n, false));
    RRL_TRY(statement(d, n, true));
    RRL_TRY(prediction(d, page, n));
    RRL_TRY(failures(d, n));
    RRL_TRY(training(d, n->section));
    RRL_TRY(d->w->files(d->b, "Tables as files:", page->folders[i], FILES, sizeof FILES / sizeof *FILES));
    return d->w->chapter_end(d->b);
}

static rrl_status gaps(const rrl_document *d, const rrl_report_data *data) {
    rrl_buffer text = {0};
    rrl_status rc;
    if (!data->n_gaps) return RRL_OK;
    RRL_GOTO(d->w->chapter(d->b, &GAPS));
    RRL_GOTO(d->w->list(d->b, false));
    for (size_t i = 0; i < data->n_gaps; i++) {
        text.len = 0;
        RRL_GOTO(rrl_report_gap_text(&text, &data->gaps[i]));
        RRL_GOTO(d->w->item(d->b, NULL, text.data));
    }
    RRL_GOTO(d->w->list_end(d->b, false));
    RRL_GOTO(d->w->chapter_end(d->b));
done:
    rrl_buffer_free(&text);
    return rc;
}

static rrl_status provenance(const rrl_document *d, const rrl_report_study *s) {
    RRL_TRY(d->w->chapter(d->b, &PROVENANCE));
    RRL_TRY(d->w->list(d->b, true));
    for (size_t i = 0; i < s->n_facts; i++) RRL_TRY(d->w->item(d->b, s->facts[i].name, s->facts[i].value));
    RRL_TRY(d->w->list_end(d->b, true));
    RRL_TRY(d->w->paragraph(d->b, RRL_NOTE,
                            "Made from the records alone. Records share a table only if they agree in the class of execution, "
                            "model, questions and every setting that changes results, but for what a study varies on "
                            "purpose: seed, reward, experiment and the corruption of the members. The training settings of "
                            "a record that was not trained do not count."));
    return d->w->chapter_end(d->b);
}

/* --- the whole */

static rrl_status begin(const rrl_document *d, const rrl_report_page *page) {
    enum { OTHERS = 4 };
    char subtitle[128], missing[64] = "";
    section_name *names = NULL;
    size_t n = 0, records = page->data->n, open = page->data->n_gaps;
    rrl_chapter *v = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&names, page->n, sizeof *names, "chapters"));
    RRL_GOTO(rrl_alloc(&v, page->n + OTHERS, sizeof *v, "chapters"));
    if (page->study->config && page->study->config->n_hypotheses) v[n++] = HYPOTHESES;
    if (rrl_report_qualification((char[RRL_REPORT_SENTENCE]){0}, page->study)) v[n++] = QUALIFICATION;
    for (size_t i = 0; i < page->n; i++) {
        names[i] = name_of(page, i);
        v[n++] = (rrl_chapter){names[i].id, names[i].title};
    }
    if (open) v[n++] = GAPS;
    v[n++] = PROVENANCE;
    if (open) snprintf(missing, sizeof missing, ", %zu condition%s not complete", open, plural(open));
    if (!open && page->study->config) snprintf(missing, sizeof missing, ", every planned condition complete");
    snprintf(subtitle, sizeof subtitle, "%zu record%s%s", records, plural(records), missing);
    RRL_GOTO(d->w->begin(d->b, *page->study->label ? page->study->label : "Report", subtitle, v, n));
done:
    free(names);
    free(v);
    return rc;
}

static rrl_status write(const rrl_document *d, const rrl_report_page *page) {
    RRL_TRY(begin(d, page));
    RRL_TRY(hypotheses(d, page));
    RRL_TRY(qualification(d, page->study));
    for (size_t i = 0; i < page->n; i++) RRL_TRY(section(d, page, i));
    RRL_TRY(gaps(d, page->data));
    RRL_TRY(provenance(d, page->study));
    return d->w->end(d->b);
}

rrl_status rrl_report_html(rrl_buffer *b, const rrl_report_page *page) {
    return write(&(rrl_document){b, &rrl_html_writer}, page);
}

rrl_status rrl_report_markdown(rrl_buffer *b, const rrl_report_page *page) {
    return write(&(rrl_document){b, &rrl_markdown_writer}, page);
}
