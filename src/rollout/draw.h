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
/** The model is borrowed. */
rrl_status rrl_drawer_open(rrl_drawer **out, rrl_model *m);
void rrl_drawer_close(rrl_drawer **s);
/** Bytes of device memory. */
size_t rrl_drawer_bytes(const rrl_model_config *c);
/** Fill token and logprob of n draws from the hidden states of one forward pass; waits for the device. */
rrl_status rrl_drawer_run(rrl_drawer *s, rrl_draw *draws, size_t n, rrl_workspace *w, rrl_tensor hidden);

#endif
