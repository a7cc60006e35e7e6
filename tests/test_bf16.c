/* bf16 products: every path of this machine gives the bits of plain loops written here, for any shape, batch, place in
 * the batch and number of threads; they lie where bf16 lets them, and leave the thread's arithmetic as it was. */
#include <float.h>

#include "base/random.h"
#include "check.h"
#include "device/cpu/cpu.h"

static const char *const ISAS[] = {"reference", "portable", "avx2", "avx512", "amx"};
enum { N_ISAS = sizeof ISAS / sizeof ISAS[0], MOST_ROWS = 200 };

/* --- numbers */

static uint64_t state = 88172645463325252u;

static uint64_t next64(void) { /* xorshift */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* About normal, exponents over a wide range; some rows are so small that products and sums are denormal. */
static float number(int small) {
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += (double)(next64() >> 40) * 0x1p-24 - 0.5;
    return (float)ldexp(sum, (int)(next64() % 13) - 6 - (small ? 66 : 0));
}

static float *numbers(int64_t rows, int64_t cols, int tiny_rows) {
    float *x = aligned_alloc(64, ((size_t)(rows * cols) * sizeof *x + 63) / 64 * 64);
    for (int64_t i = 0; i < rows * cols; i++) x[i] = number(tiny_rows && i / cols % 3 == 1);
    return x;
}

/* --- the plain loops: the order of the tile instruction from numbers as they stand in memory */

static float nearest(float x) { /* by arithmetic, not by bits: 8 digits, ties to even */
    if (fabsf(x) < FLT_MIN) return copysignf(0, x);
    int e = 0;
    double m = frexp((double)x, &e);
    return (float)ldexp(nearbyint(m * 256), e - 8);
}

static float product(const float *x, const float *w, int64_t k, int64_t stride) {
    float acc = 0;
    for (int64_t at = 0; at < k; at += 32) {
        float even = 0, odd = 0;
        for (int64_t i = at; i < at + 32; i += 2) {
            even = fmaf(i < k ? x[i] : 0.0f, i < k ? w[i * stride] : 0.0f, even);
            odd = fmaf(i + 1 < k ? x[i + 1] : 0.0f, i + 1 < k ? w[(i + 1) * stride] : 0.0f, odd);
        }
        acc = acc + (even + odd);
    }
    return acc;
}

/* y [rows,n] = start + x w^T, all of it with denormals as 0. */
static void plain(float *y, const float *x, const float *w, int64_t rows, int64_t n, int64_t k, int64_t row_step,
                  int64_t k_step, const float *bias, int accumulate) {
    unsigned flush = rrl_bf16_flush_begin();
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) {
            float acc = product(x + r * k, w + i * row_step, k, k_step);
            y[r * n + i] = accumulate ? y[r * n + i] + acc : bias ? acc + bias[i] : acc;
        }
    rrl_bf16_flush_end(flush);
}

/* --- devices */

typedef struct {
    rrl_device *d;
    int threads; /* negative: a model of the tile instructions */
} opened;

#if defined(__x86_64__)
extern const rrl_bf16_kernels rrl_bf16_amx_model;
#endif

/* The tile path on a model of its instructions, where the processor has what surrounds them. */
static int model_open(rrl_device **out, int threads) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx512bf16") || rrl_cpu_open_dtype(out, RRL_BF16, "avx512", threads) != RRL_OK) return 0;
    ((rrl_cpu *)(*out)->state)->bf16.engine.kernels = &rrl_bf16_amx_model;
    return 1;
#else
    return 0;
#endif
}

static int devices_open(opened *out) {
    int n = 0;
    for (int i = 0; i < N_ISAS; i++)
        for (int threads = 1; threads <= 2; threads++) {
            out[n].threads = threads;
            if (rrl_cpu_open_dtype(&out[n].d, RRL_BF16, ISAS[i], threads) == RRL_OK) n++;
            else if (threads == 1) printf("not tested here: %s\n", ISAS[i]);
        }
    for (int threads = 1; threads <= 2; threads++)
        if (model_open(&out[n].d, threads)) out[n++].threads = -threads;
    CHECK(n >= 4);
    return n;
}

static int is(const opened *o, const char *isa) {
    return strcmp(rrl_device_isa(o->d), isa) == 0;
}

static int slow(const opened *o) {
    return is(o, "reference") || is(o, "portable") || o->threads < 0;
}

/* Slow paths take few rows of large matrices. */
static int too_slow(const opened *o, int64_t rows, int64_t n, int64_t k) {
    double work = (double)rows * (double)n * (double)k;
    return work > 5e5 && slow(o) && !(rows == 33 && work < 2e7);
}

