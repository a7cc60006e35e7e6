/* The slot engine: buffers of one slot and its forward pass; log-probs with the same ops as rollout. */
#include "model/slot.h"

#include <stdlib.h>

#include "base/memory.h"
#include "model/slot_parts.h"

/* --- buffers */

static int64_t block_rows(const rrl_slot_limits *most) {
    const int32_t block = most->block_rows > 0 ? most->block_rows : RRL_BLOCK_ROWS;
    return most->max_rows < block ? most->max_rows : block;
}

/* Numbers of a row of all logits */
static int64_t logits_width(const rrl_model_config *c) {
    return (c->vocab + RRL_VOCAB_BLOCK - 1) / RRL_VOCAB_BLOCK * RRL_VOCAB_BLOCK;
}

/* Scores whose logits are held at once, in whole blocks of 32 rows as products have them. */
static int64_t kept_scores(const rrl_model_config *c, const rrl_slot_limits *most) {
    enum { ROOM = 1 << 24, ROWS = 32 }; /* 64 MiB */
    const int64_t fit = ROOM / logits_width(c) / ROWS * ROWS, rows = fit > ROWS ? fit : ROWS, block = block_rows(most);
    return rows < block ? rows : block;
}

static void carve_gradients(rrl_slot_gradients *g, rrl_carver *carver, const rrl_model_config *c,
                            const rrl_slot_limits *most) {
    const int64_t rows = most->max_rows, block = block_rows(most);
    const int64_t q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    rrl_slot_gradients x = {0};
    x.scored = rrl_carve(carver, block, c->hidden);
    x.x = rrl_carve(carver, rows, c->hidden);
    x.h = rrl_carve(carver, rows, c->hidden);
    x.q = rrl_carve(carver, rows, q);
    x.k = rrl_carve(carver, rows, kv);
    x.v = rrl_carve(carver, rows, kv);
    x.attended = rrl_carve(carver, rows, q);
    x.gate = rrl_carve(carver, block, c->intermediate);
    x.up = rrl_carve(carver, block, c->intermediate);
    x.act = rrl_carve(carver, block, c->intermediate);
    if (g) *g = x;
}

/* Everything but what depends on the adapter's rank; e NULL = only count. */
static void carve_engine(rrl_slot_engine *e, rrl_carver *carver, const rrl_model_config *c,
                         const rrl_slot_limits *most) {
    const int64_t rows = most->max_rows, block = block_rows(most);
    const int32_t pool_blocks = rrl_slot_blocks(most->max_rows, most->max_seqs);
    const size_t pool = rrl_kv_block_bytes(c, RRL_F32) / (size_t)c->layers * (size_t)pool_blocks;
    rrl_carver index = {0};
    rrl_slot_index_carve(NULL, &index, most->max_rows, most->max_seqs);
    rrl_activations_carve(e ? &e->a : NULL, carver, c, rows, block, most->again);
    carve_gradients(e ? &e->g : NULL, carver, c, most);
    rrl_tensor scored = rrl_carve(carver, block, c->hidden);
    const int64_t kept = kept_scores(c, most) * logits_width(c), blocks = block * RRL_VOCAB_BLOCK;
    rrl_tensor scratch = rrl_carve(carver, 1, kept > blocks ? kept : blocks);
    float *columns[4];
    for (int i = 0; i < 4; i++) columns[i] = rrl_carve(carver, rows, 1).data;
    float *cache = rrl_carve_bytes(carver, pool);
    char *index_block = rrl_carve_bytes(carver, index.used);
    if (!e) return;
    e->scored = scored;
    e->scratch = scratch;
    e->logp = columns[0];
    e->lse = columns[1];
    e->entropy = columns[2];
    e->dlogp = columns[3];
    e->pool = (rrl_kv_pool){cache, 1, pool_blocks, c->kv_heads, c->head_dim, RRL_F32};
    e->index_bytes = index.used;
    e->device_block = index_block;
}

/* us of the layers and modules, and du. */
static void carve_lora(rrl_slot_engine *e, rrl_carver *carver, const rrl_model_config *c, const rrl_slot_limits *most,
                       int32_t r16) {
    rrl_activations_carve_lora(e ? &e->a : NULL, carver, c, most->max_rows, r16, most->again);
    rrl_tensor u = rrl_carve(carver, most->max_rows, r16);
    if (e) e->g.u = u;
}

size_t rrl_slot_engine_bytes(const rrl_model_config *c, const rrl_slot_limits *most, int32_t rank) {
    rrl_carver count = {0}, lora = {0};
    carve_engine(NULL, &count, c, most);
    if (rank > 0) carve_lora(NULL, &lora, c, most, rrl_round16(rank));
    return count.used + lora.used;
}

void rrl_slot_fit(rrl_slot_limits *most, const rrl_model_config *c, int32_t rank, size_t bytes) {
    most->again = 0;
    while (most->again < c->layers && rrl_slot_engine_bytes(c, most, rank) > bytes) most->again++;
}

const rrl_slot_limits *rrl_slot_engine_limits(const rrl_slot_engine *e) {
    return &e->most;
}

/* What stays the same for every slot. */
static void bind_forward(rrl_slot_engine *e) {
    const rrl_slot_index *x = &e->device;
    e->forward = (rrl_forward){
        .batch = {.token = x->token,
                  .position = x->position,
                  .row_seq = x->row_seq,
                  .seq_row = x->seq_row,
                  .adapter = x->adapter},
        .table = {x->table, e->stride},
        .writes = {.row = x->write_row, .block = x->write_block, .at = x->write_at},
        .pool = &e->pool,
    };
    e->parents.parent = x->parent;
    e->dropout.seq_key = x->seq_key;
    e->dropout.seq_sample = x->seq_sample;
}

