/* Schemas of the record tables: each column once. Unit, missing rule and meaning are stored as attributes.
 *
 * X(field, C type, HDF5 type, unit, missing, meaning). Table descriptors (tables.c), writer, reader,
 * digest and docs/records.md all expand from these lists. */
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

/* Tables with texts: X(field, C type, column name, unit, missing, meaning). A char * is a fixed-length UTF-8 column, as
 * wide as the longest text in the file. */
#define RRL_QUESTION_COLUMNS(X)                                                                                        \
    X(id, char *, "id", "", "never", "unique in its pool")                                                             \
    X(question, char *, "question", "", "never", "text given to the policy")                                           \
    X(reference, char *, "reference", "", "never", "right answer")                                                     \
    X(klass, char *, "class", "", "empty", "metadata class of the question")

#define RRL_MEMBER_COLUMNS(X)                                                                                          \
    X(kind, char *, "kind", "", "never", "how the member compares answers")                                            \
    X(corruption, char *, "corruption", "", "never", "what happens to its reward")                                     \
    X(probability, double, "probability", "1", "never", "of the corruption event")                                     \
    X(seed, uint64_t, "seed", "", "never", "seed of the corruption event")                                             \
    X(noise_std, double, "noise_std", "1", "never", "of kind noise")                                                   \
    X(confidence_scale, double, "confidence_scale", "1", "never", "multiplies the member's confidence")                \
    X(bias_key, char *, "bias_key", "", "never", "metadata key of kind bias")                                          \
    X(bias_value, char *, "bias_value", "", "never", "value that is rewarded, as Python's str() writes it")            \
    X(bias_reward, double, "bias_reward", "1", "never", "reward given where it matches")

#define RRL_METRIC_COLUMNS(X)                                                                                          \
    X(name, const char *, "name", "", "never", "name of the metric")                                                   \
    X(value, double, "value", "1", "NaN", "value; NaN where undefined")                                                \
    X(defined, int, "defined", "", "never", "1 = defined")

#define X(field, type, h5, unit, missing, doc) type field;
typedef struct { RRL_ROLLOUT_COLUMNS(X) } rrl_rollout_row;
typedef struct { RRL_VERDICT_COLUMNS(X) } rrl_verdict_row;
typedef struct { RRL_QUESTION_COLUMNS(X) } rrl_record_question;
typedef struct { RRL_MEMBER_COLUMNS(X) } rrl_record_member;
typedef struct { RRL_METRIC_COLUMNS(X) } rrl_metric;
#undef X

#endif
