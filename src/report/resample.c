/* Sums run in a fixed order and every draw is keyed, so a second report has the same bits. */
#include "report/resample.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/random.h"
#include "report/statistics.h"
#include "report/student.h"

enum { DRAWS = RRL_BOOTSTRAP_DRAWS };

/* --- draws */

static rrl_rng_key key_of(uint64_t seed, const char *what, int64_t step) {
    return (rrl_rng_key){.seed = seed,
                         .purpose = RRL_RNG_STATS,
                         .question = rrl_rng_question(what),
                         .step = (uint32_t)step};
}

/* bits as a number below n. */
static int64_t below(uint64_t bits, int64_t n) {
    return (int64_t)(((unsigned __int128)bits * (uint64_t)n) >> 64);
}

static int64_t flip_bytes(int64_t n_questions) {
    return (n_questions + 7) / 8;
}

static void draw(rrl_resample *r) {
    for (int64_t d = 0; d < DRAWS; d++) {
        rrl_rng_key questions = key_of(r->seed, "bootstrap questions", d);
        rrl_rng_key seeds = key_of(r->seed, "bootstrap seeds", d);
        for (int64_t q = 0; q < r->n_questions; q++)
            r->counts[below(rrl_rng_bits(&questions, (uint32_t)q), r->n_questions) * DRAWS + d]++;
        for (int64_t s = 0; s < r->max_seeds; s++)
            r->seed_bits[d * r->max_seeds + s] = rrl_rng_bits(&seeds, (uint32_t)s);
    }
    int64_t bytes = flip_bytes(r->n_questions);
    for (int64_t f = 0; f < RRL_QUESTION_FLIPS; f++) {
        rrl_rng_key key = key_of(r->seed, "sign flips of questions", f);
        for (int64_t i = 0; i < bytes; i++)
            r->flips[f * bytes + i] = (uint8_t)(rrl_rng_bits(&key, (uint32_t)(i / 8)) >> (i % 8 * 8));
    }
}

rrl_status rrl_resample_open(rrl_resample *out, uint64_t seed, int64_t n_questions, int64_t max_seeds) {
    rrl_resample r = {.n_questions = n_questions, .max_seeds = max_seeds, .seed = seed};
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&r.counts, (size_t)n_questions, DRAWS * sizeof *r.counts, "bootstrap draws"));
    RRL_GOTO(rrl_alloc(&r.seed_bits, (size_t)max_seeds, DRAWS * sizeof *r.seed_bits, "bootstrap draws"));
    RRL_GOTO(rrl_alloc(&r.flips, (size_t)flip_bytes(n_questions), RRL_QUESTION_FLIPS, "sign flips"));
    draw(&r);
    *out = r;
    r = (rrl_resample){0};
done:
    rrl_resample_free(&r);
    return rc;
}

void rrl_resample_free(rrl_resample *r) {
    free(r->counts);
    free(r->seed_bits);
    free(r->flips);
    *r = (rrl_resample){0};
}

/* --- means of draws */

/* The mean of x [n_questions] over the questions of each draw, NaN where a draw has none; n is scratch. */
static void seed_means(double *mean, double *n, const rrl_resample *r, const double *x) {
    for (int64_t d = 0; d < DRAWS; d++) mean[d] = n[d] = 0;
    for (int64_t q = 0; q < r->n_questions; q++) {
        const double *count = r->counts + q * DRAWS;
        if (isnan(x[q])) continue;
        for (int64_t d = 0; d < DRAWS; d++) { /* the draws side by side, each sum in question order */
            mean[d] += count[d] * x[q];
            n[d] += count[d];
        }
    }
    for (int64_t d = 0; d < DRAWS; d++) mean[d] = n[d] > 0 ? mean[d] / n[d] : NAN;
}

/* Mean over seeds, each once; mean [n_seeds, DRAWS]. */
static double over_seeds(const double *mean, int64_t n_seeds, int64_t d) {
    double sum = 0;
    int64_t n = 0;
    for (int64_t s = 0; s < n_seeds; s++) {
        if (isnan(mean[s * DRAWS + d])) continue;
        sum += mean[s * DRAWS + d];
        n++;
    }
    return n ? sum / (double)n : NAN;
}

