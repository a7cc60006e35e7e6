#include "base/exactmath.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Only + - * / and fma in a fixed order, and bit operations: IEEE 754 then gives the same bits everywhere.
 * Reductions and polynomials are the classic ones (Cephes for f32, fdlibm for f64), written with fma. */

static uint32_t bits_of_float(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

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

/* f32 */

float rrl_expf(float x) {
    if (x > 88.7228394f) return INFINITY;
    if (x < -104.0f) return 0.0f;
    if (x != x) return x;
    const float magic =
        0x1.8p23f; /* adding it rounds to the nearest integer, which then lies in the low bits */
    float t = fmaf(x, 0x1.715476p+0f, magic);
    int32_t n = (int32_t)(bits_of_float(t) - bits_of_float(magic));
    float nf = t - magic;
    float r = fmaf(nf, -0x1.62e430p-1f, x);
    r = fmaf(nf, 0x1.05c610p-29f, r);
    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    float y = fmaf(p, r * r, r) + 1.0f;
    /* 2^n in two factors, so that n = 128 does not overflow and subnormal results round once */
    int32_t half = n >> 1;
    float s1 = float_of_bits((uint32_t)(half + 127) << 23);
    float s2 = float_of_bits((uint32_t)(n - half + 127) << 23);
    return (y * s1) * s2;
}

float rrl_logf(float x) {
    if (!(x > 0.0f)) return x == 0.0f ? -INFINITY : x != x ? x : NAN;
    if (x == INFINITY) return x;
    int32_t e = 0;
    if (x < 0x1p-126f) {
        x *= 0x1p23f;
        e = -23;
    }
    /* x = m 2^e with m in [sqrt(1/2), sqrt(2)) */
    int32_t ix = (int32_t)(bits_of_float(x) - 0x3f3504f3u);
    e += ix >> 23;
    float m = float_of_bits(((uint32_t)ix & 0x7fffffu) + 0x3f3504f3u);
    float ef = (float)e, f = m - 1.0f, z = f * f;
    float p = 7.0376836292e-2f;
    p = fmaf(p, f, -1.1514610310e-1f);
    p = fmaf(p, f, 1.1676998740e-1f);
    p = fmaf(p, f, -1.2420140846e-1f);
    p = fmaf(p, f, 1.4249322787e-1f);
    p = fmaf(p, f, -1.6668057665e-1f);
    p = fmaf(p, f, 2.0000714765e-1f);
    p = fmaf(p, f, -2.4999993993e-1f);
    p = fmaf(p, f, 3.3333331174e-1f);
    float y = (p * f) * z;
    y = fmaf(ef, -2.12194440e-4f, y);
    y = fmaf(z, -0.5f, y);
    return fmaf(ef, 0.693359375f, f + y);
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
