/* Up to NESTED deviates: nested adaptive quadrature. The Gauss-Kronrod pair 7/15 on each piece of a
 * dimension, the worst piece halved until the errors add up to the tolerance; one dimension is the integrand
 * of the one before it. Pieces end where the caller says that an integrand jumps or bends, so that inside of
 * them it is smooth and the rule exact. Above that a lattice: its points cost the same in any number of
 * dimensions, and its error is measured by shifting it. */
#include "report/predict_integral.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/exactmath.h"
#include "base/memory.h"

enum { KRONROD = 15, NESTED = 3, MOST_PIECES = 512, MOST_VALUES = 20000000 };
enum { SHIFTS = 16, FIRST_POINTS = 1 << 10, MOST_POINTS = 1 << 17 };
static const double NO_LENGTH = 1e-9; /* of a piece */
static const double INNER_SHARE =
    0.3; /* tolerance of the next dimension: its errors look rough to this one */

/* Half of the nodes of the Kronrod rule, the odd ones are the Gauss nodes (QUADPACK, dqk15). */
static const double NODES[8] = {0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
                                0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
                                0.586087235467691130294144691693,    0.405845151377397166906606412076961,
                                0.207784955007898467600689403773245, 0.0};
static const double WEIGHTS[8] = {0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
                                  0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
                                  0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
                                  0.204432940075298892414161999234649, 0.209482141084727828012999174891714};
static const double GAUSS_WEIGHTS[4] = {
    0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
    0.381830050505118944950369775488975, 0.417959183673469387755102040816327};

/* ---- nested quadrature ---- */

/* Integrals over u in (a, b) of a part of a dimension, that z = middle + half (3 u - u^3) / 2 maps to (-1,
 * 1): slope 0 at both ends, so that an integrand that bends there like a square root is smooth in u. */
typedef struct {
    double middle, half, a, b, error;
    double v[RRL_INTEGRAL_VALUES];
} piece;

typedef struct {
    const rrl_predict_integral *q;
    piece *pieces[RRL_INTEGRAL_DIMS]; /* [MOST_PIECES] */
    double z[RRL_INTEGRAL_DIMS];
    double weight[RRL_INTEGRAL_DIMS + 1]; /* what an error in dimension d counts in the result */
    double tolerance, unmet;
    long values;
} walk;

double rrl_normal_mass(double a, double b) {
    if (a > 0) return 0.5 * (erfc(a * M_SQRT1_2) - erfc(b * M_SQRT1_2)); /* no loss in the upper tail */
    return 0.5 * (erfc(-b * M_SQRT1_2) - erfc(-a * M_SQRT1_2));
}

double rrl_normal_density(double z) {
    return 0.3989422804014327 * rrl_exp(-0.5 * z * z);
}

static rrl_status over_dimension(walk *w, int dim, double *out);

/* Error of the 15 points from their difference to the 7 (QUADPACK): what is small is the square of something
 * small. */
static double error_of(double kronrod, double gauss) {
    double difference = fabs(kronrod - gauss), size = fabs(kronrod);
    return difference < size ? difference * fmin(1, sqrt(200 * difference / size)) : difference;
}

/* Both rules on a piece: v, and the largest error. */
static rrl_status take(walk *w, int dim, piece *p) {
    const rrl_predict_integral *q = w->q;
    double gauss[RRL_INTEGRAL_VALUES] = {0}, v[RRL_INTEGRAL_VALUES];
    double middle = 0.5 * (p->a + p->b), half = 0.5 * (p->b - p->a);
    memset(p->v, 0, sizeof p->v);
    for (int k = 0; k < KRONROD; k++) {
        int at = k < 8 ? k : KRONROD - 1 - k;
        double u = middle + (k < 8 ? -half : half) * NODES[at];
        double z = p->middle + p->half * u * (1.5 - 0.5 * u * u);
        double density = half * p->half * 1.5 * (1 - u * u) * rrl_normal_density(z);
        w->z[dim] = z;
        if (dim + 1 == q->n_dims) {
            w->values++;
            RRL_TRY(q->value(q->state, w->z, v));
        } else {
            w->weight[dim + 1] = w->weight[dim] * WEIGHTS[at] * density;
            RRL_TRY(over_dimension(w, dim + 1, v));
        }
        for (int i = 0; i < q->n_values; i++) {
            p->v[i] += WEIGHTS[at] * density * v[i];
            if (at & 1) gauss[i] += GAUSS_WEIGHTS[at / 2] * density * v[i];
        }
    }
    p->error = 0;
    for (int i = 0; i < q->n_values; i++) p->error = fmax(p->error, error_of(p->v[i], gauss[i]));
    return RRL_OK;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The pieces between the cuts of a dimension. */
static rrl_status cut(walk *w, int dim, int *n_pieces) {
    const rrl_predict_integral *q = w->q;
    double ends[RRL_INTEGRAL_CUTS + 2];
    int n = 0, m = 0;
    double low = q->ordered[dim] ? w->z[dim - 1] : q->low[dim], high = q->high[dim];
    *n_pieces = 0;
    if (!(low < high)) return RRL_OK;
    RRL_TRY(q->cuts(q->state, dim, w->z, low, high, ends + 1, &n));
    ends[0] = low;
    ends[++n] = high;
    qsort(ends + 1, (size_t)n, sizeof *ends, compare);
    for (int i = 0; i < n; i++) {
        if (!(ends[i + 1] - ends[i] > NO_LENGTH)) { /* close cuts are one */
            ends[i + 1] = i + 1 < n ? ends[i] : ends[i + 1];
            continue;
        }
        w->pieces[dim][m++] = (piece){
            .middle = 0.5 * (ends[i] + ends[i + 1]), .half = 0.5 * (ends[i + 1] - ends[i]), .a = -1, .b = 1};
    }
    *n_pieces = m;
    return RRL_OK;
}

/* Halve the piece with the largest error until all errors together are small enough. */
static rrl_status over_dimension(walk *w, int dim, double *out) {
    double tolerance = w->tolerance * pow(INNER_SHARE, dim), error = 0;
    piece *pieces = w->pieces[dim];
    int n;
    memset(out, 0, (size_t)w->q->n_values * sizeof *out);
    RRL_TRY(cut(w, dim, &n));
    for (int i = 0; i < n; i++) RRL_TRY(take(w, dim, &pieces[i]));
    for (;;) {
        int worst = 0;
        error = 0;
        for (int i = 0; i < n; i++) {
            error += pieces[i].error;
            if (pieces[i].error > pieces[worst].error) worst = i;
        }
        if (error <= tolerance || n == MOST_PIECES || w->values > MOST_VALUES) break;
        pieces[n] = pieces[worst];
        pieces[n].a = pieces[worst].b = 0.5 * (pieces[worst].a + pieces[worst].b);
        RRL_TRY(take(w, dim, &pieces[worst]));
        RRL_TRY(take(w, dim, &pieces[n]));
        n++;
    }
    if (error > tolerance) w->unmet += w->weight[dim] * (error - tolerance);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < w->q->n_values; k++) out[k] += pieces[i].v[k];
    return RRL_OK;
}

