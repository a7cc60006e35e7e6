/* exp, log, sin and cos of our own: one algorithm for scalar and vector code, the same bits on every machine, because
 * libm's differ between machines. The vector forms in device/cpu/vec.h follow these step by step (tests compare). */
#ifndef RRL_BASE_EXACTMATH_H
#define RRL_BASE_EXACTMATH_H

/** e^x in f32, at most 2 ulp. Below -87.3 flushes towards 0 (0 for x < -104 or -inf), above 88.72 gives inf; NaN -> NaN. */
float rrl_expf(float x);
/** Natural log in f32, at most 2 ulp. log(0) = -inf, log(x < 0) = NaN. */
float rrl_logf(float x);
/** sin and cos of a double angle |x| < 2^30, about 1e-15 absolute; used once to make the RoPE tables. */
void rrl_sincos(double *s, double *c, double x);
/** e^x and log in double, about 2 ulp, for losses and statistics. */
double rrl_exp(double x);
double rrl_log_natural(double x);
/** x^y for x > 0 as rrl_exp(y * log x) with the log in double-double where it matters (RoPE frequencies). */
double rrl_pow(double x, double y);

#endif
