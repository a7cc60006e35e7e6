/* Collectives between learners and from learner to generators: a table with an MPI implementation here and a NCCL one
 * for GPUs. Results have a fixed order, whatever the number of ranks. */
#ifndef RRL_DEVICE_COLLECTIVE_H
#define RRL_DEVICE_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "rrl/status.h"

typedef struct rrl_collective rrl_collective;

typedef struct {
    const char *name;
    /* x [n] of ranks 0 .. active-1 are nodes of one tree level: node i + node i+1 pairwise, an odd last one moves up
     * unchanged; the root's sum is left in x of every rank of the communicator. scratch [n]. */
    rrl_status (*tree_sum)(rrl_collective *c, float *x, float *scratch, int64_t n, int active);
    rrl_status (*broadcast)(rrl_collective *c, void *x, size_t bytes, int root);
    /* rows of every rank: rank r owns rows first[r] .. first[r+1]-1 of size row_bytes; afterwards all ranks have all */
    rrl_status (*share_rows)(rrl_collective *c, void *rows, size_t row_bytes, const int32_t *first);
    void (*close)(rrl_collective **c);
} rrl_collective_ops;

struct rrl_collective {
    const rrl_collective_ops *ops;
    int rank, size;
    void *state;
    int64_t bytes_sent;
};

#endif
