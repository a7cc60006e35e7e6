/* The golden check of temperature, top-k and top-p, for test_sampling.c and test_golden.c. */
#ifndef RRL_TESTS_GOLDEN_SAMPLING_H
#define RRL_TESTS_GOLDEN_SAMPLING_H

#include "device/device.h"

/** Check folder/sampling.safetensors: for every probs_tT_kK_pP the support of each row and the probabilities
 * within 1e-6. Prints a line per failure to stderr and adds what was checked to *checks. Returns the number
 * of failures; a file that cannot be read is one. */
int golden_sampling(int *checks, rrl_device *d, const char *folder);

#endif