static void differ(const char *what, const opened *o, int64_t rows, int64_t n, int64_t k, const float *got,
                   const float *want, int64_t total) {
    int64_t at = 0;
    while (at < total && memcmp(&got[at], &want[at], sizeof *got) == 0) at++;
    if (!CHECK(at == total))
        fprintf(stderr, "  %s, %s, %d threads, %lld rows, n %lld, k %lld: at %lld %.9g, expected %.9g\n", what,
                rrl_device_isa(o->d), o->threads, (long long)rows, (long long)n, (long long)k, (long long)at,
                (double)got[at], (double)want[at]);
}

/* --- linear and linear_backward */

typedef struct {
    int64_t n, k;
    float *x, *dy, *w, *bias; /* w rounded, row-major */
    float *x_rounded, *dy_rounded;
    float *y, *dx, *dx_start; /* expected */
} shape;

static float *rounded(const float *x, int64_t n) {
    float *r = malloc((size_t)n * sizeof *r);
    for (int64_t i = 0; i < n; i++) r[i] = nearest(x[i]);
    return r;
}

static void shape_make(shape *s, int64_t n, int64_t k, int64_t rows) {
    *s = (shape){.n = n, .k = k, .x = numbers(rows, k, 1), .dy = numbers(rows, n, 1), .w = numbers(n, k, 1)};
    s->bias = numbers(1, n, 0);
    for (int64_t i = 0; i < n * k; i++) s->w[i] = nearest(s->w[i]);
    s->x_rounded = rounded(s->x, rows * k);
    s->dy_rounded = rounded(s->dy, rows * n);
    s->y = malloc((size_t)(rows * n) * sizeof *s->y);
    s->dx_start = numbers(rows, k, 1);
    s->dx = malloc((size_t)(rows * k) * sizeof *s->dx);
    memcpy(s->dx, s->dx_start, (size_t)(rows * k) * sizeof *s->dx);
    plain(s->y, s->x_rounded, s->w, rows, n, k, k, 1, s->bias, 0);
    plain(s->dx, s->dy_rounded, s->w, rows, k, n, 1, k, NULL, 1);
}

static void shape_free(shape *s) {
    float *all[] = {s->x, s->dy, s->w, s->bias, s->x_rounded, s->dy_rounded, s->y, s->dx, s->dx_start};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* `rows` of the shape's rows, from `first` on, as a batch of their own. */
static void batch(const shape *s, const opened *o, const rrl_weight *w, int64_t first, int64_t rows) {
    const int64_t n = s->n, k = s->k;
    float *y = aligned_alloc(64, (size_t)(rows * n + 16) / 16 * 64), *dx = malloc((size_t)(rows * k) * sizeof *dx);
    memset(y, 0xff, (size_t)(rows * n) * sizeof *y);
    CHECK_OK(o->d->ops->linear(o->d, (rrl_tensor){s->x + first * k, rows, k},
                               &(rrl_product){{y, rows, n}, w, s->bias}, 1, w));
    differ("linear", o, rows, n, k, y, s->y + first * n, rows * n);
    memcpy(dx, s->dx_start + first * k, (size_t)(rows * k) * sizeof *dx);
    CHECK_OK(o->d->ops->linear_backward(o->d, (rrl_tensor){dx, rows, k}, (rrl_tensor){s->dy + first * n, rows, n}, w,
                                        true));
    differ("linear_backward", o, rows, n, k, dx, s->dx + first * k, rows * k);
    free(y), free(dx);
}

static void test_products(const opened *devices, int n_devices) {
    static const int64_t SHAPES[][2] = {{1, 1},     {31, 33},   {33, 31},    {70, 100},   {64, 128},  {562, 128}, {256, 128},
                                        {192, 576}, {576, 576}, {1536, 576}, {576, 1536}, {1000, 896}, {100, 4864}};
    static const int64_t FEW[] = {1, 2, 15, 16, 17, 33, 40, 64, 200};
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        const int64_t n = SHAPES[i][0], k = SHAPES[i][1], most = n * k > 300000 ? 40 : MOST_ROWS;
        shape s;
        state = 88172645463325252u + i;
        shape_make(&s, n, k, most);
        for (int v = 0; v < n_devices; v++) {
            const opened *o = &devices[v];
            rrl_weight *w = NULL;
            CHECK_OK(o->d->ops->weight_pack(o->d, &w, s.w, RRL_F32, n, k));
            for (int64_t m = 1; n * k < 20000 && m <= 40; m += slow(o) ? 5 : 1) batch(&s, o, w, (most - m) / 2, m);
            for (size_t f = 0; f < sizeof FEW / sizeof *FEW; f++)
                if (FEW[f] <= most && !too_slow(o, FEW[f], n, k)) batch(&s, o, w, (most - FEW[f]) / 2, FEW[f]);
            o->d->ops->weight_free(o->d, &w);
        }
        shape_free(&s);
    }
}

