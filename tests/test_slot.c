/* Training slots: the log-probs are those of token-by-token decoding bit for bit, the gradients are those of
 * finite differences, and neither depends on what shares the slot, on threads or on the instruction set.
 * (Log-probs and gradients against torch: test_model through golden_model.c.) */
#include "check.h"

#include "base/random.h"
#include "model/slot.h"
#include "given_loss.h"
#include "model_runner.h"

#define GOLDEN RRL_SOURCE_DIR "/tests/golden"
enum { GROUP = 3, MOST = 256 };

/* An open model with its golden adapter. */
typedef struct {
    rrl_device *d;
    rrl_model *m;
    rrl_adapter *a;
} fixture;

static int fixture_open(fixture *f, const char *arch, const char *isa, int threads) {
    char path[512];
    *f = (fixture){0};
    if (rrl_cpu_open(&f->d, isa, threads) != RRL_OK) return 0;
    snprintf(path, sizeof path, GOLDEN "/%s/model", arch);
    if (!CHECK_OK(rrl_model_open(&f->m, f->d, path))) return 0;
    snprintf(path, sizeof path, GOLDEN "/%s/adapter", arch);
    return CHECK_OK(rrl_adapter_load(&f->a, f->m, path));
}

static void fixture_close(fixture *f) {
    rrl_adapter_close(&f->a);
    rrl_model_close(&f->m);
    rrl_device_close(&f->d);
}

/* --- a slot of keyed tokens */

typedef struct {
    rrl_slot slot;
    int32_t prompt[MOST], tokens[MOST], n_tokens[GROUP], n;
    uint32_t samples[GROUP];
} example;

static int32_t keyed_token(uint32_t what, uint32_t position) {
    const rrl_rng_key key = {.seed = 5, .purpose = what};
    return (int32_t)(rrl_rng_uniform(&key, position) * 272);
}

static void make_example(example *x, int32_t n_prompt, int32_t n0, int32_t n1, int32_t n2) {
    memset(x, 0, sizeof *x);
    x->n_tokens[0] = n0, x->n_tokens[1] = n1, x->n_tokens[2] = n2;
    x->n = n0 + n1 + n2;
    for (int32_t i = 0; i < n_prompt; i++) x->prompt[i] = keyed_token(1, (uint32_t)i);
    for (int32_t i = 0; i < x->n; i++) x->tokens[i] = keyed_token(2, (uint32_t)i);
    for (uint32_t i = 0; i < GROUP; i++) x->samples[i] = 4 + i;
    x->slot = (rrl_slot){.prompt = x->prompt,
                         .n_prompt = n_prompt,
                         .n_seqs = GROUP,
                         .tokens = x->tokens,
                         .n_tokens = x->n_tokens,
                         .temperature = 0.7f,
                         .iteration = 1,
                         .seed = 42,
                         .step = 3,
                         .question = 0x123456789abcdefULL,
                         .samples = x->samples};
}

/* --- decoding token by token, as a rollout does */

/* Draws a token from the last row of the step's logits: token and log-prob by the sampling op. */
static rrl_status draw(fixture *f, const float *logits, float temperature, uint32_t sample, uint32_t position,
                       int32_t *token, float *logp) {
    rrl_status rc = RRL_OK;
    const int64_t vocab = rrl_model_dims(f->m)->vocab;
    const rrl_sample_row row = {.temperature = temperature,
                                .top_p = 0.9f,
                                .repetition_penalty = 1,
                                .key = {11, 12},
                                .sample = sample,
                                .position = position};
    float *dev = NULL;
    const size_t bytes = (size_t)vocab * sizeof(float);
    RRL_GOTO(f->d->ops->alloc(f->d, (void **)&dev, bytes + 64 + sizeof row, "draw"));
    RRL_GOTO(f->d->ops->upload(f->d, dev, logits, bytes));
    char *rest =
        (char *)dev + (bytes + 63) / 64 * 64; /* the row; token and log-prob overwrite the logits after */
    RRL_GOTO(f->d->ops->upload(f->d, rest, &row, sizeof row));
    int32_t *dev_token = NULL;
    RRL_GOTO(f->d->ops->alloc(f->d, (void **)&dev_token, 64, "draw"));
    rc = f->d->ops->sample(f->d, dev_token, (float *)dev_token + 1, (rrl_tensor){dev, 1, vocab},
                           (const rrl_sample_row *)rest);
    if (rc == RRL_OK) rc = f->d->ops->download(f->d, token, dev_token, sizeof *token);
    if (rc == RRL_OK) rc = f->d->ops->download(f->d, logp, dev_token + 1, sizeof *logp);
    f->d->ops->free(f->d, dev_token);
done:
    if (dev) f->d->ops->free(f->d, dev);
    return rc;
}

