/* Draws tokens from rows of hidden states: LM head and sampler on a bounded block of rows at a time. */
#ifndef RRL_ROLLOUT_DRAW_H
#define RRL_ROLLOUT_DRAW_H

#include "model/model.h"

/* One token to draw. */
typedef struct {
    int32_t row;                /* of the hidden states */
    int32_t part, sample, seat; /* whose token it is; the caller's own, not read here */
    rrl_sample_row settings;    /* history in device memory */
    int32_t token;              /* result */
    float logprob;              /* result */
} rrl_draw;

typedef struct rrl_drawer rrl_drawer;
/** For at least batch_limit draws at a time. The model is borrowed. */
rrl_status rrl_drawer_open(rrl_drawer **out, rrl_model *m, int32_t batch_limit);
void rrl_drawer_close(rrl_drawer **s);
/** Bytes of device memory. */
size_t rrl_drawer_bytes(const rrl_model_config *c, int32_t batch_limit);
/** Draws at a time. */
size_t rrl_drawer_limit(const rrl_drawer *s);

/* n draws in three calls, in this order: what is to be drawn goes to the device; ops alone are enqueued, with arguments
 * that are a function of n; token and logprob of the draws come back, the one wait for the device. */
rrl_status rrl_drawer_upload(rrl_drawer *s, const rrl_draw *draws, size_t n);
rrl_status rrl_drawer_enqueue(rrl_drawer *s, size_t n, rrl_workspace *w, rrl_tensor hidden);
rrl_status rrl_drawer_download(rrl_drawer *s, rrl_draw *draws, size_t n);

#endif