/* Results too large for the caches take another way out of the kernel. */
static void test_large(const opened *devices, int n_devices) {
    enum { ROWS = 1040, N = 608, K = 64 };
    float *x = numbers(ROWS, K, 0), *w = numbers(N, K, 0), *want = malloc(sizeof(float) * ROWS * N);
    float *y = aligned_alloc(64, sizeof(float) * ROWS * N), *xr = rounded(x, ROWS * K);
    for (int i = 0; i < N * K; i++) w[i] = nearest(w[i]);
    plain(want, xr, w, ROWS, N, K, K, 1, NULL, 0);
    for (int v = 0; v < n_devices; v++) {
        const opened *o = &devices[v];
        rrl_weight *packed = NULL;
        if (is(o, "reference")) continue;
        CHECK_OK(o->d->ops->weight_pack(o->d, &packed, w, RRL_F32, N, K));
        memset(y, 0xff, sizeof(float) * ROWS * N);
        CHECK_OK(o->d->ops->linear(o->d, (rrl_tensor){x, ROWS, K}, &(rrl_product){{y, ROWS, N}, packed, NULL}, 1, NULL));
        differ("large result", o, ROWS, N, K, y, want, ROWS * N);
        o->d->ops->weight_free(o->d, &packed);
    }
    free(x), free(w), free(want), free(y), free(xr);
}

/* Rounding x and w moves each by at most 2^-9 of itself, their product by 2^-8 + 2^-18; sums of 32 terms and of k / 32
 * steps round by less than (16 + k / 32 + 2) 2^-24 of the sum of sizes. */
static void test_distance(rrl_device *d) {
    enum { ROWS = 20, N = 100, K = 300 };
    float *x = numbers(ROWS, K, 0), *w = numbers(N, K, 0), *y = malloc(sizeof(float) * ROWS * N);
    rrl_weight *packed = NULL;
    double largest = 0;
    CHECK_OK(d->ops->weight_pack(d, &packed, w, RRL_F32, N, K));
    CHECK_OK(d->ops->linear(d, (rrl_tensor){x, ROWS, K}, &(rrl_product){{y, ROWS, N}, packed, NULL}, 1, NULL));
    for (int r = 0; r < ROWS; r++)
        for (int n = 0; n < N; n++) {
            double exact = 0, sizes = 0;
            for (int k = 0; k < K; k++) exact += (double)x[r * K + k] * w[n * K + k];
            for (int k = 0; k < K; k++) sizes += fabs((double)x[r * K + k] * w[n * K + k]);
            double off = fabs((double)y[r * N + n] - exact) / sizes;
            CHECK(off <= 0x1p-8 + 0x1p-18 + (16 + K / 32 + 3) * 0x1p-24);
            if (off > largest) largest = off;
        }
    CHECK(largest > 0x1p-12); /* it is bf16 that was computed */
    d->ops->weight_free(d, &packed);
    free(x), free(w), free(y);
}

/* --- rounding, packing and the rest */

