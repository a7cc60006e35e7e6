/* Products with frozen weights: under `exact` in the CPU's order by our own kernel, else by cuBLASLt, whose bf16
 * operands are rounded here first, in chunks of rows that fit the working room. */
#include "device/cuda/cuda_ops.cuh"

#include "device/cuda/blaslt.h"
#include "device/cuda/gemm.cuh"

/* to [rows, ld] = x [rows, cols] of row stride ldx, rounded; what lies beyond cols is not read */
__global__ void round_rows_kernel(uint16_t *to, const float *x, int64_t ldx, int64_t rows, int64_t cols, int64_t ld) {
    for (int64_t i = rrl_cuda_first(); i < rows * cols; i += rrl_cuda_step())
        to[i / cols * ld + i % cols] = rrl_bf16_of(x[i / cols * ldx + i % cols]);
}

/* One call of cuBLASLt. */
static rrl_status multiply(rrl_cuda *c, const rrl_cuda_gemm *p, const void *x, int64_t ldx, int64_t row0,
                           int64_t rows) {
    const int64_t k = p->w->k;
    const size_t width = c->dtype == RRL_BF16 ? 2 : 4;
    rrl_blaslt_product q = {};
    q.y = p->y + row0 * p->ldy;
    q.x = x;
    q.w = (const char *)p->w->data + (size_t)(p->first * k) * width;
    q.ldy = p->ldy;
    q.ldx = ldx;
    q.ldw = k;
    q.rows = rows;
    q.outputs = p->turned ? k : p->count;
    q.k = p->turned ? p->count : k;
    q.dtype = c->dtype;
    q.turned = p->turned;
    q.accumulate = p->accumulate;
    q.bias = p->bias;
    return rrl_blaslt_multiply(c->blaslt, &q, c->stream);
}

/* By cuBLASLt, from rounded rows. */
static rrl_status multiply_rounded(rrl_cuda *c, const rrl_cuda_gemm *p, int n) {
    const int64_t cols = p->turned ? p->count : p->w->k, ld = rrl_cuda_rounded_ld(cols);
    const bool done = c->rounded.x == p->x && c->rounded.rows == p->rows && c->rounded.cols == cols && p->ldx == cols;
    for (int i = 0; done && i < n; i++) RRL_TRY(multiply(c, &p[i], c->room, ld, 0, p->rows));
    if (done) return RRL_OK;
    const int64_t most = (int64_t)(rrl_cuda_front_bytes(c) / 2) / ld;
    RRL_TRY(rrl_cuda_check(most > 0, "a product's input (beyond the working room)"));
    for (int64_t row = 0; row < p->rows; row += most) {
        const int64_t rows = p->rows - row < most ? p->rows - row : most;
        RRL_TRY(RRL_LAUNCH(c, round_rows_kernel, rrl_cuda_grid(rows * cols), RRL_CUDA_THREADS, 0, (uint16_t *)c->room,
                           p->x + row * p->ldx, p->ldx, rows, cols, ld));
        for (int i = 0; i < n; i++) RRL_TRY(multiply(c, &p[i], c->room, ld, row, rows));
    }
    if (p->rows <= most && p->ldx == cols) c->rounded = rrl_cuda_rounded{p->x, p->rows, cols}; /* another may follow */
    return RRL_OK;
}

rrl_status rrl_cuda_products(rrl_cuda *c, const rrl_cuda_gemm *p, int n) {
    if (p->rows == 0) return RRL_OK;
    if (!c->blaslt) return rrl_cuda_gemm_exact(c, p, n);
    if (c->dtype == RRL_BF16) return multiply_rounded(c, p, n);
    for (int i = 0; i < n; i++) RRL_TRY(multiply(c, &p[i], p->x, p->ldx, 0, p->rows));
    return RRL_OK;
}

rrl_status rrl_cuda_linear(rrl_device *d, rrl_tensor x, const rrl_product *products, int32_t n, const rrl_weight *) {
    rrl_cuda_gemm g[RRL_MOST_PRODUCTS];
    RRL_TRY(rrl_cuda_check(n <= RRL_MOST_PRODUCTS, "linear's list of products"));
    for (int32_t i = 0; i < n; i++) {
        const rrl_product *p = &products[i];
        RRL_TRY(rrl_cuda_check(x.cols == p->w->k && p->y.cols == p->w->n && x.rows == p->y.rows,
                               "linear's input or output"));
        g[i] = rrl_cuda_gemm{p->y.data, p->y.cols, x.data, x.cols, x.rows, p->w, 0, p->w->n, false, false, p->bias};
    }
    return rrl_cuda_products(rrl_cuda_of(d), g, n);
}

rrl_status rrl_cuda_linear_backward(rrl_device *d, rrl_tensor dx, rrl_tensor dy, const rrl_weight *w, bool accumulate) {
    RRL_TRY(rrl_cuda_check(dx.cols == w->k && dy.cols == w->n && dx.rows == dy.rows, "linear_backward's operands"));
    const rrl_cuda_gemm g = {dx.data, dx.cols, dy.data, dy.cols, dx.rows, w, 0, w->n, true, accumulate, NULL};
    return rrl_cuda_products(rrl_cuda_of(d), &g, 1);
}
