/* The adapter's struct, shared by adapter.c (memory) and adapter_file.c (PEFT folders). */
#ifndef RRL_MODEL_ADAPTER_PARTS_H
#define RRL_MODEL_ADAPTER_PARTS_H

#include "model/adapter.h"
#include "model/model_parts.h"

struct rrl_adapter {
    rrl_device *device; /* borrowed */
    int32_t layers, r;
    double alpha, dropout;
    bool target[RRL_MODULES];
    rrl_trainable *tensors; /* [count]: of each adapted module, in module order, A then B */
    char (*names)[96];
    int32_t count;
    int64_t size;
    float *data;       /* [size], device */
    float *packed;     /* a_t and b_t of all modules, device */
    rrl_lora *modules; /* [layers * RRL_MODULES]; r 0 = not adapted */
};

/** An adapter of these sizes with A = B = 0, packed forms included. rc_bad is the status of a bad spec. */
rrl_status rrl_adapter_new(rrl_adapter **out, const rrl_model *m, const rrl_adapter_spec *spec,
                           rrl_status rc_bad);
/** target[RRL_MODULES] of a spec. */
rrl_status rrl_adapter_targets(bool *target, const rrl_adapter_spec *spec, rrl_status rc_bad);

#endif
