/* GRPO losses, gradients and AdamW against TRL's own numbers (tests/golden/README.md). Each returns the number of failed
 * comparisons, a line for each. */
#ifndef RRL_TESTS_GOLDEN_LEARN_H
#define RRL_TESTS_GOLDEN_LEARN_H

#include "device/device.h"

/** Four loss types: loss of each micro-batch and their sum within 1e-6 + 1e-4 |loss|, kl, entropy and clip shares, and each
 *  gradient tensor within 1e-4 of its norm. */
int golden_learn_grpo(const char *dir, const char *arch, rrl_device *d);
/** AdamW steps of adamw.safetensors within 1e-6. */
int golden_learn_adamw(const char *dir, const char *arch, rrl_device *d);
int golden_learn_all(const char *dir, rrl_device *d);

#endif
