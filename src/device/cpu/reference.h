/* Pieces that the files of the reference table share. */
#ifndef RRL_DEVICE_CPU_REFERENCE_H
#define RRL_DEVICE_CPU_REFERENCE_H

#include "device/cpu/kernels.h"

/* Sum of 16 lanes: l += l+8, +4, +2, +1. */
float rrl_reference_tree(const float lane[RRL_LANES]);
/* 1 / sqrt(mean(x^2) + eps) */
float rrl_reference_rms_factor(const float *x, int64_t n, float eps);
/* Element e of a row's LoRA input after dropout; also the way back for its gradient. */
float rrl_reference_dropped(float x, const rrl_lora_args *args, const rrl_batch *b, int64_t row, int64_t e);
float rrl_reference_logp(const float *logits, int64_t n, float temperature, int32_t token);

void rrl_reference_sample(const rrl_sample_job *j, int64_t begin, int64_t end);
void rrl_reference_rms_norm_backward(const rrl_rms_norm_backward_job *j, int64_t begin, int64_t end);
void rrl_reference_lora_backward_rows(const rrl_lora_backward_job *j, int64_t begin, int64_t end);
void rrl_reference_lora_backward_a(const rrl_lora_backward_job *j, int64_t begin, int64_t end);
void rrl_reference_lora_backward_b(const rrl_lora_backward_job *j, int64_t begin, int64_t end);
void rrl_reference_attention_backward(const rrl_attention_backward_job *j, int64_t begin, int64_t end);
void rrl_reference_swiglu_backward(const rrl_swiglu_backward_job *j, int64_t begin, int64_t end);
void rrl_reference_lm_backward(const rrl_lm_backward_job *j, int64_t begin, int64_t end);
void rrl_reference_adamw(const rrl_adamw_job *j, int64_t begin, int64_t end);
void rrl_reference_sum_squares(const rrl_sum_squares_job *j, int64_t begin, int64_t end);

#endif
