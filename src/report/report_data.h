/* What a report is made of: one entry a record found, with everything the tables need, and the conditions that have no
 * finished record. Used by src/report only. */
#ifndef RRL_REPORT_REPORT_DATA_H
#define RRL_REPORT_REPORT_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "record/record.h"

/* Totals of a training run, one CSV column each: X(name, meaning). NaN = undefined, written as nothing. Rewards are those
 * of the training completions: observed = ensemble reward before shaping, where available; shaped = all, a missing reward
 * counting as its shaped value 0. Variances are population variances. */
#define RRL_DIAGNOSTIC_LIST(X)                                                                                         \
    X(steps, "optimiser updates recorded")                                                                             \
    X(samples, "training completions")                                                                                 \
    X(tokens, "their tokens")                                                                                          \
    X(observed_reward_sum, "sum of available ensemble rewards")                                                        \
    X(shaped_reward_sum, "sum of shaped rewards")                                                                      \
    X(observed_reward_mean, "mean of available ensemble rewards")                                                      \
    X(shaped_reward_mean, "mean of shaped rewards")                                                                    \
    X(observed_reward_variance, "of available ensemble rewards")                                                       \
    X(shaped_reward_variance, "of shaped rewards")                                                                     \
    X(mean_penalty, "mean of ensemble reward - shaped reward over available ones")                                     \
    X(independent_accuracy, "share of training completions right by the judge")                                        \
    X(mean_grad_norm, "mean over updates of the norm before clipping")                                                 \
    X(mean_kl, "mean over updates of the KL to the base, nats")                                                        \
    X(zero_variance_fraction, "mean over updates of the share of groups with equal shaped rewards")                    \
    X(lora_b_norm, "L2 of all B after the last update")                                                                \
    X(missing, "completions without a reward")                                                                         \
    X(suppressed, "completions with attenuation 0")                                                                    \
    X(downweighted, "completions with attenuation between 0 and 1")                                                    \
    X(nonfinite, "updates left out because loss or gradient was not finite")                                           \
    X(rollout_s, "seconds of generation, with waiting")                                                                \
    X(verify_s, "seconds of judging, with waiting")                                                                    \
    X(learn_s, "seconds of forward, backward, sum and update")                                                         \
    X(step_s, "seconds of whole steps")                                                                                \
    X(peak_memory_bytes, "largest resident size of the recorder's rank")

typedef struct {
#define X(name, doc) double name;
    RRL_DIAGNOSTIC_LIST(X)
#undef X
} rrl_report_diagnostics;

/* Evaluation completions by what they are and what was paid for them: X(name, meaning). Rewarded: ensemble reward >= 0.5;
 * right and wrong by the independent judge. */
#define RRL_FAILURE_LIST(X)                                                                                            \
    X(completions, "completions of the evaluation")                                                                    \
    X(right_rewarded, "right, rewarded")                                                                               \
    X(right_unrewarded, "right, not rewarded")                                                                         \
    X(right_missing, "right, without a reward")                                                                        \
    X(wrong_rewarded, "wrong, rewarded")                                                                               \
    X(wrong_unrewarded, "wrong, not rewarded")                                                                         \
    X(wrong_missing, "wrong, without a reward")                                                                        \
    X(unjudged, "not judged")                                                                                          \
    X(no_answer, "no answer extracted")                                                                                \
    X(no_answer_rewarded, "no answer extracted, rewarded")                                                             \
    X(truncated, "cut at the length limit")                                                                            \
    X(truncated_no_answer, "cut at the length limit, no answer extracted")                                             \
    X(disagreed, "members disagree (U > 0)")                                                                           \
    X(disagreed_wrong, "members disagree, wrong")                                                                      \
    X(questions_never_right, "questions without a right completion")                                                   \
    X(questions_always_right, "questions with right completions only")

typedef struct {
#define X(name, doc) int64_t name;
    RRL_FAILURE_LIST(X)
#undef X
} rrl_report_failures;

/* What the training reward made of right and of wrong completions: J = E[shaped | right] - E[shaped | wrong] and
 * rho = Corr(shaped, right); a missing reward counts as 0, or is left out ("_available"). NaN where one side is empty. */
typedef struct {
    double j, rho, j_available, rho_available;
    double eligible[2]; /* share of wrong and right completions on which a bias or exploit can act; NaN = no such member */
} rrl_report_gain;

typedef struct {
    char *id, *question, *reference;
    double wrong_rewarded; /* completions */
} rrl_report_question;

/* One record: a condition of a study, or a run. */
typedef struct {
    char *path; /* below the report's folder, "." for itself */
    char *kind, *arm, *method, *numeric_path, *digest, *config_yaml, *model_digest, *parser_version;
    double level; /* NaN = fixed members */
    uint64_t seed;
    bool complete, trained; /* trained: has training rows */
    int64_t steps;          /* training rows */
    char questions[65];     /* SHA-256 of the evaluation's questions; "" without an evaluation */
    char train_questions[65];
    char *evaluation;       /* the last one's name; NULL = none, then there are no metrics */
    int64_t n_questions, n_completions;
    rrl_metric *metrics; /* as recorded, then member_agreement; names owned */
    int64_t n_metrics;
    char **paired;  /* [n_paired] metrics that have a value for each question */
    double *values; /* [n_paired, n_questions], NaN = undefined for the question */
    int n_paired;
    int n_members;
    double *agreement; /* [n_members, n_members] share of completions on which two members vote alike; NaN = none */
    rrl_report_failures failures;
    rrl_report_question *questions_asked; /* [n_questions] */
    rrl_report_diagnostics training;
    rrl_report_gain gain;
    rrl_training_row *rows; /* [steps] */
    char *provenance;       /* JSON */
} rrl_report_condition;

/* A condition that was planned or begun and has no finished record, or one that cannot be read. Its path names it. */
typedef struct {
    char *path, *status, *reason; /* reason "" = none */
} rrl_report_gap;

typedef struct {
    rrl_report_condition *conditions;
    size_t n, capacity;
    rrl_report_gap *gaps;
    size_t n_gaps, gap_capacity;
} rrl_report_data;

/** Read every record below dir, and what study.json files plan. Conditions are sorted (rrl_report_order). A record that
 *  cannot be read becomes a gap. Errors: RRL_ERR_DATA (no record and no plan found). Free with rrl_report_data_free. */
rrl_status rrl_report_data_read(rrl_report_data *out, const char *dir);
void rrl_report_data_free(rrl_report_data *d);

/** What a report keeps of a record; path is copied. The caller frees it with rrl_report_condition_free. */
rrl_status rrl_report_extract(rrl_report_condition *out, const rrl_record *r, const char *path);
void rrl_report_condition_free(rrl_report_condition *c);

/** Order of rows: arm by name, level by number (fixed last), method base, baseline, robust, then by name, seed. */
int rrl_report_order(const rrl_report_condition *a, const rrl_report_condition *b);
int rrl_report_order_methods(const char *a, const char *b);
int rrl_report_order_levels(double a, double b);
/** Value of a recorded metric; NaN where it is undefined or not there. */
double rrl_report_metric(const rrl_report_condition *c, const char *name);
/** Values for each question of a paired metric, NULL if it is not there. */
const double *rrl_report_values(const rrl_report_condition *c, const char *name);

#endif
