/* The adapter of a complete run, made again from its last checkpoint. */
#ifndef RRL_STUDY_ADAPTER_AGAIN_H
#define RRL_STUDY_ADAPTER_AGAIN_H

#include <stdbool.h>

#include "rrl/status.h"

/** Write DIR/adapter/adapter_model.safetensors if one of DIR's checkpoints holds the tensors that give the file of this
 *  SHA-256 (hex, as run.json has it): then it is the file that was lost, to the last byte, and *made is true. dry: look
 *  only. Errors: RRL_ERR_IO; a damaged checkpoint is none, only of no use. */
rrl_status rrl_adapter_again(bool *made, const char *dir, const char *sha256, bool dry);

#endif
