/* The samples of a prompt all draw from its last row; the LM head is computed for each of them anew, as if it were a
 * row of its own, because that is one rule for first and later tokens and costs one row of the head a completion. */
#include "rollout/draw.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Logits in memory: rows of the vocabulary, a multiple of UNIT_ROWS up to MOST_ROWS; draws are taken in blocks of them,
 * each of which reads the head's weights once. */
enum { UNIT_ROWS = 64, MOST_ROWS = 256 };

struct rrl_drawer {
    rrl_model *model;
    size_t limit, block;           /* draws at a time, and rows of logits */
    float *logits;                 /* device [block, vocab] */
    int32_t *row;                  /* device [limit] */
    rrl_sample_row *settings;      /* device [limit] */
    int32_t *drawn;                /* device [2, n]: tokens of n draws, then their log-probs */
    int32_t *host_row, *host_drawn; /* the same on the host */
    rrl_sample_row *host_settings;
};

static size_t limit_of(int32_t batch_limit) {
    return ((size_t)batch_limit + UNIT_ROWS - 1) / UNIT_ROWS * UNIT_ROWS;
}

static size_t block_of(int32_t batch_limit) {
    const size_t limit = limit_of(batch_limit);
    return limit < MOST_ROWS ? limit : MOST_ROWS;
}

size_t rrl_drawer_bytes(const rrl_model_config *c, int32_t batch_limit) {
    return block_of(batch_limit) * (size_t)c->vocab * sizeof(float) +
           limit_of(batch_limit) * (3 * sizeof(int32_t) + sizeof(rrl_sample_row));
}

size_t rrl_drawer_limit(const rrl_drawer *s) {
    return s->limit;
}

rrl_status rrl_drawer_open(rrl_drawer **out, rrl_model *m, int32_t batch_limit) {
    rrl_status rc;
    rrl_drawer *s = NULL;
    rrl_device *d = rrl_model_device(m);
    const size_t vocab = (size_t)rrl_model_dims(m)->vocab, limit = limit_of(batch_limit);
    RRL_GOTO(rrl_alloc(&s, 1, sizeof *s, "sampler"));
    s->model = m;
    s->limit = limit;
    s->block = block_of(batch_limit);
    RRL_GOTO(rrl_alloc(&s->host_row, limit, sizeof *s->host_row, "rows to draw from"));
    RRL_GOTO(rrl_alloc(&s->host_drawn, 2 * limit, sizeof *s->host_drawn, "drawn tokens"));
    RRL_GOTO(rrl_alloc(&s->host_settings, limit, sizeof *s->host_settings, "sampling settings"));
    RRL_GOTO(d->ops->alloc(d, (void **)&s->logits, s->block * vocab * sizeof *s->logits, "logits"));
    RRL_GOTO(d->ops->alloc(d, (void **)&s->row, limit * sizeof *s->row, "rows to draw from"));
    RRL_GOTO(d->ops->alloc(d, (void **)&s->drawn, 2 * limit * sizeof *s->drawn, "drawn tokens"));
    RRL_GOTO(d->ops->alloc(d, (void **)&s->settings, limit * sizeof *s->settings, "sampling settings"));
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
    device_free(d, s->drawn);
    device_free(d, s->settings);
    free(s->host_row);
    free(s->host_drawn);
    free(s->host_settings);
    free(s);
    *out = NULL;
}

rrl_status rrl_drawer_upload(rrl_drawer *s, const rrl_draw *draws, size_t n) {
    rrl_device *d = rrl_model_device(s->model);
    for (size_t i = 0; i < n; i++) {
        s->host_row[i] = draws[i].row;
        s->host_settings[i] = draws[i].settings;
    }
    RRL_TRY(d->ops->upload(d, s->row, s->host_row, n * sizeof *s->row));
    return d->ops->upload(d, s->settings, s->host_settings, n * sizeof *s->settings);
}

rrl_status rrl_drawer_enqueue(rrl_drawer *s, size_t n, rrl_workspace *w, rrl_tensor hidden) {
    rrl_device *d = rrl_model_device(s->model);
    float *logprob = (float *)(s->drawn + n);
    for (size_t first = 0; first < n; first += s->block) {
        const size_t rows = n - first < s->block ? n - first : s->block;
        const rrl_tensor logits = {s->logits, (int64_t)rows, rrl_model_dims(s->model)->vocab};
        RRL_TRY(rrl_model_logits(s->model, w, logits, hidden, s->row + first));
        RRL_TRY(d->ops->sample(d, s->drawn + first, logprob + first, logits, s->settings + first));
    }
    return RRL_OK;
}

rrl_status rrl_drawer_download(rrl_drawer *s, rrl_draw *draws, size_t n) {
    rrl_device *d = rrl_model_device(s->model);
    RRL_TRY(d->ops->download(d, s->host_drawn, s->drawn, 2 * n * sizeof *s->drawn));
    for (size_t i = 0; i < n; i++) {
        draws[i].token = s->host_drawn[i];
        memcpy(&draws[i].logprob, &s->host_drawn[n + i], sizeof draws[i].logprob);
    }
    return RRL_OK;
}