/* Fills x->tokens with drawn ones, all completions decoding in one batch; logp as drawn. */
static rrl_status decode(fixture *f, example *x, rrl_adapter *a, float *logp) {
    rrl_status rc = RRL_OK;
    const int32_t vocab = rrl_model_dims(f->m)->vocab;
    runner r = {0};
    float *logits = malloc((size_t)RUNNER_ROWS * (size_t)vocab * sizeof *logits), *last[GROUP];
    int32_t seq[GROUP], count[GROUP], tokens[GROUP * MOST],
        offset[GROUP] = {0, x->n_tokens[0], x->n_tokens[0] + x->n_tokens[1]};
    RRL_GOTO(runner_open(&r, f->m, &a, a ? 1 : 0));
    for (int32_t i = 0; i < GROUP; i++) { /* prompts one after the other: a batch of its own each */
        r.adapter[i] = a ? 0 : -1;
        last[i] = malloc((size_t)vocab * sizeof **last);
        RRL_GOTO(runner_step(&r, logits, &i, &x->slot.n_prompt, 1, x->prompt));
        memcpy(last[i], logits + (int64_t)(x->slot.n_prompt - 1) * vocab, (size_t)vocab * sizeof **last);
    }
    for (int32_t t = 0;; t++) {
        int32_t n = 0;
        for (int32_t i = 0; i < GROUP; i++) {
            if (t >= x->n_tokens[i]) continue;
            int32_t *token = &x->tokens[offset[i] + t];
            RRL_GOTO(draw(f, last[i], x->slot.temperature, x->samples[i], (uint32_t)t, token,
                          &logp[offset[i] + t]));
            if (t + 1 == x->n_tokens[i]) continue;
            seq[n] = i;
            count[n] = 1;
            tokens[n++] = *token;
        }
        if (n == 0) break;
        RRL_GOTO(runner_step(&r, logits, seq, count, n, tokens));
        for (int32_t i = 0; i < n; i++)
            memcpy(last[seq[i]], logits + (int64_t)i * vocab, (size_t)vocab * sizeof **last);
    }
done:
    for (int32_t i = 0; i < GROUP && r.w; i++) free(last[i]);
    free(logits);
    runner_close(&r);
    return rc;
}

/* The promise of the project: what was recorded at sampling is what training computes, bit for bit. */
static void equals_decoding(const char *arch) {
    static const int32_t CASES[][4] = {{1, 4, 1, 40},  {31, 1, 5, 33}, {32, 2, 40, 1},
                                       {33, 40, 1, 2}, {64, 3, 33, 8}, {70, 1, 1, 1}};
    fixture f;
    rrl_slot_engine *e = NULL;
    if (!CHECK(fixture_open(&f, arch, "auto", 2))) return;
    CHECK_OK(rrl_slot_engine_open(&e, f.m, &(rrl_slot_limits){.max_rows = MOST, .max_seqs = GROUP}));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int adapted = 0; adapted < 2; adapted++) {
            example x;
            float drawn[MOST], trained[MOST];
            rrl_adapter *a = adapted ? f.a : NULL;
            make_example(&x, CASES[i][0], CASES[i][1], CASES[i][2], CASES[i][3]);
            if (!CHECK_OK(decode(&f, &x, a, drawn)) ||
                !CHECK_OK(rrl_slot_forward(e, trained, NULL, &x.slot, a)))
                continue;
            if (!CHECK(memcmp(drawn, trained, (size_t)x.n * sizeof *drawn) == 0))
                fprintf(stderr, "  %s, prompt of %d, %s\n", arch, CASES[i][0], adapted ? "adapter" : "base");
        }
    rrl_slot_engine_close(&e);
    fixture_close(&f);
}

