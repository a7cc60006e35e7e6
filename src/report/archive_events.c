/* Training rows and evaluation metrics of every run as event files of TensorBoard, a folder a run. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "report/archive.h"
#include "report/each_record.h"
#include "report/event_file.h"

typedef struct {
    const char *to;
    int64_t events;
} writer;

/* Seconds since 1970 of a time as records have it; 0 where it is none. */
static double seconds_of(const char *utc) {
    struct tm t = {0};
    double s = 0;
    if (!utc || sscanf(utc, "%d-%d-%dT%d:%d:%lf", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &s) != 6)
        return 0;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    return (double)timegm(&t) + s;
}

static rrl_status put(writer *w, rrl_buffer *b, double wall_s, int64_t step, const char *group, const char *name,
                      double v) {
    char tag[256];
    if (isnan(v)) return RRL_OK;
    snprintf(tag, sizeof tag, "%s/%s", group, name);
    w->events++;
    return rrl_event_file_scalar(b, wall_s, step, tag, v);
}

/* An update counts where it is done, as TRL counts: the first is step 1. */
static rrl_status put_row(writer *w, rrl_buffer *b, double wall_s, const rrl_training_row *row) {
#define X(field, type, name, unit, digest, doc)                                                                        \
    RRL_TRY(put(w, b, wall_s, row->step + 1, "train", name, (double)row->field));
    RRL_TRAINING_COLUMNS(X)
#undef X
    return RRL_OK;
}

static rrl_status put_evaluation(writer *w, rrl_buffer *b, double wall_s, int64_t step, const rrl_record_set *s) {
    char group[128];
    snprintf(group, sizeof group, "eval/%.100s", s->name);
    for (int64_t i = 0; i < s->n_metrics; i++)
        if (s->metrics[i].defined) RRL_TRY(put(w, b, wall_s, step, group, s->metrics[i].name, s->metrics[i].value));
    return RRL_OK;
}

static rrl_status write_run(void *context, const rrl_record *r, const char *below) {
    writer *w = context;
    rrl_buffer b = {0};
    char *folder = NULL, *path = NULL;
    double wall_s = seconds_of(r->created_utc);
    rrl_status rc;
    RRL_GOTO(rrl_event_file_begin(&b, wall_s));
    for (int64_t i = 0; i < r->n_rows; i++) {
        if (!isnan(r->rows[i].step_time)) wall_s += r->rows[i].step_time;
        RRL_GOTO(put_row(w, &b, wall_s, &r->rows[i]));
    }
    for (int64_t i = 0; i < r->n_evaluations; i++)
        RRL_GOTO(put_evaluation(w, &b, wall_s, r->n_rows ? r->rows[r->n_rows - 1].step + 1 : 0, &r->evaluations[i]));
    RRL_GOTO(rrl_path_join(&folder, w->to, below));
    RRL_GOTO(rrl_dir_make(folder));
    /* one name: a second export replaces the first */
    RRL_GOTO(rrl_path_join(&path, folder, "events.out.tfevents.0.rrl"));
    RRL_GOTO(rrl_file_publish(path, b.data, b.len));
done:
    free(folder);
    free(path);
    rrl_buffer_free(&b);
    return rc;
}

rrl_status rrl_events_write(rrl_generations_made *out, const char *dir, const char *path) {
    rrl_status rc;
    rrl_generations_made m = {0};
    rrl_buffer to = {0};
    writer w = {0};
    char *real = realpath(dir, NULL);
    if (!real) return RRL_FAIL(RRL_ERR_DATA, "%s: %s", dir, strerror(errno));
    RRL_GOTO(path ? rrl_buffer_puts(&to, path) : rrl_buffer_printf(&to, "%s.tensorboard", real));
    w.to = to.data;
    RRL_GOTO(rrl_each_record(&m.records, &m.left_out, real, 0, write_run, &w));
    m.lines = w.events;
    m.path = to.data;
    to = (rrl_buffer){0};
    *out = m;
    m = (rrl_generations_made){0};
done:
    rrl_generations_made_free(&m);
    rrl_buffer_free(&to);
    free(real);
    return rc;
}
