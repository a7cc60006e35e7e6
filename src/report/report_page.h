/* The report as one document, for a browser and for a text reader. Used by src/report only. */
#ifndef RRL_REPORT_REPORT_PAGE_H
#define RRL_REPORT_REPORT_PAGE_H

#include "report/plots.h"
#include "report/study_info.h"

typedef struct {
    const rrl_report_data *data;
    const rrl_report_study *study;
    const rrl_report_numbers *numbers; /* [n] */
    const rrl_pictures *pictures;      /* [n] */
    const char *const *folders;        /* [n] of the sections' files, "" = beside the page */
    size_t n;
} rrl_report_page;

/** report.html: style and drawings inside, nothing is loaded from elsewhere; links go to the files beside it. */
rrl_status rrl_report_html(rrl_buffer *b, const rrl_report_page *page);
/** report.md: the same numbers as text; the pictures are named. */
rrl_status rrl_report_markdown(rrl_buffer *b, const rrl_report_page *page);

#endif
