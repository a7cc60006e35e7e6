/* LoRA adapters in memory: the flat vector of all trainable floats, its named slices, and the packed forms
 * the ops use. */
#include "model/adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "model/adapter_parts.h"

static const char *const ALL_MODULES[RRL_MODULES] = {
#define X(id, parent, name) name,
    RRL_MODULE_LIST(X)
#undef X
};

rrl_status rrl_adapter_targets(bool *target, const rrl_adapter_spec *spec, rrl_status rc_bad) {
    for (int module = 0; module < RRL_MODULES; module++) target[module] = spec->n_targets == 0;
    for (int32_t i = 0; i < spec->n_targets; i++) {
        int module = 0;
        while (module < RRL_MODULES && strcmp(spec->targets[i], ALL_MODULES[module]) != 0) module++;
        if (module == RRL_MODULES) {
            const char *near = rrl_nearest_name(spec->targets[i], ALL_MODULES, RRL_MODULES);
            return RRL_FAIL(rc_bad,
                            "LoRA target module \"%s\" is unknown%s%s%s; expected q_proj, k_proj, v_proj, "
                            "o_proj, gate_proj, up_proj or down_proj",
                            spec->targets[i], near ? ", did you mean \"" : "", near ? near : "",
                            near ? "\"" : "");
        }
        target[module] = true;
    }
    return RRL_OK;
}

static rrl_status check_spec(const rrl_adapter_spec *s, rrl_status rc_bad) {
    if (s->r < 1 || s->r > RRL_MAX_LORA_RANK)
        return RRL_FAIL(rc_bad, "LoRA rank r is %d, expected 1 to %d", s->r, RRL_MAX_LORA_RANK);
    if (!(fabs(s->alpha) <= 1e6))
        return RRL_FAIL(rc_bad, "LoRA alpha is %g, expected at most 1e6", s->alpha);
    if (!(s->dropout >= 0 && s->dropout < 1))
        return RRL_FAIL(rc_bad, "LoRA dropout is %g, expected a number in [0, 1)", s->dropout);
    return RRL_OK;
}

rrl_status rrl_adapter_check(const rrl_adapter_spec *spec) {
    bool target[RRL_MODULES];
    RRL_TRY(check_spec(spec, RRL_ERR_CONFIG));
    return rrl_adapter_targets(target, spec, RRL_ERR_CONFIG);
}

/* --- sizes */

/* Calls nothing but counts: floats of the flat vector, and bytes of the packed forms. */
static void adapter_sizes(int64_t *floats, size_t *packed, const rrl_model_config *c, const bool *target,
                          int32_t r) {
    rrl_carver carver = {0};
    *floats = 0;
    for (int module = 0; module < RRL_MODULES; module++) {
        int64_t n, k;
        rrl_module_shape(&n, &k, c, module);
        if (!target[module]) continue;
        *floats += c->layers * r * (n + k);
        for (int32_t i = 0; i < c->layers; i++) {
            rrl_carve(&carver, k, rrl_round16(r));
            rrl_carve(&carver, r, n);
        }
    }
    *packed = carver.used;
}

int64_t rrl_config_adapter_size(const rrl_model_config *c, const rrl_adapter_spec *spec) {
    bool target[RRL_MODULES];
    int64_t floats;
    size_t packed;
    if (rrl_adapter_targets(target, spec, RRL_ERR_CONFIG) != RRL_OK) return 0;
    adapter_sizes(&floats, &packed, c, target, spec->r);
    return floats;
}

size_t rrl_config_adapter_bytes(const rrl_model_config *c, const rrl_adapter_spec *spec) {
    bool target[RRL_MODULES];
    int64_t floats;
    size_t packed;
    if (rrl_adapter_targets(target, spec, RRL_ERR_CONFIG) != RRL_OK) return 0;
    adapter_sizes(&floats, &packed, c, target, spec->r);
    return (size_t)floats * sizeof(float) + packed;
}

int64_t rrl_adapter_size_of(const struct rrl_model *m, const rrl_adapter_spec *spec) {
    return rrl_config_adapter_size(&m->config, spec);
}

/* --- making one */

/* Names one tensor and gives it the next slice of the flat vector. */
static void add_tensor(rrl_adapter *a, int32_t layer, int module, char letter, int64_t rows, int64_t cols) {
    snprintf(a->names[a->count], sizeof *a->names, "base_model.model.model.layers.%d.%s.%s.lora_%c.weight",
             layer, rrl_module_parent(module), rrl_module_name(module), letter);
    a->tensors[a->count] = (rrl_trainable){a->names[a->count], a->size, rows, cols};
    a->count++;
    a->size += rows * cols;
}

static void add_module(rrl_adapter *a, rrl_carver *packed, const rrl_model_config *c, int32_t layer,
                       int module) {
    int64_t n, k;
    rrl_module_shape(&n, &k, c, module);
    rrl_lora *lora = &a->modules[layer * RRL_MODULES + module];
    lora->r = a->r;
    lora->k = (int32_t)k;
    lora->n = (int32_t)n;
    lora->scale = (float)(a->alpha / a->r);
    lora->a = a->data + a->size;
    add_tensor(a, layer, module, 'A', a->r, k);
    lora->b = a->data + a->size;
    add_tensor(a, layer, module, 'B', n, a->r);
    lora->a_t = rrl_carve(packed, k, rrl_round16(a->r)).data;
    lora->b_t = rrl_carve(packed, a->r, n).data;
}

