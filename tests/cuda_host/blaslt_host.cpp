/* cuBLASLt's place in the tests: plain loops. Sums in double, an order that is nobody else's: what a test compares with
 * them is compared within a tolerance. */
#include <stdlib.h>

#include "device/cuda/blaslt.h"
#include "stream.h"

struct rrl_blaslt {
    char *room;
    size_t room_bytes;
};

rrl_status rrl_blaslt_open(rrl_blaslt **out, void *room, size_t room_bytes, bool any) {
    (void)any;
    *out = (rrl_blaslt *)malloc(sizeof **out);
    **out = {(char *)room, room_bytes};
    return RRL_OK;
}

void rrl_blaslt_close(rrl_blaslt **b) {
    free(*b);
    *b = NULL;
}

static double at(const void *p, rrl_dtype dtype, int64_t i) {
    return dtype == RRL_BF16 ? rrl_bf16_value(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static void multiply(const rrl_blaslt *b, const rrl_blaslt_product *p) {
    emulated_product();
    emulated_memory_open(true);
    const size_t used = b->room_bytes < 4096 ? b->room_bytes : 4096;
    memset(b->room, 0xff, used); /* cuBLASLt may use it, in all its length */
    memset(b->room + b->room_bytes - used, 0xff, used);
    for (int64_t i = 0; i < p->rows; ++i)
        for (int64_t j = 0; j < p->outputs; ++j) {
            float *y = &p->y[i * p->ldy + j];
            double sum = p->accumulate ? *y : p->bias ? p->bias[j] : 0.0;
            for (int64_t k = 0; k < p->k; ++k)
                sum += at(p->x, p->dtype, i * p->ldx + k) *
                       at(p->w, p->dtype, p->turned ? k * p->ldw + j : j * p->ldw + k);
            *y = (float)sum;
        }
    emulated_memory_open(false);
}

rrl_status rrl_blaslt_multiply(rrl_blaslt *b, const rrl_blaslt_product *p, cudaStream_t) {
    emulated_submit([b, product = *p]() { multiply(b, &product); });
    return RRL_OK;
}
