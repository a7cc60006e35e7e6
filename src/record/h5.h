/* The thin layer over HDF5's C API: files made in memory, files opened for reading with their size checked,
 * attributes, and errors as one line in place of the library's error stack.
 *
 * HDF5 never writes to a disk here: a file is built in memory and its bytes are published by base/files.h. So
 * a full disk or a file system without locks cannot fail inside the library, where a failed H5Fclose has no
 * way back, and a file needs its size in memory while it is made. Format bounds are fixed: HDF5 1.8 to 1.8
 * (superblock 2).
 *
 * One thread at a time uses these. `path` is for messages. */
#ifndef RRL_RECORD_H5_H
#define RRL_RECORD_H5_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/tables.h"
#include "rrl/status.h"

/** Message "path: text: what HDF5 says", cleared from its stack. Returns rc. */
rrl_status rrl_h5_fail(rrl_status rc, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** Drop an id of any type; accepts negative ones, leaves -1. */
void rrl_h5_drop(hid_t *id);

/** A new, empty file in memory. Drop it when done. */
rrl_status rrl_h5_create(hid_t *out, const char *path);
/** Publish the bytes of an in-memory file at path. site: a fault point of its own before the ones of
 * base/files.h. */
rrl_status rrl_h5_publish(hid_t file, const char *path, const char *site);
/** Open for reading, without locks. Errors: RRL_ERR_DATA - no such file; no HDF5 file; made by a newer
 * library; truncated (expected and real size). */
rrl_status rrl_h5_open(hid_t *out, const char *path);

rrl_status rrl_h5_group_make(hid_t *out, hid_t parent, const char *name, const char *path);
rrl_status rrl_h5_group_open(hid_t *out, hid_t parent, const char *name, const char *path);
bool rrl_h5_has(hid_t parent, const char *name);

/** Attributes: one value each. Getting a text allocates it; a missing attribute or another class is
 * RRL_ERR_DATA. */
rrl_status rrl_h5_attr_put_text(hid_t object, const char *name, const char *text, const char *path);
rrl_status rrl_h5_attr_put(hid_t object, const char *name, rrl_column_kind kind, const void *value,
                           const char *path);
rrl_status rrl_h5_attr_get_text(char **out, hid_t object, const char *name, const char *path);
rrl_status rrl_h5_attr_get(void *out, hid_t object, const char *name, rrl_column_kind kind, const char *path);
/** An array of texts as one attribute, as wide as the longest. */
rrl_status rrl_h5_attr_put_texts(hid_t object, const char *name, const char *const *texts, int n,
                                 const char *path);

/** A long text as a scalar dataset (an attribute ends at 64 KiB). */
rrl_status rrl_h5_text_put(hid_t parent, const char *name, const char *text, const char *path);
rrl_status rrl_h5_text_get(char **out, hid_t parent, const char *name, const char *path);

/** Type in the file of a column; width is that of texts. The caller drops it. */
rrl_status rrl_h5_type(hid_t *out, rrl_column_kind kind, size_t width, const char *path);

#endif
