/* Backward pass of a slot: layers in reverse, gradients of the adapter only (the base is frozen). Norms and
 * SwiGLU are computed again from what the forward kept: the same ops on the same bits. */
#include "model/slot.h"

#include <math.h>

#include "model/adapter_parts.h"
#include "model/slot_parts.h"

typedef struct {
    rrl_slot_engine *e;
    rrl_device *d;
    const rrl_device_ops *ops;
    const rrl_model_config *c;
    float *gradient;
} pass;

static void set_rows(rrl_slot_engine *e) {
    rrl_slot_gradients *g = &e->g;
    rrl_tensor *all[] = {&g->x, &g->h, &g->q, &g->k, &g->v, &g->attended, &g->gate, &g->up, &g->act, &g->u};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) all[i]->rows = e->forward.batch.n_rows;
    g->u.cols = rrl_round16(e->adapter->r);
    g->scored.rows = e->n_scores;
}

/* dx (+)= dy through the module's weight and its adapter; the adapter's own gradients are added to the flat
 * vector. */
static rrl_status project_backward(pass *p, int32_t layer, int module, rrl_tensor dx, rrl_tensor dy,
                                   rrl_tensor x, bool accumulate) {
    rrl_slot_engine *e = p->e;
    const int32_t index = layer * RRL_MODULES + module;
    const rrl_lora *lora = rrl_adapter_module(e->adapter, index);
    RRL_TRY(p->ops->linear_backward(p->d, dx, dy, e->m->layers[layer].weight[module], accumulate));
    if (!lora) return RRL_OK;
    rrl_tensor us = e->a.layers[layer].us[module];
    us.cols = e->g.u.cols;
    e->a.modules[0] = lora;
    const rrl_lora_args args = {
        .modules = e->a.modules, .dropout = e->forward.dropout, .module = (uint32_t)index};
    float *da = p->gradient + (lora->a - e->adapter->data), *db = p->gradient + (lora->b - e->adapter->data);
    return p->ops->lora_backward(p->d, da, db, dx, e->g.u, dy, x, us, lora, &e->forward.batch, &args);
}

/* g.x holds the gradient of the layer's output and becomes that of `mid`. */
static rrl_status feed_forward_backward(pass *p, int32_t layer) {
    const rrl_layer_activations *l = &p->e->a.layers[layer];
    const rrl_slot_gradients *g = &p->e->g;
    const float *norm = p->e->m->layers[layer].norm_post;
    RRL_TRY(p->ops->rms_norm(p->d, l->h2, l->mid, norm, p->c->rms_eps));
    RRL_TRY(p->ops->swiglu(p->d, l->act, l->gate, l->up));
    RRL_TRY(project_backward(p, layer, RRL_MODULE_DOWN, g->act, g->x, l->act, false));
    RRL_TRY(p->ops->swiglu_backward(p->d, g->gate, g->up, g->act, l->gate, l->up));
    RRL_TRY(project_backward(p, layer, RRL_MODULE_GATE, g->h, g->gate, l->h2, false));
    RRL_TRY(project_backward(p, layer, RRL_MODULE_UP, g->h, g->up, l->h2, true));
    return p->ops->rms_norm_backward(p->d, g->x, g->h, l->mid, norm, p->c->rms_eps, true);
}

/* g.x holds the gradient of `mid` and becomes that of the layer's input. */
static rrl_status attend_backward(pass *p, int32_t layer) {
    const rrl_layer_activations *l = &p->e->a.layers[layer];
    const rrl_slot_gradients *g = &p->e->g;
    const rrl_model *m = p->e->m;
    const rrl_batch *b = &p->e->forward.batch;
    const rrl_model_config *c = p->c;
    RRL_TRY(p->ops->rms_norm(p->d, l->h, l->x, m->layers[layer].norm_in, c->rms_eps));
    RRL_TRY(project_backward(p, layer, RRL_MODULE_O, g->attended, g->x, l->attended, false));
    RRL_TRY(p->ops->attention_backward(p->d, g->q, g->k, g->v, g->attended, l->attended, l->lse, l->q, l->k,
                                       l->v, c->heads, c->head_dim, b, &p->e->parents,
                                       1.0f / sqrtf((float)c->head_dim)));
    RRL_TRY(p->ops->rope(p->d, g->q, c->heads, c->head_dim, b, m->rope_cos, m->rope_sin, true));
    RRL_TRY(p->ops->rope(p->d, g->k, c->kv_heads, c->head_dim, b, m->rope_cos, m->rope_sin, true));
    RRL_TRY(project_backward(p, layer, RRL_MODULE_Q, g->h, g->q, l->h, false));
    RRL_TRY(project_backward(p, layer, RRL_MODULE_K, g->h, g->k, l->h, true));
    RRL_TRY(project_backward(p, layer, RRL_MODULE_V, g->h, g->v, l->h, true));
    if (layer == 0) return RRL_OK; /* nothing trainable lies before */
    return p->ops->rms_norm_backward(p->d, g->x, g->h, l->x, m->layers[layer].norm_in, c->rms_eps, true);
}

rrl_status rrl_slot_backward(rrl_slot_engine *e, float *gradient, const float *dlogp) {
    if (!e->adapter) return RRL_FAIL(RRL_ERR_INTERNAL, "backward of a slot without a forward of an adapter");
    rrl_device *d = e->m->device;
    pass p = {e, d, d->ops, &e->m->config, gradient};
    const rrl_slot_gradients *g = &e->g;
    set_rows(e);
    RRL_TRY(p.ops->upload(d, e->dlogp, dlogp, (size_t)e->n_scores * sizeof *dlogp));
    RRL_TRY(p.ops->lm_backward(d, g->scored, e->scored, e->m->head, e->device.target, e->device.temperature,
                               e->lse, e->dlogp, e->scratch));
    RRL_TRY(p.ops->zero(d, g->h.data, g->h.rows * g->h.cols));
    RRL_TRY(p.ops->scatter_add(d, g->h, g->scored, e->device.score_row));
    RRL_TRY(p.ops->rms_norm_backward(d, g->x, g->h, e->a.last, e->m->norm_final, p.c->rms_eps, false));
    for (int32_t layer = p.c->layers - 1; layer >= 0; layer--) {
        RRL_TRY(feed_forward_backward(&p, layer));
        RRL_TRY(attend_backward(&p, layer));
    }
    return p.ops->sync(d);
}
