/* Checks of requests before anything is generated. */
#ifndef RRL_ROLLOUT_REQUEST_H
#define RRL_ROLLOUT_REQUEST_H

#include "rollout/rollout.h"

/** Whether request `index` can be generated as it stands. Errors: RRL_ERR_DATA, RRL_ERR_RANGE, naming it. */
rrl_status rrl_request_check(const rrl_request *q, int64_t index, int32_t vocab, int32_t max_positions,
                             int32_t n_adapters);

#endif
