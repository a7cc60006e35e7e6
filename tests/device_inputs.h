/* Keyed random inputs for tests of the device; after check.h. */
#ifndef RRL_TESTS_DEVICE_INPUTS_H
#define RRL_TESTS_DEVICE_INPUTS_H

#include <stdint.h>

#include "base/memory.h"
#include "device/device.h"

typedef struct {
    uint64_t state;
} rng;

__attribute__((unused)) static uint64_t next_bits(rng *g) {
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = g->state ^ g->state >> 29;
    return x * 0xbf58476d1ce4e5b9u >> 16;
}

__attribute__((unused)) static int pick(rng *g, int low, int high) {
    return low + (int)(next_bits(g) % (uint64_t)(high - low + 1));
}

__attribute__((unused)) static float unit(rng *g) {
    return (float)(next_bits(g) % 20001) / 10000.0f - 1.0f;
}

/* A size that is often a tail: around multiples of 16 and 32. */
__attribute__((unused)) static int odd_size(rng *g, int most) {
    int n = pick(g, 0, 3) == 0 ? 16 * pick(g, 1, most / 16) + pick(g, -1, 1) : pick(g, 1, most);
    return n < 1 ? 1 : n > most ? most : n;
}

__attribute__((unused)) static float *numbers(rng *g, int64_t n, float scale) {
    float *x = NULL;
    CHECK_OK(rrl_alloc_aligned(&x, (size_t)(n ? n : 1), sizeof *x, "numbers"));
    for (int64_t i = 0; i < n; ++i) x[i] = unit(g) * scale;
    return x;
}

__attribute__((unused)) static rrl_tensor tensor(rng *g, int64_t rows, int64_t cols, float scale) {
    return (rrl_tensor){numbers(g, rows * cols, scale), rows, cols};
}

__attribute__((unused)) static rrl_weight *weight(rrl_device *d, rng *g, int n, int k) {
    float *w = numbers(g, (int64_t)n * k, 0.3f);
    rrl_weight *out = NULL;
    CHECK_OK(d->ops->weight_pack(d, &out, w, RRL_F32, n, k));
    free(w);
    return out;
}

#endif
