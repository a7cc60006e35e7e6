/* Collectives over the memory of GPUs: NCCL. */
#ifndef RRL_DEVICE_CUDA_COLLECTIVE_NCCL_H
#define RRL_DEVICE_CUDA_COLLECTIVE_NCCL_H

#include "device/cuda/cuda_common.cuh"

extern "C" {
#include "device/collective.h"
}

/* Of the op table: identity is the GPU's UUID; missing speaks of libnccl.
 *
 * open makes one communicator, whose id rank 0 sends by site->host. A call enqueues on the device's stream behind what
 * stands there, and looks until it has ended or failed, or site->timeout_s and a little is over: then the communicator is
 * given up and the call, as every later one, is RRL_ERR_COMM, naming rank and phase.
 *
 * tree_sum: ncclAllReduce; under RRL_DETERMINISM_EXACT the pairwise tree of collective_mpi.c, level by level. */
extern const struct rrl_device_peers rrl_cuda_peers;

#endif