/* --- what shares a slot, and dropout keys */

static void independent_of_slot(void) {
    fixture f;
    rrl_slot_engine *e = NULL;
    example x;
    float together[MOST], alone[MOST], other[MOST], entropy[MOST];
    if (!CHECK(fixture_open(&f, "llama", "auto", 1))) return;
    CHECK_OK(rrl_slot_engine_open(&e, f.m, &(rrl_slot_limits){.max_rows = MOST, .max_seqs = GROUP}));
    make_example(&x, 37, 6, 1, 9);
    for (int dropped = 0; dropped < 2; dropped++) {
        x.slot.dropout = dropped ? 0.25f : 0;
        CHECK_OK(rrl_slot_forward(e, together, entropy, &x.slot, f.a));
        const int32_t *token = x.tokens;
        const float *want = together;
        for (int32_t i = 0; i < GROUP; token += x.n_tokens[i], want += x.n_tokens[i], i++) {
            rrl_slot one = x.slot;
            one.n_seqs = 1;
            one.tokens = token;
            one.n_tokens = &x.n_tokens[i];
            one.samples = &x.samples[i];
            CHECK_OK(rrl_slot_forward(e, alone, NULL, &one, f.a));
            CHECK(memcmp(want, alone, (size_t)x.n_tokens[i] * sizeof *want) == 0);
        }
    }
    /* every part of the key makes another mask; the same key the same */
    struct {
        const char *what;
        rrl_slot slot;
        int same;
    } cases[] = {{"again", x.slot, 1},
                 {"iteration", x.slot, 0},
                 {"seed", x.slot, 0},
                 {"high word of the seed", x.slot, 0},
                 {"step", x.slot, 0},
                 {"question", x.slot, 0},
                 {"high word of the question", x.slot, 0},
                 {"no dropout", x.slot, 0}};
    cases[1].slot.iteration++;
    cases[2].slot.seed++;
    cases[3].slot.seed += 1ULL << 32;
    cases[4].slot.step++;
    cases[5].slot.question++;
    cases[6].slot.question += 1ULL << 32;
    cases[7].slot.dropout = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(rrl_slot_forward(e, other, NULL, &cases[i].slot, f.a));
        if (!CHECK_EQ_INT(memcmp(together, other, (size_t)x.n * sizeof *other) == 0, cases[i].same))
            fprintf(stderr, "  %s\n", cases[i].what);
    }
    /* the base has no adapter and so no dropout */
    CHECK_OK(rrl_slot_forward(e, together, NULL, &x.slot, NULL));
    x.slot.dropout = 0;
    CHECK_OK(rrl_slot_forward(e, other, NULL, &x.slot, NULL));
    CHECK(memcmp(together, other, (size_t)x.n * sizeof *other) == 0);
    rrl_slot_engine_close(&e);
    fixture_close(&f);
}

/* --- finite differences */

typedef struct {
    fixture f;
    rrl_slot_engine *e;
    example x;
    float dlogp[MOST];
    double dlogp_squares;
    float *start, *moved, *gradient; /* host [adapter size] */
    float *dev_gradient;
} differences;

/* sum dlogp * logp at start + step * direction. */
static double value_at(differences *t, const rrl_trainable *tensor, const double *direction, double step) {
    float logp[MOST];
    const size_t n = (size_t)rrl_adapter_size(t->f.a);
    memcpy(t->moved, t->start, n * sizeof *t->moved);
    for (int64_t i = 0; i < tensor->rows * tensor->cols; i++)
        t->moved[tensor->offset + i] = (float)(t->start[tensor->offset + i] + step * direction[i]);
    CHECK_OK(t->f.d->ops->upload(t->f.d, rrl_adapter_data(t->f.a), t->moved, n * sizeof *t->moved));
    CHECK_OK(rrl_adapter_refresh(t->f.a));
    CHECK_OK(rrl_slot_forward(t->e, logp, NULL, &t->x.slot, t->f.a));
    double sum = 0;
    for (int32_t i = 0; i < t->x.n; i++) sum += (double)t->dlogp[i] * logp[i];
    return sum;
}

