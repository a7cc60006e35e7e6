/* The pictures of a section: drawn by gnuplot as SVG, PNG and PDF, each with its data as CSV and its script beside it.
 * Used by src/report only. */
#ifndef RRL_REPORT_PLOTS_H
#define RRL_REPORT_PLOTS_H

#include <stdbool.h>

#include "base/memory.h"
#include "report/compare.h"
#include "report/gnuplot.h"
#include "report/study_info.h"

enum { RRL_PICTURE_NAME = 96 };

typedef struct {
    char name[RRL_PICTURE_NAME]; /* of the files, without extension */
    char *title, *caption;
    rrl_buffer csv, script;
    int width, height; /* pixels of the SVG at 96 to the inch */
    char *svg;         /* the drawn file; NULL if there is none */
} rrl_picture;

typedef struct {
    rrl_picture *v;
    size_t n, capacity;
    char note[RRL_GNUPLOT_NOTE]; /* why there are no drawings; "" if there are */
} rrl_pictures;

/** Scripts and data of all pictures that the section has something for. Free with rrl_pictures_free. */
rrl_status rrl_pictures_make(rrl_pictures *out, const rrl_report_numbers *n, const rrl_report_study *study);
void rrl_pictures_free(rrl_pictures *p);
/** Write folder/plots/, which is not there yet: data, scripts and, where gnuplot works, the drawings, which are read back into svg. The same
 *  pictures give the same bytes, but for the creation date in a PDF. */
rrl_status rrl_pictures_publish(rrl_pictures *p, const char *folder);

#endif
