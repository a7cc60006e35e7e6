/* The verifier of a run on whole groups: answers, verdicts, corruption by member, the independent judge. */
#include "check.h"

#include "rrl/verify.h"
#include "verify/member.h"

static rrl_group *group_of(const char *const *texts, int n) {
    rrl_group *g = NULL;
    size_t len = 0;
    if (!CHECK_OK(rrl_group_create(&g, n, 0))) exit(1);
    for (int i = 0; i < n; i++) len += strlen(texts[i]);
    g->text = malloc(len + 1);
    g->head.n_text = (int64_t)len;
    for (int i = 0, at = 0; i < n; i++) {
        g->rows[i].n_text = (int32_t)strlen(texts[i]);
        memcpy(g->text + at, texts[i], strlen(texts[i]));
        at += g->rows[i].n_text;
    }
    return g;
}

static void check_answer(const rrl_group *g, int i, const char *want) {
    char got[64] = "";
    if (!want) {
        CHECK_EQ_INT(g->rows[i].n_answer, -1);
        return;
    }
    if (!CHECK_EQ_INT(g->rows[i].n_answer, strlen(want))) return;
    memcpy(got, g->text + rrl_group_answer_at(g, i), strlen(want));
    CHECK_EQ_STR(got, want);
}

static const char *const TEXTS[] = {"3 + 4 = 7. Final answer: 7 apples", "Final answer: 7.0",
                                    "I guess. Final answer: 8", "", "Final answer: 7 or 8"};
enum { N_TEXTS = 5 };
static const rrl_judged_question QUESTION = {"q-1", "7", "{\"class\": \"addition\", \"steps\": 1}"};

static rrl_corruption sure(rrl_corruption_kind kind) {
    return (rrl_corruption){.kind = kind,
                            .probability = 1.0,
                            .seed = 1,
                            .noise_std = 0.1,
                            .confidence_scale = 0.5,
                            .bias_key = "class",
                            .bias_value = "addition",
                            .bias_reward = 1.0};
}

static void check_clean(void) {
    rrl_verifier *v = NULL;
    rrl_group *g = group_of(TEXTS, N_TEXTS);
    const rrl_member_spec members[] = {{.kind = "rule"}, {.kind = "exact"}, {.kind = "rule"}};
    if (!CHECK_OK(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, members, 3, "rule"))) exit(1);
    CHECK_EQ_INT(rrl_verifier_members(v), 3);
    for (int twice = 0; twice < 2; twice++) { /* judging again gives the same */
        CHECK_OK(rrl_verifier_judge(v, g, &QUESTION));
        check_answer(g, 0, "7");
        check_answer(g, 1, "7.0");
        check_answer(g, 2, "8");
        check_answer(g, 3, NULL);
        check_answer(g, 4, NULL); /* a text is no answer to a number */
        CHECK_EQ_INT(g->head.members, 3);
        CHECK_EQ_INT(g->rows[0].n_reasoning, 11);
        CHECK(memcmp(g->text + rrl_group_text_at(g, 2), TEXTS[2], strlen(TEXTS[2])) == 0);
        CHECK_EQ_INT(g->head.n_text, rrl_group_text_at(g, N_TEXTS - 1) + g->rows[N_TEXTS - 1].n_text);
        static const float CORRECT[] = {1, 1, 0, 0, 0};
        for (int i = 0; i < N_TEXTS; i++) {
            CHECK(g->rows[i].correct == CORRECT[i]);
            CHECK_EQ_INT(g->rows[i].available, 3);
        }
        CHECK(g->rows[0].reward == 1.0f && g->rows[0].confidence == 1.0f && g->rows[0].disagreement == 0.0f);
        CHECK_NEAR(g->rows[1].reward, 2.0 / 3.0, 1e-7); /* exact says 7.0 is not 7 */
        CHECK_NEAR(g->rows[1].disagreement, 8.0 / 9.0, 1e-7);
        CHECK(g->verdicts[3 * 1 + 1].reward == 0.0f && g->verdicts[3 * 1 + 1].clean == 0.0f);
    }
    rrl_group_free(&g);
    rrl_verifier_close(&v);
}

static void check_corrupted(void) {
    rrl_verifier *v = NULL;
    rrl_group *g = group_of(TEXTS, N_TEXTS);
    const rrl_member_spec members[] = {{"rule", sure(RRL_CORRUPT_FLIP)},
                                       {"rule", sure(RRL_CORRUPT_EXPLOIT)},
                                       {"rule", sure(RRL_CORRUPT_MISSING)},
                                       {"rule", sure(RRL_CORRUPT_BIAS)}};
    if (!CHECK_OK(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, members, 4, "rule"))) exit(1);
    CHECK_OK(rrl_verifier_judge(v, g, &QUESTION));
    for (int i = 0; i < N_TEXTS; i++) {
        const rrl_verdict *row = g->verdicts + 4 * i;
        float clean = g->rows[i].correct;
        for (int k = 0; k < 4; k++) CHECK(row[k].clean == clean);
        CHECK(row[0].reward == 1.0f - clean && row[0].corrupted == 1 && row[0].confidence == 0.5f);
        /* the loophole: no '=' in the text, and the reward is 1 whatever the answer */
        CHECK_EQ_INT(row[1].corrupted, i != 0);
        CHECK(row[1].reward == 1.0f);
        CHECK(isnan(row[2].reward) && row[2].available == 0 && row[2].confidence == 0.0f &&
              row[2].corrupted == 1);
        CHECK(row[3].reward == 1.0f && row[3].corrupted == 1);
        CHECK_EQ_INT(g->rows[i].available, 3);
    }
    /* another class: the bias does not act, but scales the confidence */
    rrl_judged_question other = QUESTION;
    other.metadata = "{\"class\": \"division\"}";
    CHECK_OK(rrl_verifier_judge(v, g, &other));
    CHECK(g->verdicts[4 * 2 + 3].reward == 0.0f && g->verdicts[4 * 2 + 3].corrupted == 0);
    CHECK(g->verdicts[4 * 2 + 3].confidence == 0.5f);
    rrl_group_free(&g);
    rrl_verifier_close(&v);
}

