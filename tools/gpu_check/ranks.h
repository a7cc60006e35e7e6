/* The part of a rank of rrl_gpu_check_ranks, in a process of its own. */
#ifndef RRL_GPU_CHECK_RANKS_H
#define RRL_GPU_CHECK_RANKS_H

#include "check.h"

enum { RRL_GPU_RANKS = 2 };

/** Rank `rank` of two on one GPU, whose peer is reached through `socket`. Exit code: 0, 1 (why is on stderr), 77 = there
 *  is no NCCL (why is on stdout). */
int rrl_gpu_rank(const rrl_gpu_check *c, int rank, int socket);

#endif
