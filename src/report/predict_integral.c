/* Nested adaptive quadrature: the Gauss-Kronrod pair 7/15 on each piece, halved until the two rules agree to the piece's
 * share of the tolerance. One dimension is the integrand of the one before it. Pieces end where the caller says that an
 * integrand jumps or bends; in the last dimension the integrands are polynomials between these places. */
#include "report/predict_integral.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/exactmath.h"

enum { KRONROD = 15, DEEPEST = 24, MOST_VALUES = 20000000 };
static const double INNER_SHARE = 0.1; /* tolerance of the next dimension: its errors look rough to this one */

/* Half of the nodes of the Kronrod rule, the odd ones are the Gauss nodes (QUADPACK, dqk15). */
static const double NODES[8] = {0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
                                0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
                                0.586087235467691130294144691693, 0.405845151377397166906606412076961,
                                0.207784955007898467600689403773245, 0.0};
static const double WEIGHTS[8] = {0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
                                  0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
                                  0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
                                  0.204432940075298892414161999234649, 0.209482141084727828012999174891714};
static const double GAUSS_WEIGHTS[4] = {0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
                                        0.381830050505118944950369775488975, 0.417959183673469387755102040816327};

typedef struct {
    const rrl_predict_integral *q;
    double z[RRL_INTEGRAL_DIMS];
    double weight[RRL_INTEGRAL_DIMS + 1]; /* what an error in dimension d counts in the result */
    double unmet;
    long values;
} walk;

double rrl_normal_mass(double a, double b) {
    if (a > 0) return 0.5 * (erfc(a * M_SQRT1_2) - erfc(b * M_SQRT1_2)); /* no loss in the upper tail */
    return 0.5 * (erfc(-b * M_SQRT1_2) - erfc(-a * M_SQRT1_2));
}

double rrl_normal_density(double z) {
    return 0.3989422804014327 * rrl_exp(-0.5 * z * z);
}

static rrl_status over_dimension(walk *w, int dim, double tolerance, double *out);

/* Both rules on (a, b): kronrod [n_values], and the largest difference of the two. */
static rrl_status rules(walk *w, int dim, double a, double b, double tolerance, double *kronrod, double *error) {
    const rrl_predict_integral *q = w->q;
    double gauss[RRL_INTEGRAL_VALUES] = {0}, v[RRL_INTEGRAL_VALUES];
    double middle = 0.5 * (a + b), half = 0.5 * (b - a);
    memset(kronrod, 0, (size_t)q->n_values * sizeof *kronrod);
    for (int k = 0; k < KRONROD; k++) {
        int at = k < 8 ? k : KRONROD - 1 - k;
        double z = middle + (k < 8 ? -half : half) * NODES[at], density = half * rrl_normal_density(z);
        w->z[dim] = z;
        if (dim + 1 == q->n_dims) {
            w->values++;
            RRL_TRY(q->value(q->state, w->z, v));
        } else {
            w->weight[dim + 1] = w->weight[dim] * WEIGHTS[at] * density;
            RRL_TRY(over_dimension(w, dim + 1, INNER_SHARE * tolerance, v));
        }
        for (int i = 0; i < q->n_values; i++) {
            kronrod[i] += WEIGHTS[at] * density * v[i];
            if (at & 1) gauss[i] += GAUSS_WEIGHTS[at / 2] * density * v[i];
        }
    }
    *error = 0;
    for (int i = 0; i < q->n_values; i++) *error = fmax(*error, fabs(kronrod[i] - gauss[i]));
    return RRL_OK;
}

/* Adds the integral over (a, b) to out. */
static rrl_status piece(walk *w, int dim, double a, double b, double tolerance, int depth, double *out) {
    double v[RRL_INTEGRAL_VALUES], error;
    RRL_TRY(rules(w, dim, a, b, tolerance, v, &error));
    if (error > tolerance && depth < DEEPEST && w->values < MOST_VALUES) {
        double middle = 0.5 * (a + b);
        RRL_TRY(piece(w, dim, a, middle, 0.5 * tolerance, depth + 1, out));
        return piece(w, dim, middle, b, 0.5 * tolerance, depth + 1, out);
    }
    if (error > tolerance) w->unmet += w->weight[dim] * (error - tolerance);
    for (int i = 0; i < w->q->n_values; i++) out[i] += v[i];
    return RRL_OK;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static rrl_status over_dimension(walk *w, int dim, double tolerance, double *out) {
    const rrl_predict_integral *q = w->q;
    double ends[RRL_INTEGRAL_CUTS + 2];
    int n = 0;
    double low = q->ordered[dim] ? w->z[dim - 1] : q->low[dim], high = q->high[dim];
    memset(out, 0, (size_t)q->n_values * sizeof *out);
    if (!(low < high)) return RRL_OK;
    RRL_TRY(q->cuts(q->state, dim, w->z, low, high, ends + 1, &n));
    ends[0] = low;
    ends[++n] = high;
    qsort(ends + 1, (size_t)n, sizeof *ends, compare);
    for (int i = 0; i < n; i++)
        if (ends[i + 1] > ends[i]) RRL_TRY(piece(w, dim, ends[i], ends[i + 1], tolerance / n, 0, out));
    return RRL_OK;
}

rrl_status rrl_predict_integrate(double *out, double *unmet, const rrl_predict_integral *q, double tolerance) {
    walk w = {.q = q, .weight = {1}};
    RRL_TRY(over_dimension(&w, 0, tolerance, out));
    *unmet = w.unmet;
    return RRL_OK;
}
