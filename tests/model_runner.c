#include "model_runner.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

rrl_status runner_open(runner *r, rrl_model *m, rrl_adapter *const *adapters, int32_t n_adapters) {
    memset(r, 0, sizeof *r);
    r->m = m;
    for (int32_t i = 0; i < RUNNER_SEQS; i++) r->adapter[i] = -1;
    for (int32_t i = 0; i < n_adapters; i++) r->adapters[i] = adapters[i];
    r->n_adapters = n_adapters;
    RRL_TRY(rrl_workspace_open(&r->w, m, RUNNER_ROWS));
    return rrl_kv_pool_open(&r->pool, m, RUNNER_SEQS * RUNNER_STRIDE);
}

void runner_close(runner *r) {
    rrl_workspace_close(&r->w);
    if (r->m) rrl_kv_pool_close(&r->pool, r->m);
}

void runner_clear(runner *r) {
    memset(r->length, 0, sizeof r->length);
}

typedef struct {
    int32_t token[RUNNER_ROWS], position[RUNNER_ROWS], row_seq[RUNNER_ROWS], seq_row[RUNNER_SEQS + 1];
    int32_t adapter[RUNNER_SEQS], table[RUNNER_SEQS * RUNNER_STRIDE];
    int32_t row[RUNNER_ROWS], block[RUNNER_ROWS], at[RUNNER_ROWS];
} arrays;

static int32_t fill(arrays *x, runner *r, const int32_t *seq, const int32_t *count, int32_t n,
                    const int32_t *tokens) {
    int32_t rows = 0;
    for (int32_t i = 0; i < n; i++) {
        x->seq_row[i] = rows;
        x->adapter[i] = r->adapter[seq[i]];
        for (int32_t b = 0; b < RUNNER_STRIDE; b++)
            x->table[i * RUNNER_STRIDE + b] = seq[i] * RUNNER_STRIDE + b;
        for (int32_t t = 0; t < count[i]; t++, rows++) {
            int32_t p = r->length[seq[i]]++;
            x->token[rows] = tokens[rows];
            x->position[rows] = p;
            x->row_seq[rows] = i;
            x->row[rows] = rows;
            x->block[rows] = seq[i] * RUNNER_STRIDE + p / RRL_KV_BLOCK;
            x->at[rows] = p % RRL_KV_BLOCK;
        }
    }
    x->seq_row[n] = rows;
    return rows;
}

rrl_status runner_step(runner *r, float *logits, const int32_t *seq, const int32_t *count, int32_t n,
                       const int32_t *tokens) {
    rrl_status rc = RRL_OK;
    rrl_device *d = rrl_model_device(r->m);
    arrays *host = NULL, *x = NULL;
    float *out = NULL;
    RRL_GOTO(rrl_alloc(&host, 1, sizeof *host, "arrays"));
    RRL_GOTO(d->ops->alloc(d, (void **)&x, sizeof *x, "arrays"));
    r->n_rows = fill(host, r, seq, count, n, tokens);
    RRL_GOTO(d->ops->upload(d, x, host, sizeof *host));
    rrl_forward f = {.batch = {r->n_rows, n, x->token, x->position, x->row_seq, x->seq_row, x->adapter},
                     .table = {x->table, RUNNER_STRIDE},
                     .writes = {x->row, x->block, x->at, r->n_rows},
                     .pool = &r->pool,
                     .adapters = r->adapters,
                     .n_adapters = r->n_adapters};
    RRL_GOTO(rrl_model_forward(&r->hidden, r->m, r->w, &f));
    if (logits) {
        const int64_t vocab = rrl_model_dims(r->m)->vocab;
        const size_t bytes = (size_t)(r->n_rows * vocab) * sizeof(float);
        RRL_GOTO(d->ops->alloc(d, (void **)&out, bytes, "logits"));
        RRL_GOTO(rrl_model_logits(r->m, r->w, (rrl_tensor){out, r->n_rows, vocab}, r->hidden, x->row));
        RRL_GOTO(d->ops->download(d, logits, out, bytes));
    }
    RRL_GOTO(d->ops->sync(d));
done:
    if (out) d->ops->free(d, out);
    if (x) d->ops->free(d, x);
    free(host);
    return rc;
}