/* Every 6007th f32, those around ties and the ends of the range, through each path's rounding. */
static void test_rounding(void) {
    static const rrl_bf16_kernels *const PATHS[] = {&rrl_bf16_reference, &rrl_bf16_portable,
#if defined(__x86_64__)
                                                    &rrl_bf16_avx2, &rrl_bf16_avx512, &rrl_bf16_amx_model
#endif
    };
    static const uint32_t ENDS[] = {0,          1,          0x007fffff, 0x00800000, 0x00807fff, 0x00808000, 0x00808001,
                                    0x3f808000, 0x3f818000, 0x7f7fffff, 0x7f7f7fff, 0x7f800000, 0x7f800001, 0x7fc00000};
    _Alignas(64) float x[32] = {0};
    _Alignas(64) char tile[RRL_BF16_TILE * 4];
    for (size_t p = 0; p < sizeof PATHS / sizeof *PATHS; p++) {
        rrl_device *d = NULL;
        int bad = 0;
        const bool model = strcmp(PATHS[p]->isa, "amx") == 0; /* its rounding is the real path's */
        if (model ? !model_open(&d, 1) : rrl_cpu_open_dtype(&d, RRL_BF16, PATHS[p]->isa, 1) != RRL_OK) continue;
        rrl_device_close(&d);
        for (uint64_t at = 0; at < 0x100000000u / 6007 + 64; at += 32) {
            for (uint64_t i = 0; i < 32; i++) {
                uint32_t u = at + i < 28 ? ENDS[(at + i) / 2] | (uint32_t)((at + i) % 2) << 31
                                         : (uint32_t)((at + i) * 6007);
                memcpy(&x[i], &u, sizeof u);
            }
            PATHS[p]->round(tile, x, 32, 1, 32);
            for (int i = 0; i < 32; i++) {
                float wide;
                uint16_t narrow;
                memcpy(&wide, tile + 4 * i, sizeof wide);
                memcpy(&narrow, tile + 2 * i, sizeof narrow);
                const float got = PATHS[p]->width == 4 ? wide : rrl_bf16_value(narrow);
                const float want = rrl_bf16_value(rrl_bf16_of(x[i]));
                bad += memcmp(&got, &want, sizeof got) != 0;
                bad += isfinite(x[i]) && want != nearest(x[i]) && fabs((double)x[i]) < 0x1.ffp127;
                bad += isnan(x[i]) && !isnan(want);
            }
        }
        if (!CHECK_EQ_INT(bad, 0)) fprintf(stderr, "  %s\n", PATHS[p]->isa);
    }
}

/* f16 weights become the nearest bf16, bf16 weights stay; embed gives them back. */
static void test_packing(rrl_device *d) {
    enum { N = 50, K = 40 };
    static uint16_t half[N * K], brain[N * K];
    for (int i = 0; i < N * K; i++) half[i] = (uint16_t)(0x3c00 + 7 * i % 1024), brain[i] = (uint16_t)(0x3f80 + i % 97);
    half[3] = 1; /* 2^-24 */
    int32_t token[N];
    float y[N * K];
    for (int i = 0; i < N; i++) token[i] = N - 1 - i;
    const rrl_batch b = {.n_rows = N, .token = token};
    for (int type = 0; type < 2; type++) {
        rrl_weight *w = NULL;
        int bad = 0;
        CHECK_OK(d->ops->weight_pack(d, &w, type ? brain : half, type ? RRL_BF16 : RRL_F16, N, K));
        CHECK_EQ_INT(rrl_weight_rows(w), N);
        CHECK_EQ_INT(rrl_weight_cols(w), K);
        CHECK_OK(d->ops->embed(d, (rrl_tensor){y, N, K}, w, &b));
        for (int i = 0; i < N * K; i++) {
            const int at = token[i / K] * K + i % K;
            const float want = type ? rrl_bf16_value(brain[at])
                                    : nearest(at == 3 ? 0x1p-24f : 1 + (float)(half[at] - 0x3c00) / 1024);
            bad += y[i] != want;
        }
        CHECK_EQ_INT(bad, 0);
        d->ops->weight_free(d, &w);
    }
}

/* --- the head */

enum { SCORED = 70, VOCABULARY = 1100, HIDDEN = 96 };
typedef struct {
    float logp[SCORED], lse[SCORED], entropy[SCORED], dx[SCORED * HIDDEN], logits[SCORED * VOCABULARY];
} scored;

/* `rows` rows from `first` on */
static void score(scored *out, rrl_device *d, float *x, const float *w, int64_t first, int64_t rows, bool keep) {
    enum { WIDE = (VOCABULARY + RRL_VOCAB_BLOCK - 1) / RRL_VOCAB_BLOCK * RRL_VOCAB_BLOCK };
    static float scratch[SCORED * WIDE];
    int32_t target[SCORED];
    float temperature[SCORED], dlogp[SCORED];
    rrl_weight *packed = NULL;
    for (int64_t i = 0; i < rows; i++) {
        target[i] = (int32_t)((first + i) * 37 % VOCABULARY);
        temperature[i] = (first + i) % 3 == 0 ? 0 : 0.7f;
        dlogp[i] = (float)((first + i) % 5 - 2);
    }
    const rrl_tensor xs = {x + first * HIDDEN, rows, HIDDEN}, room = {scratch, rows, keep ? WIDE : RRL_VOCAB_BLOCK};
    CHECK_OK(d->ops->weight_pack(d, &packed, w, RRL_F32, VOCABULARY, HIDDEN));
    CHECK_OK(d->ops->lm_score(d, out->logp, out->lse, out->entropy, xs, packed, target, temperature, room));
    CHECK_OK(d->ops->lm_backward(d, (rrl_tensor){out->dx, rows, HIDDEN}, keep ? (rrl_tensor){0} : xs, packed, target,
                                 temperature, out->lse, dlogp, room));
    CHECK_OK(d->ops->linear(d, xs, &(rrl_product){{out->logits, rows, VOCABULARY}, packed, NULL}, 1, NULL));
    d->ops->weight_free(d, &packed);
}

