/* Walks a folder for records and plans. What a study keeps beside its runs (report/, base/, moved-away runs)
 * holds no condition and is left out. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"
#include "record/run_folder.h"
#include "report/report_data.h"
#include "report/report_folder.h"
#include "study/study.h"

/* --- order */

static int rank_of(const char *method) {
    static const char *const FIRST[] = {"base", "baseline", "robust"};
    for (int i = 0; i < 3; i++)
        if (strcmp(method, FIRST[i]) == 0) return i;
    return 3;
}

int rrl_report_order_methods(const char *a, const char *b) {
    int ranks = rank_of(a) - rank_of(b);
    return ranks ? ranks : strcmp(a, b);
}

int rrl_report_order_levels(double a, double b) {
    if (isnan(a) || isnan(b)) return (isnan(a) != 0) - (isnan(b) != 0);
    return (a > b) - (a < b);
}

int rrl_report_order(const rrl_report_condition *a, const rrl_report_condition *b) {
    int order = strcmp(a->arm, b->arm);
    if (!order) order = rrl_report_order_levels(a->level, b->level);
    if (!order) order = rrl_report_order_methods(a->method, b->method);
    if (!order) order = (a->seed > b->seed) - (a->seed < b->seed);
    return order ? order : strcmp(a->path, b->path);
}

static int by_order(const void *a, const void *b) {
    return rrl_report_order(a, b);
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const rrl_report_gap *)a)->path, ((const rrl_report_gap *)b)->path);
}

double rrl_report_metric(const rrl_report_condition *c, const char *name) {
    for (int64_t i = 0; i < c->n_metrics; i++)
        if (strcmp(c->metrics[i].name, name) == 0) return c->metrics[i].defined ? c->metrics[i].value : NAN;
    return NAN;
}

const double *rrl_report_values(const rrl_report_condition *c, const char *name) {
    for (int i = 0; i < c->n_paired; i++)
        if (strcmp(c->paired[i], name) == 0) return c->values + (size_t)i * (size_t)c->n_questions;
    return NULL;
}

/* --- gaps */

static void gap_free(rrl_report_gap *g) {
    free(g->path);
    free(g->status);
    free(g->reason);
    *g = (rrl_report_gap){0};
}

/* One gap for a path: the first that says why. */
static rrl_status add_gap(rrl_report_data *d, const char *path, const char *status, const char *reason) {
    rrl_report_gap g = {0};
    rrl_status rc;
    for (size_t i = 0; i < d->n_gaps; i++)
        if (strcmp(d->gaps[i].path, path) == 0) return RRL_OK;
    RRL_GOTO(rrl_strdup(&g.path, path));
    RRL_GOTO(rrl_strdup(&g.status, status));
    RRL_GOTO(rrl_strdup(&g.reason, reason ? reason : ""));
    RRL_GOTO(rrl_grow(&d->gaps, &d->gap_capacity, d->n_gaps + 1, sizeof *d->gaps, "gaps of a report"));
    d->gaps[d->n_gaps++] = g;
    g = (rrl_report_gap){0};
done:
    gap_free(&g);
    return rc;
}

/* --- walk */

static const char *relative(const char *path, const char *root) {
    size_t n = strlen(root);
    if (strncmp(path, root, n) != 0) return path;
    path += n;
    while (*path == '/') path++;
    return *path ? path : ".";
}

static bool has(const char *dir, const char *name, bool folder) {
    char *path = NULL;
    bool there =
        rrl_path_join(&path, dir, name) == RRL_OK && (folder ? rrl_dir_exists(path) : rrl_file_exists(path));
    free(path);
    return there;
}

/* A folder that holds no condition: our own output, what --fresh or a replay moved away, a study's store of
 * base completions and its qualification (a method's folder called base is a run and not asked here). */
static bool left_out(const char *name, bool in_study) {
    const char *old = strstr(name, ".old-");
    return strcmp(name, "report") == 0 || rrl_report_folder_is_fresh(name) || strcmp(name, "quarantine") == 0 ||
           (old && old[5]) ||
           (in_study && (strcmp(name, "base") == 0 || strcmp(name, "qualification") == 0));
}

