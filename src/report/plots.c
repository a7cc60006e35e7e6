/* Makes the pictures and has them drawn. */
#include "report/plots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "report/plot_parts.h"

enum { MAX_SVG = 16 << 20 };

static const char RUN[] = "run.gp";

void rrl_pictures_free(rrl_pictures *p) {
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i].title);
        free(p->v[i].caption);
        free(p->v[i].svg);
        rrl_buffer_free(&p->v[i].csv);
        rrl_buffer_free(&p->v[i].script);
    }
    free(p->v);
    *p = (rrl_pictures){0};
}

rrl_status rrl_pictures_make(rrl_pictures *out, const rrl_report_numbers *n, const rrl_report_study *study) {
    rrl_pictures p = {0};
    rrl_status rc;
    RRL_GOTO(rrl_plot_levels(&p, n));
    RRL_GOTO(rrl_plot_curves(&p, n));
    RRL_GOTO(rrl_plot_pass_at_k(&p, n));
    RRL_GOTO(rrl_plot_reward_correctness(&p, n));
    RRL_GOTO(rrl_plot_predicted(&p, n, study));
    *out = p;
    p = (rrl_pictures){0};
done:
    rrl_pictures_free(&p);
    return rc;
}

/* --- files */

static rrl_status publish(const char *dir, const char *name, const char *extension, const rrl_buffer *b) {
    char file[RRL_PICTURE_NAME + 8], *path = NULL;
    snprintf(file, sizeof file, "%s%s", name, extension);
    RRL_TRY(rrl_path_join(&path, dir, file));
    rrl_status rc = rrl_file_publish(path, b->data ? b->data : "", b->len);
    free(path);
    return rc;
}

/* The script that has each picture drawn three times. */
static rrl_status put_run(rrl_buffer *b, const rrl_pictures *p) {
    for (size_t i = 0; i < p->n; i++) {
        const rrl_picture *v = &p->v[i];
        RRL_TRY(rrl_buffer_printf(b,
                                  "reset session\nset terminal svg size %d,%d noenhanced font 'sans-serif,13' "
                                  "background 'white'\nset output '%s.svg'\nload '%s.gp'\n",
                                  v->width, v->height, v->name, v->name));
        RRL_TRY(rrl_buffer_printf(b,
                                  "reset session\nset terminal pngcairo size %d,%d noenhanced font 'sans,13' "
                                  "linewidth 1.5 pointscale 1.4 background 'white'\nset output "
                                  "'%s.png'\nload '%s.gp'\n",
                                  v->width * 3 / 2, v->height * 3 / 2, v->name, v->name));
        RRL_TRY(rrl_buffer_printf(b,
                                  "reset session\nset terminal pdfcairo size %.3fin,%.3fin noenhanced font "
                                  "'sans,9' background 'white'\nset output '%s.pdf'\nload '%s.gp'\n",
                                  v->width / 96.0, v->height / 96.0, v->name, v->name));
    }
    return RRL_OK;
}

static rrl_status write_inputs(const rrl_pictures *p, const char *dir) {
    rrl_buffer run = {0};
    rrl_status rc = RRL_OK;
    for (size_t i = 0; i < p->n; i++) {
        RRL_GOTO(publish(dir, p->v[i].name, ".csv", &p->v[i].csv));
        RRL_GOTO(publish(dir, p->v[i].name, ".gp", &p->v[i].script));
    }
    RRL_GOTO(put_run(&run, p));
    RRL_GOTO(publish(dir, RUN, "", &run));
done:
    rrl_buffer_free(&run);
    return rc;
}

static rrl_status read_drawings(rrl_pictures *p, const char *dir) {
    for (size_t i = 0; i < p->n; i++) {
        char file[RRL_PICTURE_NAME + 8], *path = NULL;
        size_t len;
        snprintf(file, sizeof file, "%s.svg", p->v[i].name);
        RRL_TRY(rrl_path_join(&path, dir, file));
        rrl_status rc = rrl_file_read(&p->v[i].svg, &len, path, MAX_SVG);
        free(path);
        RRL_TRY(rc);
    }
    return RRL_OK;
}

/* Take away script and log of the drawing, and half a set of drawings. */
static rrl_status tidy(const rrl_pictures *p, const char *dir, bool drawn) {
    static const char *const DRAWN[] = {".svg", ".png", ".pdf"};
    const char *files[] = {RUN, "gnuplot.log"};
    for (int i = 0; i < 2; i++) {
        char *path = NULL;
        RRL_TRY(rrl_path_join(&path, dir, files[i]));
        (void)unlink(path);
        free(path);
    }
    for (size_t i = 0; i < 3 * p->n && !drawn; i++) {
        char file[RRL_PICTURE_NAME + 8], *path = NULL;
        snprintf(file, sizeof file, "%s%s", p->v[i / 3].name, DRAWN[i % 3]);
        RRL_TRY(rrl_path_join(&path, dir, file));
        (void)unlink(path);
        free(path);
    }
    return RRL_OK;
}

rrl_status rrl_pictures_publish(rrl_pictures *p, const char *folder) {
    char *plots = NULL;
    bool drawn = false;
    rrl_status rc = RRL_OK;
    if (!p->n) return RRL_OK;
    RRL_GOTO(rrl_path_join(&plots, folder, "plots"));
    RRL_GOTO(rrl_dir_make(plots));
    RRL_GOTO(write_inputs(p, plots));
    RRL_GOTO(rrl_gnuplot_run(&drawn, p->note, plots, RUN));
    if (drawn) RRL_GOTO(read_drawings(p, plots));
    RRL_GOTO(tidy(p, plots, drawn));
done:
    free(plots);
    return rc;
}
