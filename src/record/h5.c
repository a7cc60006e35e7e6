/* Files, attributes and errors of HDF5; tables are in h5_table.c. */
#include "record/h5.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

enum {
    GROWTH = 1 << 18,    /* bytes by which a file in memory grows */
    ROOM = 8 << 20,      /* what opening a file may take, with its tables of the cache */
    MAX_TEXT = 1 << 30,  /* of one text in a file */
    MAX_COMPACT = 60000, /* bytes of data in an object header (HDF5 allows 64 KiB) */
    SUPERBLOCK_NEWEST = 3
};

/* --- errors */

static herr_t innermost(unsigned n, const H5E_error2_t *e, void *text) {
    if (n == 0) snprintf(text, 400, "%s", e->desc ? e->desc : "");
    return 0;
}

rrl_status rrl_h5_fail(rrl_status rc, const char *path, const char *fmt, ...) {
    char reason[400] = "", what[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, reason);
    H5Eclear2(H5E_DEFAULT);
    for (char *p = reason; *p; p++)
        if (*p == '\n') *p = ' ';
    return RRL_FAIL(rc, "%s: %s%s%s", path, what, reason[0] ? ": " : "", reason);
}

void rrl_h5_drop(hid_t *id) {
    if (*id >= 0) H5Idec_ref(*id);
    *id = -1;
}

/* Errors are ours to report. The switch is a thread's own in a thread-safe library, hence at every entry. */
static void quiet(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5Eclear2(H5E_DEFAULT);
}

/* HDF5 1.10 does not look at every allocation when it opens a file (H5AC_create): one that fails is a crash. So there is
 * room, or an error before it is called. It is not touched: zeroing it would take longer than to write a segment. */
static rrl_status have_room(void) {
    char *room = NULL;
    size_t bytes = 0;
    RRL_TRY(rrl_grow(&room, &bytes, ROOM, 1, "HDF5"));
    free(room);
    return RRL_OK;
}

/* --- files made in memory */

rrl_status rrl_h5_create(hid_t *out, const char *path) {
    RRL_TRY(have_room());
    quiet();
    rrl_status rc = RRL_OK;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE), file = -1;
    /* no times in any object: the bytes of a file follow from its content */
    if (access < 0 || create < 0 || H5Pset_obj_track_times(create, 0) < 0 || H5Pset_fapl_core(access, GROWTH, 0) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0 ||
        (file = H5Fcreate(path, H5F_ACC_TRUNC, create, access)) < 0)
        rc = rrl_h5_fail(RRL_ERR_IO, path, "cannot be made in memory");
    rrl_h5_drop(&create);
    rrl_h5_drop(&access);
    if (rc == RRL_OK) *out = file;
    return rc;
}

rrl_status rrl_h5_publish(hid_t file, const char *path, const char *site) {
    rrl_status rc = RRL_OK;
    void **bytes =
        NULL; /* where the driver keeps the file; H5Fget_file_image spoils the checksum of superblock 2 */
    ssize_t n = -1; /* what is used of it; the rest is room to grow */
    hid_t access = H5Fget_access_plist(file);
    if (access < 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 || (n = H5Fget_file_image(file, NULL, 0)) < 0 ||
        H5Fget_vfd_handle(file, access, (void **)&bytes) < 0)
        RRL_GOTO(rrl_h5_fail(RRL_ERR_IO, path, "cannot be completed in memory"));
    if (rrl_fault(site)) RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: cannot be written: %s", path, strerror(errno)));
    RRL_GOTO(rrl_file_publish(path, *bytes, (size_t)n));
done:
    rrl_h5_drop(&access);
    return rc;
}

/* --- files opened for reading */

/* Checks signature, superblock version and stored end of file before the library sees the file: it would
 * report a truncated one in its own words or, worse, open it and fail later. */
