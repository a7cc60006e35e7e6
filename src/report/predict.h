/* Prediction: what an ensemble of erring verifiers and a shaping make of right and of wrong completions, computed
 * before anything is trained.
 *
 * All that can happen to the members' verdicts is enumerated with its probability (noise by quadrature) and goes through
 * rrl_corrupt, rrl_ensemble_of and rrl_shape_one, the functions of the program itself. Source: docs/prediction.md. */
#ifndef RRL_REPORT_PREDICT_H
#define RRL_REPORT_PREDICT_H

#include "rrl/config.h"

/* A view is a way to make one reward of the verdicts: X(field, text). The first four are the ensemble strategies with
 * standard shaping, the others shapings of the configured ensemble; posterior is P(right | verdicts). */
#define RRL_PREDICT_STRATEGY_LIST(X)                                                                                   \
    X(MEAN, "mean")                                                                                                    \
    X(MAJORITY, "majority")                                                                                            \
    X(CONFIDENCE_WEIGHTED, "confidence_weighted")                                                                      \
    X(MINIMUM, "min")                                                                                                  \
    X(CONFIDENCE, "confidence")                                                                                        \
    X(PENALIZED, "penalized")                                                                                          \
    X(COMBINED, "combined")                                                                                            \
    X(CONSERVATIVE, "conservative")                                                                                    \
    X(POSTERIOR, "posterior")
typedef enum {
#define X(name, text) RRL_PREDICT_##name,
    RRL_PREDICT_STRATEGY_LIST(X)
#undef X
        RRL_PREDICT_STRATEGIES
} rrl_predict_strategy;

enum {
    RRL_PREDICT_MEMBERS = 64,                   /* as many as a config may have */
    RRL_PREDICT_VIEWS = RRL_PREDICT_POSTERIOR,  /* views of one call at most */
    RRL_PREDICT_PRIORS = 8,                     /* values of P(right) at most */
};

/* ---- one ensemble ---- */

/* Members [n] judge right completions 1 and wrong ones 0 before corruption. Events of members with one seed are one
 * event, as in the program. eligible: share of right [1] and of wrong [0] completions on which a bias or an exploit may
 * act; every exploit member has the same, each bias value its own, independently of the others. */
typedef struct {
    const rrl_corruption *members;
    int n;
    double eligible[2];
} rrl_predict_ensemble;

typedef struct {
    rrl_ensemble_strategy ensemble;
    rrl_shaping shaping;
    bool exclude_missing; /* reward.missing: exclude */
} rrl_predict_view;

/* Sums over everything that can happen to a wrong [0] and to a right [1] completion; v = shaped reward, 0 if missing. */
typedef struct {
    double available[2]; /* P(reward not missing) */
    double sum[2];       /* E[v] */
    double square[2];    /* E[v^2] */
} rrl_predict_moments;

/** Moments of the views [n_views], and for each prior P(right) [n_priors], inside (0,1), E[P(right | verdicts) | right].
 *  *error bounds the quadrature's error of each number: 0 without noise, else at most 1e-6 unless the mix of noises is
 *  too large for it. Errors: RRL_ERR_RANGE (a number outside its range, too many kinds of members to enumerate). */
rrl_status rrl_predict_moments_of(rrl_predict_moments *moments, double *posterior, double *error,
                                  const rrl_predict_ensemble *e, const rrl_predict_view *views, int n_views,
                                  const double *priors, int n_priors);

typedef struct {
    double right, wrong; /* E[r | right], E[r | wrong]; of available rewards where missing ones are excluded */
    double missing;      /* P(reward missing) */
    double j_eff;        /* right - wrong; 1 for a clean verifier */
    double rho;          /* Corr(r, right); NaN where r is constant */
    double updates;      /* expected updates relative to clean; infinity where j_eff <= 0 */
} rrl_predict_effect;

/** What the moments mean at this P(right), with groups of `group` completions. NaN where no reward is available. */
rrl_predict_effect rrl_predict_effect_of(const rrl_predict_moments *m, bool exclude_missing, double p_right,
                                         int64_t group);
/** The same of the posterior; j_eff is rho^2. */
rrl_predict_effect rrl_predict_effect_of_posterior(double posterior, double p_right);
/** -1, 0 or 1: does the reward lead away from right completions, nowhere, or towards them? */
int rrl_predict_sign(double j_eff);

/* ---- a config ---- */

/* An arm at a level, a run, or a row of the reference table. */
typedef struct {
    char *arm, *kind;        /* kind: the members' kind, "flip_shared" if the event is one; else all, "none+exploit" */
    char *refused;           /* why there are no numbers; NULL = there are */
    double level;            /* of the study, else the probability of the event; NaN where the members differ */
    int members;
    bool reference;          /* of the reference table, not of the config */
    bool has_eligible;       /* a bias or exploit member is there */
    int baseline, robust;    /* the rrl_predict_strategy that the method trains on, -1 = the method is not planned; of a
                                run: baseline = its reward */
    rrl_predict_view views[RRL_PREDICT_VIEWS]; /* [strategy] */
    rrl_predict_moments moments[RRL_PREDICT_VIEWS];
    double posterior[RRL_PREDICT_PRIORS];
    double error;
} rrl_predict_cell;

typedef struct {
    rrl_predict_cell *cells;
    size_t n, capacity;
    double priors[RRL_PREDICT_PRIORS]; /* P(right), ascending */
    int n_priors;
    double eligible[2];
    int64_t group;
    bool run; /* one run, no study */
} rrl_predict_table;

typedef struct {
    const double *priors; /* [n_priors]; NULL = .1 .3 .5 .7 .9 */
    int n_priors;
    double extra_prior;   /* one more; NaN = none */
    double eligible[2];   /* share of wrong [0] and right [1] completions on which bias and exploit may act */
} rrl_predict_request;
#define RRL_PREDICT_REQUEST {.extra_prior = NAN, .eligible = {1, 1}}

/** Cells of the config: each arm at each level of a study, or the one run, with its own members, of what is none
 *  (rrl_config_purpose); with `reference` also three rule members under the seven noises of the reference table. Free with
 *  rrl_predict_table_free. Errors: those of rrl_conditions_list and of rrl_predict_moments_of. */
rrl_status rrl_predict_table_make(rrl_predict_table *out, const rrl_config *c, const rrl_predict_request *request,
                                  bool reference);
void rrl_predict_table_free(rrl_predict_table *t);
/** The effect of a strategy at priors[prior]. */
rrl_predict_effect rrl_predict_effect_at(const rrl_predict_table *t, const rrl_predict_cell *cell,
                                         rrl_predict_strategy s, int prior);

/** {"rows":[{"arm","kind","level","p_right","strategy","j_eff","rho","updates","sign","right","wrong","missing"}]};
 *  undefined = null, updates null where they never arrive. The caller frees *out. */
rrl_status rrl_predict_json(char **out, const rrl_predict_table *t);
/** Readable tables of at most 80 columns. The caller frees *out. */
rrl_status rrl_predict_text(char **out, const rrl_predict_table *t);
/** The short form for `validate`: a line for each arm and level with J, rho and sign of the planned methods. The caller
 *  frees *out. */
rrl_status rrl_predict_summary(char **out, const rrl_config *c);

#endif
