/* LoRA adapters: the named trainable tensors of a run. Optimiser, gradient tree, checkpoint, broadcast and digest know
 * only the list and the flat vector, not LoRA. */
#ifndef RRL_MODEL_ADAPTER_H
#define RRL_MODEL_ADAPTER_H

#include "device/device.h"

struct rrl_model;

typedef struct {
    int32_t r;
    double alpha, dropout;
    const char *const *targets; /* module names ("q_proj", ...); n_targets 0 = all-linear */
    int32_t n_targets;
} rrl_adapter_spec;

/* One trainable tensor: a slice of the flat vector. PEFT file name: base_model.model.<module path>.lora_A.weight. */
typedef struct {
    const char *name;
    int64_t offset, rows, cols;
} rrl_trainable;

/** Rank, alpha, dropout and module names, without a model. Errors: RRL_ERR_CONFIG. */
rrl_status rrl_adapter_check(const rrl_adapter_spec *spec);

typedef struct rrl_adapter rrl_adapter;
/** Fresh adapter: A ~ U(-1/sqrt(in), 1/sqrt(in)) keyed by seed and tensor index, B = 0. */
rrl_status rrl_adapter_open(rrl_adapter **out, const struct rrl_model *m, const rrl_adapter_spec *spec, uint64_t seed);
/** From a PEFT folder (adapter_config.json, adapter_model.safetensors); anything PEFT can do that this program does
 *  not (dora, bias, rank patterns, ...) is refused by key. Errors: RRL_ERR_DATA. */
rrl_status rrl_adapter_load(rrl_adapter **out, const struct rrl_model *m, const char *dir);
/** Write a PEFT folder; base is recorded as base_model_name_or_path. Each file appears whole. */
rrl_status rrl_adapter_save(const rrl_adapter *a, const char *dir, const char *base);
void rrl_adapter_close(rrl_adapter **a);
int32_t rrl_adapter_count(const rrl_adapter *a);                       /* tensors */
const rrl_trainable *rrl_adapter_tensors(const rrl_adapter *a);        /* [count] */
int64_t rrl_adapter_size(const rrl_adapter *a);                        /* floats in all */
float *rrl_adapter_data(rrl_adapter *a);                               /* [size] in device memory */
/** To be called after the flat vector changed: remakes the packed forms. */
rrl_status rrl_adapter_refresh(rrl_adapter *a);
int32_t rrl_adapter_rank(const rrl_adapter *a);
double rrl_adapter_alpha(const rrl_adapter *a);
double rrl_adapter_dropout(const rrl_adapter *a); /* of training, as the spec or the file said */
/** Module `index` (0 .. 7 * layers - 1, order q k v o gate up down in each layer); NULL if not adapted. */
const rrl_lora *rrl_adapter_module(const rrl_adapter *a, int32_t index);
/** Number of trainable floats from the config alone, for plans. */
int64_t rrl_adapter_size_of(const struct rrl_model *m, const rrl_adapter_spec *spec);

#endif