static rrl_status check_superblock(const char *path) {
    static const unsigned char signature[8] = "\211HDF\r\n\032\n";
    unsigned char b[52] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
    if (fd < 0) return RRL_FAIL(RRL_ERR_DATA, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat st;
    ssize_t got = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, b, sizeof b, 0) : -1;
    close(fd);
    if (got < 0) return RRL_FAIL(RRL_ERR_DATA, "%s: is not a regular file", path);
    if (got < (ssize_t)sizeof b)
        return RRL_FAIL(RRL_ERR_DATA, "%s: truncated: expected at least %zu bytes, found %zd", path, sizeof b,
                        got);
    if (memcmp(b, signature, sizeof signature) != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: is not an HDF5 file (its signature is missing)", path);
    if (b[8] > SUPERBLOCK_NEWEST)
        return RRL_FAIL(
            RRL_ERR_DATA,
            "%s: written with superblock version %d of HDF5; this program (HDF5 %d.%d.%d) reads up to %d",
            path, b[8], H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE, SUPERBLOCK_NEWEST);
    /* where the address of the end of the file stands; both need addresses of 8 bytes */
    size_t at = b[8] >= 2 ? 28 : b[8] == 1 ? 44 : 40;
    bool wide = b[b[8] >= 2 ? 9 : 13] == 8;
    if (!wide) return RRL_OK; /* not ours; the library will judge */
    uint64_t end;
    memcpy(&end, b + at, sizeof end);
    if (end > (uint64_t)st.st_size)
        return RRL_FAIL(RRL_ERR_DATA, "%s: truncated: expected %llu bytes, found %lld", path,
                        (unsigned long long)end, (long long)st.st_size);
    return RRL_OK;
}

rrl_status rrl_h5_open(hid_t *out, const char *path) {
    quiet();
    RRL_TRY(check_superblock(path));
    RRL_TRY(have_room());
    rrl_status rc = RRL_OK;
    /* Published files never change, so reading needs no lock; a file system that refuses locks is no
     * obstacle. Only HDF5_USE_FILE_LOCKING=TRUE in the environment overrides this. */
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    if (access < 0 || H5Pset_file_locking(access, 0, 1) < 0 ||
        (file = H5Fopen(path, H5F_ACC_RDONLY, access)) < 0) {
        const char *forced = getenv("HDF5_USE_FILE_LOCKING");
        bool locked = forced && strcmp(forced, "FALSE") != 0;
        rc = rrl_h5_fail(RRL_ERR_DATA, path, "cannot be opened%s",
                         locked ? " (HDF5_USE_FILE_LOCKING forces locks; set it to FALSE if they are refused)"
                                : "");
    }
    rrl_h5_drop(&access);
    if (rc == RRL_OK) *out = file;
    return rc;
}

/* --- groups */

rrl_status rrl_h5_group_make(hid_t *out, hid_t parent, const char *name, const char *path) {
    hid_t create = H5Pcreate(H5P_GROUP_CREATE), g = -1;
    if (create >= 0 && H5Pset_obj_track_times(create, 0) >= 0)
        g = H5Gcreate2(parent, name, H5P_DEFAULT, create, H5P_DEFAULT);
    rrl_h5_drop(&create);
    if (g < 0) return rrl_h5_fail(RRL_ERR_IO, path, "group %s cannot be made", name);
    *out = g;
    return RRL_OK;
}

rrl_status rrl_h5_group_open(hid_t *out, hid_t parent, const char *name, const char *path) {
    hid_t g = H5Gopen2(parent, name, H5P_DEFAULT);
    if (g < 0) return rrl_h5_fail(RRL_ERR_DATA, path, "group %s cannot be opened", name);
    *out = g;
    return RRL_OK;
}

bool rrl_h5_has(hid_t parent, const char *name) {
    return H5Lexists(parent, name, H5P_DEFAULT) > 0;
}

/* --- types */

rrl_status rrl_h5_type(hid_t *out, rrl_column_kind kind, size_t width, const char *path) {
    hid_t of[] = {[RRL_COLUMN_U8] = H5T_STD_U8LE,    [RRL_COLUMN_U16] = H5T_STD_U16LE,
                  [RRL_COLUMN_U32] = H5T_STD_U32LE,  [RRL_COLUMN_U64] = H5T_STD_U64LE,
                  [RRL_COLUMN_I32] = H5T_STD_I32LE,  [RRL_COLUMN_I64] = H5T_STD_I64LE,
                  [RRL_COLUMN_F32] = H5T_IEEE_F32LE, [RRL_COLUMN_F64] = H5T_IEEE_F64LE,
                  [RRL_COLUMN_TEXT] = H5T_C_S1};
    hid_t t = H5Tcopy(of[kind]);
    bool ok = t >= 0;
    if (ok && kind == RRL_COLUMN_TEXT)
        ok = H5Tset_size(t, width ? width : 1) >= 0 && H5Tset_strpad(t, H5T_STR_NULLPAD) >= 0 &&
             H5Tset_cset(t, H5T_CSET_UTF8) >= 0;
    if (!ok) {
        rrl_h5_drop(&t);
        return rrl_h5_fail(RRL_ERR_IO, path, "type cannot be made");
    }
    *out = t;
    return RRL_OK;
}

/* --- attributes */

static rrl_status attr_write(hid_t object, const char *name, hid_t type, hid_t space, const void *value,
                             const char *path) {
    rrl_status rc = RRL_OK;
    hid_t a = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (a < 0 || H5Awrite(a, type, value) < 0)
        rc = rrl_h5_fail(RRL_ERR_IO, path, "attribute %s cannot be written", name);
    rrl_h5_drop(&a);
    return rc;
}

rrl_status rrl_h5_attr_put(hid_t object, const char *name, rrl_column_kind kind, const void *value,
                           const char *path) {
    hid_t type = -1, space = H5Screate(H5S_SCALAR);
    rrl_status rc = rrl_h5_type(&type, kind, 0, path);
    if (rc == RRL_OK) rc = attr_write(object, name, type, space, value, path);
    rrl_h5_drop(&type);
    rrl_h5_drop(&space);
    return rc;
}

rrl_status rrl_h5_attr_put_text(hid_t object, const char *name, const char *text, const char *path) {
    hid_t type = -1, space = H5Screate(H5S_SCALAR);
    rrl_status rc = rrl_h5_type(&type, RRL_COLUMN_TEXT, strlen(text), path);
    if (rc == RRL_OK) rc = attr_write(object, name, type, space, text, path); /* "" gives its one NUL */
    rrl_h5_drop(&type);
    rrl_h5_drop(&space);
    return rc;
}

rrl_status rrl_h5_attr_put_texts(hid_t object, const char *name, const char *const *texts, int n,
                                 const char *path) {
    rrl_status rc = RRL_OK;
    char *cells = NULL;
    size_t width = 1;
    hsize_t count = (hsize_t)n;
    hid_t type = -1, space = H5Screate_simple(1, &count, NULL);
    for (int i = 0; i < n; i++)
        if (strlen(texts[i]) > width) width = strlen(texts[i]);
    RRL_GOTO(rrl_alloc(&cells, (size_t)n, width, "texts of an attribute"));
    for (int i = 0; i < n; i++) memcpy(cells + (size_t)i * width, texts[i], strlen(texts[i]));
    RRL_GOTO(rrl_h5_type(&type, RRL_COLUMN_TEXT, width, path));
    RRL_GOTO(attr_write(object, name, type, space, cells, path));
done:
    free(cells);
    rrl_h5_drop(&type);
    rrl_h5_drop(&space);
    return rc;
}

/* Opens attribute `name` if it holds one value of class `want`. */
static rrl_status attr_open(hid_t *attr, hid_t *type, hid_t object, const char *name, H5T_class_t want,
                            const char *path) {
    hid_t a = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (a < 0) return rrl_h5_fail(RRL_ERR_DATA, path, "attribute %s is missing", name);
    hid_t t = H5Aget_type(a), space = H5Aget_space(a);
    bool ok = t >= 0 && space >= 0 && H5Tget_class(t) == want && H5Sget_simple_extent_npoints(space) == 1;
    rrl_h5_drop(&space);
    if (!ok) {
        rrl_h5_drop(&t);
        rrl_h5_drop(&a);
        return rrl_h5_fail(RRL_ERR_DATA, path, "attribute %s is not of the expected type", name);
    }
    *attr = a;
    *type = t;
    return RRL_OK;
}

rrl_status rrl_h5_attr_get(void *out, hid_t object, const char *name, rrl_column_kind kind,
                           const char *path) {
    rrl_status rc = RRL_OK;
    hid_t a = -1, stored = -1, type = -1;
    bool real = kind == RRL_COLUMN_F32 || kind == RRL_COLUMN_F64;
    RRL_GOTO(rrl_h5_type(&type, kind, 0, path));
    RRL_GOTO(attr_open(&a, &stored, object, name, real ? H5T_FLOAT : H5T_INTEGER, path));
    if (H5Aread(a, type, out) < 0) rc = rrl_h5_fail(RRL_ERR_DATA, path, "attribute %s cannot be read", name);
done:
    rrl_h5_drop(&type);
    rrl_h5_drop(&stored);
    rrl_h5_drop(&a);
    return rc;
}

/* A fixed-length text type of at most MAX_TEXT bytes. */
static bool plain_text(hid_t type) {
    return H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 && H5Tget_size(type) > 0 &&
           H5Tget_size(type) <= MAX_TEXT;
}

rrl_status rrl_h5_attr_get_text(char **out, hid_t object, const char *name, const char *path) {
    rrl_status rc = RRL_OK;
    char *text = NULL;
    hid_t a = -1, type = -1;
    RRL_GOTO(attr_open(&a, &type, object, name, H5T_STRING, path));
    if (!plain_text(type))
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "attribute %s is no fixed-length text", name));
    RRL_GOTO(rrl_alloc(&text, H5Tget_size(type) + 1, 1, "text of an attribute"));
    if (H5Aread(a, type, text) < 0)
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "attribute %s cannot be read", name));
    *out = text;
    text = NULL;
