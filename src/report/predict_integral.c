/* Nested adaptive quadrature: the Gauss-Kronrod pair 7/15 on each piece, halved until the two rules agree to the piece's
 * share of the tolerance. One dimension is the integrand of the one before it. Pieces end where the caller says that an
 * integrand jumps or bends; in the last dimension the integrands are polynomials between these places. */
#include "report/predict_integral.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exactmath.h"
#include "base/memory.h"

enum { KRONROD = 15, MOST_PIECES = 512, MOST_VALUES = 20000000 };
static const double NO_LENGTH = 1e-9;
static const double INNER_SHARE = 0.3; /* tolerance of the next dimension: its errors look rough to this one */

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

/* Integrals over u in (a, b) of a part of a dimension, that z = middle + half (3 u - u^3) / 2 maps to (-1, 1): slope 0 at
 * both ends, so that an integrand that bends there like a square root is smooth in u. */
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

/* Both rules on a piece: v, and the largest difference of the two as error. */
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
    for (int i = 0; i < q->n_values; i++) p->error = fmax(p->error, fabs(p->v[i] - gauss[i]));
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

rrl_status rrl_predict_integrate(double *out, double *unmet, const rrl_predict_integral *q, double tolerance) {
    rrl_status rc = RRL_OK;
    walk w = {.q = q, .weight = {1}, .tolerance = tolerance};
    piece *all = NULL;
    RRL_TRY(rrl_alloc(&all, (size_t)q->n_dims * MOST_PIECES, sizeof *all, "pieces of an integral"));
    for (int d = 0; d < q->n_dims; d++) w.pieces[d] = all + (size_t)d * MOST_PIECES;
    RRL_GOTO(over_dimension(&w, 0, out));
    *unmet = w.unmet;
    if (getenv("DBG")) fprintf(stderr, "dims %d values %ld unmet %g tol %g\n", q->n_dims, w.values, w.unmet, tolerance);
done:
    free(all);
    return rc;
}
