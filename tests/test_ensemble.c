/* The ensemble's moments in closed form, and the missing rules. */
#include "check.h"

#include "rrl/verify.h"

/* bits of a vote of 1 in 3 */
#define THIRD 0.9182958340544896
/* clang-format off */
static const struct {
    const char *what;
    rrl_ensemble_strategy s;
    int n;
    double reward[4], confidence[4];
    double r, u, c, entropy, dispersion, minimum;
    int available;
} CASES[] = {
    {"all agree", RRL_ENSEMBLE_MEAN, 3, {1, 1, 1}, {1, 1, 1}, 1, 0, 1, 0, 0, 1, 3},
    /* population variance of {1,1,0} is 2/9; entropy of 2/3 is log2(3) - 2/3 */
    {"2 of 3", RRL_ENSEMBLE_MEAN, 3, {1, 1, 0}, {1, 1, 1}, 2.0 / 3, 8.0 / 9, 1.0 / 9, THIRD, 0, 0, 3},
    {"2 of 3, majority", RRL_ENSEMBLE_MAJORITY, 3, {1, 1, 0}, {1, 1, 1}, 1, 8.0 / 9, 1.0 / 9, THIRD, 0, 0, 3},
    {"1 of 3, majority", RRL_ENSEMBLE_MAJORITY, 3, {0, 1, 0}, {1, 1, 1}, 0, 8.0 / 9, 1.0 / 9, THIRD, 0, 0, 3},
    {"2 of 3, minimum", RRL_ENSEMBLE_MINIMUM, 3, {1, 1, 0}, {1, 1, 1}, 0, 8.0 / 9, 1.0 / 9, THIRD, 0, 0, 3},
    {"a tie", RRL_ENSEMBLE_MAJORITY, 2, {1, 0}, {1, 1}, 0.5, 1, 0, 1, 0, 0, 2},
    {"a vote counts from 0.5", RRL_ENSEMBLE_MAJORITY, 2, {0.5, 0.75}, {1, 1}, 1, 0.0625, 0.9375, 0, 0, 0.5, 2},
    {"1 of 4", RRL_ENSEMBLE_MEAN, 4, {1, 0, 0, 0}, {1, 1, 1, 1}, 0.25, 0.75, 0.25, 0.8112781244591328, 0, 0, 4},
    {"weights", RRL_ENSEMBLE_CONFIDENCE, 2, {1, 0}, {0.75, 0.25}, 0.75, 1, 0, 1, 0.25, 0, 2},
    {"one missing", RRL_ENSEMBLE_MEAN, 3, {1, NAN, 1}, {1, 0, 0.5}, 1, 0, 0.75 * 2 / 3, 0, 0.25, 1, 2},
    {"one missing, tie", RRL_ENSEMBLE_MAJORITY, 3, {1, NAN, 0}, {1, 0, 1}, 0.5, 1, 0, 1, 0, 0, 2},
    {"all missing", RRL_ENSEMBLE_MEAN, 2, {NAN, NAN}, {0, 0}, NAN, 0, 0, 0, 0, NAN, 0},
    /* the reward is missing, what was disagreed about stays known */
    {"no weight", RRL_ENSEMBLE_CONFIDENCE, 2, {1, 0}, {0, 0}, NAN, 1, 0, 1, 0, 0, 2},
    {"one member", RRL_ENSEMBLE_MEAN, 1, {0.25}, {0.5}, 0.25, 0, 0.5, 0, 0, 0.25, 1},
};
/* clang-format on */

static void check_cases(void) {
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        rrl_ensemble e;
        int before = check_failures;
        CHECK_OK(rrl_ensemble_of(&e, CASES[k].s, CASES[k].reward, CASES[k].confidence, CASES[k].n));
        const double tol = 4e-16; /* a few roundings of numbers up to 1 */
        CHECK_NEAR(e.reward, CASES[k].r, tol);
        CHECK_NEAR(e.u, CASES[k].u, tol);
        CHECK_NEAR(e.c, CASES[k].c, tol);
        CHECK_NEAR(e.vote_entropy, CASES[k].entropy, 4 * tol); /* two logarithms of 2 ulp */
        CHECK_NEAR(e.confidence_dispersion, CASES[k].dispersion, tol);
        CHECK_NEAR(e.minimum, CASES[k].minimum, 0.0);
        CHECK_EQ_INT(e.available, CASES[k].available);
        if (check_failures > before) fprintf(stderr, "  case: %s\n", CASES[k].what);
    }
}

static void check_ranges(void) {
    rrl_ensemble e;
    CHECK_STATUS(rrl_ensemble_of(&e, RRL_ENSEMBLE_MEAN, (double[]){1.5}, (double[]){1}, 1), RRL_ERR_RANGE);
    CHECK_STATUS(rrl_ensemble_of(&e, RRL_ENSEMBLE_MEAN, (double[]){-0.5}, (double[]){1}, 1), RRL_ERR_RANGE);
    CHECK_STATUS(rrl_ensemble_of(&e, RRL_ENSEMBLE_MEAN, (double[]){1}, (double[]){NAN}, 1), RRL_ERR_RANGE);
    CHECK_STATUS(rrl_ensemble_of(&e, RRL_ENSEMBLE_MEAN, (double[]){1}, (double[]){1}, 0), RRL_ERR_RANGE);
}

/* The moments stay in their ranges for any rewards and confidences: a grid of both, three members. */
static void check_bounds(void) {
    for (int k = 0; k < 6 * 6 * 6 * 4; k++) {
        double reward[3], confidence[3];
        for (int i = 0, r = k; i < 3; i++, r /= 6) {
            reward[i] = r % 6 == 5 ? NAN : (r % 6) / 4.0;
            confidence[i] = isnan(reward[i]) ? 0.0 : ((k + i) % 4) / 3.0;
        }
        for (int s = 0; s <= RRL_ENSEMBLE_MINIMUM; s++) {
            rrl_ensemble e;
            CHECK_OK(rrl_ensemble_of(&e, (rrl_ensemble_strategy)s, reward, confidence, 3));
            CHECK(isnan(e.reward) || (e.reward >= 0.0 && e.reward <= 1.0));
            CHECK(e.u >= 0.0 && e.u <= 1.0 && e.c >= 0.0 && e.c <= 1.0);
            CHECK(e.vote_entropy >= 0.0 && e.vote_entropy <= 1.0 + 1e-15);
            CHECK(e.confidence_dispersion >= 0.0 && e.confidence_dispersion <= 0.5 + 1e-15);
        }
    }
}

int main(void) {
    check_cases();
    check_ranges();
    check_bounds();
    return CHECK_DONE();
}
