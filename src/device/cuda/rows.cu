/* Ops on rows: embedding, norms, rotation, SwiGLU, moving rows. A norm has a block a row, which brings it into shared
 * memory; there half a warp sums it in the order of the reference. */
#include "device/cuda/cuda_ops.cuh"

/* --- embedding */

template <typename W>
__global__ void embed_kernel(float *y, const W *w, const int32_t *token, int64_t rows, int64_t cols) {
    for (int64_t i = rrl_cuda_first(); i < rows * cols; i += rrl_cuda_step()) {
        const W x = w[(int64_t)token[i / cols] * cols + i % cols];
        if constexpr (sizeof(W) == 2)
            y[i] = rrl_bf16_value(x);
        else
            y[i] = x;
    }
}

rrl_status rrl_cuda_embed(rrl_device *d, rrl_tensor y, const rrl_weight *w, const rrl_batch *b) {
    rrl_cuda *c = rrl_cuda_of(d);
    const dim3 grid = rrl_cuda_grid(y.rows * y.cols);
    RRL_TRY(rrl_cuda_check(y.cols == w->k && y.rows == b->n_rows, "embed's output"));
    if (c->dtype == RRL_BF16)
        return RRL_LAUNCH(c, embed_kernel<uint16_t>, grid, RRL_CUDA_THREADS, 0, y.data, (const uint16_t *)w->data,
                          b->token, y.rows, y.cols);
    return RRL_LAUNCH(c, embed_kernel<float>, grid, RRL_CUDA_THREADS, 0, y.data, (const float *)w->data, b->token,
                      y.rows, y.cols);
}

/* --- norms */

/* By half a warp, lane l of 16 sums elements l, l + 16, ... */
__device__ static float rms_factor(const float *x, int64_t n, float eps) {
    float sum = 0.0f;
#pragma unroll 8
    for (int64_t c = threadIdx.x % RRL_LANES; c < n; c += RRL_LANES) sum = fmaf(x[c], x[c], sum);
    return 1.0f / sqrtf(rrl_tree16(sum) / (float)n + eps);
}

/* A block a row; shared: the row, and its factor. r NULL: nothing is added first. */
__global__ void rms_norm_kernel(rrl_tensor y, rrl_tensor x, const float *r, const float *w, float eps,
                                rrl_cuda_beside beside) {
    RRL_CUDA_SHARED(raw);
    float *in = (float *)raw, *found = in + x.cols;
    const int64_t row = blockIdx.x, at = row * x.cols;
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) {
        in[c] = r ? x.data[at + c] + r[at + c] : x.data[at + c];
        if (r) x.data[at + c] = in[c];
    }
    __syncthreads();
    if (threadIdx.x < RRL_WARP) { /* both halves alike */
        const float factor = rms_factor(in, x.cols, eps);
        if (threadIdx.x == 0) *found = factor;
    }
    __syncthreads();
    const float factor = *found;
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) {
        const float out = (in[c] * factor) * w[c];
        y.data[at + c] = out;
        rrl_put_beside(&beside, row, c, out);
    }
}

/* Of a norm's block: whole warps, no more than the row needs. */
static unsigned row_threads(int64_t cols) {
    return cols < RRL_CUDA_THREADS ? (unsigned)rrl_blocks(cols, RRL_WARP) * RRL_WARP : RRL_CUDA_THREADS;
}

static rrl_status norm(rrl_cuda *c, rrl_tensor y, rrl_tensor x, const float *r, const float *w, float eps) {
    const rrl_cuda_beside beside = rrl_cuda_beside_of(c, y);
    RRL_TRY(rrl_cuda_check(rrl_same_shape(x, y), "rms_norm's output"));
    RRL_TRY(RRL_LAUNCH(c, rms_norm_kernel, dim3((unsigned)x.rows), row_threads(x.cols),
                       (size_t)(x.cols + 1) * sizeof(float), y, x, r, w, eps, beside));
    rrl_cuda_was_rounded(c, beside, y);
    return RRL_OK;
}

rrl_status rrl_cuda_rms_norm(rrl_device *d, rrl_tensor y, rrl_tensor x, const float *w, float eps) {
    return norm(rrl_cuda_of(d), y, x, NULL, w, eps);
}

rrl_status rrl_cuda_add_rms_norm(rrl_device *d, rrl_tensor y, rrl_tensor x, rrl_tensor r, const float *w, float eps) {
    RRL_TRY(rrl_cuda_check(rrl_same_shape(x, r), "add_rms_norm's operands"));
    return norm(rrl_cuda_of(d), y, x, r.data, w, eps);
}