done:
    free(text);
    rrl_h5_drop(&type);
    rrl_h5_drop(&a);
    return rc;
}

/* --- long texts */

rrl_status rrl_h5_text_put(hid_t parent, const char *name, const char *text, const char *path) {
    rrl_status rc = RRL_OK;
    hid_t type = -1, ds = -1, space = H5Screate(H5S_SCALAR), create = H5Pcreate(H5P_DATASET_CREATE);
    RRL_GOTO(rrl_h5_type(&type, RRL_COLUMN_TEXT, strlen(text), path));
    /* inside the object header, which has a checksum, where it fits */
    H5Pset_obj_track_times(create, 0);
    H5Pset_layout(create, strlen(text) < MAX_COMPACT ? H5D_COMPACT : H5D_CONTIGUOUS);
    if ((ds = H5Dcreate2(parent, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT)) < 0 ||
        H5Dwrite(ds, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0)
        rc = rrl_h5_fail(RRL_ERR_IO, path, "/%s cannot be written", name);
done:
    rrl_h5_drop(&create);
    rrl_h5_drop(&ds);
    rrl_h5_drop(&type);
    rrl_h5_drop(&space);
    return rc;
}

rrl_status rrl_h5_text_get(char **out, hid_t parent, const char *name, const char *path) {
    rrl_status rc = RRL_OK;
    char *text = NULL;
    hid_t type = -1, space = -1, ds = H5Dopen2(parent, name, H5P_DEFAULT);
    if (ds < 0) return rrl_h5_fail(RRL_ERR_DATA, path, "/%s is missing", name);
    if ((type = H5Dget_type(ds)) < 0 || (space = H5Dget_space(ds)) < 0 || !plain_text(type) ||
        H5Sget_simple_extent_npoints(space) != 1 || H5Tget_size(type) > H5Dget_storage_size(ds))
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "/%s is no fixed-length text", name));
    RRL_GOTO(rrl_alloc(&text, H5Tget_size(type) + 1, 1, "text of a record"));
    if (H5Dread(ds, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) < 0)
        RRL_GOTO(rrl_h5_fail(RRL_ERR_DATA, path, "/%s cannot be read", name));
    *out = text;
    text = NULL;
done:
    free(text);
    rrl_h5_drop(&space);
    rrl_h5_drop(&type);
    rrl_h5_drop(&ds);
    return rc;
}
