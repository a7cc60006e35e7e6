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
static rrl_status multiply(const rrl_cuda *c, const rrl_product *p, const void *x, int64_t ldx, int64_t row0,
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

rrl_status rrl_cuda_product(rrl_cuda *c, const rrl_product *p) {
    if (p->rows == 0) return RRL_OK;
    if (!c->blaslt) return rrl_cuda_gemm_exact(c, p);
    if (c->dtype == RRL_F32) return multiply(c, p, p->x, p->ldx, 0, p->rows);
    const int64_t cols = p->turned ? p->count : p->w->k;
    const int64_t ld = (cols + 7) / 8 * 8; /* 16 bytes: what the fast algorithms ask of a row */
    const int64_t most = (int64_t)(rrl_cuda_front_bytes(c) / 2) / ld;
    RRL_TRY(rrl_cuda_check(most > 0, "a product's input (beyond the working room)"));
    for (int64_t row = 0; row < p->rows; row += most) {
        const int64_t n = p->rows - row < most ? p->rows - row : most;
        RRL_TRY(RRL_LAUNCH(c, round_rows_kernel, rrl_cuda_grid(n * cols), RRL_CUDA_THREADS, 0, (uint16_t *)c->room,
                           p->x + row * p->ldx, p->ldx, n, cols, ld));
        RRL_TRY(multiply(c, p, c->room, ld, row, n));
    }
    return RRL_OK;
}

rrl_status rrl_cuda_linear(rrl_device *d, rrl_tensor y, rrl_tensor x, const rrl_weight *w, const float *bias) {
    RRL_TRY(rrl_cuda_check(x.cols == w->k && y.cols == w->n && x.rows == y.rows, "linear's input or output"));
    const rrl_product p = {y.data, y.cols, x.data, x.cols, x.rows, w, 0, w->n, false, false, bias};
    return rrl_cuda_product(rrl_cuda_of(d), &p);
}

rrl_status rrl_cuda_linear_backward(rrl_device *d, rrl_tensor dx, rrl_tensor dy, const rrl_weight *w, bool accumulate) {
    RRL_TRY(rrl_cuda_check(dx.cols == w->k && dy.cols == w->n && dx.rows == dy.rows, "linear_backward's operands"));
    const rrl_product p = {dx.data, dx.cols, dy.data, dy.cols, dx.rows, w, 0, w->n, true, accumulate, NULL};
    return rrl_cuda_product(rrl_cuda_of(d), &p);
}
