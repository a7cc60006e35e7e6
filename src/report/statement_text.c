/* What the two statements are, and what was asked of a model before training, in words. */
#include <math.h>
#include <stdio.h>

#include "report/report_text.h"
#include "report/statistics.h"

void rrl_report_statement_note(char *out, size_t size, const rrl_report_numbers *n, bool method) {
    long long seeds = rrl_report_seeds(n->section);
    if (method)
        snprintf(out, size,
                 "What another run of the method with new seeds and new questions may be expected to do. Seeds and "
                 "questions are drawn crossed (%d draws, both methods of a pair together), the spread brought to the "
                 "unbiased variance of two crossed factors and to Student's t for few seeds. p: sign flips over the "
                 "seeds' mean differences, all 2^S of them up to %d seeds, else %d random ones. Holm's correction "
                 "counts the differences of one metric in this section as one family. Number of seeds: %lld.",
                 RRL_BOOTSTRAP_DRAWS, RRL_EXACT_FLIP_SEEDS, RRL_MONTE_CARLO_FLIPS, seeds);
    else
        snprintf(out, size,
                 "What these very runs do on questions like these; nothing is said of other seeds. Bootstrap over "
                 "questions, paired by question and seed (%d draws, percentiles). p: sign flips over questions, %d "
                 "random ones, (1 + hits) / (1 + flips). Holm's correction counts the differences of one metric in "
                 "this section as one family. Detectable is the smallest effect that a test at 5 %% finds in 80 %% of such "
                 "designs.",
                 RRL_BOOTSTRAP_DRAWS, RRL_QUESTION_FLIPS);
}

void rrl_report_seed_warning(char *out, size_t size, const rrl_report_numbers *n) {
    long long seeds = rrl_report_seeds(n->section);
    if (seeds < 2)
        snprintf(out, size,
                 "One seed: nothing can be said about the method, only about these runs. Run more seeds (at least %d).",
                 RRL_FEW_SEEDS);
    else
        snprintf(out, size,
                 "%lld seeds are few: whatever the effect, sign flips over %lld seeds cannot give a p below %g, and the "
                 "interval rests on %lld values. Take it as a range, not as a verdict; a single comparison can reach 0.05 from %d seeds on.",
                 seeds, seeds, ldexp(2, -(int)seeds), seeds, RRL_FEW_SEEDS);
}

bool rrl_report_qualification(char out[RRL_REPORT_SENTENCE], const rrl_report_study *s) {
    const rrl_qualification *q = &s->qualification;
    char how[64] = "greedy", demand[96] = "";
    if (!q->questions && !(s->demanded > 0)) return false;
    if (!q->questions) {
        snprintf(out, RRL_REPORT_SENTENCE, "pass@1 of at least %.4g is demanded before training; it was not measured yet.",
                 s->demanded);
        return true;
    }
    if (!q->greedy) snprintf(how, sizeof how, "%lld sampled answers each", (long long)q->samples);
    if (s->demanded > 0)
        snprintf(demand, sizeof demand, " The study demands at least %.4g: %s.", s->demanded,
                 q->pass1 >= s->demanded ? "qualified" : "not qualified");
    snprintf(out, RRL_REPORT_SENTENCE, "pass@1 of the untrained model is %.4f on %lld validation questions (%s).%s", q->pass1,
             (long long)q->questions, how, demand);
    return true;
}
