/* The gradient of a slot: forward, scores and their gradients, layers in reverse; gradients of the adapter only (the
 * base is frozen). What the forward did not keep is computed again: the same ops on the same bits. */
#include "model/slot.h"

#include <math.h>

#include "model/adapter_parts.h"
#include "model/slot_parts.h"

typedef struct {
    rrl_slot_engine *e;
    rrl_device *d;
    const rrl_device_ops *ops;
    const rrl_model_config *c;
    rrl_adapter *adapter;
    float *gradient;
} pass;

static void set_rows(rrl_slot_engine *e, int32_t rank) {
    rrl_slot_gradients *g = &e->g;
    rrl_tensor *all[] = {&g->x, &g->h, &g->q, &g->k, &g->v, &g->attended, &g->u};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) all[i]->rows = e->forward.batch.n_rows;
    g->u.cols = rrl_round16(rank);
}

/* dx (+)= dy through the module's weight and its adapter, for rows from `first` on; the adapter's own gradients are
 * added to the flat vector: sums over rows go on where the rows before ended. */
static rrl_status project_backward(pass *p, int32_t layer, int module, rrl_tensor dx, rrl_tensor dy,
                                   rrl_tensor x, int64_t first, bool accumulate) {
    rrl_slot_engine *e = p->e;
    const int32_t index = layer * RRL_MODULES + module;
    const rrl_lora *lora = rrl_adapter_module(p->adapter, index);
    RRL_TRY(p->ops->linear_backward(p->d, dx, dy, e->m->layers[layer].weight[module], accumulate));
    if (!lora) return RRL_OK;
    rrl_tensor us = e->a.layers[layer].us[module];
    us.cols = e->g.u.cols;
    e->a.modules[0] = lora;
    const rrl_batch b = rrl_batch_rows(&e->forward.batch, first, x.rows);
    const rrl_lora_args args = {
        .modules = e->a.modules, .dropout = e->forward.dropout, .module = (uint32_t)index, .n_modules = 1};
    float *da = p->gradient + (lora->a - p->adapter->data), *db = p->gradient + (lora->b - p->adapter->data);
    return p->ops->lora_backward(p->d, da, db, dx, rrl_tensor_rows(e->g.u, 0, x.rows), dy, x,
                                 rrl_tensor_rows(us, first, x.rows), lora, &b, &args);
}

/* The same for all rows, some at a time. */
static rrl_status project_all_backward(pass *p, int32_t layer, int module, rrl_tensor dx, rrl_tensor dy, rrl_tensor x,
                                       bool accumulate) {
    const int64_t size = rrl_near_size(p->d, x.rows, x.rows);
    for (int64_t first = 0; first < x.rows; first += size) {
        const int64_t n = x.rows - first < size ? x.rows - first : size;
        RRL_TRY(project_backward(p, layer, module, rrl_tensor_rows(dx, first, n), rrl_tensor_rows(dy, first, n),
                                 rrl_tensor_rows(x, first, n), first, accumulate));
    }
    return RRL_OK;
}

/* A block of rows: g.h from g.x. */
static rrl_status gates_backward(pass *p, int32_t layer, int64_t first, int64_t n) {
    rrl_slot_engine *e = p->e;
    const rrl_layer_activations *l = &e->a.layers[layer];
    const rrl_tensor gate = rrl_block_of(&e->a, layer, l->gate, first, n);
    const rrl_tensor up = rrl_block_of(&e->a, layer, l->up, first, n);
    const rrl_tensor act = rrl_tensor_rows(l->act, 0, n), h2 = rrl_tensor_rows(l->h2, first, n);
    const rrl_tensor dact = rrl_tensor_rows(e->g.act, 0, n), dh = rrl_tensor_rows(e->g.h, first, n);
    const rrl_tensor dgate = rrl_tensor_rows(e->g.gate, 0, n), dup = rrl_tensor_rows(e->g.up, 0, n);
    if (layer < e->most.again)
        RRL_TRY(rrl_forward_gates(&e->a, e->m, &e->forward, layer, first, dh));
    else {
        RRL_TRY(p->ops->rms_norm(p->d, h2, rrl_tensor_rows(l->mid, first, n), e->m->layers[layer].norm_post,
                                 p->c->rms_eps));
        RRL_TRY(p->ops->swiglu(p->d, act, gate, up));
    }
    RRL_TRY(project_backward(p, layer, RRL_MODULE_DOWN, dact, rrl_tensor_rows(e->g.x, first, n), act, first, false));
    RRL_TRY(p->ops->swiglu_backward(p->d, dgate, dup, dact, gate, up));
    RRL_TRY(project_backward(p, layer, RRL_MODULE_GATE, dh, dgate, h2, first, false));
    return project_backward(p, layer, RRL_MODULE_UP, dh, dup, h2, first, true);
}

/* g.x holds the gradient of the layer's output and becomes that of `mid`. */
static rrl_status feed_forward_backward(pass *p, int32_t layer) {
    rrl_slot_engine *e = p->e;
    const int64_t rows = e->forward.batch.n_rows, block = rrl_near_size(p->d, rows, e->a.block);
    for (int64_t first = 0; first < rows; first += block)
        RRL_TRY(gates_backward(p, layer, first, rows - first < block ? rows - first : block));
    return p->ops->rms_norm_backward(p->d, e->g.x, e->g.h, e->a.layers[layer].mid, e->m->layers[layer].norm_post,
                                     p->c->rms_eps, true);
}

