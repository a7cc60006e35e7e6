/* GFLOP/s of bf16 products as the engine calls them: f32 in, rounding included, f32 out. Not a test.
 *
 *   bench_gemm [ISA [THREADS [SHAPE]]]     ISA auto, amx, avx512, avx2, f32 (the f32 path); SHAPE K x N by its line
 *
 * warm: the same weights each call; cold: 384 MB of copies in turn, as in a decode step; backward: dx = dy W, warm. With
 * oneDNN found at build time its inner product (bf16 in, weights in its own format, f32 out), warm and cold, runs in turn
 * with ours.
 * One thread: the median of the processor time it took, which other work on the machine moves little. More threads: the best
 * of the wall-clock times, as only a moment without other work says what they can do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/device.h"
#if defined(RRL_BENCH_DNNL)
#include <dnnl.h>
#include <omp.h>
#endif

enum { ROUNDS = 15, MOST_COPIES = 1800 };
static const double SECONDS = 0.008; /* of one measurement */
static const int SHAPES[][2] = {{576, 192}, {576, 576}, {576, 1536}, {1536, 576}, {576, 49152}, {896, 4864}};
static const int ROWS[] = {1, 16, 64, 256, 2048};
enum { N_SHAPES = sizeof SHAPES / sizeof *SHAPES, N_ROWS = sizeof ROWS / sizeof *ROWS };

typedef struct {
    rrl_device *d;
    rrl_weight *w[MOST_COPIES];
    int copies, at;
    rrl_tensor x, y, dx;
    void *peer;
} bench;

static void must(rrl_status rc) {
    if (rc == RRL_OK) return;
    fprintf(stderr, "bench_gemm: %s\n", rrl_error_message());
    exit(1);
}

static void warm(bench *b) {
    must(b->d->ops->linear(b->d, b->x, &(rrl_product){b->y, b->w[0], NULL}, 1, NULL));
}
static void cold(bench *b) {
    const rrl_weight *now = b->w[b->at++ % b->copies], *then = b->w[b->at % b->copies];
    must(b->d->ops->linear(b->d, b->x, &(rrl_product){b->y, now, NULL}, 1, then));
}
static void backward(bench *b) {
    must(b->d->ops->linear_backward(b->d, b->dx, b->y, b->w[0], false));
}

#if defined(RRL_BENCH_DNNL)
typedef struct {
    dnnl_engine_t engine;
    dnnl_primitive_t product;
    dnnl_memory_t x, w, y;
    dnnl_stream_t stream;
    char *weights; /* copies of them, `bytes` each */
    size_t bytes;
    int copies, at;
} peer;

static void peer_open(peer *p, int64_t m, int64_t k, int64_t n, float *y, int copies) {
    dnnl_memory_desc_t xd, wd, yd;
    dnnl_inner_product_desc_t op;
    dnnl_primitive_desc_t pd;
    dnnl_dims_t xs = {m, k}, ws = {n, k}, ys = {m, n};
    void *data = NULL;
    dnnl_engine_create(&p->engine, dnnl_cpu, 0);
    dnnl_memory_desc_init_by_tag(&xd, 2, xs, dnnl_bf16, dnnl_ab);
    dnnl_memory_desc_init_by_tag(&wd, 2, ws, dnnl_bf16, dnnl_format_tag_any);
    dnnl_memory_desc_init_by_tag(&yd, 2, ys, dnnl_f32, dnnl_ab);
    dnnl_inner_product_forward_desc_init(&op, dnnl_forward_inference, &xd, &wd, NULL, &yd);
    dnnl_primitive_desc_create(&pd, &op, NULL, p->engine, NULL);
    const dnnl_memory_desc_t *own = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    p->copies = copies;
    p->at = 0;
    p->bytes = (dnnl_memory_desc_get_size(own) + 63) / 64 * 64;
    p->weights = aligned_alloc(64, (size_t)copies * p->bytes);
    memset(p->weights, 0x3c, (size_t)copies * p->bytes);
    dnnl_memory_create(&p->w, own, p->engine, p->weights);
    dnnl_memory_create(&p->x, &xd, p->engine, DNNL_MEMORY_ALLOCATE);
    dnnl_memory_create(&p->y, &yd, p->engine, y);
    dnnl_memory_get_data_handle(p->x, &data);
    memset(data, 0x3c, (size_t)(m * k) * 2);
    dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
    dnnl_primitive_create(&p->product, pd);
    dnnl_primitive_desc_destroy(pd);
}

static void peer_close(peer *p) {
    dnnl_primitive_destroy(p->product);
    dnnl_memory_destroy(p->w);
    dnnl_memory_destroy(p->x);
    dnnl_memory_destroy(p->y);
    dnnl_stream_destroy(p->stream);
    dnnl_engine_destroy(p->engine);
    free(p->weights);
}