/* A block a row; shared: the row, its gradient times w, and what is found of them. */
__global__ void rms_norm_backward_kernel(rrl_tensor dx, rrl_tensor dy, rrl_tensor x, const float *w, float eps,
                                         bool accumulate) {
    RRL_CUDA_SHARED(raw);
    float *in = (float *)raw, *grad = in + x.cols, *found = grad + x.cols;
    const int64_t at = blockIdx.x * x.cols;
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) {
        in[c] = x.data[at + c];
        grad[c] = dy.data[at + c] * w[c];
    }
    __syncthreads();
    if (threadIdx.x < RRL_WARP) { /* both halves alike */
        const float r = rms_factor(in, x.cols, eps);
        float sum = 0.0f;
#pragma unroll 8
        for (int64_t c = threadIdx.x % RRL_LANES; c < x.cols; c += RRL_LANES) sum = fmaf(grad[c], in[c] * r, sum);
        sum = rrl_tree16(sum);
        if (threadIdx.x == 0) {
            found[0] = r;
            found[1] = sum / (float)x.cols;
        }
    }
    __syncthreads();
    const float r = found[0], mean = found[1];
    for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x) {
        const float g = r * fmaf(-(in[c] * r), mean, grad[c]);
        float *to = &dx.data[at + c];
        *to = accumulate ? *to + g : g;
    }
}

rrl_status rrl_cuda_rms_norm_backward(rrl_device *d, rrl_tensor dx, rrl_tensor dy, rrl_tensor x, const float *w,
                                      float eps, bool accumulate) {
    RRL_TRY(rrl_cuda_check(rrl_same_shape(dx, x) && rrl_same_shape(dy, x), "rms_norm_backward's operands"));
    return RRL_LAUNCH(rrl_cuda_of(d), rms_norm_backward_kernel, dim3((unsigned)x.rows), row_threads(x.cols),
                      (size_t)(2 * x.cols + 2) * sizeof(float), dx, dy, x, w, eps, accumulate);
}

/* --- rotation */

/* a thread a pair (i, i + head_dim/2) */
__global__ void rope_kernel(rrl_tensor x, int32_t n_heads, int32_t half, const int32_t *position, const float *cos,
                            const float *sin, bool inverse) {
    const int64_t pairs = (int64_t)n_heads * half;
    for (int64_t i = rrl_cuda_first(); i < x.rows * pairs; i += rrl_cuda_step()) {
        const int64_t row = i / pairs, head = i % pairs / half, at = i % half;
        const int64_t angle = (int64_t)position[row] * half + at;
        float *x0 = x.data + row * x.cols + head * 2 * half + at, *x1 = x0 + half;
        const float c = cos[angle], s = inverse ? -sin[angle] : sin[angle], a = *x0, b = *x1;
        *x0 = fmaf(a, c, -(b * s));
        *x1 = fmaf(b, c, a * s);
    }
}

rrl_status rrl_cuda_rope(rrl_device *d, rrl_tensor x, int32_t n_heads, int32_t head_dim, const rrl_batch *b,
                         const float *cos, const float *sin, bool inverse) {
    RRL_TRY(rrl_cuda_check(x.cols == (int64_t)n_heads * head_dim && head_dim % 2 == 0 && x.rows == b->n_rows,
                           "rope's heads"));
    return RRL_LAUNCH(rrl_cuda_of(d), rope_kernel, rrl_cuda_grid(x.rows * x.cols / 2), RRL_CUDA_THREADS, 0, x, n_heads,
                      head_dim / 2, b->position, cos, sin, inverse);
}

/* --- SwiGLU */

__global__ void swiglu_kernel(rrl_tensor y, const float *gate, const float *up, rrl_cuda_beside beside) {
    for (int64_t i = rrl_cuda_first(); i < y.rows * y.cols; i += rrl_cuda_step()) {
        y.data[i] = gate[i] / (1.0f + rrl_exp_f32(-gate[i])) * up[i];
        rrl_put_beside(&beside, i / y.cols, i % y.cols, y.data[i]);
    }
}

rrl_status rrl_cuda_swiglu(rrl_device *d, rrl_tensor y, rrl_tensor gate, rrl_tensor up) {
    rrl_cuda *c = rrl_cuda_of(d);
    const rrl_cuda_beside beside = rrl_cuda_beside_of(c, y);
    RRL_TRY(rrl_cuda_check(rrl_same_shape(y, gate) && rrl_same_shape(y, up), "swiglu's operands"));
    RRL_TRY(RRL_LAUNCH(c, swiglu_kernel, rrl_cuda_grid(y.rows * y.cols), RRL_CUDA_THREADS, 0, y, gate.data, up.data,
                       beside));
    rrl_cuda_was_rounded(c, beside, y);
    return RRL_OK;
}

