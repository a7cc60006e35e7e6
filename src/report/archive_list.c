/* Which files of a folder make its evidence. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files.h"
#include "report/archive.h"
#include "report/report_folder.h"

enum { DEEPEST = 12 };

void rrl_archive_files_free(rrl_archive_files *f) {
    for (size_t i = 0; i < f->n; i++) free(f->v[i].path);
    free(f->v);
    *f = (rrl_archive_files){0};
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* A checkpoint serves nothing but going on with the run; an adapter is weights; a report may be on its way. */
static bool folder_belongs(const char *name, bool weights) {
    return strcmp(name, "checkpoints") != 0 && !rrl_report_folder_is_fresh(name) &&
           (weights || strcmp(name, "adapter") != 0);
}

static bool file_belongs(const char *name, bool weights) {
    static const char *const WEIGHTS[] = {".safetensors", ".bin", ".pt", ".gguf"};
    if (strcmp(name, "lock") == 0 || ends_with(name, ".tmp") || ends_with(name, ".tar")) return false;
    for (size_t i = 0; i < sizeof WEIGHTS / sizeof *WEIGHTS && !weights; i++)
        if (ends_with(name, WEIGHTS[i])) return false;
    return true;
}

static rrl_status add(rrl_archive_files *f, const char *below, int64_t bytes) {
    char *path = NULL;
    RRL_TRY(rrl_strdup(&path, below));
    rrl_status rc = rrl_grow(&f->v, &f->room, f->n + 1, sizeof *f->v, "files of an archive");
    if (rc == RRL_OK) f->v[f->n++] = (rrl_archive_file){.path = path, .bytes = bytes};
    else free(path);
    return rc;
}

static rrl_status walk(rrl_archive_files *f, const char *dir, const char *below, bool weights, int depth);

static rrl_status look_at(rrl_archive_files *f, const char *dir, const char *below, const char *name, bool weights,
                          int depth) {
    rrl_status rc = RRL_OK;
    char *full = NULL, *path = NULL;
    struct stat st;
    RRL_GOTO(rrl_path_join(&full, dir, name));
    RRL_GOTO(rrl_path_join(&path, below, name));
    if (lstat(full, &st) != 0) {
        if (errno != ENOENT) rc = RRL_FAIL(RRL_ERR_IO, "%s: %s", full, strerror(errno)); /* gone meanwhile is no file */
    } else if (S_ISREG(st.st_mode) && file_belongs(name, weights)) {
        rc = add(f, path, (int64_t)st.st_size);
    } else if (S_ISDIR(st.st_mode) && folder_belongs(name, weights)) {
        rc = walk(f, full, path, weights, depth + 1);
    }
done:
    free(full);
    free(path);
    return rc;
}

static rrl_status walk(rrl_archive_files *f, const char *dir, const char *below, bool weights, int depth) {
    rrl_status rc = RRL_OK;
    char **names = NULL;
    size_t n = 0;
    if (depth > DEEPEST) return RRL_FAIL(RRL_ERR_DATA, "%s: folders are nested deeper than %d", dir, DEEPEST);
    RRL_GOTO(rrl_dir_list(&names, &n, dir));
    for (size_t i = 0; i < n; i++) RRL_GOTO(look_at(f, dir, below, names[i], weights, depth));
done:
    rrl_names_free(&names, n);
    return rc;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const rrl_archive_file *)a)->path, ((const rrl_archive_file *)b)->path);
}

rrl_status rrl_archive_list(rrl_archive_files *out, const char *dir, bool weights) {
    rrl_archive_files f = {0};
    if (!rrl_dir_exists(dir)) return RRL_FAIL(RRL_ERR_DATA, "%s: no such folder", dir);
    rrl_status rc = walk(&f, dir, "", weights, 0);
    if (rc == RRL_OK && f.n) qsort(f.v, f.n, sizeof *f.v, by_path);
    if (rc == RRL_OK) *out = f;
    else rrl_archive_files_free(&f);
    return rc;
}

bool rrl_archive_safe_path(const char *path) {
    const char *part = path;
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f || *p == '\\') return false;
    for (;;) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.')) return false;
        if (!part[n]) return true;
        part += n + 1;
    }
}
