#include "base/exactmath.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/exactmath_f32.h"

/* Only + - * / and fma in a fixed order, and bit operations: IEEE 754 then gives the same bits everywhere.
 * Reductions and polynomials are the classic ones (Cephes for f32, fdlibm for f64), written with fma. */

static uint64_t bits_of_double(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double double_of_bits(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* f32: bodies in exactmath_f32.h */

float rrl_expf(float x) {
    return rrl_exp_f32(x);
}

float rrl_logf(float x) {
    return rrl_log_f32(x);
}

/* f64 */

/* e^(x + low) for |low| tiny against x */
static double exp_with_low(double x, double low) {
    if (x > 709.782712893384) return INFINITY;
    if (x < -745.2) return 0.0;
    if (x != x) return x;
    const double magic = 0x1.8p52;
    double t = fma(x, 1.4426950408889634074, magic);
    int64_t n = (int64_t)(bits_of_double(t) - bits_of_double(magic));
    double nf = t - magic;
    double r = fma(nf, -6.93147180369123816490e-01, x);
    r = fma(nf, -1.90821492927058770002e-10, r) + low;
    /* Taylor to r^13: the rest is below 2^-57 for |r| <= ln(2)/2 */
    static const double inverse_factorial[] = {
        1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
        1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
        1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        1.0 / 2.0,
    };
    double p = inverse_factorial[0];
    for (int i = 1; i < 12; ++i) p = fma(p, r, inverse_factorial[i]);
    double y = fma(p, r * r, r) + 1.0;
    int64_t half = n >> 1;
    double s1 = double_of_bits((uint64_t)(half + 1023) << 52);
    double s2 = double_of_bits((uint64_t)(n - half + 1023) << 52);
    return (y * s1) * s2;
}

double rrl_exp(double x) {
    return exp_with_low(x, 0.0);
}

/* x = m 2^e, m in [sqrt(1/2), sqrt(2)); x positive and finite */
static double split(double x, double *e) {
    int64_t k = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p52;
        k = -52;
    }
    int64_t ix = (int64_t)(bits_of_double(x) - 0x3fe6a09e667f3bcdu);
    *e = (double)(k + (ix >> 52));
    return double_of_bits(((uint64_t)ix & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
}

/* (log(1+f) - 2s) / s with s = f / (2+f), as an even polynomial of s */
static double log_tail(double z) {
    double p = 1.479819860511658591e-01;
    p = fma(p, z, 1.531383769920937332e-01);
    p = fma(p, z, 1.818357216161805012e-01);
    p = fma(p, z, 2.222219843214978396e-01);
    p = fma(p, z, 2.857142874366239149e-01);
    p = fma(p, z, 3.999999999940941908e-01);
    p = fma(p, z, 6.666666666666735130e-01);
    return p * z;
}

double rrl_log_natural(double x) {
    if (!(x > 0.0)) return x == 0.0 ? -INFINITY : x != x ? x : NAN;
    if (x == INFINITY) return x;
    double e, m = split(x, &e);
    double f = m - 1.0, s = f / (2.0 + f), hfsq = 0.5 * f * f;
    double tail = s * (hfsq + log_tail(s * s));
    return fma(e, 6.93147180369123816490e-01, f - (hfsq - fma(e, 1.90821492927058770002e-10, tail)));
}

double rrl_pow(double x, double y) {
    if (!(x > 0.0) || x == INFINITY || y != y)
        return x == 0.0 && y > 0.0 ? 0.0 : y == 0.0 ? 1.0 : x == INFINITY ? (y > 0.0 ? INFINITY : 0.0) : NAN;
    double e, m = split(x, &e);
    /* s = f / (2+f) as s + s_low; then log m = 2s + s * tail(s^2), the tail being small enough for plain
     * doubles */
    double f = m - 1.0, d = 2.0 + f, d_low = f - (d - 2.0);
    double s = f / d, s_low = (fma(-s, d, f) - s * d_low) / d;
    double tail = fma(s, log_tail(s * s), 2.0 * s_low);
    double base = e * 0x1.62e42fefa3800p-1; /* exact: the constant has 11 low zero bits */
    double hi = base + 2.0 * s, low = base == 0.0 ? 0.0 : 2.0 * s - (hi - base);
    low += fma(e, 0x1.ef35793c76730p-45, tail);
    double log_hi = hi + low, log_low = low - (log_hi - hi);
    double product = y * log_hi, product_low = fma(y, log_hi, -product) + y * log_low;
    return exp_with_low(product, product_low);
}

void rrl_sincos(double *s, double *c, double x) {
    /* x - n pi/2 is exact in the first fma for |x| < 2^30; the second part of pi/2 goes to r_low */
    double n = rint(x * 0.63661977236758134308);
    double r0 = fma(-n, 1.57079632679489655800, x);
    double t = n * 6.12323399573676603587e-17;
    double r = r0 - t, low = (r0 - r) - t;
    double z = r * r;
    double p = 1.58969099521155010221e-10;
    p = fma(p, z, -2.50507602534068634195e-08);
    p = fma(p, z, 2.75573137070700676789e-06);
    p = fma(p, z, -1.98412698298579493134e-04);
    p = fma(p, z, 8.33333333332248946124e-03);
    double v = z * r;
    double sine = r - ((z * (0.5 * low - v * p) - low) - v * -1.66666666666666324348e-01);
    double q = -1.13596475577881948265e-11;
    q = fma(q, z, 2.08757232129817482790e-09);
    q = fma(q, z, -2.75573143513906633035e-07);
    q = fma(q, z, 2.48015872894767294178e-05);
    q = fma(q, z, -1.38888888888741095749e-03);
    q = fma(q, z, 4.16666666666666019037e-02);
    double half = 0.5 * z, w = 1.0 - half;
    double cosine = w + (((1.0 - w) - half) + (z * (z * q) - r * low));
    int64_t quadrant = (int64_t)n & 3;
    double a = quadrant & 1 ? cosine : sine, b = quadrant & 1 ? sine : cosine;
    *s = quadrant & 2 ? -a : a;
    *c = quadrant == 1 || quadrant == 2 ? -b : b;
}
