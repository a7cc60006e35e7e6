/* What merging costs: logits of a whole sequence by the plain forward, with and without an adapter, and their
 * difference. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/merge.h"

/* One sequence as a batch; one block, uploaded whole. */
typedef struct {
    int32_t *token, *position, *row_seq, *row, *block, *at, *table, *seq_row, *adapter;
} arrays;

/* Where the arrays lie in a block that starts at base; returns its length. */
static int64_t place(arrays *x, int32_t *base, int32_t n, int32_t n_blocks) {
    int32_t **const rows[] = {&x->token, &x->position, &x->row_seq, &x->row, &x->block, &x->at};
    int64_t used = 0;
    for (int i = 0; i < 6; i++, used += n) *rows[i] = base ? base + used : NULL;
    x->table = base ? base + used : NULL;
    used += n_blocks;
    x->seq_row = base ? base + used : NULL;
    used += 2;
    x->adapter = base ? base + used : NULL;
    return used + 1;
}

static void fill(arrays *x, const int32_t *ids, int32_t n, int32_t n_blocks, bool adapted) {
    for (int32_t i = 0; i < n; i++) {
        x->token[i] = ids[i];
        x->position[i] = x->row[i] = i;
        x->row_seq[i] = 0;
        x->block[i] = i / RRL_KV_BLOCK;
        x->at[i] = i % RRL_KV_BLOCK;
    }
    for (int32_t i = 0; i < n_blocks; i++) x->table[i] = i;
    x->seq_row[0] = 0;
    x->seq_row[1] = n;
    x->adapter[0] = adapted ? 0 : -1;
}

static rrl_status upload_batch(arrays *x, int32_t **block, rrl_device *d, const int32_t *ids, int32_t n,
                               int32_t n_blocks, bool adapted) {
    rrl_status rc = RRL_OK;
    int32_t *host = NULL;
    arrays h;
    const size_t bytes = (size_t)place(&h, NULL, n, n_blocks) * sizeof *host;
    RRL_GOTO(rrl_alloc(&host, 1, bytes, "batch"));
    place(&h, host, n, n_blocks);
    fill(&h, ids, n, n_blocks, adapted);
    RRL_GOTO(d->ops->alloc(d, (void **)block, bytes, "batch"));
    RRL_GOTO(d->ops->upload(d, *block, host, bytes));
    place(x, *block, n, n_blocks);
done:
    free(host);
    return rc;
}

rrl_status rrl_merge_logits(float *out, rrl_model *m, rrl_adapter *a, const int32_t *ids, int32_t n) {
    rrl_status rc = RRL_OK;
    rrl_device *d = rrl_model_device(m);
    rrl_workspace *w = NULL;
    rrl_kv_pool pool = {0};
    rrl_tensor hidden, logits = {.rows = n, .cols = rrl_model_dims(m)->vocab};
    arrays x;
    int32_t *block = NULL;
    const int32_t n_blocks = (n + RRL_KV_BLOCK - 1) / RRL_KV_BLOCK;
    const size_t bytes = (size_t)logits.rows * (size_t)logits.cols * sizeof(float);
    RRL_GOTO(rrl_workspace_open(&w, m, n));
    RRL_GOTO(rrl_kv_pool_open(&pool, m, n_blocks));
    RRL_GOTO(upload_batch(&x, &block, d, ids, n, n_blocks, a != NULL));
    RRL_GOTO(d->ops->alloc(d, (void **)&logits.data, bytes, "logits"));
    const rrl_forward f = {.batch = {n, 1, x.token, x.position, x.row_seq, x.seq_row, x.adapter},
                           .table = {x.table, n_blocks},
                           .writes = {x.row, x.block, x.at, n},
                           .pool = &pool,
                           .adapters = &a,
                           .n_adapters = a ? 1 : 0};
    RRL_GOTO(rrl_model_forward(&hidden, m, w, &f));
    RRL_GOTO(rrl_model_logits(m, w, logits, hidden, x.row));
    RRL_GOTO(d->ops->download(d, out, logits.data, bytes));
done:
    if (logits.data) d->ops->free(d, logits.data);
    if (block) d->ops->free(d, block);
    rrl_kv_pool_close(&pool, m);
    rrl_workspace_close(&w);
    return rc;
}

void rrl_merge_compare(rrl_merge_error *e, const float *merged, const float *unmerged, int32_t n, int32_t vocab) {
    for (int32_t i = 0; i < n; i++, merged += vocab, unmerged += vocab) {
        double largest = 0, error = 0;
        int32_t best = 0, best_merged = 0;
        for (int32_t v = 0; v < vocab; v++) {
            const double d = fabs((double)merged[v] - (double)unmerged[v]);
            if (!(d <= error)) error = isnan(d) ? INFINITY : d;
            largest = fmax(largest, fabs((double)unmerged[v]));
            if (unmerged[v] > unmerged[best]) best = v;
            if (merged[v] > merged[best_merged]) best_merged = v;
        }
        e->positions++;
        e->other_argmax += best != best_merged;
        e->largest = fmax(e->largest, error);
        if (error > 0) e->largest_rel = fmax(e->largest_rel, error / largest);
    }
}
