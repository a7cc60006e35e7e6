/* The parts of question sets that their makers share. */
#ifndef RRL_DATA_QUESTION_SET_H
#define RRL_DATA_QUESTION_SET_H

#include "data/questions.h"

/** Read one line of a question file into an empty row, which owns what was made also on failure. Errors:
 * RRL_ERR_DATA with file and line. */
rrl_status rrl_question_read(rrl_question *q, const char *line, size_t len, int64_t number,
                             const rrl_questions_spec *spec);
/** Free what a row owns. */
void rrl_question_free(rrl_question *q);

/** Fill in the digest of a finished set. */
rrl_status rrl_questions_seal(rrl_questions *q);

/** One pool of pools.json: rows [n] (0-based lines of its file; the caller frees them) and the SHA-256 of its
 * questions, joined by newlines. Errors: RRL_ERR_DATA (no such pool: names those there are; bad numbers). */
rrl_status rrl_pool_read(int64_t **rows, int64_t *n, char sha256[65], const char *path, const char *name);
/** Whether the questions are those the pool was published with. Errors: RRL_ERR_DATA. */
rrl_status rrl_pool_check(const rrl_questions *q, const char sha256[65], const char *path, const char *name,
                          const char *file);

#endif
