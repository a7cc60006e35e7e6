/* Checks for plain C test programs: a failed one prints file:line and both values, is counted, and the test goes on.
 *
 *   int main(void) { CHECK(...); CHECK_EQ_INT(f(), 3); return CHECK_DONE(); }
 *
 * Exit code 0 = passed, 1 = failed, 77 = skipped. Nothing here depends on NDEBUG. Arguments are evaluated once. */
#ifndef RRL_TESTS_CHECK_H
#define RRL_TESTS_CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rrl/status.h"

/* One test program is one source file, so these may be static. */
static int check_failures;
static int check_count;

__attribute__((unused)) static int check_true(int ok, const char *file, int line, const char *text) {
    check_count++;
    if (ok) return 1;
    check_failures++;
    fprintf(stderr, "%s:%d: CHECK(%s) failed\n", file, line, text);
    return 0;
}

__attribute__((unused)) static int check_eq_int(long long a, long long b, const char *file, int line, const char *text) {
    check_count++;
    if (a == b) return 1;
    check_failures++;
    fprintf(stderr, "%s:%d: %s: %lld != %lld\n", file, line, text, a, b);
    return 0;
}

/* NULL equals only NULL. */
__attribute__((unused)) static int check_eq_str(const char *a, const char *b, const char *file, int line,
                                                const char *text) {
    check_count++;
    if (a == b || (a && b && strcmp(a, b) == 0)) return 1;
    check_failures++;
    fprintf(stderr, "%s:%d: %s:\n  left  \"%s\"\n  right \"%s\"\n", file, line, text, a ? a : "(NULL)",
            b ? b : "(NULL)");
    return 0;
}

/* |a - b| <= tol; equal infinities are near, and NaN is near NaN (both mean "missing"). */
__attribute__((unused)) static int check_near(double a, double b, double tol, const char *file, int line,
                                              const char *text) {
    check_count++;
    if (a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tol) return 1;
    check_failures++;
    fprintf(stderr, "%s:%d: %s: %.17g and %.17g differ by %.3g > %.3g\n", file, line, text, a, b, fabs(a - b), tol);
    return 0;
}

__attribute__((unused)) static int check_status(rrl_status got, rrl_status want, const char *file, int line,
                                                const char *text) {
    check_count++;
    if (got == want) return 1;
    check_failures++;
    fprintf(stderr, "%s:%d: %s: status \"%s\", expected \"%s\"\n", file, line, text, rrl_status_text(got),
            rrl_status_text(want));
    if (got != RRL_OK) fprintf(stderr, "  %s: %s\n", rrl_error_place(), rrl_error_message());
    return 0;
}

__attribute__((unused)) static int check_done(const char *file) {
    if (!check_failures) return 0;
    fprintf(stderr, "%s: %d of %d checks failed\n", file, check_failures, check_count);
    return 1;
}

/* RRL_REQUIRE_GPU=1 is set where the hardware is known to be there: a skip would hide a failure. */
__attribute__((unused)) static int check_skip(const char *file, int line, const char *why) {
    const char *required = getenv("RRL_REQUIRE_GPU");
    int fail = required && strcmp(required, "1") == 0;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, fail ? "failed, a skip is not allowed here" : "skipped", why);
    return fail ? 1 : 77;
}

/* Each is an expression: 1 if it held, so a test may say `if (!CHECK_OK(...)) return CHECK_DONE();`. */
#define CHECK(cond) check_true((cond) ? 1 : 0, __FILE__, __LINE__, #cond)
#define CHECK_EQ_INT(a, b) check_eq_int((long long)(a), (long long)(b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_EQ_STR(a, b) check_eq_str((a), (b), __FILE__, __LINE__, #a " == " #b)
#define CHECK_NEAR(a, b, tol) check_near((a), (b), (tol), __FILE__, __LINE__, #a " ~ " #b)
#define CHECK_OK(rc) check_status((rc), RRL_OK, __FILE__, __LINE__, #rc)
#define CHECK_STATUS(rc, want) check_status((rc), (want), __FILE__, __LINE__, #rc)
/* The last statement of main. */
#define CHECK_DONE() check_done(__FILE__)
/* Ends the program; `why` is printed. */
#define CHECK_SKIP(why) exit(check_skip(__FILE__, __LINE__, (why)))

#endif
