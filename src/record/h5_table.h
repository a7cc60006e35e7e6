/* One writer and one reader for every table (compound rows by column descriptors), for flat arrays and for
 * row-aligned texts. Datasets are one-dimensional, chunked, shuffled, deflated and carry a checksum a chunk
 * (fletcher32); columns, unit, missing and meaning stand beside them as attributes. Readers match columns by
 * name. */
#ifndef RRL_RECORD_H5_TABLE_H
#define RRL_RECORD_H5_TABLE_H

#include "record/h5.h"

/** rows [n] of t->row_bytes each. */
rrl_status rrl_h5_table_put(hid_t parent, const rrl_table *t, const void *rows, int64_t n, const char *path);
/** *rows [*n] is malloc'ed, its texts too. Errors: RRL_ERR_DATA naming table and column. */
rrl_status rrl_h5_table_get(void **rows, int64_t *n, hid_t parent, const rrl_table *t, const char *path);

/** values [n] of the column's kind (no texts). */
rrl_status rrl_h5_array_put(hid_t parent, const rrl_column *c, const void *values, int64_t n,
                            const char *path);
rrl_status rrl_h5_array_get(void **values, int64_t *n, hid_t parent, const rrl_column *c, const char *path);

/** Texts of rows, NUL-padded to the longest: text i has bytes(i) bytes, < 0 counts as 0. */
typedef int64_t rrl_text_bytes(const void *rows, int64_t i);
rrl_status rrl_h5_texts_put(hid_t parent, const rrl_column *c, char *const *texts, rrl_text_bytes *bytes,
                            const void *rows, int64_t n, const char *path);
/** texts [n], each malloc'ed with a NUL behind its bytes. n must be the dataset's. */
rrl_status rrl_h5_texts_get(char ***texts, rrl_text_bytes *bytes, const void *rows, int64_t n, hid_t parent,
                            const rrl_column *c, const char *path);

/** Rows of a dataset without reading them. */
rrl_status rrl_h5_rows(int64_t *n, hid_t parent, const char *name, const char *path);

#endif
