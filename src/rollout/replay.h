/* Decode steps recorded once and repeated, where the device can (graphs of device.h): a step of the same shape starts
 * the same kernels on the same memory, only what lies in that memory is new. */
#ifndef RRL_ROLLOUT_REPLAY_H
#define RRL_ROLLOUT_REPLAY_H

#include "device/device.h"

/* All that the launches of a step depend on between two calls of rrl_replay_forget. */
typedef struct {
    int32_t n_rows, n_draws;
    float dropout;
} rrl_replay_shape;

typedef struct rrl_replay rrl_replay;
/** The device is borrowed. */
rrl_status rrl_replay_open(rrl_replay **out, rrl_device *d);
void rrl_replay_close(rrl_replay **r);
/** Other adapters, or anything else that a step names: no step so far is repeated. */
void rrl_replay_forget(rrl_replay *r);
/** Enqueue a step: enqueue(context), which calls ops and nothing else of the device. The second step of a shape is
 *  recorded while it is enqueued, later ones are repeated without a call. Where recording fails the step is enqueued
 *  plainly, and so are all later ones. Errors: those of enqueue; RRL_ERR_DEVICE. */
rrl_status rrl_replay_step(rrl_replay *r, rrl_replay_shape shape, rrl_status (*enqueue)(void *context), void *context);
int64_t rrl_replay_recorded(const rrl_replay *r);
int64_t rrl_replay_repeated(const rrl_replay *r);

#endif
