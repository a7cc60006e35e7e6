/* Names in DIR/records, and moves to DIR/quarantine. */
#include "record/records_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"

#define EVALUATION_PREFIX "evaluation-"

/* The first step of "000026.h5", -1 of the head, -2 of any other name. */
static int64_t step_of_name(const char *name) {
    char digits[24];
    size_t n = strspn(name, "0123456789");
    int64_t number = 0;
    if (n < 6 || n >= sizeof digits || strcmp(name + n, ".h5") != 0) return -2;
    memcpy(digits, name, n);
    digits[n] = 0;
    return rrl_parse_int64(&number, digits) ? number - 1 : -2;
}

static bool is_evaluation(const char *name) {
    size_t n = strlen(name), prefix = strlen(EVALUATION_PREFIX);
    return n > prefix + 3 && strncmp(name, EVALUATION_PREFIX, prefix) == 0 &&
           strcmp(name + n - 3, ".h5") == 0;
}

/* Takes the path. */
static rrl_status add_segment(rrl_records_folder *f, size_t *room, char *path, int64_t first) {
    rrl_status rc = rrl_grow(&f->segments, room, f->n_segments + 1, sizeof *f->segments, "segments");
    if (rc == RRL_OK)
        f->segments[f->n_segments++] = (rrl_segment_file){.path = path, .first = first};
    else
        free(path);
    return rc;
}

static rrl_status add_evaluation(rrl_records_folder *f, size_t *room, char *path) {
    rrl_status rc =
        rrl_grow(&f->evaluations, room, f->n_evaluations + 1, sizeof *f->evaluations, "evaluations");
    if (rc == RRL_OK)
        f->evaluations[f->n_evaluations++] = path;
    else
        free(path);
    return rc;
}

static int by_first(const void *a, const void *b) {
    const rrl_segment_file *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static rrl_status sort_name(rrl_records_folder *f, size_t room[2], const char *name) {
    char *path = NULL;
    int64_t first = step_of_name(name);
    if (first == -2 && !is_evaluation(name)) return RRL_OK;
    RRL_TRY(rrl_path_join(&path, f->dir, name));
    if (first == -2) return add_evaluation(f, &room[1], path);
    if (first >= 0) return add_segment(f, &room[0], path, first);
    f->head = path;
    return RRL_OK;
}

rrl_status rrl_records_list(rrl_records_folder *out, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_records_folder f = {0};
    char **names = NULL;
    size_t n = 0, room[2] = {0, 0};
    RRL_GOTO(rrl_path_join(&f.dir, dir, "records"));
    if (rrl_dir_exists(f.dir)) RRL_GOTO(rrl_dir_list(&names, &n, f.dir));
    for (size_t i = 0; i < n; i++) RRL_GOTO(sort_name(&f, room, names[i]));
    if (f.n_segments) qsort(f.segments, f.n_segments, sizeof *f.segments, by_first);
    *out = f;
    f = (rrl_records_folder){0};
done:
    rrl_names_free(&names, n);
    rrl_records_free(&f);
    return rc;
}

void rrl_records_free(rrl_records_folder *f) {
    for (size_t i = 0; i < f->n_segments; i++) free(f->segments[i].path);
    for (size_t i = 0; i < f->n_evaluations; i++) free(f->evaluations[i]);
    free(f->segments);
    free(f->evaluations);
    free(f->head);
    free(f->dir);
    *f = (rrl_records_folder){0};
}

rrl_status rrl_segment_path(char **out, const char *records, int64_t first_step) {
    char name[40];
    snprintf(name, sizeof name, "%06lld.h5", (long long)first_step + 1);
    return rrl_path_join(out, records, name);
}

rrl_status rrl_evaluation_path(char **out, const char *records, const char *name) {
    static const char ALLOWED[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(name);
    if (n == 0 || n > 200 || strspn(name, ALLOWED) != n || name[0] == '.')
        return RRL_FAIL(RRL_ERR_USAGE,
                        "evaluation name \"%s\": letters, digits, \"-\", \"_\" and \".\" are allowed", name);
    rrl_buffer b = {0};
    rrl_status rc = rrl_buffer_printf(&b, "%s/" EVALUATION_PREFIX "%s.h5", records, name);
    if (rc == RRL_OK)
        *out = b.data;
    else
        rrl_buffer_free(&b);
    return rc;
}

/* --- quarantine */

typedef int place_fn(const char *from, const char *to);

/* link refuses a name that is taken, so nothing in quarantine is ever overwritten. */
static int place_move(const char *from, const char *to) {
    if (rrl_dir_exists(from)) { /* a folder has no links; the holder of the run's lock is alone here */
        errno = EEXIST;
        return rrl_dir_exists(to) || rrl_file_exists(to) ? -1 : rename(from, to);
    }
    if (link(from, to) != 0) return -1;
    return unlink(from);
}

static int place_copy(const char *from, const char *to) {
    return link(from, to);
}

static rrl_status quarantine(const char *records, const char *path, place_fn *place) {
    rrl_status rc = RRL_OK;
    char *dir = NULL, *folder = NULL;
    rrl_buffer name = {0};
    const char *slash = strrchr(path, '/');
    RRL_GOTO(rrl_path_parent(&dir, records));
    RRL_GOTO(rrl_path_join(&folder, dir, "quarantine"));
    RRL_GOTO(rrl_dir_make(folder));
    for (int k = 1;; k++) {
        name.len = 0;
        RRL_GOTO(rrl_buffer_printf(&name, "%s/%s.%d", folder, slash ? slash + 1 : path, k));
        if (!rrl_fault("quarantine.move") && place(path, name.data) == 0) break;
        if (errno != EEXIST)
            RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: cannot be moved to %s: %s", path, name.data, strerror(errno)));
    }
done:
    rrl_buffer_free(&name);
    free(folder);
    free(dir);
    return rc;
}

rrl_status rrl_quarantine(const char *records, const char *path) {
    return quarantine(records, path, place_move);
}

rrl_status rrl_quarantine_copy(const char *records, const char *path) {
    return quarantine(records, path, place_copy);
}