/* Mean over the seeds that the draw takes. */
static double over_drawn_seeds(const rrl_resample *r, const double *mean, int64_t n_seeds, int64_t d) {
    double sum = 0;
    int64_t n = 0;
    for (int64_t i = 0; i < n_seeds; i++) {
        double m = mean[below(r->seed_bits[d * r->max_seeds + i], n_seeds) * DRAWS + d];
        if (isnan(m)) continue;
        sum += m;
        n++;
    }
    return n ? sum / (double)n : NAN;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile of sorted v [n], linear between neighbours. */
static double quantile(const double *v, int64_t n, double q) {
    double at = q * (double)(n - 1);
    int64_t i = (int64_t)at;
    return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

/* Percentiles, mean and deviation of draws v [n], which is sorted. */
typedef struct {
    double low, high, mean, std;
} spread;

static spread spread_of(double *v, int64_t n) {
    spread s = {NAN, NAN, NAN, NAN};
    int64_t count;
    if (n < 2) return s;
    qsort(v, (size_t)n, sizeof *v, ascending);
    s.low = quantile(v, n, 0.025);
    s.high = quantile(v, n, 0.975);
    rrl_mean_std(&s.mean, &s.std, &count, v, n);
    return s;
}

/* How many deviations to either side hold 95 % of the draws; at least the normal's 1.96, because so few seeds make few
 * different draws. Both sides alike: the skew of draws from a handful of seeds is chance. */
static double reach_of(double *v, int64_t n) {
    spread s = spread_of(v, n);
    for (int64_t i = 0; i < n; i++) v[i] = fabs(v[i] - s.mean);
    if (n < 2 || !(s.std > 0)) return NAN;
    qsort(v, (size_t)n, sizeof *v, ascending);
    return fmax(rrl_student_quantile(0.975, INFINITY), quantile(v, n, 0.95) / s.std);
}

/* --- variance of two crossed factors */

typedef struct {
    double mean, variance, df; /* variance of the mean; NaN where it cannot be known */
} crossed;

/* Means of rows (seeds) or columns (questions) of x, and how many of them have a value. */
static int64_t margin(double *mean, const double *x, int64_t n_seeds, int64_t n_questions, bool of_seeds) {
    int64_t n = of_seeds ? n_seeds : n_questions, m = of_seeds ? n_questions : n_seeds, defined = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        int64_t count = 0;
        for (int64_t j = 0; j < m; j++) {
            double v = of_seeds ? x[i * n_questions + j] : x[j * n_questions + i];
            if (isnan(v)) continue;
            sum += v;
            count++;
        }
        mean[i] = count ? sum / (double)count : NAN;
        defined += count > 0;
    }
    return defined;
}

/* Sum of squares of what neither seed nor question explains, and the number of cells. */
static double residual_squares(int64_t *cells, const double *x, const double *rows, const double *columns,
                               double mean, int64_t n_seeds, int64_t n_questions) {
    double sum = 0;
    *cells = 0;
    for (int64_t s = 0; s < n_seeds; s++)
        for (int64_t q = 0; q < n_questions; q++) {
            double e = x[s * n_questions + q] - rows[s] - columns[q] + mean;
            if (isnan(e)) continue;
            sum += e * e;
            (*cells)++;
        }
    return sum;
}

/* V(seed means)/S holds the seeds' share and the residual's, V(question means)/Q the questions' and the
 * residual's, so that their sum less the residual's own V/(SQ) is unbiased. It is never taken below either,
 * which would claim to know more than one factor alone shows. df by Satterthwaite. */
static rrl_status crossed_variance(crossed *out, const double *x, int64_t n_seeds, int64_t n_questions) {
    crossed c = {NAN, NAN, NAN};
    double *rows = NULL, *columns, mean, std_rows, std_columns;
    int64_t n, cells;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&rows, (size_t)(n_seeds + n_questions), sizeof *rows, "margins"));
    columns = rows + n_seeds;
    int64_t s = margin(rows, x, n_seeds, n_questions, true);
    int64_t q = margin(columns, x, n_seeds, n_questions, false);
    rrl_mean_std(&mean, &std_columns, &n, columns, n_questions);
    rrl_mean_std(&c.mean, &std_rows, &n, rows, n_seeds);
    if (s >= 2 && q >= 2) {
        double square = residual_squares(&cells, x, rows, columns, c.mean, n_seeds, n_questions);
        double df_rows = (double)(s - 1), df_columns = (double)(q - 1), df_rest = df_rows * df_columns;
        double of_rows = std_rows * std_rows / (double)s, of_columns = std_columns * std_columns / (double)q;
        double rest = square / df_rest / (double)cells;
        c.variance = fmax(fmax(of_rows, of_columns), of_rows + of_columns - rest);
        double squares = of_rows * of_rows / df_rows + of_columns * of_columns / df_columns +
                        rest * rest / df_rest;
        c.df = fmax(1, c.variance * c.variance / squares);
    }
    *out = c;
done:
    free(rows);
    return rc;
}

/* --- sign flips of questions */

/* What question q adds to the mean over seeds of means over questions: flipping its sign flips that. */
static void parts_of_questions(double *part, const double *x, int64_t n_seeds, int64_t n_questions) {
    int64_t seeds = 0;
    for (int64_t q = 0; q < n_questions; q++) part[q] = 0;
    for (int64_t s = 0; s < n_seeds; s++) {
        const double *row = x + s * n_questions;
        int64_t n = 0;
        for (int64_t q = 0; q < n_questions; q++) n += !isnan(row[q]);
        for (int64_t q = 0; q < n_questions; q++)
            if (!isnan(row[q])) part[q] += row[q] / (double)n;
        seeds += n > 0;
    }
    for (int64_t q = 0; q < n_questions; q++) part[q] /= (double)(seeds ? seeds : 1);
}

/* Sums of eight signed parts for each byte of signs. */
static void byte_sums(double sums[256], const double *part, int64_t n) {
    for (int mask = 0; mask < 256; mask++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) sum += mask >> i & 1 ? -part[i] : part[i];
        sums[mask] = sum;
    }
}

