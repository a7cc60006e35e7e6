/* The definition of bf16 products: plain loops in the order that bf16.h states. */
#include <math.h>

#include "device/cpu/bf16.h"

/* [rows][steps * 32] */
static void round_rows(void *to, const float *x, int64_t ld, int64_t rows, int64_t k) {
    int64_t padded = (k + RRL_BF16_STEP - 1) / RRL_BF16_STEP * RRL_BF16_STEP;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t at = 0; at < padded; ++at)
            ((float *)to)[r * padded + at] = at < k ? rrl_bf16_value(rrl_bf16_of(x[r * ld + at])) : 0.0f;
}

static float one(const float *x, const uint16_t *w, int64_t steps) {
    float acc = 0.0f;
    for (int64_t s = 0; s < steps; ++s, x += RRL_BF16_STEP, w += 2 * RRL_BF16_TILE) {
        float even = 0.0f, odd = 0.0f;
        for (int j = 0; j < RRL_BF16_STEP / 2; ++j) {
            even = fmaf(x[2 * j], rrl_bf16_value(w[j * 32]), even);
            odd = fmaf(x[2 * j + 1], rrl_bf16_value(w[j * 32 + 1]), odd);
        }
        acc = acc + (even + odd);
    }
    return acc;
}

static void block(float *acc, const void *x, int64_t rows, const uint16_t *w, int64_t steps, const void *next,
                  int lines) {
    for (int64_t r = 0; r < rows; ++r) {
        const float *row = (const float *)x + r * steps * RRL_BF16_STEP;
        for (int n = 0; n < RRL_BF16_BLOCK; ++n)
            acc[r * RRL_BF16_BLOCK + n] = one(row, w + n / 16 * RRL_BF16_TILE + n % 16 * 2, steps);
    }
}

static void put(const rrl_bf16_target *y, const float *acc, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t n = 0; n < cols; ++n) {
            float *to = y->y + r * y->ld + n, a = acc[r * RRL_BF16_BLOCK + n];
            *to = y->accumulate ? *to + a : y->bias ? a + y->bias[n] : a;
        }
}

static void transpose(uint16_t *to, const uint16_t *from) {
    const rrl_bf16_weight a = {.n = 32, .k = 32, .panels = 1, .steps = 1, .t = (uint16_t *)from};
    const rrl_bf16_weight b = {.n = 32, .k = 32, .panels = 1, .steps = 1, .t = to};
    for (int n = 0; n < 32; ++n)
        for (int k = 0; k < 32; ++k) *rrl_bf16_at(&b, k, n) = *rrl_bf16_at(&a, n, k);
}

const rrl_bf16_kernels rrl_bf16_reference = {.isa = "reference",
                                             .width = sizeof(float),
                                             .begin = rrl_bf16_flush_begin,
                                             .end = rrl_bf16_flush_end,
                                             .round = round_rows,
                                             .block = block,
                                             .put = put,
                                             .transpose = transpose};
