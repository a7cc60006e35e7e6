/* Least traffic and arithmetic of the works, from the model's shape. */
#include <string.h>

#include "bench/works.h"
#include "model/model_parts.h"

static double matrix_sum(const rrl_bench *b, double (*of)(int64_t n, int64_t k)) {
    double sum = 0;
    for (int module = 0; module < RRL_MODULES; module++) {
        int64_t n, k;
        rrl_module_shape(&n, &k, b->dims, module);
        sum += of(n, k);
    }
    return sum * b->dims->layers;
}

static double area(int64_t n, int64_t k) { return (double)n * (double)k; }
static double edge(int64_t n, int64_t k) { return (double)(n + k); }
static double head(const rrl_bench *b) { return area(b->dims->vocab, b->dims->hidden); }

double rrl_bench_matrix_bytes(const rrl_bench *b, double elements) {
    return elements * (strncmp(rrl_device_numeric_path(b->device), "bf16", 4) == 0 ? 2 : 4);
}

double rrl_bench_weight_bytes(const rrl_bench *b) { return rrl_bench_matrix_bytes(b, matrix_sum(b, area) + head(b)); }

double rrl_bench_kv_bytes(const rrl_bench *b) {
    return (double)rrl_kv_block_bytes(b->dims, b->device->kv_dtype) / RRL_KV_BLOCK;
}

/* A key costs a product with q and one with p, of all heads and layers. */
static double attention(const rrl_bench *b, double keys) {
    return 4.0 * b->dims->layers * b->dims->heads * b->dims->head_dim * keys;
}

static double lora(const rrl_bench *b, double rows) { return 2.0 * RRL_BENCH_RANK * matrix_sum(b, edge) * rows; }

double rrl_bench_forward_flops(const rrl_bench *b, rrl_bench_rows r, bool adapted) {
    return 2 * matrix_sum(b, area) * r.rows + 2 * head(b) * r.scored + attention(b, r.keys) +
           (adapted ? lora(b, r.rows) : 0);
}

double rrl_bench_backward_flops(const rrl_bench *b, rrl_bench_rows r) {
    return 2 * matrix_sum(b, area) * r.rows + 2 * head(b) * r.scored + 2 * attention(b, r.keys) + 2 * lora(b, r.rows);
}

rrl_bench_rows rrl_bench_completion_rows(int32_t n, int32_t prompt, int32_t tokens) {
    const double fed = tokens - 1, all = n;
    return (rrl_bench_rows){.rows = all * fed, .keys = all * fed * (prompt + (fed + 1) / 2), .scored = all * fed};
}

rrl_bench_rows rrl_bench_prompt_rows(int32_t n, int32_t prompt) {
    const double all = n, rows = prompt;
    return (rrl_bench_rows){.rows = all * rows, .keys = all * rows * (rows + 1) / 2, .scored = all};
}

rrl_bench_need rrl_bench_prefill_need(const rrl_bench *b, int32_t n, int32_t prompt, bool adapted) {
    return (rrl_bench_need){.bytes = rrl_bench_weight_bytes(b),
                            .flops = rrl_bench_forward_flops(b, rrl_bench_prompt_rows(n, prompt), adapted)};
}

rrl_bench_need rrl_bench_decode_need(const rrl_bench *b, int32_t n, int32_t prompt, int32_t tokens, int32_t shared,
                                     bool adapted) {
    const rrl_bench_rows r = rrl_bench_completion_rows(n, prompt, tokens);
    const double passes = tokens - 1;
    /* each sequence would read its prompt in each pass; of `shared` of them one does */
    const double keys = r.keys - passes * prompt * (n - (double)n / shared);
    return (rrl_bench_need){.bytes = passes * rrl_bench_weight_bytes(b) + keys * rrl_bench_kv_bytes(b),
                            .flops = rrl_bench_forward_flops(b, r, adapted)};
}
