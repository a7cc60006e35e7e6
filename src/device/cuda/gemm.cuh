/* Products with a frozen weight. */
#ifndef RRL_DEVICE_CUDA_GEMM_CUH
#define RRL_DEVICE_CUDA_GEMM_CUH

#include "device/cuda/cuda_common.cuh"

/* A product with rows [first, first + count) of a weight w [n,k]:
 *   forward  y [rows, count]: y[i][j] = start + sum over k of x[i][k] w[first + j][k],      x [rows, k]
 *   turned   y [rows, k]:     y[i][j] = start + sum over the rows r of x[i][r] w[first + r][j], x [rows, count]
 * start: y with `accumulate`, else bias [columns of y] or 0. */
typedef struct {
    float *y;
    int64_t ldy;
    const float *x;
    int64_t ldx, rows;
    const rrl_weight *w;
    int64_t first, count;
    bool turned, accumulate;
    const float *bias; /* NULL = 0 */
} rrl_cuda_gemm;

/** n <= RRL_MOST_PRODUCTS products of one x; all but y, ldy, w, first, count and bias is the same in each, and all are
 *  forward where n > 1. By cuBLASLt or, under RRL_DETERMINISM_EXACT, by the kernel below (products.cu). */
rrl_status rrl_cuda_products(rrl_cuda *c, const rrl_cuda_gemm *p, int n);
/** In the CPU's order of sums, one launch: f32-asc, or bf16-tile on a bf16 device (gemm.cu). */
rrl_status rrl_cuda_gemm_exact(rrl_cuda *c, const rrl_cuda_gemm *p, int n);

#endif
