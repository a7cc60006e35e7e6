/* The list of cases that every back end's ops are tested with: random ragged batches, odd sizes, numbers that depend on
 * the seed only. A case makes its inputs in device memory, calls ops and writes down what they computed; a test runs it
 * on the reference and on another device and compares. */
#ifndef RRL_TESTS_OPS_CASES_H
#define RRL_TESTS_OPS_CASES_H

#include "device/device.h"
#include "ops_written.h"

extern const int N_OPS_CASES;
const char *ops_case_name(int which);
int ops_case_rounds(int which);

/** Run round `round` of case `which` on d; kept = also write the masses that top-k and top-p keep, which the CPU tells.
 */
void ops_case_run(ops_written *out, int which, int round, rrl_device *d, bool kept);
/** CHECK that every bit is equal, or stretches within their bounds, those without one bit for bit. `who`: what computed got. */
void ops_case_equal(const ops_written *want, const ops_written *got, const char *name, int round, const char *who);
void ops_case_near(const ops_written *want, const ops_written *got, const char *name, int round, const char *who);
/** Checks that failed so far: differences, an op's status, log-probs of sampling and scoring that are not equal. */
int ops_cases_failures(void);

#endif
