/* Shaping: closed forms, thresholds at equality, missing rewards, and what the strategies make of noisy verdicts.
 *
 * The last is an independent check of ensemble and shaping together: the separation E[r|right] - E[r|wrong] and the
 * correlation of r with correctness for three rule members, by exact enumeration, against the published table (three
 * decimals, P(right) = 0.3). */
#include "check.h"

#include <stdbool.h>

#include "rrl/shape.h"

static const rrl_shaping DEFAULTS = {.penalty = 0.2,
                                     .moderate_threshold = 0.4,
                                     .severe_threshold = 0.9,
                                     .moderate_scale = 0.5,
                                     .severe_scale = 0.0};

static rrl_shaping shaping(rrl_shaping_strategy s) {
    rrl_shaping out = DEFAULTS;
    out.strategy = s;
    return out;
}

/* clang-format off */
static const struct {
    const char *what;
    rrl_shaping_strategy s;
    double r, u, c, minimum, value, scale;
} CASES[] = {
    {"standard", RRL_SHAPE_STANDARD, 0.75, 0.75, 0.25, 0, 0.75, 1},
    {"standard is never attenuated", RRL_SHAPE_STANDARD, 0.5, 1, 0, 0, 0.5, 1},
    {"confidence", RRL_SHAPE_CONFIDENCE, 1, 0, 0.75, 1, 0.75, 1},
    {"penalized", RRL_SHAPE_PENALIZED, 1, 0.25, 0.75, 1, 1 - 0.2 * 0.25, 1},
    {"combined, 2 of 3", RRL_SHAPE_COMBINED, 2.0 / 3, 8.0 / 9, 1.0 / 9, 0, (2.0 / 27 - 0.2 * 8 / 9) * 0.5, 0.5},
    {"combined, 1 of 3", RRL_SHAPE_COMBINED, 1.0 / 3, 8.0 / 9, 1.0 / 9, 0, (1.0 / 27 - 0.2 * 8 / 9) * 0.5, 0.5},
    {"conservative", RRL_SHAPE_CONSERVATIVE, 0.5, 0.0625, 0.9, 0.25, 0.25, 1},
    {"conservative, attenuated", RRL_SHAPE_CONSERVATIVE, 0.75, 0.5, 0.5, 0.5, 0.25, 0.5},
    {"just below moderate", RRL_SHAPE_PENALIZED, 1, 0.39999999999999997, 0, 1, 1 - 0.2 * 0.4, 1},
    {"at moderate", RRL_SHAPE_PENALIZED, 1, 0.4, 0, 1, (1 - 0.2 * 0.4) * 0.5, 0.5},
    {"just below severe", RRL_SHAPE_PENALIZED, 1, 0.8999999999999999, 0, 1, (1 - 0.2 * 0.9) * 0.5, 0.5},
    {"at severe", RRL_SHAPE_PENALIZED, 1, 0.9, 0, 1, 0, 0},
    {"missing", RRL_SHAPE_STANDARD, NAN, 0, 0, NAN, 0, 0},
    {"missing, conservative", RRL_SHAPE_CONSERVATIVE, NAN, 1, 0, 0.5, 0, 0},
};
/* clang-format on */

static void check_cases(void) {
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        rrl_shaping s = shaping(CASES[k].s);
        rrl_ensemble e = {.reward = CASES[k].r, .u = CASES[k].u, .c = CASES[k].c, .minimum = CASES[k].minimum};
        double value, scale;
        int before = check_failures;
        rrl_shape_one(&value, &scale, &s, &e);
        CHECK_NEAR(value, CASES[k].value, 2e-16);
        CHECK_NEAR(scale, CASES[k].scale, 0.0);
        if (check_failures > before) fprintf(stderr, "  case: %s\n", CASES[k].what);
    }
}

/* Thresholds meet computed uncertainties: one of four members gives U = 3/4 exactly. */
static void check_thresholds(void) {
    rrl_ensemble e;
    rrl_shaping s = shaping(RRL_SHAPE_PENALIZED);
    double value, scale;
    CHECK_OK(rrl_ensemble_of(&e, RRL_ENSEMBLE_MEAN, (double[]){1, 0, 0, 0}, (double[]){1, 1, 1, 1}, 4));
    s.moderate_threshold = 0.75;
    rrl_shape_one(&value, &scale, &s, &e);
    CHECK(scale == 0.5 && value == (0.25 - 0.2 * 0.75) * 0.5);
    s.moderate_threshold = s.severe_threshold = 0.75;
    s.severe_scale = 0.125;
    rrl_shape_one(&value, &scale, &s, &e);
    CHECK(scale == 0.125);
}

