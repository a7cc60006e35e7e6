/* Accuracy of our exp, log, sin, cos and pow against libm in higher precision, special values, and the bits
 * of a few results: they may never change, since records depend on them. `test_exactmath STEP` visits every
 * STEP-th float. */
#include "check.h"

#include <float.h>
#include <stdint.h>

#include "base/exactmath.h"

static double ulp_of(double x) {
    float f = fabsf((float)x);
    return (double)(nextafterf(f, INFINITY) - f);
}

static double long_ulp(long double x) {
    double d = fabs((double)x);
    return nextafter(d, INFINITY) - d;
}

/* Worst errors in ulp over the floats, normal results only */
static void floats(uint64_t step) {
    double worst_exp = 0, worst_log = 0;
    for (uint64_t u = 0; u < 0x100000000u; u += step) {
        uint32_t bits = (uint32_t)u;
        float x;
        memcpy(&x, &bits, sizeof x);
        if (x > -87.3f && x < 88.7f) worst_exp = fmax(worst_exp, fabs(rrl_expf(x) - exp(x)) / ulp_of(exp(x)));
        if (x > 0 && x < INFINITY) {
            double want = log(x), unit = ulp_of(want);
            if (want != 0) worst_log = fmax(worst_log, fabs(rrl_logf(x) - want) / unit);
        }
    }
    printf("every %llu-th float: expf %.3f ulp, logf %.3f ulp\n", (unsigned long long)step, worst_exp,
           worst_log);
    CHECK(worst_exp > 0.4 && worst_exp <= 1.1);
    CHECK(worst_log > 0.4 && worst_log <= 1.0);
}

static double uniform(void) {
    static uint64_t state = 9;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

static void doubles(void) {
    double e = 0, l = 0, t = 0, p = 0;
    for (int i = 0; i < 300000; ++i) {
        double x = (uniform() - 0.5) * 1400;
        e = fmax(e, (double)fabsl(rrl_exp(x) - expl(x)) / long_ulp(expl(x)));
        double y = exp((uniform() - 0.5) * (i % 2 ? 1400 : 2));
        if (y != 1) l = fmax(l, (double)fabsl(rrl_log_natural(y) - logl(y)) / long_ulp(logl(y)));
        double s, c, a = (uniform() - 0.5) * (i % 3 == 0 ? 0x1p31 : i % 3 == 1 ? 10 : 1e5);
        rrl_sincos(&s, &c, a);
        t = fmax(t, (double)fmaxl(fabsl(s - sinl(a)), fabsl(c - cosl(a))));
        double base = exp((uniform() - 0.5) * 40), power = (uniform() - 0.5) * 30;
        p = fmax(p, (double)fabsl(rrl_pow(base, power) - powl(base, power)) / long_ulp(powl(base, power)));
    }
    printf("doubles: exp %.3f ulp, log %.3f ulp, sincos %.2g, pow %.3f ulp\n", e, l, t, p);
    CHECK(e <= 1.1);
    CHECK(l <= 1.0);
    CHECK(t <= 2e-16);
    CHECK(p <= 1.5);
}

static void special_values(void) {
    CHECK(rrl_expf(0) == 1 && rrl_expf(-0.0f) == 1);
    CHECK(rrl_expf(-INFINITY) == 0 && rrl_expf(-1000) == 0 && rrl_expf(INFINITY) == INFINITY &&
          rrl_expf(89) == INFINITY);
    CHECK(rrl_expf(88.72283f) > 3.4e38f && rrl_expf(88.72283f) < INFINITY);
    CHECK(rrl_expf(-100) > 0 && rrl_expf(-100) < FLT_MIN); /* subnormal, not flushed */
    CHECK(isnan(rrl_expf(NAN)) && isnan(rrl_logf(NAN)) && isnan(rrl_logf(-1)) && isnan(rrl_exp(NAN)));
    CHECK(rrl_logf(1) == 0 && rrl_logf(0) == -INFINITY && rrl_logf(INFINITY) == INFINITY);
    CHECK_NEAR(rrl_logf(1e-42f), log((double)1e-42f), 1e-5);
    CHECK(rrl_exp(0) == 1 && rrl_exp(-800) == 0 && rrl_exp(710) == INFINITY && rrl_exp(-740) > 0);
    CHECK(rrl_log_natural(1) == 0 && rrl_log_natural(0) == -INFINITY && isnan(rrl_log_natural(-2)));
    CHECK_NEAR(rrl_log_natural(1e-310), log(1e-310), 1e-12);
    CHECK(rrl_pow(10000, 0) == 1 && rrl_pow(2, 10) == 1024 && rrl_pow(2, -3) == 0.125 &&
          rrl_pow(1, 1e9) == 1);
    CHECK(rrl_pow(0, 2) == 0 && isnan(rrl_pow(-2, 2)) && rrl_pow(INFINITY, -1) == 0);
    double s, c;
    rrl_sincos(&s, &c, 0);
    CHECK(s == 0 && c == 1);
}

/* Written once with gcc 12 on x86-64; equal on every machine by construction. */
static void fixed_bits(void) {
    CHECK(rrl_expf(1) == 0x1.5bf0a8p+1f && rrl_expf(-7.3f) == 0x1.622d44p-11f);
    CHECK(rrl_logf(10) == 0x1.26bb1cp+1f && rrl_logf(0.3f) == -0x1.34379p+0f);
    CHECK(rrl_exp(1.5) == 0x1.1ed3fe64fc541p+2 && rrl_log_natural(3) == 0x1.193ea7aad030ap+0 &&
          rrl_pow(10000, -0.375) == 0x1.030dc4ea03a72p-5);
    double s, c;
    rrl_sincos(&s, &c, 1234.5);
    CHECK(s == 0x1.29c531dfd031bp-3 && c == -0x1.fa8f2ceb78372p-1);
}

int main(int argc, char **argv) {
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1009;
    floats(step > 0 ? (uint64_t)step : 1);
    doubles();
    special_values();
    fixed_bits();
    return CHECK_DONE();
}