__global__ void swiglu_backward_kernel(float *dgate, float *dup, const float *dy, const float *gate, const float *up,
                                       int64_t n) {
    for (int64_t i = rrl_cuda_first(); i < n; i += rrl_cuda_step()) {
        const float g = gate[i], grad = dy[i], u = up[i], sigmoid = 1.0f / (1.0f + rrl_exp_f32(-g));
        dup[i] = grad * (g * sigmoid);
        dgate[i] = (grad * u) * (sigmoid * fmaf(g, 1.0f - sigmoid, 1.0f));
    }
}

rrl_status rrl_cuda_swiglu_backward(rrl_device *d, rrl_tensor dgate, rrl_tensor dup, rrl_tensor dy, rrl_tensor gate,
                                    rrl_tensor up) {
    const int64_t n = gate.rows * gate.cols;
    RRL_TRY(rrl_cuda_check(rrl_same_shape(dgate, gate) && rrl_same_shape(dup, gate) && rrl_same_shape(dy, gate) &&
                               rrl_same_shape(up, gate),
                           "swiglu_backward's operands"));
    return RRL_LAUNCH(rrl_cuda_of(d), swiglu_backward_kernel, rrl_cuda_grid(n), RRL_CUDA_THREADS, 0, dgate.data,
                      dup.data, dy.data, gate.data, up.data, n);
}

/* --- moving rows */

__global__ void gather_kernel(rrl_tensor y, rrl_tensor x, const int32_t *row, rrl_cuda_beside beside) {
    for (int64_t i = rrl_cuda_first(); i < y.rows * y.cols; i += rrl_cuda_step()) {
        y.data[i] = x.data[(int64_t)row[i / y.cols] * x.cols + i % y.cols];
        rrl_put_beside(&beside, i / y.cols, i % y.cols, y.data[i]);
    }
}

rrl_status rrl_cuda_gather(rrl_device *d, rrl_tensor y, rrl_tensor x, const int32_t *row) {
    rrl_cuda *c = rrl_cuda_of(d);
    const rrl_cuda_beside beside = rrl_cuda_beside_of(c, y);
    RRL_TRY(rrl_cuda_check(y.cols == x.cols, "gather's output"));
    RRL_TRY(RRL_LAUNCH(c, gather_kernel, rrl_cuda_grid(y.rows * y.cols), RRL_CUDA_THREADS, 0, y, x, row, beside));
    rrl_cuda_was_rounded(c, beside, y);
    return RRL_OK;
}

/* A block a row of y. Rows that go to one place (a prompt's last row is scored for every completion) are added by the
 * block of the first of them, in ascending order; the others find that one before them and leave. */
__global__ void scatter_add_kernel(rrl_tensor x, rrl_tensor y, const int32_t *row) {
    RRL_CUDA_SHARED(raw);
    int32_t *same = (int32_t *)raw; /* [blockDim.x] does this row of y go to our place? */
    const int64_t me = blockIdx.x, place = row[me];
    bool before = false;
    for (int64_t i = threadIdx.x; i < me; i += blockDim.x) before = before || row[i] == place;
    if (__syncthreads_or(before)) return;
    float *to = x.data + place * x.cols;
    for (int64_t first = me; first < y.rows; first += blockDim.x) {
        const int64_t mine = first + threadIdx.x, n = y.rows - first < blockDim.x ? y.rows - first : blockDim.x;
        same[threadIdx.x] = mine < y.rows && row[mine] == place;
        if (!__syncthreads_or(same[threadIdx.x])) continue;
        for (int64_t c = threadIdx.x; c < x.cols; c += blockDim.x)
            for (int64_t i = 0; i < n; ++i)
                if (same[i]) to[c] += y.data[(first + i) * y.cols + c];
        __syncthreads(); /* before `same` is written again */
    }
}

rrl_status rrl_cuda_scatter_add(rrl_device *d, rrl_tensor x, rrl_tensor y, const int32_t *row) {
    RRL_TRY(rrl_cuda_check(x.cols == y.cols, "scatter_add's operands"));
    return RRL_LAUNCH(rrl_cuda_of(d), scatter_add_kernel, dim3((unsigned)y.rows), RRL_CUDA_THREADS,
                      RRL_CUDA_THREADS * sizeof(int32_t), x, y, row);
}
