/* Completions of the base model: made once a seed by whoever needs them first, then judged at every level. */
#ifndef RRL_STUDY_BASE_STORE_H
#define RRL_STUDY_BASE_STORE_H

#include "study/study.h"

/** Path of STUDY/base/seed-S.h5, made if it is not there; collective over the team. study.json vouches that what stands in
 *  the folder belongs to this study. Where another team is making it, waits for that. The caller frees *out. */
rrl_status rrl_base_store_get(char **out, rrl_team *team, rrl_engine *engine, const rrl_config *study,
                              const rrl_condition *condition);

#endif
