/* Files: reading whole, and publishing so that a reader sees all of a file or none of it. */
#ifndef RRL_BASE_FILES_H
#define RRL_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "rrl/status.h"

/** Whole file as bytes plus a NUL; the caller frees *out. Errors: RRL_ERR_DATA (no such
 *  file, or more than max_bytes), RRL_ERR_IO. */
rrl_status rrl_file_read(char **out, size_t *len, const char *path, size_t max_bytes);
/** Publish bytes at path: tmp in the same folder, write, fsync, rename, fsync folder. Errors: RRL_ERR_IO. */
rrl_status rrl_file_publish(const char *path, const void *bytes, size_t n);
/** As rrl_file_publish, but the name is durable only with the next publish in the same folder: for all but the last of files
 *  that are complete together. */
rrl_status rrl_file_publish_early(const char *path, const void *bytes, size_t n);
/** Publish a finished temporary file: fsync(tmp), rename(tmp, path), fsync(folder). tmp is in path's folder. */
rrl_status rrl_file_publish_tmp(const char *tmp, const char *path);
/** Create exclusively, whole and durably; RRL_ERR_BUSY if it exists. */
rrl_status rrl_file_create(const char *path, const void *bytes, size_t n);
/** mkdir -p, fsync of the parents that were made. */
rrl_status rrl_dir_make(const char *path);
/** Remove a folder and all that is in it; links are not followed, what is gone already does not count. False, with errno,
 *  where something could not be removed: it and what comes after it stay. Leaves the message of an error as it is. */
bool rrl_dir_remove(const char *path);
bool rrl_file_exists(const char *path);
bool rrl_dir_exists(const char *path);
/** Sorted names in a folder, without . and ..; free each and the array (rrl_names_free). */
rrl_status rrl_dir_list(char ***names, size_t *n, const char *path);
void rrl_names_free(char ***names, size_t n);
/** a + "/" + b, or b alone when it is absolute or a is "" or NULL. The caller frees it. */
rrl_status rrl_path_join(char **out, const char *a, const char *b);
/** Folder part of a path ("." if none); the caller frees it. */
rrl_status rrl_path_parent(char **out, const char *path);
/** Append-only durable line, one write(2) with O_APPEND (events.log). */
rrl_status rrl_file_append(const char *path, const char *text, size_t n);

/** Fault points of test builds: RRL_FAULT=rank:site:n:kind. Returns true when this visit is to fail with errno set.
 *  kinds: fail (EIO), full (ENOSPC), kill (SIGKILL). Rank "*" is every rank; rrl_fault_rank tells which rank this is.
 *  n counts the visits of this site from 1, afresh when the variable changes. Always false without the build option
 *  RRL_FAULTS. */
bool rrl_fault(const char *site);
void rrl_fault_rank(int rank);
/** All sites, a line each; `rrl --fault-sites` prints them, the test check_faults compares them with the sources. */
#define RRL_FAULT_SITES                                                                                                \
    "append.write\n"     /* a line of events.log */                                                                    \
    "dir.make\n"         /* mkdir */                                                                                   \
    "evaluation.write\n" /* the records of an evaluation, before they are published */                                 \
    "fresh.rename\n"     /* the old folder put aside */                                                                \
    "head.write\n"       /* records/000000.h5 */                                                                       \
    "join.remove\n"      /* a segment, once run.h5 is there */                                                         \
    "lock.takeover\n"    /* the lock of a dead process replaced */                                                     \
    "memory.alloc\n"     /* every allocation of base/memory.h */                                                       \
    "node.memory\n"      /* memory that the ranks of a node share; each takes its own */                               \
    "publish.folder\n"   /* fsync of a folder; this and the next five: any file that appears whole */                  \
    "publish.fsync\n"                                                                                                 \
    "publish.link\n"     /* rrl_file_create */                                                                         \
    "publish.open\n"                                                                                                  \
    "publish.rename\n"                                                                                                \
    "publish.write\n"                                                                                                 \
    "quarantine.move\n"  /* a segment that differs */                                                                  \
    "rejudged.write\n"   /* rrl rejudge's copy */                                                                      \
    "report.exchange\n"  /* fails as a file system that has none */                                                    \
    "run.write\n"        /* run.h5 */                                                                                  \
    "segment.write\n"    /* records/N.h5 */

#endif