rrl_status rrl_adapter_new(rrl_adapter **out, const rrl_model *m, const rrl_adapter_spec *spec,
                           rrl_status rc_bad) {
    rrl_status rc = RRL_OK;
    rrl_adapter *a = NULL;
    const rrl_model_config *c = &m->config;
    const size_t most = (size_t)c->layers * RRL_MODULES;
    int64_t floats = 0;
    size_t packed_bytes = 0;
    rrl_carver packed = {0};
    RRL_GOTO(check_spec(spec, rc_bad));
    RRL_GOTO(rrl_alloc(&a, 1, sizeof *a, "adapter"));
    a->device = m->device;
    a->layers = c->layers;
    a->r = spec->r;
    a->alpha = spec->alpha;
    a->dropout = spec->dropout;
    RRL_GOTO(rrl_adapter_targets(a->target, spec, rc_bad));
    RRL_GOTO(rrl_alloc(&a->modules, most, sizeof *a->modules, "adapter modules"));
    RRL_GOTO(rrl_alloc(&a->tensors, 2 * most, sizeof *a->tensors, "adapter tensors"));
    RRL_GOTO(rrl_alloc(&a->names, 2 * most, sizeof *a->names, "adapter names"));
    adapter_sizes(&floats, &packed_bytes, c, a->target, a->r);
    RRL_GOTO(a->device->ops->alloc(a->device, (void **)&a->data, (size_t)floats * sizeof(float), "adapter"));
    RRL_GOTO(a->device->ops->alloc(a->device, (void **)&a->packed, packed_bytes, "packed adapter"));
    packed.base = (char *)a->packed;
    for (int32_t i = 0; i < c->layers; i++)
        for (int module = 0; module < RRL_MODULES; module++)
            if (a->target[module]) add_module(a, &packed, c, i, module);
    *out = a;
    a = NULL;
done:
    rrl_adapter_close(&a);
    return rc;
}

/* Uniform in [-bound, bound): element i of tensor t is draw i of the stream whose step is t. */
static void fill_uniform(float *to, int64_t n, double bound, uint64_t seed, int32_t tensor) {
    const rrl_rng_key key = {.seed = seed, .purpose = RRL_RNG_INIT, .step = (uint32_t)tensor};
    for (int64_t i = 0; i < n; i++) to[i] = (float)((2.0 * rrl_rng_uniform(&key, (uint32_t)i) - 1.0) * bound);
}

rrl_status rrl_adapter_open(rrl_adapter **out, const struct rrl_model *m, const rrl_adapter_spec *spec,
                            uint64_t seed) {
    rrl_status rc = RRL_OK;
    rrl_adapter *a = NULL;
    float *host = NULL;
    RRL_GOTO(rrl_adapter_new(&a, m, spec, RRL_ERR_CONFIG));
    RRL_GOTO(rrl_alloc(&host, (size_t)a->size, sizeof *host, "initial adapter"));
    for (int32_t t = 0; t < a->count; t += 2) { /* A; the B after it stays 0 */
        const rrl_trainable *tensor = &a->tensors[t];
        fill_uniform(host + tensor->offset, tensor->rows * tensor->cols, 1.0 / sqrt((double)tensor->cols),
                     seed, t);
    }
    RRL_GOTO(a->device->ops->upload(a->device, a->data, host, (size_t)a->size * sizeof *host));
    RRL_GOTO(rrl_adapter_refresh(a));
    *out = a;
    a = NULL;
done:
    free(host);
    rrl_adapter_close(&a);
    return rc;
}

rrl_status rrl_adapter_refresh(rrl_adapter *a) {
    for (int32_t i = 0; i < a->layers * RRL_MODULES; i++)
        if (a->modules[i].r > 0) RRL_TRY(a->device->ops->lora_pack(a->device, &a->modules[i]));
    return RRL_OK;
}

void rrl_adapter_close(rrl_adapter **a) {
    if (!a || !*a) return;
    rrl_device *d = (*a)->device;
    if ((*a)->data) d->ops->free(d, (*a)->data);
    if ((*a)->packed) d->ops->free(d, (*a)->packed);
    free((*a)->modules);
    free((*a)->tensors);
    free((*a)->names);
    free(*a);
    *a = NULL;
}

/* --- looking at it */

int32_t rrl_adapter_count(const rrl_adapter *a) {
    return a->count;
}

const rrl_trainable *rrl_adapter_tensors(const rrl_adapter *a) {
    return a->tensors;
}

int64_t rrl_adapter_size(const rrl_adapter *a) {
    return a->size;
}

float *rrl_adapter_data(rrl_adapter *a) {
    return a->data;
}

int32_t rrl_adapter_rank(const rrl_adapter *a) {
    return a->r;
}

double rrl_adapter_alpha(const rrl_adapter *a) {
    return a->alpha;
}

double rrl_adapter_dropout(const rrl_adapter *a) {
    return a->dropout;
}

const rrl_lora *rrl_adapter_module(const rrl_adapter *a, int32_t index) {
    if (index < 0 || index >= a->layers * RRL_MODULES) return NULL;
    return a->modules[index].r > 0 ? &a->modules[index] : NULL;
}
