/* Collectives between learners and from learner to generators: one table, several ways. Over host memory: MPI. Over a
 * device's memory: the device's own way (NCCL), or staged through host memory. Results have a fixed order, whatever the
 * number of ranks. */
#ifndef RRL_DEVICE_COLLECTIVE_H
#define RRL_DEVICE_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "rrl/status.h"

typedef struct rrl_collective rrl_collective;

/* Every call is collective over the ranks of c, which make the same calls in the same order. Pointers are to the memory
 * that the collective is over. A call that returns has ended: its result may be used, its operands written. */
typedef struct {
    const char *name;
    /* x [n] of ranks 0 .. active-1 are nodes of one tree level: node i + node i+1 pairwise, an odd last one moves up
     * unchanged; the root's sum is left in x of every rank of the communicator. scratch [n]. A device's own way may add
     * in an order of its own where that was asked for (model.deterministic). */
    rrl_status (*tree_sum)(rrl_collective *c, float *x, float *scratch, int64_t n, int active);
    rrl_status (*broadcast)(rrl_collective *c, void *x, size_t bytes, int root);
    /* rows of every rank: rank r owns rows first[r] .. first[r+1]-1 of size row_bytes; afterwards all ranks have all.
     * first [size + 1] in host memory */
    rrl_status (*share_rows)(rrl_collective *c, void *rows, size_t row_bytes, const int32_t *first);
    void (*close)(rrl_collective **c);
} rrl_collective_ops;

struct rrl_collective {
    const rrl_collective_ops *ops;
    int rank, size;
    void *state;
    int64_t bytes_sent;
};

/* Where a collective over device memory is opened: what it needs of its caller. All borrowed. */
typedef struct {
    rrl_collective *host; /* of the same ranks, over host memory */
    /* Called again and again while other ranks are waited for: sleeps a little, keeps the caller's own watch. since =
     * CLOCK_MONOTONIC, seconds, when the waiting began. */
    void (*pause)(void *context, double since);
    void *context;
    const char *const *phase; /* where the caller is, for messages; read when something goes wrong */
    double timeout_s;
    bool shared; /* some of the ranks have the same processor */
} rrl_collective_site;

/* What a device whose memory is not the host's has for work between processes: rrl_device_ops.peers. */
struct rrl_device_peers {
    /* The processor's name, the same in every process that sees it and in no other: "GPU-0a1b...". */
    const char *(*identity)(const rrl_device *d);
    /* Why open would fail on this rank, as the end of a message; NULL = it can be tried. */
    const char *(*missing)(const rrl_device *d);
    /* The device's own way; collective over site->host. Errors: RRL_ERR_COMM. */
    rrl_status (*open)(rrl_collective **out, rrl_device *d, const rrl_collective_site *site);
};

#endif
