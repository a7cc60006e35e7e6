/* The forward pass in terms of device ops, and the workspace of callers that keep nothing (rollout,
 * evaluation). */
#include "model/forward.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

/* --- buffers */

int64_t rrl_block_size(int64_t rows, int64_t most) {
    const int64_t blocks = (rows + most - 1) / most;
    return (rows + blocks - 1) / blocks;
}

int64_t rrl_near_size(const rrl_device *d, int64_t rows, int64_t most) {
    const int64_t near = d->ops->near_rows;
    return rrl_block_size(rows, near > 0 && near < most ? near : most);
}

rrl_tensor rrl_block_of(const rrl_activations *a, int32_t layer, rrl_tensor gate_or_up, int64_t first, int64_t n) {
    const bool kept = a->again != RRL_KEEP_NOTHING && layer >= a->again;
    return rrl_tensor_rows(gate_or_up, kept ? first : 0, n);
}

/* All but x; gate and up of `mlp` rows. */
static void carve_layer(rrl_layer_activations *l, rrl_carver *carver, const rrl_model_config *c, int64_t rows,
                        int64_t mlp, bool lse) {
    const int64_t q = (int64_t)c->heads * c->head_dim, kv = (int64_t)c->kv_heads * c->head_dim;
    l->q = rrl_carve(carver, rows, q);
    l->k = rrl_carve(carver, rows, kv);
    l->v = rrl_carve(carver, rows, kv);
    l->attended = rrl_carve(carver, rows, q);
    l->lse = lse ? rrl_carve(carver, rows, c->heads) : (rrl_tensor){0};
    l->mid = rrl_carve(carver, rows, c->hidden);
    l->gate = rrl_carve(carver, mlp, c->intermediate);
    l->up = rrl_carve(carver, mlp, c->intermediate);
}

void rrl_activations_carve(rrl_activations *a, rrl_carver *carver, const rrl_model_config *c, int64_t rows,
                           int64_t block, int32_t again) {
    const bool trains = again != RRL_KEEP_NOTHING;
    /* Made again before their use in a backward pass, so one buffer serves all layers. */
    rrl_tensor h = rrl_carve(carver, rows, c->hidden), h2 = rrl_carve(carver, rows, c->hidden);
    rrl_tensor act = rrl_carve(carver, block, c->intermediate);
    rrl_layer_activations layer = {0};
    for (int32_t i = 0; i < c->layers; i++) {
        const bool kept = trains && i >= again;
        if (kept || i == 0) carve_layer(&layer, carver, c, rows, kept ? rows : block, trains);
        if (trains || i == 0) layer.x = rrl_carve(carver, rows, c->hidden);
        layer.h = h;
        layer.h2 = h2;
        layer.act = act;
        if (a) a->layers[i] = layer;
    }
    rrl_tensor last = trains ? rrl_carve(carver, rows, c->hidden) : layer.x;
    if (!a) return;
    a->again = again;
    a->block = block;
    a->last = last;
    a->hidden = h; /* free after the last layer */
}

/* The modules of a layer in groups, each over one x, in the order of a pass. */
typedef enum { INPUT, OUTPUT, GATES, DOWN, N_GROUPS } group;
static const struct {
    int module[RRL_MOST_PRODUCTS], n;
} GROUPS[N_GROUPS] = {
    [INPUT] = {{RRL_MODULE_Q, RRL_MODULE_K, RRL_MODULE_V}, 3},
    [OUTPUT] = {{RRL_MODULE_O}, 1},
    [GATES] = {{RRL_MODULE_GATE, RRL_MODULE_UP}, 2},
    [DOWN] = {{RRL_MODULE_DOWN}, 1},
};

/* Where a module stands in its group. */
static int place_in_group(int module) {
    for (int g = 0; g < N_GROUPS; g++)
        for (int i = 0; i < GROUPS[g].n; i++)
            if (GROUPS[g].module[i] == module) return i;
    return 0;
}

/* Nothing kept: what a module leaves is free after its group's call, so groups share. */
void rrl_activations_carve_lora(rrl_activations *a, rrl_carver *carver, const rrl_model_config *c, int64_t rows,
                                int32_t r16, int32_t again) {
    rrl_tensor us[RRL_MODULES] = {{0}}, shared[RRL_MOST_PRODUCTS] = {{0}};
    for (int i = 0; again == RRL_KEEP_NOTHING && i < RRL_MOST_PRODUCTS; i++) shared[i] = rrl_carve(carver, rows, r16);
    for (int32_t i = 0; i < c->layers; i++)
        for (int module = 0; module < RRL_MODULES; module++) {
            if (again == RRL_KEEP_NOTHING) us[module] = shared[place_in_group(module)];
            else if (i == 0 || i >= again) us[module] = rrl_carve(carver, rows, r16);
            if (a) a->layers[i].us[module] = us[module];
        }
}