static rrl_status nested(double *out, double *unmet, const rrl_predict_integral *q, double tolerance) {
    rrl_status rc = RRL_OK;
    walk w = {.q = q, .weight = {1}, .tolerance = tolerance};
    piece *all = NULL;
    RRL_TRY(rrl_alloc(&all, (size_t)q->n_dims * MOST_PIECES, sizeof *all, "pieces of an integral"));
    for (int d = 0; d < q->n_dims; d++) w.pieces[d] = all + (size_t)d * MOST_PIECES;
    RRL_GOTO(over_dimension(&w, 0, out));
    *unmet = w.unmet;
done:
    free(all);
    return rc;
}

/* ---- the lattice ---- */

/* Adds one point, x [n_dims] in [0,1), to sum. z = 2 c artanh(v) makes the density nearly flat in v. Ordered
 * deviates are taken in any order: by symmetry that is as many times the integral as there are orders. */
static rrl_status add_point(double *sum, const rrl_predict_integral *q, const double *x) {
    static const double c = 0.6;
    double z[RRL_INTEGRAL_DIMS], v[RRL_INTEGRAL_VALUES], weight = 1;
    int run = 1;
    for (int d = 0; d < q->n_dims; d++) {
        double low = tanh(q->low[d] / (2 * c)), high = tanh(q->high[d] / (2 * c)),
               at = low + (high - low) * x[d];
        z[d] = fmin(q->high[d], fmax(q->low[d], 2 * c * atanh(at)));
        run = q->ordered[d] ? run + 1 : 1;
        weight *= rrl_normal_density(z[d]) * 2 * c / (1 - at * at) * (high - low) / run;
    }
    RRL_TRY(q->value(q->state, z, v));
    for (int i = 0; i < q->n_values; i++) sum[i] += weight * v[i];
    return RRL_OK;
}

/* Sums of points [from, to) of the sequence frac(i sqrt(prime)), shifted, folded so that it has no edge. */
static rrl_status add_points(double *sum, const rrl_predict_integral *q, int shift, int from, int to) {
    static const double PRIMES[RRL_INTEGRAL_DIMS] = {2, 3, 5, 7, 11, 13, 17, 19};
    for (int i = from; i < to; i++) {
        double x[RRL_INTEGRAL_DIMS];
        for (int d = 0; d < q->n_dims; d++) {
            double s = (i + 1) * sqrt(PRIMES[d]) + (shift + 0.5) * sqrt(PRIMES[d] + 23);
            s -= floor(s);
            x[d] = 1 - fabs(2 * s - 1);
        }
        RRL_TRY(add_point(sum, q, x));
    }
    return RRL_OK;
}

/* Points are doubled until three standard errors, from the shifts, are within the tolerance. */
static rrl_status lattice(double *out, double *unmet, const rrl_predict_integral *q, double tolerance) {
    double sums[SHIFTS][RRL_INTEGRAL_VALUES] = {{0}}, error = INFINITY;
    for (int n = 0, next = FIRST_POINTS; error > tolerance && next <= MOST_POINTS; n = next, next *= 2) {
        for (int k = 0; k < SHIFTS; k++) RRL_TRY(add_points(sums[k], q, k, n, next));
        error = 0;
        for (int i = 0; i < q->n_values; i++) {
            double mean = 0, squares = 0;
            for (int k = 0; k < SHIFTS; k++) mean += sums[k][i] / next / SHIFTS;
            for (int k = 0; k < SHIFTS; k++)
                squares += (sums[k][i] / next - mean) * (sums[k][i] / next - mean);
            error = fmax(error, 3 * sqrt(squares / (SHIFTS - 1) / SHIFTS));
            out[i] = mean;
        }
    }
    *unmet = fmax(0, error - tolerance);
    return RRL_OK;
}

rrl_status rrl_predict_integrate(double *out, double *unmet, const rrl_predict_integral *q,
                                 double tolerance) {
    return q->n_dims <= NESTED ? nested(out, unmet, q, tolerance) : lattice(out, unmet, q, tolerance);
}
