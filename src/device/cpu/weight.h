/* Packed weights: panels of 32 outputs, for each k the 32 numbers of a panel side by side, so that a product
 * reads strictly forward: data[panel][k][32], outputs beyond n are 0. */
#ifndef RRL_DEVICE_CPU_WEIGHT_H
#define RRL_DEVICE_CPU_WEIGHT_H

#include "device/device.h"

enum { RRL_PANEL = 32 };

typedef struct {
    int64_t n, k;
    float *data;
} rrl_packed;

/* Both directions: forward has W's rows as outputs, backward W's columns. */
struct rrl_weight {
    int64_t n, k;
    rrl_packed forward, backward;
    uint16_t *tiles; /* the bf16 path has this instead, see bf16.h */
};

static inline int64_t rrl_panels(int64_t n) {
    return (n + RRL_PANEL - 1) / RRL_PANEL;
}

static inline float rrl_packed_at(const rrl_packed *p, int64_t n, int64_t k) {
    return p->data[(n / RRL_PANEL * p->k + k) * RRL_PANEL + n % RRL_PANEL];
}

rrl_status rrl_weight_pack_cpu(rrl_weight **out, const void *src, rrl_dtype dtype, int64_t n, int64_t k);
/** Element i of src as f32, exact; src may have any alignment. */
float rrl_weight_element(const void *src, rrl_dtype dtype, int64_t i);
void rrl_weight_free_cpu(rrl_weight **w);

#endif