void rrl_activations_rows(rrl_activations *a, int64_t rows) {
    for (int32_t i = 0; i < a->n_layers; i++) {
        rrl_layer_activations *l = &a->layers[i];
        rrl_tensor *all[] = {&l->x, &l->h, &l->q, &l->k, &l->v, &l->attended, &l->mid, &l->h2};
        for (size_t t = 0; t < sizeof all / sizeof *all; t++) all[t]->rows = rows;
        if (l->lse.data) l->lse.rows = rows;
        for (int module = 0; module < RRL_MODULES; module++) l->us[module].rows = rows;
    }
    a->last.rows = a->hidden.rows = rows;
}

/* --- the pass */

typedef struct {
    rrl_activations *a;
    rrl_model *m;
    const rrl_forward *f;
    rrl_device *d;
    const rrl_device_ops *ops;
} pass;

/* The largest rank that an adapter of the batch has in this module, 0 = none; modules [n_adapters] gets them. */
static int32_t list_modules(const pass *p, const rrl_lora **modules, int32_t index) {
    int32_t rank = 0;
    for (int32_t i = 0; i < p->f->n_adapters; i++) {
        modules[i] = rrl_adapter_module(p->f->adapters[i], index);
        if (modules[i] && modules[i]->r > rank) rank = modules[i]->r;
    }
    return rank;
}

/* The adapters' part of y = W x of a group on top, for rows from `first` on; us stays. */
static rrl_status adapt(pass *p, int32_t layer, group g, const rrl_tensor *y, rrl_tensor x, int64_t first) {
    const rrl_batch b = rrl_batch_rows(&p->f->batch, first, x.rows);
    rrl_lora_product products[RRL_MOST_PRODUCTS];
    int32_t n = 0, widest = 0;
    for (int i = 0; i < GROUPS[g].n; i++) {
        const int32_t module = GROUPS[g].module[i], index = layer * RRL_MODULES + module;
        const rrl_lora **modules = p->a->modules + n * p->f->n_adapters;
        const int32_t rank = list_modules(p, modules, index);
        if (rank == 0) continue;
        if (rank > widest) widest = rank;
        products[n++] = (rrl_lora_product){y[i], p->a->layers[layer].us[module],
                                           {.modules = modules, .dropout = p->f->dropout, .module = (uint32_t)index,
                                            .n_modules = p->f->n_adapters}};
    }
    for (int32_t i = 0; i < n; i++) {
        products[i].u.cols = rrl_round16(widest);
        products[i].u = rrl_tensor_rows(products[i].u, first, x.rows);
    }
    return n == 0 ? RRL_OK : p->ops->lora(p->d, x, &b, products, n);
}

/* The first weight behind a group's. */
static const rrl_weight *weight_after(const pass *p, int32_t layer, group g) {
    if (g + 1 < N_GROUPS) return p->m->layers[layer].weight[GROUPS[g + 1].module[0]];
    return layer + 1 < p->m->config.layers ? p->m->layers[layer + 1].weight[GROUPS[0].module[0]] : p->m->head;
}

/* y = x w^T + bias of a group, then the adapters' part on top. */
static rrl_status project(pass *p, int32_t layer, group g, const rrl_tensor *y, rrl_tensor x, int64_t first) {
    const rrl_layer *weights = &p->m->layers[layer];
    rrl_product products[RRL_MOST_PRODUCTS];
    for (int i = 0; i < GROUPS[g].n; i++) {
        const int module = GROUPS[g].module[i];
        products[i] = (rrl_product){y[i], weights->weight[module], weights->bias[module]};
    }
    RRL_TRY(p->ops->linear(p->d, x, products, GROUPS[g].n, weight_after(p, layer, g)));
    return adapt(p, layer, g, y, x, first);
}

/* The same for all rows, some at a time. */
static rrl_status project_all(pass *p, int32_t layer, group g, const rrl_tensor *y, rrl_tensor x) {
    const int64_t size = rrl_near_size(p->d, x.rows, x.rows);
    for (int64_t first = 0; first < x.rows; first += size) {
        const int64_t n = x.rows - first < size ? x.rows - first : size;
        rrl_tensor part[RRL_MOST_PRODUCTS];
        for (int i = 0; i < GROUPS[g].n; i++) part[i] = rrl_tensor_rows(y[i], first, n);
        RRL_TRY(project(p, layer, g, part, rrl_tensor_rows(x, first, n), first));
    }
    return RRL_OK;
}

