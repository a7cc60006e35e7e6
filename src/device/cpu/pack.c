#include "device/cpu/weight.h"

#include <stdlib.h>

#include "base/memory.h"
#include "device/scalar.h"

rrl_status rrl_weight_view_cpu(rrl_weight **out, void *room, int64_t n, int64_t k) {
    rrl_weight *w = NULL;
    if (n < 1 || k < 1)
        return RRL_FAIL(RRL_ERR_RANGE, "a weight of %lld x %lld cannot be packed", (long long)n, (long long)k);
    RRL_TRY(rrl_alloc(&w, 1, sizeof *w, "weight"));
    w->n = n;
    w->k = k;
    w->panels = room;
    *out = w;
    return RRL_OK;
}

typedef struct {
    const rrl_weight *w;
    const void *src;
    rrl_dtype dtype;
} pack_job;

/* unit: panel */
static void pack_panels(const void *job, int64_t begin, int64_t end) {
    const pack_job *j = job;
    const int64_t n = j->w->n, k = j->w->k;
    for (int64_t p = begin; p < end; ++p) {
        float *to = j->w->panels + p * k * RRL_PANEL;
        for (int64_t c = 0; c < RRL_PANEL; ++c) {
            const int64_t row = p * RRL_PANEL + c;
            for (int64_t i = 0; i < k; ++i)
                to[i * RRL_PANEL + c] = row < n ? rrl_weight_element(j->src, j->dtype, row * k + i) : 0.0f;
        }
    }
}

void rrl_weight_fill_cpu(const rrl_weight *w, rrl_pool *pool, const void *src, rrl_dtype dtype) {
    const pack_job job = {w, src, dtype};
    rrl_pool_run(pool, pack_panels, &job, rrl_panels(w->n), 4);
}

void rrl_weight_free_cpu(rrl_weight **w) {
    if (!w || !*w) return;
    free((*w)->owned);
    free(*w);
    *w = NULL;
}

size_t rrl_cpu_weight_bytes(int64_t n, int64_t k) {
    return (size_t)rrl_panels(n) * (size_t)k * RRL_PANEL * sizeof(float);
}
