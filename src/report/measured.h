/* The prediction of predict.h beside what was measured: J of the training reward, its correlation with being right, and
 * how accuracy moved. Used by src/report only.
 *
 * Predicted J needs no measured number, but for bias and exploit members: which completions they can act on is the
 * policy's doing, so their share is taken from the records and said. The correlation also depends on P(right), which is
 * the training accuracy. */
#ifndef RRL_REPORT_MEASURED_H
#define RRL_REPORT_MEASURED_H

#include "report/compare.h"
#include "report/study_info.h"

typedef struct {
    const char *arm, *method; /* borrowed */
    double level;
    double predicted_j, predicted_rho;
    bool has_eligible;
    double eligible[2]; /* of wrong and right completions, where has_eligible */
    int64_t n_seeds;
    double measured_j, measured_rho;          /* means over seeds, training completions */
    const rrl_report_difference *accuracy;    /* independent accuracy - that of base; NULL = no base */
} rrl_report_measured;

typedef struct {
    rrl_report_measured *v;
    size_t n, capacity;
} rrl_report_measurements;

/** All trained arms, levels and methods of the section that the study's config predicts; none without a config. What
 *  cannot be predicted is left out. n must outlive it. The caller frees out->v. */
rrl_status rrl_report_measure(rrl_report_measurements *out, const rrl_report_study *study, const rrl_report_numbers *n);

/** At how many of the measurements the sign of J was that of the change of accuracy, one line. */
void rrl_report_signs(char *out, size_t size, const rrl_report_measurements *m);

#endif
