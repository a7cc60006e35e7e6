/* Products of packed weights, by the shapes of the model's matrices, float32 in and out: the same weights each call.
 * For cold weights and oneDNN beside it there is tests/bench_gemm. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/works.h"
#include "model/model_parts.h"

typedef struct {
    rrl_bench_measure m;
    rrl_device *device;
    rrl_weight *weight;
    rrl_tensor x, y;
    int times; /* products of a round */
} product;

static rrl_status multiply(void *context) {
    const product *p = context;
    for (int i = 0; i < p->times; i++)
        RRL_TRY(p->device->ops->linear(p->device, p->x, &(rrl_product){p->y, p->weight, NULL}, 1, NULL));
    return p->device->ops->sync(p->device);
}

/* y [m,n] = x [m,k] W^T. */
static rrl_status measure_rows(product *p, rrl_bench *b, const char *name, int64_t m, int64_t k, int64_t n) {
    static const double FLOPS = 2e9, QUICK_FLOPS = 1e6; /* of a round */
    rrl_status rc = RRL_OK;
    char text[RRL_BENCH_NAME];
    const double flops = 2.0 * (double)m * (double)k * (double)n;
    p->x = (rrl_tensor){NULL, m, k};
    p->y = (rrl_tensor){NULL, m, n};
    RRL_GOTO(b->device->ops->alloc(b->device, (void **)&p->x.data, (size_t)(m * k) * sizeof(float), "x"));
    RRL_GOTO(b->device->ops->alloc(b->device, (void **)&p->y.data, (size_t)(m * n) * sizeof(float), "y"));
    for (int64_t i = 0; i < m * k; i++) p->x.data[i] = (float)(i * 7919 % 2001 - 1000) * 1e-3f;
    p->times = (int)((b->spec->quick ? QUICK_FLOPS : FLOPS) / flops) + 1;
    snprintf(text, sizeof text, "%s-%lldx%lld-%lld", name, (long long)k, (long long)n, (long long)m);
    p->m = (rrl_bench_measure){.name = text, .unit = "GFLOP/s", .amount = 1e-9 * flops * p->times, .n_cases = 1,
                               .against = RRL_BENCH_NO_CASE, .n_needs = 1, .context = p};
    p->m.cases[0] = (rrl_bench_case){"product", multiply, 1};
    p->m.pass_bytes = rrl_bench_matrix_bytes(b, (double)k * (double)n);
    p->m.need[0] = (rrl_bench_need){p->times * p->m.pass_bytes, p->times * flops};
    RRL_GOTO(rrl_bench_add(b, &p->m));
done:
    if (p->x.data) b->device->ops->free(b->device, p->x.data);
    if (p->y.data) b->device->ops->free(b->device, p->y.data);
    return rc;
}

static rrl_status measure_shape(rrl_bench *b, const char *name, int64_t k, int64_t n) {
    static const int64_t ROWS[] = {1, 16, 64, 256};
    rrl_status rc = RRL_OK;
    product p = {.device = b->device};
    float *w = NULL;
    RRL_GOTO(rrl_alloc(&w, (size_t)(n * k), sizeof *w, "weights"));
    for (int64_t i = 0; i < n * k; i++) w[i] = (float)(i * 7919 % 2001 - 1000) * 1e-3f;
    RRL_GOTO(b->device->ops->weight_pack(b->device, &p.weight, w, RRL_F32, n, k));
    free(w);
    w = NULL;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) RRL_GOTO(measure_rows(&p, b, name, ROWS[i], k, n));
done:
    free(w);
    if (p.weight) b->device->ops->weight_free(b->device, &p.weight);
    return rc;
}

rrl_status rrl_bench_gemm(rrl_bench *b, const char *name, int32_t size) {
    int64_t n[RRL_MODULES + 1], k[RRL_MODULES + 1];
    for (int i = 0; i < RRL_MODULES; i++) rrl_module_shape(&n[i], &k[i], b->dims, i);
    n[RRL_MODULES] = b->dims->vocab;
    k[RRL_MODULES] = b->dims->hidden;
    for (int i = 0; i <= RRL_MODULES; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++) seen = seen || (n[j] == n[i] && k[j] == k[i]);
        if (!seen) RRL_TRY(measure_shape(b, name, k[i], n[i]));
    }
    return RRL_OK;
}
