/* Expectations over a few independent standard normal deviates, to a tolerance. Used by the prediction only. */
#ifndef RRL_REPORT_PREDICT_INTEGRAL_H
#define RRL_REPORT_PREDICT_INTEGRAL_H

#include <stdbool.h>

#include "rrl/status.h"

enum {
    RRL_INTEGRAL_DIMS = 8,    /* deviates at most */
    RRL_INTEGRAL_VALUES = 40, /* integrands at most */
    RRL_INTEGRAL_CUTS = 256,  /* cuts of one deviate at most */
};

/* Integrands [n_values] of z [n_dims], each z in (low, high), or in (z of the dimension before, high) where ordered. */
typedef struct {
    int n_dims, n_values;
    double low[RRL_INTEGRAL_DIMS], high[RRL_INTEGRAL_DIMS];
    bool ordered[RRL_INTEGRAL_DIMS];
    /** The integrands at z, without the density. */
    rrl_status (*value)(void *state, const double *z, double *out);
    /** Places of (a, b) where an integrand, as a function of z[dim] with z[0 .. dim) given, may jump or bend: any order,
     *  *n at most RRL_INTEGRAL_CUTS. A hint: a place left out costs work, not accuracy. */
    rrl_status (*cuts)(void *state, int dim, double *z, double a, double b, double *out, int *n);
    void *state;
} rrl_predict_integral;

/** out [n_values] = integral of value times the density of z. *unmet = bound of what exceeds `tolerance`, 0 as a rule:
 *  more than zero when the work ran out. */
rrl_status rrl_predict_integrate(double *out, double *unmet, const rrl_predict_integral *q, double tolerance);

/** P(a < Z < b), and the density. */
double rrl_normal_mass(double a, double b);
double rrl_normal_density(double z);

#endif
