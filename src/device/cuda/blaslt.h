/* The one place that calls cuBLASLt; a test replaces it by plain loops. */
#ifndef RRL_DEVICE_CUDA_BLASLT_H
#define RRL_DEVICE_CUDA_BLASLT_H

#include "device/cuda/cuda_common.cuh"

/* y [rows, outputs] = (accumulate ? y : 0) + bias + x [rows, k] w, f32 sums and result, all row-major.
 * x and w are of dtype; w is [outputs, k] or, turned, [k, outputs]. */
typedef struct {
    float *y;
    const void *x, *w;
    int64_t ldy, ldx, ldw;
    int64_t rows, outputs, k;
    rrl_dtype dtype; /* RRL_F32 or RRL_BF16 */
    bool turned, accumulate;
    const float *bias; /* [outputs] or NULL; not with accumulate */
} rrl_blaslt_product;

/** room: device memory that cuBLASLt may use during a product. any = allow algorithms whose sums may differ from run to
 *  run. All products go to the stream. */
rrl_status rrl_blaslt_open(rrl_blaslt **out, void *room, size_t room_bytes, bool any);
void rrl_blaslt_close(rrl_blaslt **b);
/** Enqueue. The algorithm is a function of weight shape, type and the power of two that holds the rows, asked for once
 *  each, so it never depends on what ran before. Errors: RRL_ERR_DEVICE naming the shape. */
rrl_status rrl_blaslt_multiply(rrl_blaslt *b, const rrl_blaslt_product *p, cudaStream_t stream);

#endif
