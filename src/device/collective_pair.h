/* The collectives of one communicator: over host memory, and over the memory of the device that its ranks work on. */
#ifndef RRL_DEVICE_COLLECTIVE_PAIR_H
#define RRL_DEVICE_COLLECTIVE_PAIR_H

#include "device/collective.h"

/* best: the device's own way where all ranks have it and no two share a processor. host: never. own: also between ranks
 * that share one, and an error where a rank lacks it. */
typedef enum { RRL_WAY_BEST, RRL_WAY_HOST, RRL_WAY_OWN } rrl_collective_way;

typedef struct {
    rrl_collective *host;
    rrl_collective *device; /* the same one where the device's memory is the host's */
    char how[256];          /* which way the device's takes, and why: "nccl", "mpi through host memory: ..." */
} rrl_collective_pair;

/** host is taken over, on failure too. Of site, host and shared are set here. Collective over host: every rank decides
 *  alike. Errors: RRL_ERR_CONFIG (own way asked for and missing: rank and reason), RRL_ERR_COMM. */
rrl_status rrl_collective_pair_open(rrl_collective_pair *out, rrl_collective *host, rrl_device *d,
                                    const rrl_collective_site *site, rrl_collective_way way);
void rrl_collective_pair_close(rrl_collective_pair *p);

#endif
