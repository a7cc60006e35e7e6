/* study.json: the resolved plan of a study, created exclusively by the first job and compared by all others. */
#ifndef RRL_STUDY_STUDY_FILE_H
#define RRL_STUDY_STUDY_FILE_H

#include "study/study.h"

/** Create DIR/study.json, or compare: another digest is RRL_ERR_CONFIG with the keys that differ. Local. */
rrl_status rrl_study_file_claim(const rrl_config *study, const rrl_condition *c, int64_t n, const char *identity);
/** SHA-256 hex of the hypotheses block, as study.json keeps it from before the first run. */
rrl_status rrl_study_hypotheses_digest(char out[65], const rrl_config *study);

#endif