/* h = the norm of a layer's input, which is x and, behind another layer, what lies in that one's mid. */
static rrl_status norm_input(pass *p, int32_t layer) {
    const rrl_layer_activations *l = &p->a->layers[layer];
    const float *w = p->m->layers[layer].norm_in, eps = p->m->config.rms_eps;
    if (layer == 0) return p->ops->rms_norm(p->d, l->h, l->x, w, eps);
    return p->ops->add_rms_norm(p->d, l->h, l->x, p->a->layers[layer - 1].mid, w, eps);
}

/* From h to mid, to which x is still to be added. */
static rrl_status attend(pass *p, int32_t layer) {
    const rrl_model_config *c = &p->m->config;
    rrl_layer_activations *l = &p->a->layers[layer];
    const rrl_batch *b = &p->f->batch;
    const int32_t cache = p->f->pool->n_layers == 1 ? 0 : layer;
    const rrl_kv_rows rows = {l->q, l->k, l->v, p->m->rope_cos, p->m->rope_sin, p->d->kv_dtype};
    RRL_TRY(project_all(p, layer, INPUT, (rrl_tensor[]){l->q, l->k, l->v}, l->h));
    RRL_TRY(p->ops->kv_write(p->d, p->f->pool, cache, &rows, b, &p->f->writes));
    RRL_TRY(p->ops->attention(p->d, l->attended, l->lse, l->q, c->heads, p->f->pool, cache, &p->f->table, b,
                              1.0f / sqrtf((float)c->head_dim)));
    return project_all(p, layer, OUTPUT, &l->mid, l->attended);
}

/* mid, h2, gate, up and act of a block of rows. x is added into the new buffer, so that it is kept: addition
 * commutes. */
static rrl_status gates(pass *p, int32_t layer, int64_t first, int64_t n) {
    const rrl_layer_activations *l = &p->a->layers[layer];
    const rrl_tensor h2 = rrl_tensor_rows(l->h2, first, n), mid = rrl_tensor_rows(l->mid, first, n);
    const rrl_tensor x = rrl_tensor_rows(l->x, first, n);
    const rrl_tensor gate = rrl_block_of(p->a, layer, l->gate, first, n);
    const rrl_tensor up = rrl_block_of(p->a, layer, l->up, first, n);
    RRL_TRY(p->ops->add_rms_norm(p->d, h2, mid, x, p->m->layers[layer].norm_post, p->m->config.rms_eps));
    RRL_TRY(project(p, layer, GATES, (rrl_tensor[]){gate, up}, h2, first));
    return p->ops->swiglu(p->d, rrl_tensor_rows(l->act, 0, n), gate, up);
}

/* From mid to out, to which mid is still to be added. */
static rrl_status feed_forward(pass *p, int32_t layer, rrl_tensor out) {
    const rrl_layer_activations *l = &p->a->layers[layer];
    const int64_t rows = p->f->batch.n_rows, block = rrl_near_size(p->d, rows, p->a->block);
    for (int64_t first = 0; first < rows; first += block) {
        const int64_t n = rows - first < block ? rows - first : block;
        RRL_TRY(gates(p, layer, first, n));
        const rrl_tensor block_out = rrl_tensor_rows(out, first, n);
        RRL_TRY(project(p, layer, DOWN, &block_out, rrl_tensor_rows(l->act, 0, n), first));
    }
    return RRL_OK;
}

static rrl_status reserve_modules(rrl_activations *a, int32_t n) {
    if (n <= a->n_modules) return RRL_OK;
    free(a->modules);
    a->modules = NULL;
    a->n_modules = 0;
    RRL_TRY(rrl_alloc(&a->modules, (size_t)n, RRL_MOST_PRODUCTS * sizeof *a->modules, "adapter list"));
    a->n_modules = n;
    return RRL_OK;
}

rrl_status rrl_forward_run(rrl_activations *a, rrl_model *m, const rrl_forward *f) {
    pass p = {a, m, f, m->device, m->device->ops};
    RRL_TRY(reserve_modules(a, f->n_adapters));
    rrl_activations_rows(a, f->batch.n_rows);
    RRL_TRY(p.ops->embed(p.d, a->layers[0].x, m->embedding, &f->batch));
    for (int32_t i = 0; i < m->config.layers; i++) {
        RRL_TRY(norm_input(&p, i));
        RRL_TRY(attend(&p, i));
        RRL_TRY(feed_forward(&p, i, i + 1 < m->config.layers ? a->layers[i + 1].x : a->last));
    }
    return p.ops->add_rms_norm(p.d, a->hidden, a->last, a->layers[m->config.layers - 1].mid, m->norm_final,
                               m->config.rms_eps);
}

