/* Everything that the members can say of one completion, with its probability. Used by the prediction only.
 *
 * Members whose corruption has one seed see the same random numbers: they are one *source*. What a source can say is a
 * list of *branches*. In most each verdict is a fixed value; under noise some verdicts move with one normal deviate z. */
#ifndef RRL_REPORT_PREDICT_SOURCE_H
#define RRL_REPORT_PREDICT_SOURCE_H

#include "report/predict.h"

typedef struct {
    double value;      /* the verdict, NaN = missing; where slope > 0 the verdict is value + slope z */
    double slope;
    double confidence;
} rrl_predict_verdict;

typedef struct {
    double weight;    /* probability; where continuous that of the event, without z */
    bool continuous;
    double low, high; /* range of z where continuous */
    rrl_predict_verdict *verdicts; /* [members of the source] */
} rrl_predict_branch;

typedef struct {
    rrl_predict_branch *v;
    size_t n, capacity;
} rrl_predict_branches;

typedef struct {
    int member[RRL_PREDICT_MEMBERS]; /* places in the ensemble */
    int n;
    bool twin; /* has the branches of the source before it: their verdicts may be exchanged */
} rrl_predict_source;

/** The sources of an ensemble, twins one after the other; sources has room for e->n. Twins are marked among noisy members,
 *  and among all where the ensemble is too large to tell them apart. */
void rrl_predict_sources_of(rrl_predict_source *sources, int *n, const rrl_predict_ensemble *e);

/** Branches of a source for a completion that is right or not; eligible [e->n] by member. Free with
 *  rrl_predict_branches_free. Errors: RRL_ERR_NOMEM. */
rrl_status rrl_predict_branches_of(rrl_predict_branches *out, const rrl_predict_ensemble *e,
                                   const rrl_predict_source *source, bool right, const bool *eligible);
void rrl_predict_branches_free(rrl_predict_branches *b);

/** Probability, or where a verdict moves with z density, of a source's verdicts given its branches. verdict [e->n] are
 *  values as a verifier would see them, moves [e->n] tells which of them moved. */
double rrl_predict_likelihood(const rrl_predict_branches *b, const rrl_predict_source *source, const double *verdict,
                              const bool *moves);

#endif
