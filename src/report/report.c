/* From records to the files of a report, and the table for a terminal. */
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/text.h"
#include "report/hypotheses.h"
#include "report/report_csv.h"
#include "report/report_folder.h"
#include "report/report_page.h"
#include "report/report_text.h"

/* Everything read and worked out. */
typedef struct {
    rrl_report_data data;
    rrl_report_study study;
    rrl_report_sections sections;
    rrl_report_numbers *numbers; /* [sections.n] */
    rrl_pictures *pictures;      /* [sections.n]; only where files are written */
} report;

static void close_report(report *r) {
    for (size_t i = 0; r->numbers && i < r->sections.n; i++) rrl_report_numbers_free(&r->numbers[i]);
    for (size_t i = 0; r->pictures && i < r->sections.n; i++) rrl_pictures_free(&r->pictures[i]);
    free(r->numbers);
    free(r->pictures);
    rrl_report_study_free(&r->study);
    rrl_report_sections_free(&r->sections);
    rrl_report_data_free(&r->data);
}

static rrl_status open_report(report *r, const char *dir) {
    RRL_TRY(rrl_report_data_read(&r->data, dir));
    RRL_TRY(rrl_report_study_read(&r->study, dir, &r->data));
    RRL_TRY(rrl_report_sections_make(&r->sections, &r->data));
    RRL_TRY(rrl_alloc(&r->numbers, r->sections.n, sizeof *r->numbers, "sections of a report"));
    for (size_t i = 0; i < r->sections.n; i++)
        RRL_TRY(rrl_report_numbers_make(&r->numbers[i], &r->sections.v[i], r->study.seed));
    return RRL_OK;
}

/* --- files */

static rrl_status publish_text(const char *folder, const char *file, const rrl_buffer *text) {
    char *path = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_path_join(&path, folder, file));
    RRL_GOTO(rrl_file_publish(path, text->data, text->len));
done:
    free(path);
    return rc;
}

static rrl_status publish_csv(const char *folder, const char *file, rrl_report_csv *write,
                              const rrl_report_numbers *n) {
    rrl_buffer text = {0};
    rrl_status rc = write(&text, n);
    if (rc == RRL_OK) rc = publish_text(folder, file, &text);
    rrl_buffer_free(&text);
    return rc;
}

static rrl_status publish_section(const char *folder, const rrl_report_numbers *n, rrl_pictures *pictures,
                                  const rrl_report_study *study) {
    RRL_TRY(rrl_dir_make(folder));
    RRL_TRY(rrl_pictures_make(pictures, n, study));
    RRL_TRY(rrl_pictures_publish(pictures, folder));
#define X(file, function) RRL_TRY(publish_csv(folder, file, function, n));
    RRL_REPORT_CSV_LIST(X)
#undef X
    return RRL_OK;
}

/* Publish what a maker of text writes as folder/file. */
static rrl_status publish_page(const char *folder, const char *file, const rrl_report_page *page,
                               rrl_status (*make)(rrl_buffer *b, const rrl_report_page *page)) {
    rrl_buffer text = {0};
    rrl_status rc = make(&text, page);
    if (rc == RRL_OK) rc = publish_text(folder, file, &text);
    rrl_buffer_free(&text);
    return rc;
}

/* All files into folder out, which is empty. */
static rrl_status write_files(report *r, const char *out) {
    enum { FOLDER_CHARS = 32 };
    size_t n = r->sections.n;
    char *path = NULL, (*folders)[FOLDER_CHARS] = NULL;
    const char **names = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&folders, n, sizeof *folders, "folders"));
    RRL_GOTO(rrl_alloc(&names, n, sizeof *names, "folders"));
    RRL_GOTO(rrl_alloc(&r->pictures, n, sizeof *r->pictures, "pictures"));
    for (size_t i = 0; i < n; i++) {
        if (n > 1) snprintf(folders[i], FOLDER_CHARS, "section-%zu", i + 1);
        names[i] = folders[i];
        free(path);
        path = NULL;
        RRL_GOTO(rrl_path_join(&path, out, names[i]));
        RRL_GOTO(publish_section(path, &r->numbers[i], &r->pictures[i], &r->study));
    }
    rrl_report_page page = {&r->data, &r->study, r->numbers, r->pictures, names, n};
    RRL_GOTO(publish_page(out, "report.md", &page, rrl_report_markdown));
    RRL_GOTO(publish_page(out, "report.html", &page, rrl_report_html));
    if (r->study.config && r->study.config->n_hypotheses)
        RRL_GOTO(publish_page(out, "hypotheses.csv", &page, rrl_report_hypotheses_csv));
done:
    free(names);
    free(folders);
    free(path);
    return rc;
}

static rrl_status publish(report *r, const char *dir) {
    char *fresh = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_report_folder_make(&fresh, dir));
    RRL_GOTO(write_files(r, fresh));
    RRL_GOTO(rrl_report_folder_publish(fresh, dir));
done:
    if (rc != RRL_OK && fresh) (void)rrl_dir_remove(fresh);
    free(fresh);
    return rc;
}

/* --- the table for a terminal */

static rrl_status put_wrapped(rrl_buffer *b, const char *text) {
    return rrl_buffer_wrap(b, text, 0, RRL_REPORT_COLUMNS);
}

static rrl_status put_section(rrl_buffer *b, const rrl_report_numbers *n) {
    rrl_buffer text = {0};
    rrl_status rc;
    if (!n->n_aggregates) return rrl_buffer_puts(b, "No evaluation is recorded yet.\n");
    RRL_GOTO(rrl_report_text_table(b, n));
    RRL_GOTO(rrl_report_finding(&text, n));
    if (!text.len) goto done;
    RRL_GOTO(rrl_buffer_puts(b, "\n"));
    RRL_GOTO(put_wrapped(b, text.data));
done:
    rrl_buffer_free(&text);
    return rc;
}

static rrl_status table(rrl_buffer *b, const report *r) {
    char text[RRL_REPORT_SENTENCE];
    for (size_t i = 0; i < r->sections.n; i++) {
        const rrl_report_numbers *n = &r->numbers[i];
        if (r->sections.n > 1)
            RRL_TRY(rrl_buffer_printf(b, "%sSection %zu of %zu: %zu records\n", i ? "\n" : "", i + 1,
                                      r->sections.n, n->section->n));
        RRL_TRY(put_section(b, n));
    }
    if (rrl_report_qualification(text, &r->study)) {
        RRL_TRY(rrl_buffer_puts(b, r->sections.n ? "\n" : ""));
        RRL_TRY(put_wrapped(b, text));
    }
    if (!r->data.n_gaps) return RRL_OK;
    RRL_TRY(rrl_buffer_printf(b, "%sNot complete: %zu\n", b->len ? "\n" : "", r->data.n_gaps));
    for (size_t i = 0; i < r->data.n_gaps; i++) {
        RRL_TRY(rrl_buffer_puts(b, "- "));
        RRL_TRY(rrl_report_gap_text(b, &r->data.gaps[i]));
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    return RRL_OK;
}

/* --- */

rrl_status rrl_report_write(char **main_table, const char *dir) {
    report r = {0};
    rrl_buffer b = {0};
    rrl_status rc;
    rrl_c_locale locale = rrl_c_locale_enter();
    RRL_GOTO(open_report(&r, dir));
    RRL_GOTO(publish(&r, dir));
    if (!main_table) goto done;
    RRL_GOTO(table(&b, &r));
    *main_table = b.data;
    b = (rrl_buffer){0};
done:
    rrl_c_locale_leave(locale);
    rrl_buffer_free(&b);
    close_report(&r);
    return rc;
}
