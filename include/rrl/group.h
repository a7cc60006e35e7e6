/* The group: one question and its completions, or a part of one - the unit that travels.
 *
 * A generator creates it (ids, tokens, log-probs, finish), a verifier fills in text, answers, verdicts, ensemble and
 * shaped rewards and joins parts, a learner adds advantages, the recorder writes it. It has one owner at a time;
 * sending moves it. The lists below are the one schema: the struct, the wire format and the record columns come from
 * them. */
#ifndef RRL_GROUP_H
#define RRL_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "rrl/status.h"

enum { RRL_FINISH_EOS = 0, RRL_FINISH_LENGTH = 1 };

/* Head of a group: field, C type, meaning. Wire order, little-endian, no padding. */
#define RRL_GROUP_HEAD(X)                                                                                             \
    X(version, uint32_t, "wire format version, RRL_GROUP_VERSION")                                                    \
    X(purpose, uint32_t, "RRL_RNG_TRAIN or rrl_rng_evaluation(name)")                                                 \
    X(step, int64_t, "sampling step, 0 in evaluation")                                                                \
    X(policy_version, int64_t, "optimiser updates that the sampling adapter had seen")                                \
    X(run, int64_t, "place of its run in the fleet; 0 alone")                                                         \
    X(question, int32_t, "row of the question in its pool")                                                           \
    X(slot, int32_t, "place of the group in the schedule of the step")                                                \
    X(group_size, int32_t, "completions of the whole group")                                                          \
    X(first, int32_t, "first sample of this part")                                                                    \
    X(count, int32_t, "completions in this part")                                                                     \
    X(members, int32_t, "verifier members; 0 before judging")                                                         \
    X(n_tokens, int64_t, "tokens of all completions")                                                                 \
    X(n_text, int64_t, "bytes of text and answers")

/* One completion: field, C type, record type, unit, missing rule, meaning. Token and text offsets are within the
 * group's arrays. The columns that reach /rollouts are those of src/record/schema.h, filled from here. */
#define RRL_COMPLETION_FIELDS(X)                                                                                      \
    X(sample, int32_t, "index of the completion in its group")                                                        \
    X(n_tokens, int32_t, "tokens, the end token included")                                                            \
    X(finish, int32_t, "RRL_FINISH_*")                                                                                \
    X(n_text, int32_t, "bytes of the text")                                                                           \
    X(n_answer, int32_t, "bytes of the extracted answer; -1 = none extracted")                                        \
    X(n_reasoning, int32_t, "bytes of the text before the final-answer marker")                                       \
    X(available, int32_t, "members whose reward is not missing")                                                      \
    X(correct, float, "1 or 0 by the independent judge, NaN before judging")                                          \
    X(reward, float, "ensemble reward in [0,1]; NaN = missing")                                                       \
    X(shaped, float, "reward after shaping; 0 where missing")                                                         \
    X(confidence, float, "C in [0,1]")                                                                                \
    X(disagreement, float, "U in [0,1]")                                                                              \
    X(vote_entropy, float, "bits, [0,1]")                                                                             \
    X(confidence_dispersion, float, "population standard deviation of the member confidences")                        \
    X(scale, float, "attenuation in [0,1]; 0 = suppressed")                                                           \
    X(advantage, float, "NaN before the learner")                                                                     \
    X(logprob_sum, float, "sum of recorded log-probs, natural log, ascending order")                                  \
    X(kl_mean, float, "mean k3 over the tokens; NaN if not computed")

/* One member's verdict on one completion. */
#define RRL_VERDICT_FIELDS(X)                                                                                         \
    X(clean, float, "reward before corruption; NaN = missing")                                                        \
    X(reward, float, "reward after corruption; NaN = missing")                                                        \
    X(confidence, float, "confidence in [0,1] after corruption")                                                      \
    X(available, int32_t, "1 = reward present")                                                                       \
    X(corrupted, int32_t, "1 = the corruption event fired")

enum { RRL_GROUP_VERSION = 1 };

typedef struct {
#define X(name, type, doc) type name;
    RRL_GROUP_HEAD(X)
#undef X
} rrl_group_head;

typedef struct {
#define X(name, type, doc) type name;
    RRL_COMPLETION_FIELDS(X)
#undef X
} rrl_completion;

typedef struct {
#define X(name, type, doc) type name;
    RRL_VERDICT_FIELDS(X)
#undef X
} rrl_verdict;

typedef struct {
    rrl_group_head head;
    rrl_completion *rows;  /* [count] */
    rrl_verdict *verdicts; /* [count, members]; NULL before judging */
    int32_t *tokens;       /* [n_tokens], completion after completion */
    float *logprobs;       /* [n_tokens], natural log at the sampling temperature, before penalty, top-k and top-p */
    char *text;            /* [n_text]: of each completion its text, then its answer; UTF-8 */
} rrl_group;

/** A group for `count` completions with room for n_tokens; rows zeroed but for sample = row, n_answer = -1 and NaN in
 *  correct, reward, advantage, kl_mean. Whoever makes a part sets head.first, head.group_size and adds first to the
 *  samples. The caller owns the group. */
rrl_status rrl_group_create(rrl_group **out, int32_t count, int64_t n_tokens);
/** Set the number of members and make the verdict array (zeroed, rewards NaN); an old one is freed. */
rrl_status rrl_group_set_members(rrl_group *g, int32_t members);
void rrl_group_free(rrl_group **g);
/** Offsets of completion i: first token, first byte of text, first byte of answer. */
int64_t rrl_group_token_at(const rrl_group *g, int32_t i);
int64_t rrl_group_text_at(const rrl_group *g, int32_t i);
int64_t rrl_group_answer_at(const rrl_group *g, int32_t i);
/** Join the parts of one group (any order, disjoint, complete) into one in sample order; the parts stay the caller's.
 *  Errors: RRL_ERR_INTERNAL (parts overlap, miss samples, or differ in question, step or version). */
rrl_status rrl_group_join(rrl_group **out, rrl_group *const *parts, int32_t n_parts);
/** Bytes of the wire form (the caller frees them), and back. Pack refuses a group whose rows and head disagree
 *  (RRL_ERR_INTERNAL): counts, lengths, sample = first + row. Unpack checks every length against `len` and the same
 *  things. Errors: RRL_ERR_COMM (damaged). */
rrl_status rrl_group_pack(char **bytes, size_t *len, const rrl_group *g);
rrl_status rrl_group_unpack(rrl_group **out, const char *bytes, size_t len);
/** The same of head and rows alone: all that rewards, advantages and the training row need. Unpacked, tokens, log-probs,
 *  text and verdicts are NULL, whatever the head counts: such a group is read no further, and not packed. */
rrl_status rrl_group_pack_rows(char **bytes, size_t *len, const rrl_group *g);
rrl_status rrl_group_unpack_rows(rrl_group **out, const char *bytes, size_t len);

#endif