static rrl_status question_flip_p(double *p, const rrl_resample *r, const double *x, int64_t n_seeds) {
    int64_t bytes = flip_bytes(r->n_questions), hits = 0;
    double *part = NULL, *total = NULL, observed = 0, size = 0, sums[256];
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&part, (size_t)r->n_questions, sizeof *part, "parts of questions"));
    RRL_GOTO(rrl_alloc(&total, RRL_QUESTION_FLIPS, sizeof *total, "sign flips"));
    parts_of_questions(part, x, n_seeds, r->n_questions);
    for (int64_t q = 0; q < r->n_questions; q++) {
        observed += part[q];
        size += fabs(part[q]);
    }
    for (int64_t i = 0; i < bytes; i++) {
        int64_t n = r->n_questions - 8 * i < 8 ? r->n_questions - 8 * i : 8;
        byte_sums(sums, part + 8 * i, n);
        for (int64_t f = 0; f < RRL_QUESTION_FLIPS; f++) total[f] += sums[r->flips[f * bytes + i]];
    }
    double reach = fabs(observed) - 1e-12 * size; /* equal sums in another order of addition count as equal */
    for (int64_t f = 0; f < RRL_QUESTION_FLIPS; f++) hits += fabs(total[f]) >= reach;
    *p = (1.0 + (double)hits) / (1.0 + RRL_QUESTION_FLIPS);
done:
    free(part);
    free(total);
    return rc;
}

/* --- the statements */

/* Smallest effect found in 80 % of studies by a two-sided test at 5 %. */
static double smallest_effect(double standard_error, double df) {
    return (rrl_student_quantile(0.975, df) + rrl_student_quantile(0.8, df)) * standard_error;
}

static rrl_status claim_runs(rrl_claim *out, const rrl_resample *r, const double *x, const double *mean,
                             double *draws, int64_t n_seeds) {
    int64_t n = 0;
    for (int64_t d = 0; d < DRAWS; d++) {
        double m = over_seeds(mean, n_seeds, d);
        if (!isnan(m)) draws[n++] = m;
    }
    if (n == 0) return RRL_OK;
    spread s = spread_of(draws, n);
    out->low = s.low;
    out->high = s.high;
    if (s.std > 0) out->smallest = smallest_effect(s.std, INFINITY);
    out->flips = RRL_QUESTION_FLIPS;
    return question_flip_p(&out->p, r, x, n_seeds);
}

static rrl_status claim_method(rrl_claim *out, const rrl_resample *r, const double *x, const double *mean,
                               double *draws, int64_t n_seeds) {
    crossed c;
    int64_t n = 0, n_means = 0;
    double *means = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&means, (size_t)n_seeds, sizeof *means, "means of seeds"));
    (void)margin(means, x, n_seeds, r->n_questions, true);
    for (int64_t s = 0; s < n_seeds; s++)
        if (!isnan(means[s])) means[n_means++] = means[s];
    if (n_means < 2) goto done;
    RRL_GOTO(rrl_sign_flip_p(&out->p, r->seed, means, n_means));
    out->flips = n_means > RRL_EXACT_FLIP_SEEDS ? RRL_MONTE_CARLO_FLIPS : 0;
    RRL_GOTO(crossed_variance(&c, x, n_seeds, r->n_questions));
    if (!(c.variance > 0)) goto done;
    out->smallest = smallest_effect(sqrt(c.variance), c.df);
    for (int64_t d = 0; d < DRAWS; d++) {
        double m = over_drawn_seeds(r, mean, n_seeds, d);
        if (!isnan(m)) draws[n++] = m;
    }
    double reach = reach_of(draws, n) * sqrt(c.variance) * rrl_student_quantile(0.975, c.df) /
                   rrl_student_quantile(0.975, INFINITY);
    if (isfinite(reach)) {
        out->low = c.mean - reach;
        out->high = c.mean + reach;
    }
done:
    free(means);
    return rc;
}

rrl_status rrl_resample_claims(rrl_claim *runs, rrl_claim *method, const rrl_resample *r, const double *x,
                               int64_t n_seeds) {
    double *mean = NULL, *draws = NULL;
    rrl_status rc;
    *runs = *method = (rrl_claim)RRL_NO_CLAIM;
    if (n_seeds > r->max_seeds)
        return RRL_FAIL(RRL_ERR_RANGE, "statistics: %lld seeds, draws were made for %lld", (long long)n_seeds,
                        (long long)r->max_seeds);
    RRL_GOTO(rrl_alloc(&mean, (size_t)n_seeds, DRAWS * sizeof *mean, "means of draws"));
    RRL_GOTO(rrl_alloc(&draws, DRAWS, sizeof *draws, "means of draws"));
    for (int64_t s = 0; s < n_seeds; s++)
        seed_means(mean + s * DRAWS, draws, r, x + s * r->n_questions);
    if (r->n_questions >= 2) RRL_GOTO(claim_runs(runs, r, x, mean, draws, n_seeds));
    RRL_GOTO(claim_method(method, r, x, mean, draws, n_seeds));
done:
    free(mean);
    free(draws);
    return rc;
}