static void check_group(void) {
    static const float REWARDS[3][3] = {{1, 1, 0}, {1, 1, 1}, {NAN, NAN, NAN}};
    rrl_group *g = NULL;
    rrl_shaping s = shaping(RRL_SHAPE_COMBINED);
    if (!CHECK_OK(rrl_group_create(&g, 3, 0))) return;
    CHECK_STATUS(rrl_shape_group(g, &s, RRL_ENSEMBLE_MEAN), RRL_ERR_INTERNAL); /* not judged */
    CHECK_OK(rrl_group_set_members(g, 3));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            g->verdicts[3 * i + k] = (rrl_verdict){.reward = REWARDS[i][k],
                                                   .confidence = isnan(REWARDS[i][k]) ? 0.0f : 1.0f,
                                                   .available = !isnan(REWARDS[i][k])};
    CHECK_OK(rrl_shape_group(g, &s, RRL_ENSEMBLE_MEAN));
    CHECK_NEAR(g->rows[0].shaped, (2.0 / 27 - 1.6 / 9) * 0.5, 1e-8);
    CHECK(g->rows[0].scale == 0.5f);
    CHECK(g->rows[1].shaped == 1.0f && g->rows[1].scale == 1.0f);
    CHECK(g->rows[2].shaped == 0.0f && g->rows[2].scale == 0.0f);
    rrl_group_free(&g);
}

/* ---- the table ---- */

enum { MEMBERS = 3 };
typedef struct {
    double false_positive, false_negative; /* of each member */
    bool shared;                           /* all members err together */
} noise;

/* Probability that the verdicts have these bits, given the truth. */
static double likelihood(const noise *n, int bits, bool right) {
    double positive = right ? 1 - n->false_negative : n->false_positive, p = 1.0;
    if (n->shared) return bits == 7 ? positive : bits == 0 ? 1 - positive : 0.0;
    for (int k = 0; k < MEMBERS; k++) p *= bits >> k & 1 ? positive : 1 - positive;
    return p;
}

static double shaped_of(int bits, rrl_ensemble_strategy ensemble, rrl_shaping_strategy strategy) {
    double reward[MEMBERS], value = NAN, scale;
    rrl_ensemble e;
    rrl_shaping s = shaping(strategy);
    for (int k = 0; k < MEMBERS; k++) reward[k] = bits >> k & 1;
    CHECK_OK(rrl_ensemble_of(&e, ensemble, reward, (double[]){1, 1, 1}, MEMBERS));
    rrl_shape_one(&value, &scale, &s, &e);
    return value;
}

static void enumerate(double *separation, double *correlation, const noise *n, rrl_ensemble_strategy ensemble,
                      rrl_shaping_strategy strategy) {
    const double p_right = 0.3;
    double mean[2] = {0, 0}, square = 0;
    for (int right = 0; right <= 1; right++)
        for (int bits = 0; bits < 1 << MEMBERS; bits++) {
            double r = shaped_of(bits, ensemble, strategy), p = likelihood(n, bits, right);
            mean[right] += p * r;
            square += (right ? p_right : 1 - p_right) * p * r * r;
        }
    double all = p_right * mean[1] + (1 - p_right) * mean[0];
    *separation = mean[1] - mean[0];
    *correlation = p_right * (1 - p_right) * *separation / sqrt((square - all * all) * p_right * (1 - p_right));
}

static const struct {
    const char *what;
    noise n;
    double separation[4], correlation[4]; /* mean, majority, combined, min */
} TABLE[] = {
    {"flip .1", {.1, .1, false}, {.800, .944, .732, .728}, {.904, .934, .791, .806}},
    {"flip .2", {.2, .2, false}, {.600, .792, .509, .504}, {.766, .765, .614, .631}},
    {"flip .4", {.4, .4, false}, {.200, .296, .155, .152}, {.308, .273, .215, .223}},
    {"flip .6", {.6, .6, false}, {-.200, -.296, -.155, -.152}, {-.308, -.273, -.179, -.185}},
    {"false positive .4", {.4, 0, false}, {.600, .648, .981, .936}, {.758, .596, .902, .902}},
    {"false negative .4", {0, .4, false}, {.600, .648, .173, .216}, {.871, .750, .317, .402}},
    {"flip .2, shared", {.2, .2, true}, {.600, .600, .600, .600}, {.566, .566, .566, .566}},
};

static void check_table(void) {
    static const struct {
        rrl_ensemble_strategy ensemble;
        rrl_shaping_strategy shape;
    } COLUMNS[] = {{RRL_ENSEMBLE_MEAN, RRL_SHAPE_STANDARD},
                   {RRL_ENSEMBLE_MAJORITY, RRL_SHAPE_STANDARD},
                   {RRL_ENSEMBLE_MEAN, RRL_SHAPE_COMBINED},
                   {RRL_ENSEMBLE_MEAN, RRL_SHAPE_CONSERVATIVE}};
    for (size_t k = 0; k < sizeof TABLE / sizeof *TABLE; k++)
        for (int c = 0; c < 4; c++) {
            double separation, correlation;
            int before = check_failures;
            enumerate(&separation, &correlation, &TABLE[k].n, COLUMNS[c].ensemble, COLUMNS[c].shape);
            CHECK_NEAR(separation, TABLE[k].separation[c], 0.00051);
            CHECK_NEAR(correlation, TABLE[k].correlation[c], 0.00051);
            if (check_failures > before) fprintf(stderr, "  %s, column %d\n", TABLE[k].what, c);
        }
}

int main(void) {
    check_cases();
    check_thresholds();
    check_group();
    check_table();
    return CHECK_DONE();
}
