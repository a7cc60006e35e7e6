/* Hypotheses answered: hand-made differences, what each statement must say of them, and in which words. */
#include "report/hypotheses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "check.h"

static const char STUDY[] = "seed: 1\n"
                            "output_dir: out\n"
                            "experiment:\n  arms: [{name: flip, levels: [0, 0.4]}, {name: other, levels: [0]}]\n"
                            "hypotheses:\n"
                            "  - {name: up, contrast: baseline - base, arm: flip, levels: [0], direction: greater}\n"
                            "  - {name: reversed, contrast: base - baseline, arm: flip, levels: [0], direction: greater}\n"
                            "  - {name: everywhere, contrast: robust - base, direction: less}\n"
                            "  - {name: same, contrast: robust - baseline, arm: flip, levels: [0.4], direction: equal}\n"
                            "  - {name: nowhere, contrast: robust - base, arm: flip, levels: [0.9], direction: less}\n";

#define CLAIM(low, high, p) {low, high, p, NAN, 0, 0.1}

static rrl_report_difference DIFFERENCES[] = {
    {"flip", "independent_accuracy", "baseline", "base", 0, 8, 64, 0.2, CLAIM(0.1, 0.3, 0.0001), CLAIM(0.05, 0.35, 0.0078)},
    {"flip", "observed_reward", "baseline", "base", 0, 8, 64, 0.9, CLAIM(0.8, 1, 0.0001), CLAIM(0.8, 1, 0.0078)},
    {"flip", "independent_accuracy", "robust", "base", 0, 8, 64, -0.1, CLAIM(-0.2, 0.1, 0.3), CLAIM(-0.4, 0.2, 0.5)},
    {"flip", "independent_accuracy", "robust", "base", 0.4, 8, 64, -0.3, CLAIM(-0.4, -0.2, 0.0001), CLAIM(-0.5, -0.1, 0.04)},
    {"flip", "independent_accuracy", "robust", "baseline", 0.4, 8, 64, 0.01, CLAIM(-0.03, 0.05, 0.6), CLAIM(NAN, NAN, NAN)},
};
enum { N = sizeof DIFFERENCES / sizeof *DIFFERENCES };

static const rrl_report_answer *find(const rrl_report_answers *a, const char *name, double level) {
    static const rrl_report_answer NONE = {0};
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->v[i].hypothesis->name, name) == 0 && (isnan(level) ? isnan(a->v[i].level) : a->v[i].level == level))
            return &a->v[i];
    CHECK(false);
    return &NONE;
}

/* Six answers, five of them with a p of statement 1: 0.0001 three times, 0.3, 0.6; Holm: 5, 4, 3 times the smallest,
 * never falling. Statement 2 has four: 0.0078 twice, 0.04, 0.5. */
static void test_verdicts(const rrl_report_answers *a) {
    const rrl_report_answer *up = find(a, "up", 0), *reversed = find(a, "reversed", 0), *at0 = find(a, "everywhere", 0),
                            *at4 = find(a, "everywhere", 0.4), *same = find(a, "same", 0.4), *none = find(a, "nowhere", NAN);
    CHECK_EQ_INT(a->n, 6);
    CHECK_EQ_INT(up->runs, RRL_ANSWER_EXPECTED);
    CHECK_NEAR(up->about_runs.p_holm, 0.0005, 1e-15);
    CHECK_EQ_INT(up->method, RRL_ANSWER_EXPECTED);
    CHECK_NEAR(up->about_method.p_holm, 4 * 0.0078, 1e-15);
    CHECK_NEAR(reversed->mean, -0.2, 0);
    CHECK_NEAR(reversed->about_runs.low, -0.3, 0);
    CHECK_NEAR(reversed->about_runs.high, -0.1, 0);
    CHECK_EQ_INT(reversed->runs, RRL_ANSWER_CONTRARY);
    CHECK_EQ_INT(at0->runs, RRL_ANSWER_UNDECIDED);
    CHECK_EQ_INT(at4->runs, RRL_ANSWER_EXPECTED);
    CHECK_NEAR(at4->about_method.p_holm, 0.08, 1e-15);
    CHECK_EQ_INT(at4->method, RRL_ANSWER_UNDECIDED); /* the interval would, the corrected p does not */
    CHECK_EQ_INT(same->runs, RRL_ANSWER_EXPECTED);
    CHECK_EQ_INT(same->method, RRL_ANSWER_UNKNOWN);
    CHECK(none->arm == NULL);
}

static void check_words(const rrl_report_answer *a, const char *want) {
    rrl_buffer b = {0};
    CHECK_OK(rrl_report_answer_text(&b, a));
    CHECK_EQ_STR(b.data, want);
    rrl_buffer_free(&b);
}

static void test_words(const rrl_report_answers *a) {
    check_words(find(a, "up", 0),
                "independent_accuracy of baseline - base at flip 0 was expected to be above 0. Measured: +0.200 (8 seeds, 64 "
                "questions). About these runs: as expected; 95 % interval +0.100 to +0.300, p = 0.0001, corrected 0.0005. "
                "About the method: as expected; 95 % interval +0.050 to +0.350, p = 0.0078, corrected 0.0312.");
    check_words(find(a, "same", 0.4),
                "independent_accuracy of robust - baseline at flip 0.4 was expected to be 0. Measured: +0.010 (8 seeds, 64 "
                "questions). About these runs: as expected; 95 % interval -0.030 to +0.050, p = 0.6, corrected 0.6 (no "
                "difference seen; one beyond 0.050 is excluded). About the method: nothing can be said.");
    check_words(find(a, "nowhere", NAN),
                "independent_accuracy of robust - base was expected to be below 0. No record measures it.");
}

int main(void) {
    rrl_report_study study = {0};
    rrl_report_numbers numbers = {.differences = DIFFERENCES, .n_differences = N};
    rrl_report_data data = {0};
    rrl_report_page page = {.data = &data, .study = &study, .numbers = &numbers, .n = 1};
    rrl_report_answers answers = {0};
    if (!CHECK_OK(rrl_config_parse(&study.config, STUDY, strlen(STUDY), "study", NULL, NULL, 0))) return CHECK_DONE();
    if (CHECK_OK(rrl_report_answers_make(&answers, &page))) {
        test_verdicts(&answers);
        test_words(&answers);
    }
    rrl_report_answers_free(&answers);
    rrl_report_study_free(&study);
    return CHECK_DONE();
}
