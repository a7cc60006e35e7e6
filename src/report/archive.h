/* Evidence archives: the configs, records, tables and report of a run or study in one tar file, with the SHA-256 of
 * every file in it, and a check of such a file that trusts nothing in it. docs/export.md has the layout. */
#ifndef RRL_REPORT_ARCHIVE_H
#define RRL_REPORT_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

#define RRL_ARCHIVE_MANIFEST "MANIFEST.sha256"
#define RRL_ARCHIVE_SUMMARY "EVIDENCE.json"

/* A file below the folder that is archived. */
typedef struct {
    char *path;    /* from that folder */
    int64_t bytes;
    char sha256[65];
} rrl_archive_file;

typedef struct {
    rrl_archive_file *v;
    size_t n, room;
} rrl_archive_files;

/** Files of dir that belong into an archive, sorted by path, without their digests: all but adapters (unless
 *  `weights`), checkpoints, locks, temporaries and archives. What is no regular file, a link for example, is left
 *  out. Errors: RRL_ERR_DATA (no such folder). Free with rrl_archive_files_free. */
rrl_status rrl_archive_list(rrl_archive_files *out, const char *dir, bool weights);
void rrl_archive_files_free(rrl_archive_files *f);

typedef struct {
    char *path; /* of the archive */
    int64_t files, bytes;
    char manifest[65]; /* SHA-256 of the manifest: names all of the content */
} rrl_archive_made;

/** Write the archive of dir, a study or run, at path (NULL = DIR.evidence.tar). The same files give the same bytes.
 *  Errors: RRL_ERR_DATA (neither a study nor a run; a file changed meanwhile), RRL_ERR_IO. Free with
 *  rrl_archive_made_free. */
rrl_status rrl_archive_write(rrl_archive_made *out, const char *dir, const char *path, bool weights);
void rrl_archive_made_free(rrl_archive_made *m);

typedef struct {
    int64_t files, bytes; /* that are as the manifest says */
    int64_t problems;
    char manifest[65];    /* SHA-256 of the manifest; "" where there is none */
    rrl_buffer text;      /* a line for each problem: what, and the file's name */
} rrl_archive_check;

/** Check every file of an archive against its manifest: changed, missing and extra files, repeated names, paths
 *  that lead out of the archive's folder, entries that are no files. Nothing is written. Whatever is wrong inside
 *  is a problem; errors: RRL_ERR_DATA (no such file), RRL_ERR_NOMEM. Free with rrl_archive_check_free. */
rrl_status rrl_archive_verify(rrl_archive_check *out, const char *path);
void rrl_archive_check_free(rrl_archive_check *c);

/** Whether a path stays below the folder it is unpacked in: relative, no empty, "." or ".." part, no control
 *  character. */
bool rrl_archive_safe_path(const char *path);

typedef struct {
    char *path;
    int64_t records, lines;
    rrl_buffer left_out; /* a line for each condition without a record: folder and reason */
} rrl_generations_made;

/** Every completion of a study or run as a line of JSON (docs/export.md, section Generations) at path (NULL =
 *  DIR.generations.jsonl): conditions in the order of the plan, training before evaluations. Errors: RRL_ERR_DATA. */
rrl_status rrl_generations_write(rrl_generations_made *out, const char *dir, const char *path);
void rrl_generations_made_free(rrl_generations_made *m);

/** Training rows (train/NAME, names as in the records, which are TRL's where the meaning is the same) and metrics of
 *  evaluations (eval/SET/NAME) of a study or run as event files of TensorBoard below folder path (NULL = DIR.tensorboard),
 *  a folder a run; undefined values are left out. lines: scalars written. Errors: RRL_ERR_DATA, RRL_ERR_IO. */
rrl_status rrl_events_write(rrl_generations_made *out, const char *dir, const char *path);

#endif
