/* Advantages: trl's values, flat groups, missing rewards, and groups of a step. */
#include "check.h"

#include "golden_rewards.h"
#include "rrl/shape.h"

/* 0.1 + 0.1 + 0.1 is no multiple of 0.1: the mean differs from the values, the advantage must not. */
static void check_flat(void) {
    static const double REWARDS[] = {0.1, 0.1, 0.1, 0.7, 0.2, 0.7};
    double a[6];
    for (int s = RRL_SCALE_NONE; s <= RRL_SCALE_BATCH; s++) {
        CHECK_OK(rrl_advantages(a, REWARDS, 6, 3, (rrl_scale_rewards)s));
        for (int i = 0; i < 3; i++) CHECK(a[i] == 0.0);
        CHECK(a[3] > 0.0 && a[4] < 0.0 && a[3] == a[5]);
        CHECK_NEAR(a[3] + a[4] + a[5], 0.0, 1e-15);
    }
    CHECK_OK(rrl_advantages(a, REWARDS, 3, 1, RRL_SCALE_GROUP)); /* a group of one */
    for (int i = 0; i < 3; i++) CHECK(a[i] == 0.0);
}

/* Closed form: rewards 0 and 1, deviation of {0,1} is sqrt(1/2). */
static void check_closed_form(void) {
    static const double REWARDS[] = {0.0, 1.0, 0.0, 0.00001};
    double a[4];
    CHECK_OK(rrl_advantages(a, REWARDS, 2, 2, RRL_SCALE_GROUP));
    CHECK_NEAR(a[1], 0.5 / (sqrt(0.5) + 1e-4), 1e-15);
    CHECK_OK(rrl_advantages(a, REWARDS, 4, 2, RRL_SCALE_NONE));
    CHECK_NEAR(a[3], 0.000005, 1e-18); /* tiny differences follow the formula, no hidden floor */
    CHECK_OK(rrl_advantages(a, REWARDS, 4, 2, RRL_SCALE_GROUP));
    CHECK_NEAR(a[3], 0.000005 / (0.00001 * sqrt(0.5) + 1e-4), 1e-15);
}

static void check_missing(void) {
    static const double REWARDS[] = {1.0, NAN, 0.0, 0.0, NAN, NAN, NAN, 1.0};
    double a[8];
    CHECK_OK(rrl_advantages(a, REWARDS, 8, 4, RRL_SCALE_NONE));
    CHECK_NEAR(a[0], 2.0 / 3.0, 1e-15);
    CHECK(a[1] == 0.0);
    CHECK_NEAR(a[2], -1.0 / 3.0, 1e-15);
    for (int i = 4; i < 8; i++) CHECK(a[i] == 0.0); /* one reward is flat */
    CHECK_OK(rrl_advantages(a, REWARDS, 4, 4, RRL_SCALE_GROUP));
    CHECK_NEAR(a[0], 2.0 / 3.0 / (sqrt(1.0 / 3.0) + 1e-4), 1e-15); /* n - 1 counts the available ones */
    CHECK_STATUS(rrl_advantages(a, REWARDS, 8, 3, RRL_SCALE_NONE), RRL_ERR_RANGE);
    CHECK_STATUS(rrl_advantages(a, (double[]){INFINITY, 0.0}, 2, 2, RRL_SCALE_NONE), RRL_ERR_NONFINITE);
}

static rrl_group *group(const float *reward, const float *shaped, int n) {
    rrl_group *g = NULL;
    if (!CHECK_OK(rrl_group_create(&g, n, 0))) exit(1);
    for (int i = 0; i < n; i++) {
        g->rows[i].reward = reward[i];
        g->rows[i].shaped = shaped[i];
    }
    return g;
}

static void check_step(void) {
    rrl_group *groups[] = {group((float[]){1, NAN, 0}, (float[]){1, 0, 0}, 3),
                           group((float[]){NAN, 1, 1}, (float[]){0, 0.5f, 0.5f}, 3)};
    CHECK_OK(rrl_advantages_step(groups, 2, RRL_SCALE_NONE, false)); /* a missing reward enters as 0 */
    CHECK_NEAR(groups[0]->rows[0].advantage, 2.0 / 3.0, 1e-7);
    CHECK_NEAR(groups[0]->rows[1].advantage, -1.0 / 3.0, 1e-7);
    CHECK_NEAR(groups[1]->rows[0].advantage, -1.0 / 3.0, 1e-7);
    CHECK_OK(rrl_advantages_step(groups, 2, RRL_SCALE_NONE, true)); /* left out */
    CHECK(groups[0]->rows[0].advantage == 0.5f && groups[0]->rows[1].advantage == 0.0f);
    CHECK(groups[0]->rows[2].advantage == -0.5f);
    for (int i = 0; i < 3; i++) CHECK(groups[1]->rows[i].advantage == 0.0f);
    groups[1]->head.count = 2;
    CHECK_STATUS(rrl_advantages_step(groups, 2, RRL_SCALE_NONE, true), RRL_ERR_INTERNAL);
    CHECK_STATUS(rrl_advantages_step(groups, 0, RRL_SCALE_NONE, true), RRL_ERR_RANGE);
    rrl_group_free(&groups[0]);
    rrl_group_free(&groups[1]);
}

int main(void) {
    int checks = 0;
    CHECK_EQ_INT(golden_advantages(&checks, RRL_SOURCE_DIR "/tests/golden"), 0);
    CHECK(checks > 400);
    check_flat();
    check_closed_form();
    check_missing();
    check_step();
    return CHECK_DONE();
}
