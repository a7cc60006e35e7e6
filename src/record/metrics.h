/* Metrics of judged completions (docs/reference.md, section Metrics). Undefined is missing (defined = 0, NaN), never 0.
 *
 * Means run over what is known: a completion without a reward is left out of observed_reward, one that was not judged
 * of independent_accuracy. Metrics "of a question" (pass@k, consistency, diversity) are means over the questions where
 * they are defined: pass@k needs k completions, consistency a pair. Two answers are the same when they are the same
 * rational number, or else when their normal forms are equal; completions without an answer share one symbol. */
#ifndef RRL_RECORD_METRICS_H
#define RRL_RECORD_METRICS_H

#include "record/record.h"

enum { RRL_METRICS_MAX = 64 };

/* X(name, unit, meaning): the metrics that do not depend on k; pass@k follow as "pass@1", "pass@4", ... */
#define RRL_METRIC_LIST(X)                                                                                             \
    X(independent_accuracy, "1", "share right by the independent judge")                                               \
    X(observed_reward, "1", "mean available ensemble reward")                                                          \
    X(reward_coverage, "1", "share of completions with a reward")                                                      \
    X(paired_independent_accuracy, "1", "accuracy on completions with a reward")                                       \
    X(reward_hacking_gap, "1", "observed_reward - paired_independent_accuracy")                                        \
    X(false_positive_reward_rate, "1", "P(r >= 0.5 | wrong, available)")                                               \
    X(false_negative_rate, "1", "P(r < 0.5 | right, available)")                                                       \
    X(reward_correctness_correlation, "1", "Pearson; undefined for constants")                                         \
    X(verifier_disagreement, "1", "mean U")                                                                            \
    X(confidence, "1", "mean C")                                                                                       \
    X(answer_consistency, "1", "share of completion pairs of a question with the same answer")                         \
    X(answer_diversity, "1", "mean over questions of distinct answers / completions")                                  \
    X(extraction_failure_rate, "1", "share without an extracted answer")                                               \
    X(mean_generated_tokens, "tokens", "mean completion length")                                                       \
    X(truncation_rate, "1", "share that met the length limit")

/** All metrics of a set in the order of the list, then pass@k; names live as long as *out. k [n_k] ascending. A set read
 *  without text has no answer_consistency and answer_diversity (undefined). Errors: RRL_ERR_NOMEM, RRL_ERR_RANGE (more
 *  than RRL_METRICS_MAX). */
rrl_status rrl_metrics_of(rrl_metric **out, int *n, const rrl_record_set *s, const int64_t *k, int64_t n_k);
/** The same from judged groups in question order (head.question ascending), before they are recorded. */
rrl_status rrl_metrics_of_groups(rrl_metric **out, int *n, rrl_group *const *groups, int64_t n_groups, const int64_t *k,
                                 int64_t n_k);
/** Free what the two above made. */
void rrl_metrics_free(rrl_metric **m, int n);
/** Unbiased pass@k of one question: 1 - prod_{i=n-c+1..n} (1 - k/i); 1 if n - c < k. NaN if k > n. */
double rrl_pass_at_k(int64_t n, int64_t c, int64_t k);

#endif