/* Central differences at h and h/2, extrapolated. What the extrapolation changed bounds the truncation error.
 * The rounding error of a log-prob (up to 16, ulp 9.6e-7, the last of a chain of sums) is taken as 3 ulp; the
 * errors of the sum add like a random walk, the difference at h/2 has two of them, is divided by h and weighs
 * 4/3; three standard deviations. h is as small as lets that be 0.2 % of the derivative. */
static void check_direction(differences *t, const rrl_trainable *tensor, const double *direction,
                            const char *what) {
    const double rounding = 3 * (3 * 9.6e-7) * sqrt(2 * t->dlogp_squares) * (4.0 / 3);
    double want = 0;
    for (int64_t i = 0; i < tensor->rows * tensor->cols; i++)
        want += direction[i] * t->gradient[tensor->offset + i];
    const double h = fmin(fmax(rounding / (2e-3 * fabs(want)), 1e-3), 0.1);
    const double at_h = (value_at(t, tensor, direction, h) - value_at(t, tensor, direction, -h)) / (2 * h);
    const double at_half =
        (value_at(t, tensor, direction, h / 2) - value_at(t, tensor, direction, -h / 2)) / h;
    const double tolerance = fabs(at_half - at_h) / 3 + rounding / h;
    if (!CHECK_NEAR((4 * at_half - at_h) / 3, want, tolerance) || !CHECK(tolerance < 0.05 * fabs(want)))
        fprintf(stderr, "  %s, %s: %g, tolerance %g at h %g\n", tensor->name, what, want, tolerance, h);
}

/* Along the gradient of the whole tensor, and its largest element alone. */
static void check_tensor(differences *t, const rrl_trainable *tensor) {
    const int64_t n = tensor->rows * tensor->cols;
    const float *g = t->gradient + tensor->offset;
    double *direction = calloc((size_t)n, sizeof *direction), norm = 0;
    int64_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        norm += (double)g[i] * g[i];
        if (fabsf(g[i]) > fabsf(g[largest])) largest = i;
    }
    for (int64_t i = 0; i < n; i++) direction[i] = g[i] / sqrt(norm);
    check_direction(t, tensor, direction, "along the gradient");
    memset(direction, 0, (size_t)n * sizeof *direction);
    direction[largest] = 1;
    check_direction(t, tensor, direction, "largest element");
    free(direction);
}

static void finite_differences(const char *arch, float dropout) {
    differences t = {0};
    if (!CHECK(fixture_open(&t.f, arch, "auto", 1))) return;
    const size_t n = (size_t)rrl_adapter_size(t.f.a), bytes = n * sizeof(float);
    rrl_device *d = t.f.d;
    t.start = malloc(bytes), t.moved = malloc(bytes), t.gradient = malloc(bytes);
    CHECK_OK(rrl_slot_engine_open(&t.e, t.f.m, &(rrl_slot_limits){.max_rows = MOST, .max_seqs = GROUP}));
    make_example(&t.x, 35, 9, 1, 12);
    t.x.slot.dropout = dropout;
    for (int32_t i = 0; i < t.x.n; i++) {
        t.dlogp[i] = i % 3 == 0 ? -1.5f : 1.0f;
        t.dlogp_squares += (double)t.dlogp[i] * t.dlogp[i];
    }
    CHECK_OK(d->ops->alloc(d, (void **)&t.dev_gradient, bytes, "gradient"));
    CHECK_OK(d->ops->download(d, t.start, rrl_adapter_data(t.f.a), bytes));
    CHECK_OK(given_gradient(t.e, t.dev_gradient, &t.x.slot, t.f.a, t.dlogp));
    CHECK_OK(d->ops->download(d, t.gradient, t.dev_gradient, bytes));
    for (int32_t i = 0; i < rrl_adapter_count(t.f.a); i++) check_tensor(&t, &rrl_adapter_tensors(t.f.a)[i]);
    d->ops->free(d, t.dev_gradient);
    free(t.start), free(t.moved), free(t.gradient);
    rrl_slot_engine_close(&t.e);
    fixture_close(&t.f);
}

/* --- the same bits on every path of this machine */

