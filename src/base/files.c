/* Whole files in and out. A file is published by writing it under another name, making that durable, and
 * renaming: whoever reads the final name, at any instant and after any crash, finds the old file, the new
 * one, or none. */
#define _GNU_SOURCE /* nftw */
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* --- reading */

/* Reads fd to its end, whatever fstat said: the file may be a pipe or may grow. */
static rrl_status read_all(rrl_buffer *b, int fd, const char *path, size_t max_bytes) {
    char block[1 << 16];
    for (;;) {
        ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return RRL_FAIL(RRL_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        RRL_TRY(rrl_buffer_put(b, block, (size_t)n));
        if (n == 0) return RRL_OK;
        if (b->len > max_bytes)
            return RRL_FAIL(RRL_ERR_DATA, "%s: larger than the %zu bytes that are allowed here", path,
                            max_bytes);
    }
}

rrl_status rrl_file_read(char **out, size_t *len, const char *path, size_t max_bytes) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return RRL_FAIL(errno == ENOENT || errno == ENOTDIR ? RRL_ERR_DATA : RRL_ERR_IO,
                        "%s: cannot be opened: %s", path, strerror(errno));
    RRL_GOTO(read_all(&b, fd, path, max_bytes));
    *out = b.data;
    *len = b.len;
    b = (rrl_buffer){0}; /* the caller owns it now */
done:
    rrl_buffer_free(&b);
    close(fd);
    return rc;
}

bool rrl_file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

bool rrl_dir_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* --- paths */

rrl_status rrl_path_join(char **out, const char *a, const char *b) {
    if (!a || !*a || *b == '/') return rrl_strdup(out, b);
    size_t na = strlen(a);
    bool slash = a[na - 1] != '/';
    char *path = NULL;
    RRL_TRY(rrl_alloc(&path, na + slash + strlen(b) + 1, 1, "path"));
    memcpy(path, a, na);
    if (slash) path[na] = '/';
    strcpy(path + na + slash, b);
    *out = path;
    return RRL_OK;
}

rrl_status rrl_path_parent(char **out, const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--; /* "a/b/" is "a/b" */
    while (n > 0 && path[n - 1] != '/') n--; /* the last name off */
    while (n > 1 && path[n - 1] == '/') n--; /* and its slash, unless that is the root */
    if (n == 0) return rrl_strdup(out, ".");
    char *parent = NULL;
    RRL_TRY(rrl_alloc(&parent, n + 1, 1, "path"));
    memcpy(parent, path, n);
    *out = parent;
    return RRL_OK;
}

/* --- publishing */

