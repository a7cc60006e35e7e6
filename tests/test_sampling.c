/* Sampling: golden probabilities, exact cuts, ties, greedy, repetition penalty, the keyed draw, frequencies.
 */
#include "check.h"

#include <stdint.h>

#include "base/random.h"
#include "device/cpu/cpu.h"
#include "golden_sampling.h"

static const rrl_sample_row PLAIN = {.temperature = 1, .top_p = 1, .repetition_penalty = 1, .key = {3, 4}};

/* Kept masses of one row of at most 64 logits; returns the token. */
static int32_t sample_one(rrl_device *d, uint64_t *kept, float *logp, const float *logits, int n,
                          rrl_sample_row row) {
    uint64_t masses[64];
    float p;
    int32_t token = -1;
    CHECK_OK(rrl_cpu_sample_kept(d, &token, logp ? logp : &p, kept ? kept : masses,
                                 (rrl_tensor){(float *)logits, 1, n}, &row));
    return token;
}

/* Which tokens are kept, as a bit mask */
static unsigned support(rrl_device *d, const float *logits, int n, float top_p, int top_k) {
    uint64_t kept[64];
    rrl_sample_row row = PLAIN;
    row.top_p = top_p;
    row.top_k = top_k;
    sample_one(d, kept, NULL, logits, n, row);
    unsigned mask = 0;
    for (int i = 0; i < n; ++i) mask |= (unsigned)(kept[i] > 0) << i;
    return mask;
}

static void cuts(rrl_device *d) {
    const float even[4] = {1, 1, 1, 1}, far[4] = {-90, 2, -90, 2}, steps[5] = {0, 3, 1, 2, -1};
    static const struct {
        const char *what;
        int which;
        float top_p;
        int top_k;
        unsigned want;
    } CASES[] = {
        {"everything", 0, 1.0f, 0, 0xf},
        {"half of four equal ones: the sum reaches it exactly", 0, 0.5f, 0, 0x3},
        {"a little more than half", 0, 0x1.000002p-1f, 0, 0x7},
        {"a little less than half", 0, 0x1.fffffep-2f, 0, 0x3},
        {"a quarter", 0, 0.25f, 0, 0x1},
        {"almost nothing", 0, 1e-30f, 0, 0x1},
        {"almost all", 0, 0x1.fffffep-1f, 0, 0xf},
        {"top-k takes lower ids of equals", 0, 1.0f, 3, 0x7},
        {"top-k, then top-p of what is left", 0, 0.5f, 2, 0x1},
        {"masses that round to 0 are never kept", 1, 1.0f, 0, 0xa},
        {"top-k beyond the vocabulary", 0, 1.0f, 9, 0xf},
        {"top-k by value", 2, 1.0f, 2, 0xa},
        {"e^3 of e^0..3 and e^-1 is 0.636", 2, 0.63f, 0, 0x2},
        {"so 0.64 needs the next", 2, 0.64f, 0, 0xa},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; ++i) {
        const float *logits = CASES[i].which == 0 ? even : CASES[i].which == 1 ? far : steps;
        int n = CASES[i].which == 2 ? 5 : 4;
        if (!CHECK_EQ_INT(support(d, logits, n, CASES[i].top_p, CASES[i].top_k), CASES[i].want))
            fprintf(stderr, "  %s\n", CASES[i].what);
    }
}

static void greedy_and_penalty(rrl_device *d) {
    const float logits[5] = {1.0f, 4.0f, -2.0f, 4.0f, 3.5f};
    double sum = 0;
    for (int i = 0; i < 5; ++i) sum += exp((double)logits[i]);
    float logp;
    rrl_sample_row row = PLAIN;
    row.temperature = 0;
    CHECK_EQ_INT(sample_one(d, NULL, &logp, logits, 5, row), 1); /* the lower id of two maxima */
    CHECK_NEAR(logp, 4.0 - log(sum), 1e-6);
    /* twice in the history counts once: 4 / 1.25 = 3.2 < 3.5; the log-prob is that of the untouched logits */
    const int32_t history[4] = {1, 3, 1, 2};
    row.repetition_penalty = 1.25f;
    row.history = history;
    row.n_history = 4;
    CHECK_EQ_INT(sample_one(d, NULL, &logp, logits, 5, row), 4);
    CHECK_NEAR(logp, 3.5 - log(sum), 1e-6);
    /* before temperature; a negative logit becomes more negative */
    row.temperature = 0.5f;
    const double penalised[5] = {1.0, 4.0 / 1.25, -2.0 * 1.25, 4.0 / 1.25, 3.5};
    uint64_t kept[5], total = 0;
    int32_t token = sample_one(d, kept, &logp, logits, 5, row);
    double want_total = 0, at_half = 0;
    for (int i = 0; i < 5; ++i) {
        total += kept[i];
        want_total += exp(penalised[i] / 0.5);
        at_half += exp((double)logits[i] / 0.5);
    }
    for (int i = 0; i < 5; ++i)
        CHECK_NEAR((double)kept[i] / (double)total, exp(penalised[i] / 0.5) / want_total, 1e-6);
    CHECK_NEAR(logp, (double)logits[token] / 0.5 - log(at_half), 2e-6);
}