/* logp [n] and gradient of one slot with dropout; NULL if this machine lacks the instruction set. The caller
 * frees. */
static float *result_on(const char *arch, const char *isa, int threads, size_t *bytes) {
    fixture f;
    example x;
    rrl_slot_engine *e = NULL;
    float *gradient = NULL, *out = NULL, dlogp[MOST];
    if (!fixture_open(&f, arch, isa, threads)) return NULL;
    make_example(&x, 45, 30, 1, 17);
    x.slot.dropout = 0.1f;
    for (int32_t i = 0; i < x.n; i++) dlogp[i] = 0.1f * (float)(i % 5 - 2);
    const size_t n = (size_t)rrl_adapter_size(f.a);
    *bytes = (n + 2 * (size_t)x.n) * sizeof *out;
    out = calloc(1, *bytes);
    CHECK_OK(rrl_slot_engine_open(&e, f.m, &(rrl_slot_limits){.max_rows = MOST, .max_seqs = GROUP}));
    CHECK_OK(f.d->ops->alloc(f.d, (void **)&gradient, n * sizeof *gradient, "gradient"));
    CHECK_OK(rrl_slot_forward(e, out, out + x.n, &x.slot, f.a));
    CHECK_OK(given_gradient(e, gradient, &x.slot, f.a, dlogp));
    CHECK_OK(f.d->ops->download(f.d, out + 2 * x.n, gradient, n * sizeof *gradient));
    f.d->ops->free(f.d, gradient);
    rrl_slot_engine_close(&e);
    fixture_close(&f);
    return out;
}

static void equal_paths(const char *arch) {
    static const char *const ISA[] = {"reference", "portable", "avx2", "avx512"};
    size_t bytes = 0, other_bytes = 0;
    float *want = result_on(arch, "reference", 1, &bytes);
    if (!CHECK(want != NULL)) return;
    for (size_t i = 0; i < sizeof ISA / sizeof *ISA; i++)
        for (int threads = 1; threads <= 2; threads++) {
            float *got = result_on(arch, ISA[i], threads, &other_bytes);
            if (got && !CHECK(memcmp(want, got, bytes) == 0))
                fprintf(stderr, "  %s, %d threads\n", ISA[i], threads);
            if (!got) fprintf(stderr, "  this machine or build lacks %s\n", ISA[i]);
            free(got);
        }
    free(want);
}

/* --- what is kept and how much is made at a time: other memory, the same bits */

static rrl_status open_bf16(fixture *f, const char *arch) {
    char path[512];
    *f = (fixture){0};
    RRL_TRY(rrl_cpu_open_dtype(&f->d, RRL_BF16, "auto", 2));
    snprintf(path, sizeof path, GOLDEN "/%s/model", arch);
    RRL_TRY(rrl_model_open(&f->m, f->d, path));
    snprintf(path, sizeof path, GOLDEN "/%s/adapter", arch);
    return rrl_adapter_load(&f->a, f->m, path);
}

/* What a loss was shown, in one array: log-probs [n], entropies [n]. */
typedef struct {
    float *seen;
    int32_t n;
    int64_t next;
} witness;

static void keep_what_is_seen(void *context, float *dlogp, const float *logp, const float *entropy, int64_t first,
                              int64_t n) {
    witness *w = context;
    CHECK_EQ_INT(first, w->next);
    w->next += n;
    memcpy(w->seen + first, logp, (size_t)n * sizeof *logp);
    memcpy(w->seen + w->n + first, entropy, (size_t)n * sizeof *entropy);
    for (int64_t i = 0; i < n; i++) dlogp[i] = 0.1f * (float)((first + i) % 5 - 2);
}