/* A run that is not complete: what its run.json says of it, else how far it came. */
static rrl_status note_unfinished(rrl_report_data *d, const char *dir, const char *path, int64_t steps) {
    char *status = NULL, *reason = NULL, progress[64];
    snprintf(progress, sizeof progress, "%lld updates recorded", (long long)steps);
    bool known = rrl_run_folder_read(&status, &reason, dir) == RRL_OK && strcmp(status, "complete") != 0;
    rrl_status rc =
        add_gap(d, path, known ? status : "running", known && reason && *reason ? reason : progress);
    free(status);
    free(reason);
    return rc;
}

static rrl_status add_record(rrl_report_data *d, const char *dir, const char *path) {
    rrl_record *r = NULL;
    rrl_status rc = rrl_record_read(&r, dir, 0);
    if (rc == RRL_ERR_NOMEM) return rc;
    if (rc != RRL_OK) return add_gap(d, path, "unreadable", rrl_error_message());
    RRL_GOTO(rrl_grow(&d->conditions, &d->capacity, d->n + 1, sizeof *d->conditions, "records of a report"));
    RRL_GOTO(rrl_report_extract(&d->conditions[d->n], r, path));
    d->n++;
    if (!r->complete) RRL_GOTO(note_unfinished(d, dir, path, r->n_rows));
done:
    rrl_record_free(&r);
    return rc;
}

static bool recorded(const rrl_report_data *d, const char *path) {
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->conditions[i].path, path) == 0) return d->conditions[i].complete;
    return false;
}

/* Planned conditions without a complete record, which wins over what run.json says. */
static rrl_status add_plan(rrl_report_data *d, const char *dir, const char *root) {
    rrl_condition_state *states = NULL;
    int64_t n = 0;
    rrl_status rc;
    RRL_GOTO(rrl_study_state(&states, &n, dir));
    for (int64_t i = 0; i < n; i++) {
        const rrl_condition_state *s = &states[i];
        const char *path = relative(s->dir, root);
        bool complete = strcmp(s->status, "complete") == 0;
        if (recorded(d, path)) continue;
        RRL_GOTO(add_gap(d, path, complete ? "missing" : s->status,
                         complete ? "its record is not there" : s->reason));
    }
done:
    rrl_study_state_free(&states, n);
    return rc;
}

static rrl_status walk(rrl_report_data *d, const char *dir, const char *root) {
    char **names = NULL, *path = NULL;
    size_t n = 0;
    rrl_status rc;
    if (has(dir, "run.h5", false) || has(dir, "records", true))
        return add_record(d, dir, relative(dir, root));
    if (has(dir, "run.json", false)) return note_unfinished(d, dir, relative(dir, root), 0);
    bool study = has(dir, "study.json", false);
    RRL_GOTO(rrl_dir_list(&names, &n, dir));
    for (size_t i = 0; i < n; i++) {
        if (left_out(names[i], study)) continue;
        free(path);
        path = NULL;
        RRL_GOTO(rrl_path_join(&path, dir, names[i]));
        if (rrl_dir_exists(path)) RRL_GOTO(walk(d, path, root));
    }
    if (study) RRL_GOTO(add_plan(d, dir, root));
done:
    free(path);
    rrl_names_free(&names, n);
    return rc;
}

rrl_status rrl_report_data_read(rrl_report_data *out, const char *dir) {
    rrl_report_data d = {0};
    rrl_status rc;
    if (!rrl_dir_exists(dir))
        return RRL_FAIL(RRL_ERR_DATA, "%s: no such folder; a report is made of a study's or a run's folder",
                        dir);
    RRL_GOTO(walk(&d, dir, dir));
    if (d.n + d.n_gaps == 0) {
        rc =
            RRL_FAIL(RRL_ERR_DATA, "%s: no record found below it; expected run.h5 or records/ of a run", dir);
        goto done;
    }
    if (d.n) qsort(d.conditions, d.n, sizeof *d.conditions, by_order);
    if (d.n_gaps) qsort(d.gaps, d.n_gaps, sizeof *d.gaps, by_path);
    *out = d;
    d = (rrl_report_data){0};
done:
    rrl_report_data_free(&d);
    return rc;
}

void rrl_report_data_free(rrl_report_data *d) {
    for (size_t i = 0; i < d->n; i++) rrl_report_condition_free(&d->conditions[i]);
    for (size_t i = 0; i < d->n_gaps; i++) gap_free(&d->gaps[i]);
    free(d->conditions);
    free(d->gaps);
    *d = (rrl_report_data){0};
}
