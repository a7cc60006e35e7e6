/* cuBLASLt's place in the tests: plain loops. Sums in double, an order that is nobody else's: what a test compares with
 * them is compared within a tolerance. */
#include <stdlib.h>

#include "device/cuda/blaslt.h"

void emulated_memory_open(bool open); /* emulator.cpp */

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

rrl_status rrl_blaslt_multiply(rrl_blaslt *b, const rrl_blaslt_product *p, cudaStream_t stream) {
    (void)stream;
    emulated_memory_open(true);
    memset(b->room, 0xff, b->room_bytes); /* cuBLASLt may use it */
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
    return RRL_OK;
}