/* logp, entropy, and a gradient made twice, into host memory [2 n + adapter]; the loss sees what a forward gives. */
static void run_with(float *out, fixture *f, const example *x, const rrl_slot_limits *most, int32_t near_rows) {
    const rrl_device_ops *own = f->d->ops;
    rrl_device_ops ops = *own;
    rrl_slot_engine *e = NULL;
    float seen[2 * MOST], *gradient = NULL;
    const size_t n = (size_t)rrl_adapter_size(f->a);
    ops.near_rows = near_rows;
    f->d->ops = &ops;
    CHECK_OK(rrl_slot_engine_open(&e, f->m, most));
    CHECK_OK(f->d->ops->alloc(f->d, (void **)&gradient, n * sizeof *gradient, "gradient"));
    CHECK_OK(rrl_slot_forward(e, out, out + x->n, &x->slot, f->a));
    for (int i = 0; i < 2; i++) {
        witness w = {seen, x->n, 0};
        CHECK_OK(rrl_slot_gradient(e, gradient, &x->slot, f->a, &(rrl_slot_loss){keep_what_is_seen, &w}));
        CHECK_EQ_INT(w.next, x->n);
        CHECK(memcmp(seen, out, 2 * (size_t)x->n * sizeof *seen) == 0);
    }
    CHECK_OK(f->d->ops->download(f->d, out + 2 * x->n, gradient, n * sizeof *gradient));
    f->d->ops->free(f->d, gradient);
    rrl_slot_engine_close(&e);
    f->d->ops = own;
}

static void kept_or_not(fixture *f, float dropout) {
    static const rrl_slot_limits CASES[] = {{MOST, GROUP, 0, 7}, {MOST, GROUP, 0, 64}, {MOST, GROUP, 1, 0},
                                            {MOST, GROUP, 9, 0}, {MOST, GROUP, 9, 32}, {MOST, GROUP, 1, 1}};
    const rrl_slot_limits whole = {.max_rows = MOST, .max_seqs = GROUP};
    const size_t n = 2 * MOST + (size_t)rrl_adapter_size(f->a);
    float *want = calloc(n, sizeof *want), *got = calloc(n, sizeof *got);
    example x;
    make_example(&x, 45, 30, 1, 17);
    x.slot.dropout = dropout;
    run_with(want, f, &x, &whole, 0);
    CHECK(want[2 * x.n] != 0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const int32_t near_rows = (int32_t[]){0, 5, 40}[i % 3];
        memset(got, 0, n * sizeof *got);
        run_with(got, f, &x, &CASES[i], near_rows);
        if (!CHECK(memcmp(want, got, n * sizeof *got) == 0))
            fprintf(stderr, "  %d layers again, blocks of %d, %d rows near, dropout %g\n", CASES[i].again,
                    CASES[i].block_rows, near_rows, (double)dropout);
    }
    free(want), free(got);
}

static void less_memory(const char *arch, const char *isa) {
    fixture f;
    if (!CHECK(isa ? fixture_open(&f, arch, isa, 1) : open_bf16(&f, arch) == RRL_OK)) return;
    for (int dropped = 0; dropped < 2; dropped++) kept_or_not(&f, dropped ? 0.25f : 0);
    fixture_close(&f);
}

/* --- use of the engine */

static void ranks_and_accumulation(void) {
    fixture f;
    rrl_slot_engine *e = NULL;
    rrl_adapter *wide = NULL;
    example x;
    float logp[MOST], again[MOST], dlogp[MOST], *gradient = NULL;
    if (!CHECK(fixture_open(&f, "llama", "auto", 1))) return;
    CHECK_OK(rrl_adapter_open(&wide, f.m, &(rrl_adapter_spec){.r = 20, .alpha = 20}, 3));
    CHECK_OK(rrl_slot_engine_open(&e, f.m, &(rrl_slot_limits){.max_rows = MOST, .max_seqs = GROUP}));
    make_example(&x, 5, 3, 2, 4);
    for (int32_t i = 0; i < x.n; i++) dlogp[i] = 1;
    CHECK_OK(rrl_slot_forward(e, logp, NULL, &x.slot, f.a));
    CHECK_OK(rrl_slot_forward(e, again, NULL, &x.slot, wide)); /* more room for us */
    CHECK_OK(rrl_slot_forward(e, again, NULL, &x.slot, f.a));
    CHECK(memcmp(logp, again, (size_t)x.n * sizeof *logp) == 0);
    const size_t n = (size_t)rrl_adapter_size(f.a);
    float *once = malloc(n * sizeof *once), *twice = malloc(n * sizeof *twice);
    CHECK_OK(f.d->ops->alloc(f.d, (void **)&gradient, n * sizeof *gradient, "gradient"));
    CHECK_OK(given_gradient(e, gradient, &x.slot, f.a, dlogp));
    CHECK_OK(f.d->ops->download(f.d, once, gradient, n * sizeof *once));
    CHECK_OK(given_gradient(e, gradient, &x.slot, f.a, dlogp)); /* a second one adds */
    CHECK_OK(f.d->ops->download(f.d, twice, gradient, n * sizeof *twice));
    int bad = 0, nonzero = 0;
    for (size_t i = 0; i < n; i++) {
        bad += !(fabsf(twice[i] - 2 * once[i]) <= 1e-5f + 1e-4f * fabsf(once[i]));
        nonzero += once[i] != 0;
    }
    CHECK_EQ_INT(bad, 0);
    CHECK(nonzero > (int)n / 2);
    CHECK_STATUS(given_gradient(e, gradient, &x.slot, NULL, dlogp), RRL_ERR_INTERNAL); /* the base: nothing to train */
    f.d->ops->free(f.d, gradient);
    free(once), free(twice);
    rrl_adapter_close(&wide);
    rrl_slot_engine_close(&e);
    fixture_close(&f);
}