static void peer_run(bench *b) {
    peer *p = b->peer;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->x}, {DNNL_ARG_WEIGHTS, p->w}, {DNNL_ARG_DST, p->y}};
    dnnl_primitive_execute(p->product, p->stream, 3, args);
    dnnl_stream_wait(p->stream);
}

static void peer_cold(bench *b) {
    peer *p = b->peer;
    dnnl_memory_set_data_handle(p->w, p->weights + (size_t)(p->at++ % p->copies) * p->bytes);
    peer_run(b);
}
#endif

static double seconds(int threads) {
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds a call. The threads of what ran before may look for work a while longer: they shall sleep first. */
static double time_of(bench *b, int threads, void (*call)(bench *b)) {
    if (threads > 1) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    double start = seconds(threads), now = start;
    int n = 0;
    for (; n == 0 || now - start < SECONDS; n++, now = seconds(threads)) call(b);
    return (now - start) / n;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void shape(rrl_device *d, int threads, int k, int n) {
    static bench b;
    b = (bench){.d = d};
    float *w = malloc((size_t)n * (size_t)k * sizeof *w);
    for (size_t i = 0; i < (size_t)n * (size_t)k; i++) w[i] = (float)((int)(i * 7919 % 2001) - 1000) * 1e-3f;
    b.copies = (int)(384e6 / (2.0 * n * k)) + 1;
    if (b.copies > MOST_COPIES) b.copies = MOST_COPIES;
    for (int i = 0; i < b.copies; i++) must(d->ops->weight_pack(d, &b.w[i], w, RRL_F32, n, k));
    free(w);
    for (int r = 0; r < N_ROWS; r++) {
        const int m = ROWS[r];
        void (*const calls[])(bench * b) = {warm, cold, backward,
#if defined(RRL_BENCH_DNNL)
                                            peer_run, peer_cold
#endif
        };
        enum { CALLS = sizeof calls / sizeof *calls };
        double t[5][ROUNDS];
        b.x = (rrl_tensor){NULL, m, k};
        b.y = (rrl_tensor){NULL, m, n};
        b.dx = (rrl_tensor){NULL, m, k};
        must(d->ops->alloc(d, (void **)&b.x.data, (size_t)m * (size_t)k * sizeof(float), "x"));
        must(d->ops->alloc(d, (void **)&b.y.data, (size_t)m * (size_t)n * sizeof(float), "y"));
        must(d->ops->alloc(d, (void **)&b.dx.data, (size_t)m * (size_t)k * sizeof(float), "dx"));
        for (int64_t i = 0; i < (int64_t)m * k; i++) b.x.data[i] = (float)((int)(i * 7919 % 2001) - 1000) * 1e-3f;
#if defined(RRL_BENCH_DNNL)
        peer p;
        omp_set_num_threads(threads);
        peer_open(&p, m, k, n, b.y.data, b.copies);
        b.peer = &p;
#endif
        for (int round = 0; round < ROUNDS; round++)
            for (int c = 0; c < CALLS; c++) t[c][round] = time_of(&b, threads, calls[c]);
        const double flop = 2.0 * m * k * n * 1e-9;
        const int take = threads == 1 ? ROUNDS / 2 : 0;
        printf("%d thr  %4d x %5d  M %4d ", threads, k, n, m);
        for (int c = 0; c < CALLS; c++) {
            static const char *const NAMES[] = {"warm", "cold", "backward", "oneDNN", "oneDNNcold"};
            qsort(t[c], ROUNDS, sizeof t[c][0], ascending);
            printf("  %s %7.1f", NAMES[c], flop / t[c][take]);
        }
        if (CALLS == 5) printf("  ratio %.2f %.2f", t[3][take] / t[0][take], t[4][take] / t[1][take]);
        printf("\n");
        fflush(stdout);
#if defined(RRL_BENCH_DNNL)
        peer_close(&p);
#endif
        d->ops->free(d, b.x.data);
        d->ops->free(d, b.y.data);
        d->ops->free(d, b.dx.data);
    }
    for (int i = 0; i < b.copies; i++) d->ops->weight_free(d, &b.w[i]);
}

int main(int argc, char **argv) {
    const char *isa = argc > 1 ? argv[1] : "auto";
    const int threads = argc > 2 ? atoi(argv[2]) : 1, only = argc > 3 ? atoi(argv[3]) : -1;
    const bool f32 = strcmp(isa, "f32") == 0;
    rrl_device *d = NULL;
    must(rrl_cpu_open_dtype(&d, f32 ? RRL_F32 : RRL_BF16, f32 ? "auto" : isa, threads));
    printf("%s on %s, %s of %d, GFLOP/s\n", rrl_device_numeric_path(d), rrl_device_isa(d), threads == 1 ? "median" : "best",
           ROUNDS);
    for (int i = 0; i < N_SHAPES; i++)
        if (only < 0 || only == i) shape(d, threads, SHAPES[i][0], SHAPES[i][1]);
    rrl_device_close(&d);
    return 0;
}
