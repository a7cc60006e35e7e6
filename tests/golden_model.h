/* The model against golden files of another implementation (torch, transformers, peft, trl;
 * tests/golden/README.md).
 *
 * dir is laid out as tests/golden: dir/llama and dir/qwen2 with model, adapter, forward.safetensors, ... Each
 * check returns the number of failed comparisons; every failure has a line on stderr. */
#ifndef RRL_TESTS_GOLDEN_MODEL_H
#define RRL_TESTS_GOLDEN_MODEL_H

#include "device/device.h"

/** Logits of full prefill, base and adapter, within 1e-4. */
int golden_model_logits(const char *dir, const char *arch, rrl_device *d);
/** Log-probs at temperatures 1.0 and 0.7 from rrl_slot_forward, base and adapter, within 1e-4. */
int golden_model_logps(const char *dir, const char *arch, rrl_device *d);
/** 32 greedy tokens of 4 prompts, decoded one by one, base and adapter rows mixed in each batch. */
int golden_model_greedy(const char *dir, const char *arch, rrl_device *d);
/** The completions of grpo_inputs as training slots: per_token_logps and ref_per_token_logps within 1e-4. */
int golden_model_slots(const char *dir, const char *arch, rrl_device *d);
/** rrl_slot_gradient with dlogp of the dapo loss (computed here): grpo_grads_dapo. */
int golden_model_gradients(const char *dir, const char *arch, rrl_device *d);
/** All of the above for both families. */
int golden_model_all(const char *dir, rrl_device *d);

#endif
