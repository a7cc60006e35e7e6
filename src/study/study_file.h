/* study.json: the resolved plan of a study, created exclusively by the first job and compared by all others. */
#ifndef RRL_STUDY_STUDY_FILE_H
#define RRL_STUDY_STUDY_FILE_H

#include "study/study.h"

/** Create DIR/study.json, or compare: another digest is RRL_ERR_CONFIG with the keys that differ. Local. */
rrl_status rrl_study_file_claim(const rrl_config *study, const rrl_condition *c, int64_t n, const char *identity);
/** Where the study.json of its folder is that of another study: *why, "key: old -> new", as far as the config tells (not
 *  other models or data); NULL where it is this one's, or not there. The caller frees it. Errors: RRL_ERR_DATA. */
rrl_status rrl_study_file_differs(char **why, const rrl_config *study);
/** SHA-256 hex of the hypotheses block, as study.json keeps it from before the first run. */
rrl_status rrl_study_hypotheses_digest(char out[65], const rrl_config *study);

#endif