/* g.x holds the gradient of `mid` and becomes that of the layer's input. */
static rrl_status attend_backward(pass *p, int32_t layer) {
    const rrl_layer_activations *l = &p->e->a.layers[layer];
    const rrl_slot_gradients *g = &p->e->g;
    const rrl_model *m = p->e->m;
    const rrl_batch *b = &p->e->forward.batch;
    const rrl_model_config *c = p->c;
    if (layer >= p->e->most.again)
        RRL_TRY(p->ops->rms_norm(p->d, l->h, l->x, m->layers[layer].norm_in, c->rms_eps));
    RRL_TRY(project_all_backward(p, layer, RRL_MODULE_O, g->attended, g->x, l->attended, false));
    RRL_TRY(p->ops->attention_backward(p->d, g->q, g->k, g->v, g->attended, l->attended, l->lse, l->q, l->k,
                                       l->v, c->heads, c->head_dim, b, &p->e->parents,
                                       1.0f / sqrtf((float)c->head_dim)));
    RRL_TRY(p->ops->rope(p->d, g->q, c->heads, c->head_dim, b, m->rope_cos, m->rope_sin, true));
    RRL_TRY(p->ops->rope(p->d, g->k, c->kv_heads, c->head_dim, b, m->rope_cos, m->rope_sin, true));
    RRL_TRY(project_all_backward(p, layer, RRL_MODULE_Q, g->h, g->q, l->h, false));
    RRL_TRY(project_all_backward(p, layer, RRL_MODULE_K, g->h, g->k, l->h, true));
    RRL_TRY(project_all_backward(p, layer, RRL_MODULE_V, g->h, g->v, l->h, true));
    if (layer == 0) return RRL_OK; /* nothing trainable lies before */
    return p->ops->rms_norm_backward(p->d, g->x, g->h, l->x, m->layers[layer].norm_in, c->rms_eps, true);
}

/* dlogp of scores [first, first + n), which have their log-probs and entropies. */
static rrl_status ask(pass *p, const rrl_slot_loss *loss, int64_t first, int64_t n) {
    rrl_slot_engine *e = p->e;
    const size_t bytes = (size_t)n * sizeof(float);
    float *logp = e->host_scores, *entropy = logp + n, *dlogp = entropy + n;
    RRL_TRY(p->ops->download(p->d, logp, e->logp + first, bytes));
    RRL_TRY(p->ops->download(p->d, entropy, e->entropy + first, bytes));
    loss->dlogp(loss->context, dlogp, logp, entropy, first, n);
    return p->ops->upload(p->d, e->dlogp + first, dlogp, bytes);
}

/* g.h: the gradient of the last norm's output, from the scores. */
static rrl_status head(pass *p, const rrl_slot_loss *loss) {
    rrl_slot_engine *e = p->e;
    const bool keep = p->ops->keeps_logits;
    RRL_TRY(p->ops->zero(p->d, e->g.h.data, e->g.h.rows * e->g.h.cols));
    for (int64_t i = 0, n; i < e->n_scores; i += n) {
        RRL_TRY(rrl_slot_score(&n, e, i, keep));
        RRL_TRY(ask(p, loss, i, n));
        RRL_TRY(p->ops->lm_backward(p->d, e->g.scored, keep ? (rrl_tensor){0} : e->scored, e->m->head,
                                    e->device.target + i, e->device.temperature + i, e->lse + i, e->dlogp + i,
                                    e->scratch));
        RRL_TRY(p->ops->scatter_add(p->d, e->g.h, e->g.scored, e->device.score_row + i));
    }
    return RRL_OK;
}

static rrl_status layers_backward(pass *p) {
    rrl_slot_engine *e = p->e;
    for (int32_t layer = p->c->layers - 1; layer >= 0; layer--) {
        if (layer < e->most.again) RRL_TRY(rrl_forward_attend(&e->a, e->m, &e->forward, layer));
        RRL_TRY(feed_forward_backward(p, layer));
        RRL_TRY(attend_backward(p, layer));
    }
    return RRL_OK;
}

rrl_status rrl_slot_gradient(rrl_slot_engine *e, float *gradient, const rrl_slot *s, rrl_adapter *a,
                             const rrl_slot_loss *loss) {
    if (!a) return RRL_FAIL(RRL_ERR_INTERNAL, "the gradient of a slot without an adapter");
    rrl_device *d = e->m->device;
    pass p = {e, d, d->ops, &e->m->config, a, gradient};
    RRL_TRY(rrl_slot_layers(e, s, &a));
    set_rows(e, a->r);
    RRL_TRY(head(&p, loss));
    RRL_TRY(p.ops->rms_norm_backward(d, e->g.x, e->g.h, e->a.last, e->m->norm_final, p.c->rms_eps, false));
    RRL_TRY(layers_backward(&p));
    return p.ops->sync(d);
}
