/* Quantiles of the normal and of Student's t distribution. Used by src/report only. */
#ifndef RRL_REPORT_STUDENT_H
#define RRL_REPORT_STUDENT_H

/** P(T <= t) for T of Student's t distribution with df > 0 degrees of freedom (need not be whole). */
double rrl_student_cdf(double t, double df);
/** The t with P(T <= t) = p, p in (0,1); to about 1e-12. df = INFINITY is the normal distribution. */
double rrl_student_quantile(double p, double df);

#endif
