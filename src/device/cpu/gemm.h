/* The products that several kernels of one instruction set share, and the names of that set's kernels. */
#ifndef RRL_DEVICE_CPU_GEMM_H
#define RRL_DEVICE_CPU_GEMM_H

#include "device/cpu/kernels.h"
#include "device/cpu/vec.h"

/* y [rows, n] (ldy) = or += x [rows, k] (ldx) times the k numbers of each output: w is the packing of [n,k] or, with
 * `turned`, of the transpose [k,n]. */
typedef struct {
    float *y;
    int64_t ldy;
    const float *x;
    int64_t ldx, rows;
    const float *w; /* at its first panel */
    int64_t n, k;
    bool turned;
    const float *bias; /* NULL = 0; [n] */
    bool accumulate;   /* start from y; bias is not used */
} rrl_gemm;

void RRL_KERNEL(gemm)(const rrl_gemm *g, int64_t panel0, int64_t panel1);

/* Rows of outputs that are each a chain over t of numbers times vectors:
 *   out[r][d] = out[r][d] * scale[r], then for t in [begin[r], end[r]) ascending fma(coef[r, t], vec[t][d],
 * out[r][d]) for d in [0, dim). At most RRL_CHAIN_ROWS rows; ranges may differ. scale NULL = none. */
enum { RRL_CHAIN_ROWS = 4 };
typedef struct {
    float *out;
    int64_t ld_out;
    const float *vec;
    int64_t ld_vec;
    const float *coef;
    int64_t coef_row, coef_t; /* strides */
    const float *scale;
    int begin[RRL_CHAIN_ROWS], end[RRL_CHAIN_ROWS];
    int rows;
    int64_t dim;
} rrl_chains;

void RRL_KERNEL(chains)(const rrl_chains *c);

/* keep[i] = 1 / (1 - p) or 0 for elements k + i of a row, i < n; k is a multiple of 4 (rrl_dropout in device.h).
 */
void RRL_KERNEL(dropout_mask)(float *keep, const rrl_lora_args *args, const rrl_batch *b, int64_t row,
                              int64_t k, int64_t n);

/* Log-sum-exp of a row of logits / t, which go to z, in the order of lm_score. */
rrl_lse RRL_KERNEL(scaled_lse)(float *z, const float *logits, int64_t n, float t);

#define X(name, job) void RRL_KERNEL(name)(const job *j, int64_t begin, int64_t end);
RRL_KERNEL_LIST(X)
#undef X

#endif