rrl_status rrl_forward_attend(rrl_activations *a, rrl_model *m, const rrl_forward *f, int32_t layer) {
    pass p = {a, m, f, m->device, m->device->ops};
    const rrl_layer_activations *l = &a->layers[layer];
    RRL_TRY(p.ops->rms_norm(p.d, l->h, l->x, m->layers[layer].norm_in, m->config.rms_eps)); /* x is whole */
    return attend(&p, layer);
}

rrl_status rrl_forward_gates(rrl_activations *a, rrl_model *m, const rrl_forward *f, int32_t layer, int64_t first,
                             rrl_tensor scratch) {
    const int64_t n = scratch.rows;
    pass p = {a, m, f, m->device, m->device->ops};
    RRL_TRY(gates(&p, layer, first, n));
    return adapt(&p, layer, DOWN, &scratch, rrl_tensor_rows(a->layers[layer].act, 0, n), first);
}

/* --- workspace */

struct rrl_workspace {
    rrl_device *device; /* borrowed */
    rrl_activations a;
    int32_t max_rows;
    void *block;
};

static void carve_workspace(rrl_activations *a, rrl_carver *carver, const rrl_model_config *c,
                            int32_t max_rows) {
    const int64_t block = max_rows < RRL_BLOCK_ROWS ? max_rows : RRL_BLOCK_ROWS;
    rrl_activations_carve(a, carver, c, max_rows, block, RRL_KEEP_NOTHING);
    rrl_activations_carve_lora(a, carver, c, max_rows, RRL_MAX_LORA_RANK, RRL_KEEP_NOTHING);
}

size_t rrl_workspace_bytes(const rrl_model_config *c, int32_t max_rows) {
    rrl_carver count = {0};
    carve_workspace(NULL, &count, c, max_rows);
    return count.used;
}

rrl_status rrl_workspace_open(rrl_workspace **out, const rrl_model *m, int32_t max_rows) {
    rrl_status rc = RRL_OK;
    rrl_workspace *w = NULL;
    rrl_carver carver = {0};
    const rrl_model_config *c = &m->config;
    if (max_rows < 1) return RRL_FAIL(RRL_ERR_INTERNAL, "a workspace of %d rows", max_rows);
    RRL_GOTO(rrl_alloc(&w, 1, sizeof *w, "workspace"));
    w->device = m->device;
    w->max_rows = max_rows;
    w->a.n_layers = c->layers;
    RRL_GOTO(rrl_alloc(&w->a.layers, (size_t)c->layers, sizeof *w->a.layers, "workspace layers"));
    RRL_GOTO(m->device->ops->alloc(m->device, &w->block, rrl_workspace_bytes(c, max_rows), "workspace"));
    carver.base = w->block;
    carve_workspace(&w->a, &carver, c, max_rows);
    *out = w;
    w = NULL;
done:
    rrl_workspace_close(&w);
    return rc;
}

void rrl_workspace_close(rrl_workspace **w) {
    if (!w || !*w) return;
    if ((*w)->block) (*w)->device->ops->free((*w)->device, (*w)->block);
    free((*w)->a.layers);
    free((*w)->a.modules);
    free(*w);
    *w = NULL;
}

rrl_status rrl_model_forward(rrl_tensor *hidden, rrl_model *m, rrl_workspace *w, const rrl_forward *f) {
    if (f->batch.n_rows < 1 || f->batch.n_rows > w->max_rows)
        return RRL_FAIL(RRL_ERR_INTERNAL, "a batch of %d rows in a workspace of %d", f->batch.n_rows,
                        w->max_rows);
    RRL_TRY(rrl_forward_run(&w->a, m, f));
    *hidden = w->a.hidden;
    return RRL_OK;
}

rrl_status rrl_model_logits(rrl_model *m, rrl_workspace *w, rrl_tensor logits, rrl_tensor hidden,
                            const int32_t *row) {
    if (logits.rows < 1 || logits.rows > w->max_rows)
        return RRL_FAIL(RRL_ERR_INTERNAL, "logits of %lld rows in a workspace of %d", (long long)logits.rows,
                        w->max_rows);
    rrl_tensor chosen = w->a.layers[0].mid; /* free once the pass is over */
    chosen.rows = logits.rows;
    RRL_TRY(m->device->ops->gather(m->device, chosen, hidden, row));
    return m->device->ops->linear(m->device, chosen, &(rrl_product){logits, m->head, NULL}, 1, NULL);
}