rrl_status rrl_slot_engine_open(rrl_slot_engine **out, rrl_model *m, const rrl_slot_limits *most) {
    rrl_status rc = RRL_OK;
    rrl_slot_engine *e = NULL;
    rrl_carver carver = {0}, host = {0}, device = {0};
    const rrl_model_config *c = &m->config;
    if (most->max_rows < 2 || most->max_seqs < 1 || most->again < 0)
        return RRL_FAIL(RRL_ERR_INTERNAL, "a slot engine of %d rows and %d completions", most->max_rows,
                        most->max_seqs);
    RRL_GOTO(rrl_alloc(&e, 1, sizeof *e, "slot engine"));
    e->m = m;
    e->most = *most;
    e->stride = rrl_slot_stride(most->max_rows);
    e->a.n_layers = c->layers;
    RRL_GOTO(rrl_alloc(&e->a.layers, (size_t)c->layers, sizeof *e->a.layers, "activations"));
    RRL_GOTO(m->device->ops->alloc(m->device, &e->block, rrl_slot_engine_bytes(c, most, 0),
                                   "activations of a training slot"));
    carver.base = e->block;
    carve_engine(e, &carver, c, most);
    RRL_GOTO(rrl_alloc_aligned(&e->host_block, e->index_bytes, 1, "slot index"));
    RRL_GOTO(rrl_alloc(&e->host_scores, 3 * (size_t)block_rows(most), sizeof *e->host_scores, "log-probs of a slot"));
    host.base = e->host_block;
    device.base = e->device_block;
    rrl_slot_index_carve(&e->host, &host, most->max_rows, most->max_seqs);
    rrl_slot_index_carve(&e->device, &device, most->max_rows, most->max_seqs);
    bind_forward(e);
    *out = e;
    e = NULL;
done:
    rrl_slot_engine_close(&e);
    return rc;
}

void rrl_slot_engine_close(rrl_slot_engine **e) {
    if (!e || !*e) return;
    rrl_device *d = (*e)->m->device;
    if ((*e)->block) d->ops->free(d, (*e)->block);
    if ((*e)->lora_block) d->ops->free(d, (*e)->lora_block);
    free((*e)->host_block);
    free((*e)->host_scores);
    free((*e)->a.layers);
    free((*e)->a.modules);
    free(*e);
    *e = NULL;
}

/* Room for us of this rank, made at the first slot that needs it: opening does not know the adapter. */
static rrl_status reserve_lora(rrl_slot_engine *e, int32_t r16) {
    if (r16 <= e->lora_r16) return RRL_OK;
    rrl_device *d = e->m->device;
    const rrl_model_config *c = &e->m->config;
    rrl_carver count = {0}, carver = {0};
    carve_lora(NULL, &count, c, &e->most, r16);
    if (e->lora_block) d->ops->free(d, e->lora_block);
    e->lora_block = NULL;
    e->lora_r16 = 0;
    RRL_TRY(d->ops->alloc(d, &e->lora_block, count.used, "adapter activations of a training slot"));
    e->lora_r16 = r16;
    carver.base = e->lora_block;
    carve_lora(e, &carver, c, &e->most, r16);
    return RRL_OK;
}

/* --- forward */

rrl_status rrl_slot_score(int64_t *n, rrl_slot_engine *e, int64_t first, bool keep) {
    rrl_device *d = e->m->device;
    const rrl_model_config *c = &e->m->config;
    const int64_t size = rrl_block_size(e->n_scores, keep ? kept_scores(c, &e->most) : block_rows(&e->most));
    *n = e->n_scores - first < size ? e->n_scores - first : size;
    e->scored.rows = e->g.scored.rows = e->scratch.rows = *n;
    e->scratch.cols = keep ? logits_width(c) : RRL_VOCAB_BLOCK;
    RRL_TRY(d->ops->gather(d, e->scored, e->a.hidden, e->device.score_row + first));
    return d->ops->lm_score(d, e->logp + first, e->lse + first, e->entropy + first, e->scored, e->m->head,
                            e->device.target + first, e->device.temperature + first, e->scratch);
}

rrl_status rrl_slot_layers(rrl_slot_engine *e, const rrl_slot *s, rrl_adapter *const *a) {
    rrl_device *d = e->m->device;
    RRL_TRY(rrl_slot_pack(e, s, *a != NULL));
    if (*a) RRL_TRY(reserve_lora(e, rrl_round16(rrl_adapter_rank(*a))));
    RRL_TRY(d->ops->upload(d, e->device_block, e->host_block, e->index_bytes));
    e->dropout.p = s->dropout;
    e->dropout.iteration = s->iteration;
    e->forward.dropout = *a && s->dropout > 0 ? &e->dropout : NULL;
    e->forward.adapters = a;
    e->forward.n_adapters = *a ? 1 : 0;
    return rrl_forward_run(&e->a, e->m, &e->forward);
}

rrl_status rrl_slot_forward(rrl_slot_engine *e, float *logp, float *entropy, const rrl_slot *s,
                            rrl_adapter *a) {
    rrl_device *d = e->m->device;
    RRL_TRY(rrl_slot_layers(e, s, &a));
    for (int64_t i = 0, n; i < e->n_scores; i += n) RRL_TRY(rrl_slot_score(&n, e, i, false));
    const size_t bytes = (size_t)e->n_scores * sizeof(float);
    RRL_TRY(d->ops->download(d, logp, e->logp, bytes));
    if (entropy) RRL_TRY(d->ops->download(d, entropy, e->entropy, bytes));
    return RRL_OK;
}
