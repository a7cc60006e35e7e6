/* The row of /training: what one optimiser update reports. The one list of its columns. */
#ifndef RRL_LEARN_TRAINING_ROW_H
#define RRL_LEARN_TRAINING_ROW_H

#include <stdint.h>

/* X(field, C type, record name, unit, in digest, meaning). Record names are TRL's where the meaning is the same. Every
 * double is NaN where undefined. "in digest" = 1: a pure function of the run, whatever layout or machine. */
#define RRL_TRAINING_COLUMNS(X)                                                                                        \
    X(step, int64_t, "step", "updates", 1, "optimiser update, 0, 1, ...")                                              \
    X(policy_version, int64_t, "policy_version", "updates", 1, "updates the sampling adapter had seen")                \
    X(loss, double, "loss", "1", 1, "policy term + beta * KL term, aggregated as loss_type says")                      \
    X(loss_policy, double, "loss_policy", "1", 1, "policy term; about 0 on policy")                                    \
    X(loss_kl, double, "loss_kl", "1", 1, "beta * k3 term")                                                            \
    X(reward, double, "reward", "1", 1, "mean shaped reward")                                                          \
    X(reward_std, double, "reward_std", "1", 1, "mean over groups of the unbiased deviation of shaped rewards")        \
    X(frac_reward_zero_std, double, "frac_reward_zero_std", "1", 1, "share of groups whose shaped rewards are equal")  \
    X(observed_reward, double, "observed_reward", "1", 1, "mean available ensemble reward before shaping")             \
    X(correct, double, "independent_accuracy", "1", 1, "share right by the independent judge")                         \
    X(penalty, double, "mean_penalty", "1", 1, "mean of ensemble reward - shaped reward over available ones")          \
    X(disagreement, double, "verifier_disagreement", "1", 1, "mean U")                                                 \
    X(confidence, double, "confidence", "1", 1, "mean C")                                                              \
    X(kl, double, "kl", "nats", 1, "token mean of k3 to the base")                                                     \
    X(entropy, double, "entropy", "nats", 1, "token mean")                                                             \
    X(clip_low, double, "clip_ratio/low_mean", "1", 1, "share of tokens with ratio < 1 - epsilon and advantage < 0")   \
    X(clip_high, double, "clip_ratio/high_mean", "1", 1, "ratio > 1 + epsilon_high and advantage > 0")                 \
    X(mean_length, double, "completions/mean_length", "tokens", 1, "mean completion length")                           \
    X(clipped_ratio, double, "completions/clipped_ratio", "1", 1, "share without an end token")                        \
    X(grad_norm, double, "grad_norm", "1", 1, "global L2 before clipping")                                             \
    X(learning_rate, double, "learning_rate", "1", 1, "used by this update")                                           \
    X(lora_b_norm, double, "lora_b_norm", "1", 1, "L2 of all B after the update")                                      \
    X(rollout_logp_maxdiff, double, "rollout_logp_maxdiff", "nats", 1, "largest |recorded - trained| log-prob")        \
    X(num_tokens, int64_t, "num_tokens", "tokens", 1, "completion tokens trained on so far")                           \
    X(missing, int64_t, "missing", "completions", 1, "rewards missing in this step")                                   \
    X(suppressed, int64_t, "suppressed", "completions", 1, "attenuation 0")                                            \
    X(downweighted, int64_t, "downweighted", "completions", 1, "attenuation between 0 and 1")                          \
    X(nonfinite, int64_t, "nonfinite", "steps", 1, "1 = loss or gradient not finite, update left out")                 \
    X(step_time, double, "step_time", "s", 0, "whole step on the recorder's rank")                                     \
    X(rollout_time, double, "time/rollout", "s", 0, "generation, with waiting")                                        \
    X(verify_time, double, "time/verify", "s", 0, "judging, with waiting")                                             \
    X(learn_time, double, "time/learn", "s", 0, "forward, backward, sum and update")                                   \
    X(idle_generators, double, "idle/generators", "1", 0, "share of the step that generators waited, mean over them")  \
    X(idle_verifiers, double, "idle/verifiers", "1", 0, "the same of verifiers")                                       \
    X(idle_learners, double, "idle/learners", "1", 0, "the same of learners")                                          \
    X(peak_memory, int64_t, "peak_memory", "bytes", 0, "largest resident size of the recorder's rank so far")

typedef struct {
#define X(field, type, name, unit, digest, doc) type field;
    RRL_TRAINING_COLUMNS(X)
#undef X
} rrl_training_row;

#endif
