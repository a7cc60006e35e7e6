/* Student's t through the incomplete beta function, by its continued fraction (Lentz's method); quantiles by
 * bisection, because they are few and must not fail. */
#include "report/student.h"

#include <math.h>

/* The continued fraction of the incomplete beta function, for x < (a + 1) / (a + b + 2). */
static double fraction(double a, double b, double x) {
    static const double TINY = 1e-300, EPS = 1e-15;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < TINY ? TINY : d);
    double f = d;
    for (int m = 1; m < 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < TINY ? TINY : d);
        c = fabs(c) < TINY ? TINY : c;
        f *= c * d;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < TINY ? TINY : d);
        c = fabs(c) < TINY ? TINY : c;
        f *= c * d;
        if (fabs(c * d - 1) < EPS) break;
    }
    return f;
}

/* Regularised incomplete beta function; y = 1 - x is given beside x so that neither loses digits. */
static double beta_share(double a, double b, double x, double y) {
    if (x <= 0 || y <= 0) return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    if (x < (a + 1) / (a + b + 2)) return front * fraction(a, b, x) / a;
    return 1 - front * fraction(b, a, y) / b;
}

double rrl_student_cdf(double t, double df) {
    if (isinf(df)) return 0.5 * erfc(-t / sqrt(2));
    double tail = 0.5 * beta_share(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t));
    return t > 0 ? 1 - tail : tail;
}

double rrl_student_quantile(double p, double df) {
    if (p > 0.5) return -rrl_student_quantile(1 - p, df); /* tails are exact on the left */
    double low = -1, high = 0;
    while (rrl_student_cdf(low, df) > p && low > -1e300) low *= 2;
    for (int i = 0; i < 200 && high - low > 1e-14 * fabs(low); i++) {
        double middle = (low + high) / 2;
        if (rrl_student_cdf(middle, df) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
