/* The samples of a prompt all draw from its last row; the LM head is computed for each of them anew, as if it were a
 * row of its own, because that is one rule for first and later tokens and costs one row of the head a completion. */
#include "rollout/draw.h"

#include <stdlib.h>

#include "base/memory.h"

/* Logits in memory: this many rows of the vocabulary. Enough to read the head's weights at full speed. */
enum { BLOCK_ROWS = 64 };

struct rrl_drawer {
    rrl_model *model;
    float *logits;                   /* device [BLOCK_ROWS, vocab] */
    int32_t *row, *token;            /* device [BLOCK_ROWS] */
    float *logprob;                  /* device [BLOCK_ROWS] */
    rrl_sample_row *settings;        /* device [BLOCK_ROWS] */
    int32_t host_row[BLOCK_ROWS], host_token[BLOCK_ROWS];
    float host_logprob[BLOCK_ROWS];
    rrl_sample_row host_settings[BLOCK_ROWS];
};

size_t rrl_drawer_bytes(const rrl_model_config *c) {
    const size_t row = (size_t)c->vocab * sizeof(float) + 2 * sizeof(int32_t) + sizeof(float) + sizeof(rrl_sample_row);
    return BLOCK_ROWS * row;
}

rrl_status rrl_drawer_open(rrl_drawer **out, rrl_model *m) {
    rrl_status rc;
    rrl_drawer *s = NULL;
    rrl_device *d = rrl_model_device(m);
    const size_t vocab = (size_t)rrl_model_dims(m)->vocab;
    RRL_GOTO(rrl_alloc(&s, 1, sizeof *s, "sampler"));
    s->model = m;
    RRL_GOTO(d->ops->alloc(d, (void **)&s->logits, BLOCK_ROWS * vocab * sizeof *s->logits, "logits"));
    RRL_GOTO(d->ops->alloc(d, (void **)&s->row, BLOCK_ROWS * sizeof *s->row, "rows to draw from"));
    RRL_GOTO(d->ops->alloc(d, (void **)&s->token, BLOCK_ROWS * sizeof *s->token, "drawn tokens"));
    RRL_GOTO(d->ops->alloc(d, (void **)&s->logprob, BLOCK_ROWS * sizeof *s->logprob, "drawn log-probs"));
    RRL_GOTO(d->ops->alloc(d, (void **)&s->settings, BLOCK_ROWS * sizeof *s->settings, "sampling settings"));
    *out = s;
    s = NULL;
done:
    rrl_drawer_close(&s);
    return rc;
}

static void device_free(rrl_device *d, void *p) {
    if (p) d->ops->free(d, p);
}

void rrl_drawer_close(rrl_drawer **out) {
    rrl_drawer *s = *out;
    if (!s) return;
    rrl_device *d = rrl_model_device(s->model);
    device_free(d, s->logits);
    device_free(d, s->row);
    device_free(d, s->token);
    device_free(d, s->logprob);
    device_free(d, s->settings);
    free(s);
    *out = NULL;
}

static rrl_status draw_block(rrl_drawer *s, rrl_draw *draws, size_t n, rrl_workspace *w, rrl_tensor hidden) {
    rrl_device *d = rrl_model_device(s->model);
    const rrl_device_ops *ops = d->ops;
    const rrl_tensor logits = {s->logits, (int64_t)n, rrl_model_dims(s->model)->vocab};
    for (size_t i = 0; i < n; i++) {
        s->host_row[i] = draws[i].row;
        s->host_settings[i] = draws[i].settings;
    }
    RRL_TRY(ops->upload(d, s->row, s->host_row, n * sizeof *s->row));
    RRL_TRY(ops->upload(d, s->settings, s->host_settings, n * sizeof *s->settings));
    RRL_TRY(rrl_model_logits(s->model, w, logits, hidden, s->row));
    RRL_TRY(ops->sample(d, s->token, s->logprob, logits, s->settings));
    RRL_TRY(ops->download(d, s->host_token, s->token, n * sizeof *s->token));
    RRL_TRY(ops->download(d, s->host_logprob, s->logprob, n * sizeof *s->logprob));
    for (size_t i = 0; i < n; i++) {
        draws[i].token = s->host_token[i];
        draws[i].logprob = s->host_logprob[i];
    }
    return RRL_OK;
}

rrl_status rrl_drawer_run(rrl_drawer *s, rrl_draw *draws, size_t n, rrl_workspace *w, rrl_tensor hidden) {
    for (size_t first = 0; first < n; first += BLOCK_ROWS) {
        const size_t left = n - first;
        RRL_TRY(draw_block(s, draws + first, left < BLOCK_ROWS ? left : BLOCK_ROWS, w, hidden));
    }
    return RRL_OK;
}
