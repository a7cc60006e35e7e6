/* The forward pass over a batch, with room for what a backward pass needs: one code for rollout and training.
 */
#ifndef RRL_MODEL_FORWARD_H
#define RRL_MODEL_FORWARD_H

#include "model/model_parts.h"

/* What a layer computes; [n_rows, cols]. Buffers may be shared between layers: a rollout has one set for all,
 * a training slot keeps those that cannot be made again cheaply (rrl_activations_carve). */
typedef struct {
    rrl_tensor x;       /* [hidden] residual on entry */
    rrl_tensor h;       /* [hidden] norm of x */
    rrl_tensor q, k, v; /* [heads * head_dim], [kv_heads * head_dim]; q, k after rope */
    rrl_tensor attended;
    rrl_tensor lse;             /* [heads] log-sum-exp of the scores; empty in rollout */
    rrl_tensor mid;             /* [hidden] residual after attention */
    rrl_tensor h2;              /* [hidden] norm of mid */
    rrl_tensor gate, up;        /* [intermediate] */
    rrl_tensor act;             /* [intermediate] swiglu */
    rrl_tensor us[RRL_MODULES]; /* [r16] scale * A x of each module */
} rrl_layer_activations;

typedef struct {
    rrl_layer_activations *layers; /* [n_layers] */
    int32_t n_layers;
    rrl_tensor last;          /* [hidden] residual after the last layer */
    rrl_tensor hidden;        /* [hidden] its norm */
    const rrl_lora **modules; /* [n_adapters] host scratch of one lora call */
    int32_t n_modules;
} rrl_activations;

/** Carve the buffers of `rows` rows; keep = each layer has its own x, q, k, v, attended, lse, mid, gate, up,
 * else all layers share. a NULL = only count. The us tensors are carved by rrl_activations_carve_lora. */
void rrl_activations_carve(rrl_activations *a, rrl_carver *carver, const rrl_model_config *c, int64_t rows,
                           bool keep);
/** us of rank r16, per layer and module when keep. */
void rrl_activations_carve_lora(rrl_activations *a, rrl_carver *carver, const rrl_model_config *c,
                                int64_t rows, int32_t r16, bool keep);
/** Number of rows of every tensor, for the batch at hand. */
void rrl_activations_rows(rrl_activations *a, int64_t rows);
/** Embedding, all layers, final norm: fills `a`. A pool of one layer serves all layers in turn (training). */
rrl_status rrl_forward_run(rrl_activations *a, rrl_model *m, const rrl_forward *f);

#endif
