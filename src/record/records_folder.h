/* The folder DIR/records of a run in progress: which parts are there, by their names. Other names
 * (temporaries of a dead process among them) are not looked at. */
#ifndef RRL_RECORD_RECORDS_FOLDER_H
#define RRL_RECORD_RECORDS_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include "record/record.h"

#define RRL_RECORDS_HEAD "000000.h5"

typedef struct {
    char *path;
    int64_t first; /* step, from the name */
    int64_t n;     /* steps; 0 until someone looked into the file */
} rrl_segment_file;

typedef struct {
    char *dir;                  /* DIR/records */
    char *head;                 /* its path, NULL if it is not there */
    rrl_segment_file *segments; /* ascending */
    size_t n_segments;
    char **evaluations; /* paths, ascending */
    size_t n_evaluations;
} rrl_records_folder;

/** List DIR/records; a missing folder is an empty one. Free with rrl_records_free. */
rrl_status rrl_records_list(rrl_records_folder *out, const char *dir);
void rrl_records_free(rrl_records_folder *f);

/** Paths of parts; the caller frees them. name: letters, digits, "-", "_", ".", else RRL_ERR_USAGE. */
rrl_status rrl_segment_path(char **out, const char *records, int64_t first_step);
rrl_status rrl_evaluation_path(char **out, const char *records, const char *name);

/** Move a file or folder to DIR/quarantine/NAME.k, the first k that is free. records is DIR/records. */
rrl_status rrl_quarantine(const char *records, const char *path);
/** As rrl_quarantine, but the file stays and gets a second name there. */
rrl_status rrl_quarantine_copy(const char *records, const char *path);

/** The segments of DIR as one record, also where a run.h5 is there. */
rrl_status rrl_record_read_segments(rrl_record **out, const char *dir);
/** Join the segments of dir into run.h5: published, read back, compared. provenance_json replaces the head's
 * (NULL keeps it). The segments stay. */
rrl_status rrl_records_join(const char *dir, const char *provenance_json);
/** Remove DIR/records, after run.h5 was made. */
rrl_status rrl_records_remove(const char *dir);

#endif
