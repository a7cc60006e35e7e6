/* The digest of what was recorded, whatever the files look like: see rrl_record_digest in record.h. */
#ifndef RRL_RECORD_DIGEST_H
#define RRL_RECORD_DIGEST_H

#include "record/record_file.h"

/** SHA-256 hex of the tables of a record that was read with its texts (no adapter). */
rrl_status rrl_record_content_digest(char out[65], const rrl_record *r);
/** The same of a segment (its completions and training rows), and of one evaluation: two recordings of the
 * same steps are equal exactly when these are. */
rrl_status rrl_segment_digest(char out[65], const rrl_segment *s);
rrl_status rrl_evaluation_digest(char out[65], const rrl_record_set *s);

#endif
