/* Packed weights: panels of 32 outputs, for each k the 32 numbers of a panel side by side, so that a product
 * reads strictly forward: panels[panel][k][32], outputs beyond n are 0. A product with W^T turns blocks of the
 * same copy (kernels_linear.c). */
#ifndef RRL_DEVICE_CPU_WEIGHT_H
#define RRL_DEVICE_CPU_WEIGHT_H

#include "device/cpu/pool.h"
#include "device/device.h"

enum { RRL_PANEL = 32 };

struct rrl_weight {
    int64_t n, k; /* first, see device.h */
    float *panels;
    uint16_t *tiles; /* the bf16 path has this instead, see bf16.h */
    void *owned;     /* either of them, where this weight is to free it; NULL = the caller's room */
};

static inline int64_t rrl_panels(int64_t n) {
    return (n + RRL_PANEL - 1) / RRL_PANEL;
}

static inline bool rrl_product_fits(const rrl_product *p, rrl_tensor x) {
    return x.cols == p->w->k && p->y.cols == p->w->n && x.rows == p->y.rows;
}

static inline float rrl_packed_at(const rrl_weight *w, int64_t n, int64_t k) {
    return w->panels[(n / RRL_PANEL * w->k + k) * RRL_PANEL + n % RRL_PANEL];
}

/** An [n,k] matrix over room of rrl_cpu_weight_bytes, which is not looked at. */
rrl_status rrl_weight_view_cpu(rrl_weight **out, void *room, int64_t n, int64_t k);
/** Pack W, row-major of type dtype and any alignment, by all threads of the pool. */
void rrl_weight_fill_cpu(const rrl_weight *w, rrl_pool *pool, const void *src, rrl_dtype dtype);
void rrl_weight_free_cpu(rrl_weight **w);

#endif
