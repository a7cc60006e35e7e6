/* Sums run in a fixed order and every draw is keyed, so a second report has the same bits. */
#include "report/statistics.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"

void rrl_mean_std(double *mean, double *std, int64_t *n, const double *v, int64_t count) {
    double sum = 0, square = 0, first = NAN;
    int equal = 1;
    *n = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(v[i])) continue;
        if (isnan(first)) first = v[i];
        equal = equal && v[i] == first;
        sum += v[i];
        (*n)++;
    }
    *mean = *n ? (equal ? first : sum / (double)*n)
               : NAN; /* equal values have that mean and deviation 0, unrounded */
    for (int64_t i = 0; i < count; i++)
        if (!isnan(v[i])) square += (v[i] - *mean) * (v[i] - *mean);
    *std = *n > 1 ? sqrt(square / (double)(*n - 1)) : NAN;
}

/* --- sign flips */

/* Sums of d [n] under every assignment of signs. */
static void signed_sums(double *out, const double *d, int64_t n) {
    for (uint32_t mask = 0; mask < 1u << n; mask++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += mask >> i & 1 ? -d[i] : d[i];
        out[mask] = sum;
    }
}

/* All 2^n sums as sums of two halves. */
static rrl_status exact_p(double *p, const double *d, int64_t n, double reach) {
    int64_t half = n / 2, hits = 0;
    size_t n_left = (size_t)1 << half, n_right = (size_t)1 << (n - half);
    double *left = NULL;
    RRL_TRY(rrl_alloc(&left, n_left + n_right, sizeof *left, "sign flips"));
    double *right = left + n_left;
    signed_sums(left, d, half);
    signed_sums(right, d + half, n - half);
    for (size_t i = 0; i < n_left; i++)
        for (size_t j = 0; j < n_right; j++) hits += fabs(left[i] + right[j]) >= reach;
    *p = (double)hits / ((double)n_left * (double)n_right);
    free(left);
    return RRL_OK;
}

static double monte_carlo_p(uint64_t seed, const double *d, int64_t n, double reach) {
    int64_t hits = 0;
    for (int64_t f = 0; f < RRL_MONTE_CARLO_FLIPS; f++) {
        rrl_rng_key key = {.seed = seed,
                           .purpose = RRL_RNG_STATS,
                           .question = rrl_rng_question("sign flips"),
                           .step = (uint32_t)f};
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += rrl_rng_bits(&key, (uint32_t)i) & 1 ? -d[i] : d[i];
        hits += fabs(sum) >= reach;
    }
    return (1.0 + (double)hits) / (1.0 + RRL_MONTE_CARLO_FLIPS);
}

rrl_status rrl_sign_flip_p(double *p, uint64_t seed, const double *d, int64_t n) {
    double sum = 0, size = 0;
    *p = NAN;
    if (n == 0) return RRL_OK;
    for (int64_t i = 0; i < n; i++) {
        sum += d[i];
        size += fabs(d[i]);
    }
    double reach = fabs(sum) - 1e-12 * size; /* equal sums in another order of addition count as equal */
    if (n <= RRL_EXACT_FLIP_SEEDS) return exact_p(p, d, n, reach);
    *p = monte_carlo_p(seed, d, n, reach);
    return RRL_OK;
}

/* --- Holm */

typedef struct {
    double p;
    int64_t at;
} ranked;

static int by_p(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : (x->at > y->at) - (x->at < y->at);
}

rrl_status rrl_holm(double *p, int64_t n) {
    ranked *r = NULL;
    int64_t m = 0;
    double worst = 0;
    RRL_TRY(rrl_alloc(&r, (size_t)n, sizeof *r, "p-values"));
    for (int64_t i = 0; i < n; i++)
        if (!isnan(p[i])) r[m++] = (ranked){p[i], i};
    if (m) qsort(r, (size_t)m, sizeof *r, by_p);
    for (int64_t i = 0; i < m; i++) {
        worst = fmax(worst, fmin(1, (double)(m - i) * r[i].p));
        p[r[i].at] = worst;
    }
    free(r);
    return RRL_OK;
}
