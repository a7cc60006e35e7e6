/* The golden checks of corruption and advantages, for test_corruption.c, test_advantages.c and test_golden.c. */
#ifndef RRL_TESTS_GOLDEN_REWARDS_H
#define RRL_TESTS_GOLDEN_REWARDS_H

/* Each prints a line per failure to stderr, adds what was checked to *checks and returns the number of failures; a file
 * that cannot be read is one. */

/** dir/corruption.json: events by Python's own Mersenne Twister. Noise within 1e-12 (another libm), all else exact. */
int golden_corruption(int *checks, const char *dir);
/** dir/advantages.json: trl's advantages in float32; ours within the error bound of float32. */
int golden_advantages(int *checks, const char *dir);

#endif
