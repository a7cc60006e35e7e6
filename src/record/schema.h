/* Schemas of the record tables: each column once. Unit, missing rule and meaning are stored as attributes.
 *
 * X(field, C type, HDF5 type, unit, missing, meaning). The digest (digest.h) walks the same lists. */
#ifndef RRL_RECORD_SCHEMA_H
#define RRL_RECORD_SCHEMA_H

#include <stdint.h>

#define RRL_RECORD_FORMAT "rrl-records"
enum { RRL_RECORD_VERSION = 1 };

#define RRL_ROLLOUT_COLUMNS(X)                                                                                         \
    X(step, int64_t, H5T_STD_I64LE, "updates", "never", "sampling step; 0 in evaluation")                              \
    X(question, uint32_t, H5T_STD_U32LE, "row", "never", "row of /questions (evaluation: of its own questions)")       \
    X(sample, uint32_t, H5T_STD_U32LE, "index", "never", "completion of the question")                                 \
    X(policy_version, int64_t, H5T_STD_I64LE, "updates", "never", "updates the sampling adapter had seen")             \
    X(tokens, uint32_t, H5T_STD_U32LE, "tokens", "never", "length, end token included")                                \
    X(finish, uint8_t, H5T_STD_U8LE, "", "never", "0 = end token, 1 = length limit")                                   \
    X(reward, float, H5T_IEEE_F32LE, "1", "NaN", "ensemble reward in [0,1]")                                           \
    X(shaped, float, H5T_IEEE_F32LE, "1", "never", "reward after shaping; 0 where the reward is missing")              \
    X(confidence, float, H5T_IEEE_F32LE, "1", "never", "C in [0,1]")                                                   \
    X(disagreement, float, H5T_IEEE_F32LE, "1", "never", "U in [0,1]")                                                 \
    X(vote_entropy, float, H5T_IEEE_F32LE, "bits", "never", "of the positive fraction of votes")                       \
    X(confidence_dispersion, float, H5T_IEEE_F32LE, "1", "never", "population deviation of member confidences")        \
    X(scale, float, H5T_IEEE_F32LE, "1", "never", "attenuation; 0 = suppressed")                                       \
    X(advantage, float, H5T_IEEE_F32LE, "1", "NaN", "of the update it served first; NaN in evaluation")                \
    X(correct, float, H5T_IEEE_F32LE, "1", "NaN", "1 = right by the independent judge")                                \
    X(logprob_sum, float, H5T_IEEE_F32LE, "nats", "never", "sum of recorded log-probs")                                \
    X(kl_mean, float, H5T_IEEE_F32LE, "nats", "NaN", "token mean of k3; NaN if not computed")                          \
    X(token_offset, uint64_t, H5T_STD_U64LE, "row", "never", "first row of /tokens and /logprobs")                     \
    X(text_bytes, uint32_t, H5T_STD_U32LE, "bytes", "never", "length of /text")                                        \
    X(answer_bytes, int32_t, H5T_STD_I32LE, "bytes", "-1", "length of /answer; -1 = none extracted")                   \
    X(reasoning_bytes, uint32_t, H5T_STD_U32LE, "bytes", "never", "text before the final-answer marker")

#define RRL_VERDICT_COLUMNS(X)                                                                                         \
    X(rollout, uint64_t, H5T_STD_U64LE, "row", "never", "row of the rollouts table judged here")                       \
    X(member, uint16_t, H5T_STD_U16LE, "index", "never", "row of /members")                                            \
    X(clean, float, H5T_IEEE_F32LE, "1", "NaN", "reward before corruption")                                            \
    X(reward, float, H5T_IEEE_F32LE, "1", "NaN", "reward after corruption")                                            \
    X(confidence, float, H5T_IEEE_F32LE, "1", "never", "confidence in [0,1] after corruption")                         \
    X(available, uint8_t, H5T_STD_U8LE, "", "never", "1 = reward present")                                             \
    X(corrupted, uint8_t, H5T_STD_U8LE, "", "never", "1 = the corruption event fired")

#define X(field, type, h5, unit, missing, doc) type field;
typedef struct { RRL_ROLLOUT_COLUMNS(X) } rrl_rollout_row;
typedef struct { RRL_VERDICT_COLUMNS(X) } rrl_verdict_row;
#undef X

#endif
