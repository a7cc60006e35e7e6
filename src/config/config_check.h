/* Parts of rrl_config_check. */
#ifndef RRL_CONFIG_CHECK_H
#define RRL_CONFIG_CHECK_H

#include "rrl/config.h"

/** A method that a study trains a policy for. */
bool rrl_method_is_trained(const char *method);
/** Whether any arm has such a method. */
bool rrl_study_trains(const rrl_config *c);
/** Seeds, arms, levels, methods, hypotheses. */
rrl_status rrl_check_study(const rrl_config *c);

#endif