static void test_head(const opened *devices, int n_devices) {
    static scored want, got;
    state = 99;
    float *x = numbers(SCORED, HIDDEN, 0), *w = numbers(VOCABULARY, HIDDEN, 0);
    for (int i = 0; i < SCORED * HIDDEN; i++) x[i] *= 0.002f;
    score(&want, devices[0].d, x, w, 0, SCORED, false);
    for (int r = 0; r < SCORED; r++) { /* log-probs are those of the logits */
        double sum = 0, t = r % 3 == 0 ? 1 : (double)0.7f;
        for (int v = 0; v < VOCABULARY; v++) sum += exp((double)want.logits[r * VOCABULARY + v] / t);
        CHECK_NEAR(want.logp[r], (double)want.logits[r * VOCABULARY + r * 37 % VOCABULARY] / t - log(sum), 1e-5);
    }
    for (int v = 0; v < 2 * n_devices; v++)
        for (int64_t rows = SCORED; rows >= 1; rows = rows == SCORED ? 33 : rows == 33 ? 5 : 0) {
            const int64_t first = (SCORED - rows) / 2;
            score(&got, devices[v / 2].d, x, w, first, rows, v % 2);
            differ("logp", &devices[v / 2], rows, VOCABULARY, HIDDEN, got.logp, want.logp + first, rows);
            differ("lse", &devices[v / 2], rows, VOCABULARY, HIDDEN, got.lse, want.lse + first, rows);
            differ("entropy", &devices[v / 2], rows, VOCABULARY, HIDDEN, got.entropy, want.entropy + first, rows);
            differ(v % 2 ? "lm_backward of kept logits" : "lm_backward", &devices[v / 2], rows, VOCABULARY, HIDDEN,
                   got.dx, want.dx + first * HIDDEN, rows * HIDDEN);
        }
    free(x), free(w);
}

/* --- use */

/* After a product the caller's denormals are there again. */
static void test_arithmetic_restored(const opened *o) {
    float x[32] = {1}, w[32] = {1}, y[1];
    volatile float tiny = FLT_MIN;
    rrl_weight *packed = NULL;
    CHECK_OK(o->d->ops->weight_pack(o->d, &packed, w, RRL_F32, 1, 32));
    CHECK_OK(o->d->ops->linear(o->d, (rrl_tensor){x, 1, 32}, &(rrl_product){{y, 1, 1}, packed, NULL}, 1, NULL));
    CHECK(tiny / 2 != 0);
    o->d->ops->weight_free(o->d, &packed);
}

static void test_opening(void) {
    rrl_device *d = NULL;
    CHECK_STATUS(rrl_cpu_open_dtype(&d, RRL_BF16, "sse9", 1), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "portable") != NULL);
    CHECK_STATUS(rrl_cpu_open(&d, "amx", 1), RRL_ERR_CONFIG);
    CHECK(strstr(rrl_error_message(), "bfloat16 only") != NULL);
    CHECK_OK(rrl_cpu_open_dtype(&d, RRL_BF16, "auto", 1));
    CHECK_EQ_STR(rrl_device_numeric_path(d), "bf16-tile");
    CHECK(strcmp(rrl_device_isa(d), "reference") != 0);
    rrl_device_close(&d);
    CHECK_OK(rrl_cpu_open(&d, "auto", 1));
    CHECK_EQ_STR(rrl_device_numeric_path(d), "f32-asc");
    rrl_device_close(&d);
}

int main(void) {
    opened devices[2 * N_ISAS + 2];
    const int n = devices_open(devices);
    test_opening();
    test_rounding();
    for (int i = 0; i < n; i++) test_arithmetic_restored(&devices[i]);
    test_packing(devices[n - 1].d);
    test_distance(devices[n - 1].d);
    test_products(devices, n);
    test_large(devices, n);
    test_head(devices, n);
    for (int i = 0; i < n; i++) rrl_device_close(&devices[i].d);
    return CHECK_DONE();
}
