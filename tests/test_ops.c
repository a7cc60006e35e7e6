/* Every op of every instruction set equals the reference kernels bit for bit, with several thread counts: the list of
 * cases in ops_cases.c. */
#include "check.h"
#include "ops_cases.h"

/* Portable code calls fmaf for every lane: with sanitisers on, a quarter of the rounds still takes half a
 * minute. */
#ifdef __SANITIZE_ADDRESS__
enum { ROUNDS_DIVISOR = 4 };
#else
enum { ROUNDS_DIVISOR = 1 };
#endif

static const struct {
    const char *isa;
    int threads;
} DEVICES[] = {{"avx2", 1}, {"avx512", 1}, {"portable", 3}, {"avx2", 3}, {"avx512", 3}, {"reference", 2}};
enum { N = sizeof DEVICES / sizeof DEVICES[0] };

static void compare_case(int which, int round, rrl_device *reference, rrl_device *const *d) {
    ops_written want = {0};
    ops_case_run(&want, which, round, reference, true);
    for (int i = 0; i < N; ++i) {
        char who[64];
        ops_written got = {0};
        if (!d[i]) continue;
        ops_case_run(&got, which, round, d[i], true);
        snprintf(who, sizeof who, "%s with %d threads", rrl_device_isa(d[i]), DEVICES[i].threads);
        ops_case_equal(&want, &got, ops_case_name(which), round, who);
        ops_written_free(&got);
    }
    ops_written_free(&want);
}

int main(void) {
    rrl_device *reference = NULL, *d[N] = {NULL};
    if (!CHECK_OK(rrl_cpu_open(&reference, "reference", 1))) return CHECK_DONE();
    for (int i = 0; i < N; ++i)
        if (rrl_cpu_open(&d[i], DEVICES[i].isa, DEVICES[i].threads) != RRL_OK) {
            CHECK(strncmp(DEVICES[i].isa, "avx", 3) == 0);
            printf("not tested here: %s\n", DEVICES[i].isa);
        }
    for (int which = 0; which < N_OPS_CASES; ++which)
        for (int round = 0; round < (ops_case_rounds(which) + ROUNDS_DIVISOR - 1) / ROUNDS_DIVISOR; ++round)
            compare_case(which, round, reference, d);
    for (int i = 0; i < N; ++i) rrl_device_close(&d[i]);
    rrl_device_close(&reference);
    CHECK_EQ_INT(ops_cases_failures(), 0);
    return CHECK_DONE();
}
