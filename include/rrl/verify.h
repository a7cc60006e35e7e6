/* Verification: answer parser, exact rationals, verifier members with corruption, ensemble, independent judge. */
#ifndef RRL_VERIFY_H
#define RRL_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rrl/group.h"
#include "rrl/status.h"

/* ---- answers ---- */

enum { RRL_PARSER_VERSION = 3 };

/** The extracted answer of a completion, appended form: out points to malloc'ed text of *len bytes, or NULL = none.
 *  *marker_at = byte where the final-answer marker begins (the reasoning before it), len of text when there is none.
 *  Linear time in len. Source: docs/verification.md. */
rrl_status rrl_answer_extract(char **out, size_t *out_len, size_t *marker_at, const char *text, size_t len);
/** Normal form of an answer or reference; the caller frees *out. */
rrl_status rrl_answer_normal(char **out, const char *text, size_t len);
/** Whether the normal form is a scalar; if so *rational is "p" or "p/q" in lowest terms (malloc'ed), else NULL. */
rrl_status rrl_answer_rational(char **rational, const char *text, size_t len);
/** exact: equality of normal forms. rule: exact rational equality, normal forms where either side is no scalar.
 *  The answer may be NULL (none extracted): never equal. */
rrl_status rrl_answer_equal(bool *equal, const char *kind, const char *answer, size_t answer_len,
                            const char *reference, size_t reference_len);

/** Whether an extracted answer counts as one for this reference: a scalar does, a text only where the reference is a
 *  text too (a line such as "14 or 15" is no answer to 14). NULL never counts; counts == false is an extraction
 *  failure, recorded as none. */
rrl_status rrl_answer_counts(bool *counts, const char *answer, size_t answer_len, const char *reference,
                             size_t reference_len);

/* ---- corruption ---- */

#define RRL_CORRUPTION_LIST(X)                                                                                         \
    X(RRL_CORRUPT_NONE, "none")                                                                                        \
    X(RRL_CORRUPT_FLIP, "flip")                                                                                        \
    X(RRL_CORRUPT_FALSE_POSITIVE, "false_positive")                                                                    \
    X(RRL_CORRUPT_FALSE_NEGATIVE, "false_negative")                                                                    \
    X(RRL_CORRUPT_MISSING, "missing")                                                                                  \
    X(RRL_CORRUPT_NOISE, "noise")                                                                                      \
    X(RRL_CORRUPT_BIAS, "bias")                                                                                        \
    X(RRL_CORRUPT_EXPLOIT, "exploit")
typedef enum {
#define X(name, text) name,
    RRL_CORRUPTION_LIST(X)
#undef X
} rrl_corruption_kind;

typedef struct {
    rrl_corruption_kind kind;
    double probability; /* [0,1] */
    uint64_t seed;      /* [0, 2^63) */
    double noise_std, confidence_scale;
    const char *bias_key, *bias_value; /* borrowed; value as Python's str() writes it */
    double bias_reward;
} rrl_corruption;

/** One corruption event. reward NaN = missing. eligible is the caller's (bias, exploit). *applied tells whether the
 *  event fired, also where it changed nothing. Source: docs/verification.md, section Corruption. */
rrl_status rrl_corrupt(double *reward_out, double *confidence_out, bool *applied, const rrl_corruption *c,
                       const char *example_id, const char *response, size_t response_len, double reward,
                       double confidence, bool eligible);
/** metadata (a JSON object as text) [key] as Python's str() writes it: True, None, 1.0, text; *found false if absent.
 *  The caller frees *out. */
rrl_status rrl_metadata_str(char **out, bool *found, const char *metadata, const char *key);

/* ---- ensemble ---- */

#define RRL_ENSEMBLE_LIST(X)                                                                                           \
    X(RRL_ENSEMBLE_MEAN, "mean")                                                                                       \
    X(RRL_ENSEMBLE_MAJORITY, "majority")                                                                               \
    X(RRL_ENSEMBLE_CONFIDENCE, "confidence_weighted")                                                                  \
    X(RRL_ENSEMBLE_MINIMUM, "minimum")
typedef enum {
#define X(name, text) name,
    RRL_ENSEMBLE_LIST(X)
#undef X
} rrl_ensemble_strategy;

typedef struct {
    double reward; /* [0,1], NaN = missing */
    double u, c;   /* disagreement and confidence in [0,1] */
    double vote_entropy, confidence_dispersion;
    double minimum; /* smallest available member reward, NaN if none (conservative shaping) */
    int available;
} rrl_ensemble;

/** reward [n] in [0,1] or NaN, confidence [n] in [0,1]. Errors: RRL_ERR_RANGE. */
rrl_status rrl_ensemble_of(rrl_ensemble *out, rrl_ensemble_strategy s, const double *reward, const double *confidence,
                           int n);

/** The same from one completion's verdicts [n], as they stand in a group or a record. */
rrl_status rrl_ensemble_of_verdicts(rrl_ensemble *out, rrl_ensemble_strategy s, const rrl_verdict *verdicts, int n);

/* ---- the verifier of a run ---- */

typedef struct {
    const char *kind; /* "exact" or "rule" */
    rrl_corruption corruption;
} rrl_member_spec;

/** What a verifier judges besides the completions; strings are borrowed. */
typedef struct {
    const char *id, *reference, *metadata;
} rrl_judged_question;

typedef struct rrl_verifier rrl_verifier;
/** members [n] are copied; judge_kind is the independent judge's ("rule"), which never sees corruption. */
rrl_status rrl_verifier_open(rrl_verifier **out, rrl_ensemble_strategy s, const rrl_member_spec *members, int n,
                             const char *judge_kind);
void rrl_verifier_close(rrl_verifier **v);
int rrl_verifier_members(const rrl_verifier *v);
/** Judge every completion of a group whose text stands in g->text: fills answers (text is rebuilt), verdicts, reward,
 *  C, U, entropies, available, correct, n_reasoning. Batch-wise through the member tables. Verdicts are rounded to f32
 *  before the ensemble is computed, so that records give it back exactly. An answer that does not count for the
 *  reference (rrl_answer_counts) is none. */
rrl_status rrl_verifier_judge(rrl_verifier *v, rrl_group *g, const rrl_judged_question *q);

#endif