static void refusals(void) {
    fixture f;
    rrl_slot_engine *e = NULL;
    example x;
    float logp[MOST];
    if (!CHECK(fixture_open(&f, "llama", "auto", 1))) return;
    CHECK_OK(rrl_slot_engine_open(&e, f.m, &(rrl_slot_limits){.max_rows = 20, .max_seqs = 2}));
    make_example(&x, 5, 3, 2, 4);
    CHECK_STATUS(rrl_slot_forward(e, logp, NULL, &x.slot, f.a), RRL_ERR_RANGE); /* 3 completions */
    x.slot.n_seqs = 2;
    CHECK_OK(rrl_slot_forward(e, logp, NULL, &x.slot, f.a));
    struct {
        const char *what;
        int32_t *place, value;
    } bad[] = {{"too many rows", &x.slot.n_prompt, 16}, {"no prompt", &x.slot.n_prompt, 0},
               {"no completions", &x.slot.n_seqs, 0},   {"empty completion", &x.n_tokens[1], 0},
               {"token too large", &x.tokens[4], 272},  {"negative token", &x.prompt[0], -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const int32_t kept = *bad[i].place;
        *bad[i].place = bad[i].value;
        if (!CHECK_STATUS(rrl_slot_forward(e, logp, NULL, &x.slot, f.a), RRL_ERR_RANGE))
            fprintf(stderr, "  %s\n", bad[i].what);
        CHECK_STATUS(given_gradient(e, NULL, &x.slot, f.a, logp), RRL_ERR_RANGE);
        *bad[i].place = kept;
    }
    x.slot.temperature = 0;
    CHECK_STATUS(rrl_slot_forward(e, logp, NULL, &x.slot, f.a), RRL_ERR_RANGE);
    x.slot.temperature = 1;
    x.slot.dropout = 1;
    CHECK_STATUS(rrl_slot_forward(e, logp, NULL, &x.slot, f.a), RRL_ERR_RANGE);
    rrl_slot_engine_close(&e);
    CHECK_OK(rrl_slot_engine_open(&e, f.m, &(rrl_slot_limits){.max_rows = 600, .max_seqs = 2}));
    make_example(&x, 5, 3, 252, 1); /* the model has 256 positions */
    x.slot.n_seqs = 2;
    CHECK_STATUS(rrl_slot_forward(e, logp, NULL, &x.slot, f.a), RRL_ERR_RANGE);
    CHECK(strstr(rrl_error_message(), "256") != NULL);
    rrl_slot_engine_close(&e);
    fixture_close(&f);
}

int main(void) {
    equals_decoding("llama");
    equals_decoding("qwen2");
    independent_of_slot();
    finite_differences("llama", 0);
    finite_differences("qwen2", 0);
    finite_differences("llama", 0.25f);
    equal_paths("llama");
    equal_paths("qwen2");
    less_memory("llama", "auto");
    less_memory("qwen2", "reference");
    less_memory("llama", NULL); /* bf16 */
    less_memory("qwen2", NULL);
    ranks_and_accumulation();
    refusals();
    return CHECK_DONE();
}