/* Writes all of it; 0 or -1 with errno. */
static int write_all(int fd, const char *bytes, size_t n) {
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return -1;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

static int sync_fd(int fd) {
    int r;
    do r = fsync(fd);
    while (r != 0 && errno == EINTR);
    return r;
}

/* Makes names in this folder durable. */
static rrl_status sync_folder(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && !rrl_fault("publish.folder");
    /* some network file systems have no fsync of a folder and say EINVAL: then there is nothing more to do */
    if (ok && sync_fd(fd) != 0 && errno != EINVAL) ok = false;
    rrl_status rc = RRL_OK;
    if (!ok) rc = RRL_FAIL(RRL_ERR_IO, "%s: folder cannot be synchronised: %s", folder, strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
}

static rrl_status sync_parent(const char *path) {
    char *folder = NULL;
    RRL_TRY(rrl_path_parent(&folder, path));
    rrl_status rc = sync_folder(folder);
    free(folder);
    return rc;
}

/* A new file next to path, "<path>.<pid>-<k>.tmp". O_EXCL makes the name ours among threads, processes and
 * hosts; a file left by a killed process only costs a k. */
static rrl_status open_tmp(int *fd, char **tmp, const char *path) {
    enum { TRIES = 1000 };
    rrl_buffer name = {0};
    for (int k = 0; k < TRIES; k++) {
        name.len = 0;
        rrl_status rc = rrl_buffer_printf(&name, "%s.%ld-%d.tmp", path, (long)getpid(), k);
        if (rc != RRL_OK) {
            rrl_buffer_free(&name);
            return rc;
        }
        int f =
            rrl_fault("publish.open") ? -1 : open(name.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f >= 0) {
            *fd = f;
            *tmp = name.data; /* the caller frees it */
            return RRL_OK;
        }
        if (errno != EEXIST) break;
    }
    rrl_status rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be made: %s", name.data, strerror(errno));
    rrl_buffer_free(&name);
    return rc;
}

/* The bytes, durable, under a name of their own next to path. */
static rrl_status write_tmp(char **out, const char *path, const void *bytes, size_t n) {
    int fd = -1;
    char *tmp = NULL;
    RRL_TRY(open_tmp(&fd, &tmp, path));
    bool ok = !rrl_fault("publish.write") && write_all(fd, bytes, n) == 0 && !rrl_fault("publish.fsync") &&
              sync_fd(fd) == 0;
    int error = errno;
    if (close(fd) != 0 && ok) { /* network file systems report a full disk here */
        ok = false;
        error = errno;
    }
    if (!ok) {
        rrl_status rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be written: %s", path, strerror(error));
        unlink(tmp);
        free(tmp);
        return rc;
    }
    *out = tmp;
    return RRL_OK;
}

static rrl_status rename_tmp(const char *tmp, const char *path) {
    if (!rrl_fault("publish.rename") && rename(tmp, path) == 0) return RRL_OK;
    return RRL_FAIL(RRL_ERR_IO, "%s: cannot be renamed to %s: %s", tmp, path, strerror(errno));
}

static rrl_status rename_durably(const char *tmp, const char *path) {
    RRL_TRY(rename_tmp(tmp, path));
    return sync_parent(path);
}

rrl_status rrl_file_publish_early(const char *path, const void *bytes, size_t n) {
    char *tmp = NULL;
    RRL_TRY(write_tmp(&tmp, path, bytes, n));
    rrl_status rc = rename_tmp(tmp, path);
    if (rc != RRL_OK) unlink(tmp);
    free(tmp);
    return rc;
}

rrl_status rrl_file_publish(const char *path, const void *bytes, size_t n) {
    RRL_TRY(rrl_file_publish_early(path, bytes, n));
    return sync_parent(path);
}

rrl_status rrl_file_publish_tmp(const char *tmp, const char *path) {
    int fd = open(tmp, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return RRL_FAIL(RRL_ERR_IO, "%s: cannot be opened: %s", tmp, strerror(errno));
    rrl_status rc = RRL_OK;
    if (rrl_fault("publish.fsync") || sync_fd(fd) != 0)
        rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be synchronised: %s", tmp, strerror(errno));
    close(fd);
    RRL_TRY(rc);
    return rename_durably(tmp, path);
}

/* link, unlike rename, refuses a name that exists; so a file made this way appears whole and only once. */
static bool link_new(const char *tmp, const char *path) {
    if (rrl_fault("publish.link")) return false;
    if (link(tmp, path) == 0) return true;
    int error = errno;
    struct stat st;
    bool linked = stat(tmp, &st) == 0 && st.st_nlink == 2; /* an NFS server was asked twice and said EEXIST */
    errno = error;
    return linked;
}

rrl_status rrl_file_create(const char *path, const void *bytes, size_t n) {
    char *tmp = NULL;
    RRL_TRY(write_tmp(&tmp, path, bytes, n));
    rrl_status rc = RRL_OK;
    if (!link_new(tmp, path))
        rc = RRL_FAIL(errno == EEXIST ? RRL_ERR_BUSY : RRL_ERR_IO, "%s: cannot be made: %s", path,
                      strerror(errno));
    unlink(tmp);
    free(tmp);
    RRL_TRY(rc);
    return sync_parent(path);
}

static ssize_t write_once(int fd, const char *text, size_t n) {
    if (rrl_fault("append.write")) return -1;
    ssize_t done;
    do done = write(fd, text, n);
    while (done < 0 && errno == EINTR);
    return done;
}

rrl_status rrl_file_append(const char *path, const char *text, size_t n) {
    bool made = false;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        made = true;
    }
    if (fd < 0) return RRL_FAIL(RRL_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));

    rrl_status rc = RRL_OK;
    ssize_t done = write_once(fd, text, n);
    if (done >= 0 && (size_t)done < n) { /* a second write could land behind another writer's line */
        rc = RRL_FAIL(RRL_ERR_IO, "%s: only %zd of %zu bytes written; is the disk full?", path, done, n);
    } else if (done < 0 || sync_fd(fd) != 0) {
        rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    close(fd);
    RRL_TRY(rc);
    return made ? sync_parent(path) : RRL_OK;
}

/* --- folders */

/* One folder whose parent exists; an existing one is fine, also if another process makes it at this moment.
 */
static rrl_status make_one(const char *path) {
    if (rrl_dir_exists(path)) return RRL_OK;
    if (!rrl_fault("dir.make") && mkdir(path, 0777) == 0) return sync_parent(path);
    int error = errno;
    if (error == EEXIST && rrl_dir_exists(path)) return RRL_OK;
    return RRL_FAIL(RRL_ERR_IO, "%s: folder cannot be made: %s", path,
                    error == EEXIST ? "a file of this name is there" : strerror(error));
}

rrl_status rrl_dir_make(const char *path) {
    rrl_status rc = RRL_OK;
    char *part = NULL;
    RRL_TRY(rrl_strdup(&part, path));
    for (char *p = part; *p && rc == RRL_OK; p++) {
        if (*p != '/' || p == part) continue;
        *p = 0;
        rc = make_one(part);
        *p = '/';
    }
    free(part);
    return rc == RRL_OK ? make_one(path) : rc;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path) != 0 && errno != ENOENT;
}

bool rrl_dir_remove(const char *path) {
    enum { OPEN_FOLDERS = 8 };
    return nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS) == 0;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static rrl_status add_name(char ***names, size_t *n, size_t *capacity, const char *name) {
    RRL_TRY(rrl_grow(names, capacity, *n + 1, sizeof **names, "names of a folder"));
    RRL_TRY(rrl_strdup(&(*names)[*n], name));
    ++*n;
    return RRL_OK;
}

rrl_status rrl_dir_list(char ***names, size_t *n, const char *path) {
    rrl_status rc = RRL_OK;
    char **list = NULL;
    size_t count = 0, capacity = 0;
    DIR *dir = opendir(path);
    if (!dir) return RRL_FAIL(RRL_ERR_IO, "%s: folder cannot be opened: %s", path, strerror(errno));
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry && errno)
            RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: folder cannot be read: %s", path, strerror(errno)));
        if (!entry) break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        RRL_GOTO(add_name(&list, &count, &capacity, entry->d_name));
    }
    if (count) qsort(list, count, sizeof *list, compare_names);
    *names = list;
    *n = count;
    list = NULL;
    count = 0;
done:
    rrl_names_free(&list, count);
    closedir(dir);
    return rc;
}

void rrl_names_free(char ***names, size_t n) {
    if (!names || !*names) return;
    for (size_t i = 0; i < n; i++) free((*names)[i]);
    free(*names);
    *names = NULL;
}
