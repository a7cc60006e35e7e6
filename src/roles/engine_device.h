/* Where the engine runs: model.device. */
#ifndef RRL_ROLES_ENGINE_DEVICE_H
#define RRL_ROLES_ENGINE_DEVICE_H

#include "device/device.h"
#include "roles/team.h"
#include "rrl/config.h"

enum { RRL_WHY_BYTES = 256 };

/** Open the device that model.device asks for, with products in dtype; why [RRL_WHY_BYTES] = the reason, for the log.
 * auto takes a GPU where the CUDA module is found and sees one. Local. Errors: RRL_ERR_CONFIG (cuda asked for and not
 * there: what is missing), RRL_ERR_DEVICE. */
rrl_status rrl_engine_device_open(rrl_device **out, char *why, const rrl_config *config, const rrl_team *team,
                                  rrl_dtype dtype, const char *isa, int threads);

/** Whether a run here would take a GPU; model.device cuda counts as one, also where it cannot be had. Opens nothing. */
bool rrl_engine_device_is_gpu(const rrl_config *config);

/** Whether model.device can be had on this machine; why [RRL_WHY_BYTES] = what is missing. Opens nothing. */
bool rrl_engine_device_here(char *why, const rrl_config *config);

#endif
