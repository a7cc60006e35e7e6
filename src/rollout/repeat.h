/* Decode steps recorded once and repeated, where the device can (graphs of device.h): a step of the same shape starts
 * the same kernels on the same memory, only what lies in that memory is new. */
#ifndef RRL_ROLLOUT_REPEAT_H
#define RRL_ROLLOUT_REPEAT_H

#include "device/device.h"

/* All that the launches of a step depend on between two calls of rrl_repeat_forget. */
typedef struct {
    int32_t n_rows, n_draws;
    float dropout;
} rrl_repeat_shape;

typedef struct rrl_repeat rrl_repeat;
/** The device is borrowed. */
rrl_status rrl_repeat_open(rrl_repeat **out, rrl_device *d);
void rrl_repeat_close(rrl_repeat **r);
/** Other adapters, or anything else that a step names: no step so far is repeated. */
void rrl_repeat_forget(rrl_repeat *r);
/** Enqueue a step: enqueue(context), which calls ops and nothing else of the device. The second step of a shape is
 *  recorded while it is enqueued, later ones are repeated without a call. Where recording fails the step is enqueued
 *  plainly, and so are all later ones. Errors: those of enqueue; RRL_ERR_DEVICE. */
rrl_status rrl_repeat_step(rrl_repeat *r, rrl_repeat_shape shape, rrl_status (*enqueue)(void *context), void *context);
int64_t rrl_repeat_recorded(const rrl_repeat *r);
int64_t rrl_repeat_repeated(const rrl_repeat *r);

#endif
