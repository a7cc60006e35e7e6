/* Parts of rrl_config_check. */
#ifndef RRL_CONFIG_CHECK_H
#define RRL_CONFIG_CHECK_H

#include "rrl/config.h"

/** What a config is for: one whose experiment names more than one clean condition is a study; else a training run, else,
 *  where nothing could be learnt (temperature 0, one completion, fixture), an evaluation. */
rrl_purpose rrl_config_purpose(const rrl_config *c);
/** A method that a study trains a policy for. */
bool rrl_method_is_trained(const char *method);
/** Whether any arm has such a method. */
bool rrl_study_trains(const rrl_config *c);
/** Seeds, arms, levels, methods, hypotheses. */
rrl_status rrl_check_study(const rrl_config *c);

#endif