/* The token is the first whose running sum exceeds floor(bits kept / 2^64), with the bits of base/random.h.
 */
static void keyed_draw(rrl_device *d) {
    enum { N = 30, DRAWS = 500 };
    float logits[N];
    for (int i = 0; i < N; ++i) logits[i] = (float)((i * 37) % 11) * 0.4f;
    rrl_rng_key key = {
        .seed = 42, .purpose = RRL_RNG_TRAIN, .step = 7, .question = 0x123456789abcdefu, .sample = 3};
    uint32_t seed[2] = {42, 0}, counter[4] = {key.purpose, key.step, 0x89abcdefu, 0x1234567u}, stream[4];
    rrl_philox4x32(stream, counter, seed);
    for (uint32_t position = 0; position < DRAWS; ++position) {
        rrl_sample_row row = PLAIN;
        row.key[0] = stream[0];
        row.key[1] = stream[1];
        row.sample = key.sample;
        row.position = position;
        row.top_p = position % 2 ? 1.0f : 0.9f;
        uint64_t kept[N], total = 0, sum = 0;
        int32_t token = sample_one(d, kept, NULL, logits, N, row), want = 0;
        for (int i = 0; i < N; ++i) total += kept[i];
        uint64_t threshold = (uint64_t)((unsigned __int128)rrl_rng_bits(&key, position) * total >> 64);
        while ((sum += kept[want]) <= threshold) want++;
        if (!CHECK_EQ_INT(token, want)) return;
    }
}

/* Frequencies of many draws, in batches: chi-square with 19 degrees of freedom (mean 19, 1e-5 quantile 59).
 */
static void frequencies(rrl_device *d) {
    enum { N = 20, BATCH = 100, BATCHES = 400 };
    static float logits[BATCH * N], logp[BATCH];
    static rrl_sample_row row[BATCH];
    int32_t token[BATCH];
    double count[N] = {0}, p[N], sum = 0, chi = 0;
    for (int i = 0; i < BATCH * N; ++i) logits[i] = 0.1f * (float)(i % N);
    for (int i = 0; i < N; ++i) sum += p[i] = exp((double)logits[i] / (double)0.7f);
    for (int b = 0; b < BATCHES; ++b) {
        for (int i = 0; i < BATCH; ++i) {
            row[i] = PLAIN;
            row[i].temperature = 0.7f;
            row[i].sample = (uint32_t)i;
            row[i].position = (uint32_t)b;
        }
        CHECK_OK(d->ops->sample(d, token, logp, (rrl_tensor){logits, BATCH, N}, row));
        for (int i = 0; i < BATCH; ++i) count[token[i]]++;
    }
    for (int i = 0; i < N; ++i) {
        double expected = p[i] / sum * BATCH * BATCHES;
        chi += (count[i] - expected) * (count[i] - expected) / expected;
    }
    CHECK(chi > 4 && chi < 59);
}

/* A row draws the same token alone, in a batch and in another place. */
static void rows_stand_alone(rrl_device *d) {
    enum { N = 50, ROWS = 9 };
    float logits[ROWS * N], logp[ROWS], one;
    rrl_sample_row row[ROWS];
    int32_t token[ROWS], alone;
    for (int i = 0; i < ROWS * N; ++i) logits[i] = (float)((i * 7919) % 101) * 0.05f;
    for (int i = 0; i < ROWS; ++i) {
        row[i] = PLAIN;
        row[i].sample = (uint32_t)i;
        row[i].top_p = 0.9f;
    }
    CHECK_OK(d->ops->sample(d, token, logp, (rrl_tensor){logits, ROWS, N}, row));
    for (int i = 0; i < ROWS; ++i) {
        CHECK_OK(d->ops->sample(d, &alone, &one, (rrl_tensor){logits + i * N, 1, N}, &row[i]));
        CHECK_EQ_INT(alone, token[i]);
        CHECK(one == logp[i]);
    }
}

int main(int argc, char **argv) {
    static const char *const ISAS[] = {"reference", "portable", "avx2", "avx512"};
    const char *folder = argc > 1 ? argv[1] : RRL_SOURCE_DIR "/tests/golden";
    for (int i = 0; i < 4; ++i) {
        rrl_device *d = NULL;
        if (rrl_cpu_open(&d, ISAS[i], 2) != RRL_OK) {
            CHECK(i > 1);
            printf("not tested here: %s\n", ISAS[i]);
            continue;
        }
        cuts(d);
        greedy_and_penalty(d);
        keyed_draw(d);
        frequencies(d);
        rows_stand_alone(d);
        int checks = 0;
        CHECK_EQ_INT(golden_sampling(&checks, d, folder), 0);
        CHECK(checks >= 5000);
        rrl_device_close(&d);
    }
    return CHECK_DONE();
}