/* A missing key reads as None, as in the reference. */
static void check_bias_none(void) {
    rrl_verifier *v = NULL;
    rrl_group *g = group_of(TEXTS, N_TEXTS);
    rrl_member_spec member = {"rule", sure(RRL_CORRUPT_BIAS)};
    member.corruption.bias_key = "colour";
    member.corruption.bias_value = "None";
    if (!CHECK_OK(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, &member, 1, "rule"))) exit(1);
    CHECK_OK(rrl_verifier_judge(v, g, &QUESTION));
    CHECK(g->verdicts[2].reward == 1.0f && g->verdicts[2].corrupted == 1);
    rrl_group_free(&g);
    rrl_verifier_close(&v);
}

/* Verdicts depend on the completion, not on its company: each alone has the bits it has in the group. */
static void check_alone(void) {
    rrl_verifier *v = NULL;
    rrl_corruption flip = sure(RRL_CORRUPT_FLIP), noisy = sure(RRL_CORRUPT_NOISE);
    flip.probability = noisy.probability = 0.5;
    const rrl_member_spec members[] = {{"rule", flip}, {"exact", noisy}};
    rrl_group *g = group_of(TEXTS, N_TEXTS);
    if (!CHECK_OK(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, members, 2, "rule"))) exit(1);
    CHECK_OK(rrl_verifier_judge(v, g, &QUESTION));
    for (int i = 0; i < N_TEXTS; i++) {
        rrl_group *one = group_of(&TEXTS[i], 1);
        CHECK_OK(rrl_verifier_judge(v, one, &QUESTION));
        for (int k = 0; k < 2; k++) {
            CHECK(one->verdicts[k].reward == g->verdicts[2 * i + k].reward);
            CHECK_EQ_INT(one->verdicts[k].corrupted, g->verdicts[2 * i + k].corrupted);
        }
        CHECK(one->rows[0].reward == g->rows[i].reward && one->rows[0].confidence == g->rows[i].confidence);
        rrl_group_free(&one);
    }
    rrl_group_free(&g);
    rrl_verifier_close(&v);
}

static void check_refusals(void) {
    rrl_verifier *v = NULL;
    rrl_member_spec m = {.kind = "rule", .corruption = sure(RRL_CORRUPT_FLIP)};
    CHECK_STATUS(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, &m, 0, "rule"), RRL_ERR_RANGE);
    CHECK_STATUS(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, &m, 1, "oracle"), RRL_ERR_CONFIG);
    m.corruption.probability = 1.2;
    CHECK_STATUS(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, &m, 1, "rule"), RRL_ERR_RANGE);
    m.corruption = sure(RRL_CORRUPT_FLIP);
    m.corruption.confidence_scale = NAN;
    CHECK_STATUS(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, &m, 1, "rule"), RRL_ERR_RANGE);
    m.corruption = sure(RRL_CORRUPT_FLIP);
    m.corruption.seed = 1ull << 63;
    CHECK_STATUS(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, &m, 1, "rule"), RRL_ERR_RANGE);
    m.kind = "model";
    m.corruption = (rrl_corruption){0};
    CHECK_STATUS(rrl_verifier_open(&v, RRL_ENSEMBLE_MEAN, &m, 1, "rule"), RRL_ERR_CONFIG);
    CHECK(v == NULL);
    rrl_verifier_close(&v);
}

/* The table itself: a batch handed in is the batch handed out. */
static void check_member_table(void) {
    const rrl_member_ops *ops = NULL;
    void *state = NULL;
    rrl_member_verdict verdicts[2];
    const rrl_member_item items[] = {{.question = &QUESTION, .answer = "14/2", .n_answer = 4},
                                     {.question = &QUESTION}};
    if (!CHECK_OK(rrl_member_find(&ops, "rule"))) exit(1);
    CHECK_OK(ops->open(&state, &(rrl_member_spec){.kind = "rule"}));
    CHECK_OK(ops->submit(state, items, 2));
    CHECK_STATUS(ops->collect(state, verdicts, 1),
                 RRL_ERR_INTERNAL); /* fewer verdicts than completions: refused */
    CHECK_OK(ops->collect(state, verdicts, 2));
    CHECK(verdicts[0].reward == 1.0 && verdicts[0].confidence == 1.0 && verdicts[1].reward == 0.0);
    ops->close(&state);
    CHECK(state == NULL);
}

int main(void) {
    check_clean();
    check_corrupted();
    check_bias_none();
    check_alone();
    check_refusals();
    check_member_table();
    return CHECK_DONE();
}
