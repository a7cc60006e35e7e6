/* The collectives of a team's engine, made once and used by all its runs. */
#ifndef RRL_ROLES_LINKS_H
#define RRL_ROLES_LINKS_H

#include "device/collective_pair.h"
#include "rrl/config.h"
#include "roles/team.h"

/* host and device are NULL on ranks that take no part. */
typedef struct {
    rrl_collective_pair learners;   /* between learners: rows in host memory, gradients in the device's */
    rrl_collective_pair publishing; /* learner 0 -> ranks that generate and do not learn: adapters */
} rrl_links;

/** Whether this rank can do what parallel.collectives asks for. Local, so that ranks agree on it before any of them
 *  waits for another. Errors: RRL_ERR_CONFIG. */
rrl_status rrl_links_check(const rrl_device *d, const rrl_parallel_config *p, int rank);
/** d is this rank's device, borrowed; NULL on ranks that neither generate nor learn. Collective over the team's ranks
 *  with a device. Errors: RRL_ERR_COMM, RRL_ERR_CONFIG (parallel.collectives asks for what is not there). */
rrl_status rrl_links_open(rrl_links *out, rrl_team *t, rrl_device *d, const rrl_parallel_config *p);
void rrl_links_close(rrl_links *l);
/** How gradients and adapters travel from this rank: "none" where they do not. */
const char *rrl_links_how(const rrl_links *l);

enum { RRL_GPU_CHARS = 64 };
/** Name of the device's GPU, its UUID; "" for none. d may be NULL. */
void rrl_gpu_name(char out[RRL_GPU_CHARS], const rrl_device *d);
/** Events: every rank's GPU, how gradients travel, and a warning where more ranks share a GPU than parallel.ranks_per_gpu
 *  says; nothing without GPUs. Collective over the team; rank 0 writes where it `speaks`. */
rrl_status rrl_links_say(const rrl_links *l, rrl_team *t, const rrl_device *d, const rrl_parallel_config *p,
                         bool speaks);

#endif
