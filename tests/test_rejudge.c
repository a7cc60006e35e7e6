/* rrl rejudge: a record whose verdicts were written by a parser that erred is judged again. What changes is known
 * by hand; texts, tokens and advantages stay; original verdicts are kept; a second call gives the same bytes. */
#include <signal.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "check.h"
#include "program.h"
#include "record/h5_table.h"
#include "record/metrics.h"
#include "record/record.h"
#include "report/rejudge.h"

enum { QUESTIONS = 2, SAMPLES = 3, MEMBERS = 3 };
static char folder[PROGRAM_PATH];

/* Three members: one right, one that always errs, one right. So a right completion has 2/3 and a wrong one 1/3. */
static const char CONFIG[] = "dataset: {path: q.jsonl}\nevaluation: {k: [1]}\ngeneration: {num_generations: 3}\n"
                             "training_verifier:\n  members:\n    - rule\n"
                             "    - {kind: rule, corruption: {kind: flip, probability: 1, seed: 5}}\n    - rule\n";

/* What was recorded of the three completions of every question, of which the first and the last are wrong about it. The
 * references are 12 and 1/2. */
static const struct {
    const char *text[QUESTIONS], *answer;
    float correct;
} SAMPLE[SAMPLES] = {
    {{"6 + 6 = 12. Final answer: 12", "Final answer: 0.5"}, "6", 0}, /* right: gained */
    {{"I do not know.", "I do not know."}, NULL, 0},                   /* none, as before */
    {{"Final answer: 7", "Final answer: 3/4"}, "12", 1},              /* wrong: lost */
};

static const char *in(const char *name) {
    static char path[4][PROGRAM_PATH + 64];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static rrl_group *group_of(int question) {
    rrl_group *g = NULL;
    rrl_buffer text = {0};
    CHECK_OK(rrl_group_create(&g, SAMPLES, SAMPLES));
    CHECK_OK(rrl_group_set_members(g, MEMBERS));
    g->head.question = question;
    for (int i = 0; i < SAMPLES; i++) {
        rrl_completion *c = &g->rows[i];
        size_t before = text.len;
        CHECK_OK(rrl_buffer_puts(&text, SAMPLE[i].text[question]));
        c->n_text = (int32_t)(text.len - before);
        c->n_answer = SAMPLE[i].answer ? (int32_t)strlen(SAMPLE[i].answer) : -1;
        if (SAMPLE[i].answer) CHECK_OK(rrl_buffer_puts(&text, SAMPLE[i].answer));
        c->n_tokens = 1;
        g->tokens[i] = 100 * question + i;
        g->logprobs[i] = -1.5F;
        c->correct = SAMPLE[i].correct;
        c->reward = c->shaped = (1 + SAMPLE[i].correct) / 3;
        c->advantage = (float)i - 0.25F;
        for (int m = 0; m < MEMBERS; m++)
            g->verdicts[i * MEMBERS + m] =
                (rrl_verdict){.clean = SAMPLE[i].correct, .reward = m == 1 ? 1 - SAMPLE[i].correct : SAMPLE[i].correct,
                              .confidence = 1, .available = 1, .corrupted = m == 1};
    }
    g->text = text.data;
    g->head.n_text = (int64_t)text.len;
    return g;
}

static void write_run(void) {
    static rrl_question rows[QUESTIONS] = {
        {(char *)"a", (char *)"6 + 6?", (char *)"12", (char *)"{}", (char *)"", 0},
        {(char *)"b", (char *)"half?", (char *)"1/2", (char *)"{\"class\": \"x\"}", (char *)"x", 0}};
    static rrl_member_config members[MEMBERS];
    rrl_questions q = {.rows = rows, .n = QUESTIONS};
    rrl_verifier_config verifier = {.members = members, .n_members = MEMBERS};
    rrl_record_header h = {.execution_kind = "training", .arm = "", .method = "train", .numeric_path = "f32",
                           .digest = "d", .config_yaml = CONFIG, .provenance_json = "{}", .model_digest = "m",
                           .parser_version = "0", .level = NAN, .seed = 1, .verifier = &verifier, .train = &q};
    rrl_metric metrics[] = {{"independent_accuracy", 1.0 / 3, 1}};
    rrl_training_row row = {.step = 0, .reward = 0.44};
    rrl_recorder *r = NULL;
    members[1].corruption = (rrl_corruption_config){.kind = RRL_CORRUPT_FLIP, .probability = 1, .seed = 5,
                                                    .bias_key = (char *)"class", .bias_value = (char *)"x"};
    members[0].corruption.bias_key = members[2].corruption.bias_key = (char *)"class";
    members[0].corruption.bias_value = members[2].corruption.bias_value = (char *)"x";
    CHECK_OK(rrl_recorder_open(&r, folder, &h, 10, 0));
    rrl_group *training[] = {group_of(0)}, *test[] = {group_of(0), group_of(1)};
    CHECK_OK(rrl_recorder_step(r, training, 1, &row));
    CHECK_OK(rrl_recorder_evaluation(r, "test", &q, test, QUESTIONS, metrics, 1));
    CHECK_OK(rrl_recorder_finish(r, NULL));
    rrl_recorder_close(&r);
}

/* --- what must come out */

static void check_result(const rrl_rejudge *r) {
    if (!CHECK_EQ_INT(r->n_sets, 2)) return;
    for (int i = 0; i < 2; i++) {
        const rrl_rejudge_set *s = &r->sets[i];
        int questions = i ? QUESTIONS : 1;
        CHECK_EQ_STR(s->name, i ? "test" : "");
        CHECK_EQ_INT(s->n, SAMPLES * questions);
        CHECK_EQ_INT(s->answers, 2 * questions);
        CHECK_EQ_INT(s->gained, questions);
        CHECK_EQ_INT(s->lost, questions);
        CHECK_EQ_INT(s->rewards, 2 * questions);
        CHECK_EQ_INT(s->verdicts, 2 * MEMBERS * questions);
        CHECK_NEAR(s->right_before, 1.0 / 3, 1e-12);
        CHECK_NEAR(s->right_after, 1.0 / 3, 1e-12);
        CHECK_NEAR(s->reward_after, 4.0 / 9, 1e-6);
    }
    CHECK_EQ_INT(program_lines(r->examples.data, "training "), 2);
    CHECK(strstr(r->examples.data, "training 0: \"6\" -> \"12\", judge 0 -> 1, reward 0.333 -> 0.667\n") != NULL);
    CHECK(strstr(r->examples.data, "test 5: \"12\" -> \"3/4\", judge 1 -> 0") != NULL);
}

static void check_set(const rrl_record_set *now, const rrl_record_set *before) {
    static const float CORRECT[] = {1, 0, 0};
    static const char *const ANSWER[QUESTIONS][SAMPLES] = {{"12", "", "7"}, {"0.5", "", "3/4"}};
    if (!CHECK_EQ_INT(now->n, before->n) || !CHECK_EQ_INT(now->n_verdicts, before->n_verdicts)) return;
    for (int64_t i = 0; i < now->n; i++) {
        const rrl_rollout_row *x = &now->rollouts[i], *y = &before->rollouts[i];
        int s = (int)(i % SAMPLES);
        CHECK_EQ_STR(now->answer[i], ANSWER[i / SAMPLES][s]);
        CHECK_EQ_INT(x->answer_bytes, s == 1 ? -1 : (int)strlen(ANSWER[i / SAMPLES][s]));
        CHECK_NEAR(x->correct, CORRECT[s], 0);
        CHECK_NEAR(x->reward, (1 + CORRECT[s]) / 3, 1e-6);
        CHECK_NEAR(x->disagreement, 8.0 / 9, 1e-6);
        CHECK_EQ_STR(now->text[i], before->text[i]);
        CHECK_EQ_INT(now->tokens[i], before->tokens[i]);
        CHECK_NEAR(x->advantage, y->advantage, 0);
        for (int m = 0; m < MEMBERS; m++) {
            const rrl_verdict_row *v = &now->verdicts[i * MEMBERS + m];
            CHECK_EQ_INT(v->rollout, i);
            CHECK_NEAR(v->clean, CORRECT[s], 0);
            CHECK_NEAR(v->reward, m == 1 ? 1 - CORRECT[s] : CORRECT[s], 0);
        }
    }
}

/* /original has what NAME.h5 has. */
static void check_original(const char *path, const rrl_record_set *before, const char *group, const char *source) {
    hid_t file = -1, at = -1;
    void *rows = NULL;
    int64_t n = 0;
    char *text = NULL, hex[RRL_SHA256_HEX];
    uint8_t sum[RRL_SHA256_BYTES];
    if (!CHECK_OK(rrl_h5_open(&file, path)) || !CHECK_OK(rrl_h5_group_open(&at, file, "original", path))) return;
    CHECK_OK(rrl_h5_attr_get_text(&text, at, "parser_version", path));
    CHECK_EQ_STR(text, "0");
    free(text);
    CHECK_OK(rrl_sha256_file(sum, source));
    rrl_sha256_hex(hex, sum);
    CHECK_OK(rrl_h5_attr_get_text(&text, at, "file_sha256", path));
    CHECK_EQ_STR(text, hex);
    free(text);
    rrl_h5_drop(&at);
    if (CHECK_OK(rrl_h5_group_open(&at, file, group, path)) &&
        CHECK_OK(rrl_h5_table_get(&rows, &n, at, &rrl_table_rollouts, path))) {
        const rrl_rollout_row *row = rows;
        CHECK_EQ_INT(n, before->n);
        for (int64_t i = 0; i < n; i++) CHECK_NEAR(row[i].correct, before->rollouts[i].correct, 0);
        free(rows);
    }
    if (CHECK_OK(rrl_h5_table_get(&rows, &n, at, &rrl_table_verdicts, path))) {
        const rrl_verdict_row *v = rows;
        CHECK_EQ_INT(n, before->n_verdicts);
        for (int64_t i = 0; i < n; i++) CHECK_NEAR(v[i].reward, before->verdicts[i].reward, 0);
        free(rows);
    }
    rrl_h5_drop(&at);
    rrl_h5_drop(&file);
}

static double metric(const rrl_record_set *s, const char *name) {
    for (int64_t i = 0; i < s->n_metrics; i++)
        if (strcmp(s->metrics[i].name, name) == 0) return s->metrics[i].value;
    return -1;
}

static void test_record(void) {
    rrl_rejudge r = {0};
    rrl_record *now = NULL, *before = NULL;
    uint8_t source[2][RRL_SHA256_BYTES], first[RRL_SHA256_BYTES], second[RRL_SHA256_BYTES];
    write_run();
    CHECK_OK(rrl_sha256_file(source[0], in("run.h5")));
    CHECK_OK(rrl_rejudge_record(&r, folder, true));
    check_result(&r);
    CHECK(r.written == NULL && !program_exists(in("run.rejudged-3.h5")));
    rrl_rejudge_free(&r);

    CHECK_OK(rrl_rejudge_record(&r, in("run.h5"), false));
    check_result(&r);
    CHECK_EQ_STR(r.written, in("run.rejudged-3.h5"));
    rrl_rejudge_free(&r);
    CHECK_OK(rrl_sha256_file(first, in("run.rejudged-3.h5")));
    program_sleep(1.1); /* HDF5 would note seconds */
    CHECK_OK(rrl_rejudge_record(&r, folder, false));
    rrl_rejudge_free(&r);
    CHECK_OK(rrl_sha256_file(second, in("run.rejudged-3.h5")));
    CHECK(memcmp(first, second, sizeof first) == 0);
    CHECK_OK(rrl_sha256_file(source[1], in("run.h5")));
    CHECK(memcmp(source[0], source[1], sizeof first) == 0);

    if (!CHECK_OK(rrl_record_read(&now, in("run.rejudged-3.h5"), 1)) ||
        !CHECK_OK(rrl_record_read(&before, in("run.h5"), 1)))
        return;
    CHECK_EQ_STR(now->parser_version, "3");
    CHECK_EQ_STR(before->parser_version, "0");
    CHECK_EQ_INT(now->n_rows, 1);
    check_set(&now->training, &before->training);
    check_set(&now->evaluations[0], &before->evaluations[0]);
    CHECK_NEAR(metric(&now->evaluations[0], "independent_accuracy"), 1.0 / 3, 1e-12);
    CHECK_NEAR(metric(&now->evaluations[0], "pass@1"), 1.0 / 3, 1e-12);
    CHECK_NEAR(metric(&now->evaluations[0], "extraction_failure_rate"), 1.0 / 3, 1e-12);
    check_original(in("run.rejudged-3.h5"), &before->training, "original", in("run.h5"));
    check_original(in("run.rejudged-3.h5"), &before->evaluations[0], "original/evaluation/test", in("run.h5"));
    rrl_record_free(&now);
    rrl_record_free(&before);
}

static void test_refused(void) {
    rrl_rejudge r = {0};
    CHECK_STATUS(rrl_rejudge_record(&r, in("run.rejudged-3.h5"), false), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "judged again") != NULL);
    CHECK_STATUS(rrl_rejudge_record(&r, in("nothing.h5"), false), RRL_ERR_DATA);
    CHECK_STATUS(rrl_rejudge_record(&r, in("run.json"), false), RRL_ERR_DATA);
}

static void test_program(void) {
    program_end e = {0};
    program_run(&e, in("program"), "rejudge %s", in("run.h5"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "answer parser 0, now 3") != NULL);
    CHECK_EQ_INT(program_lines(e.out, "training         3       2  0.3333  0.3333      1      1"), 1);
    CHECK(strstr(e.out, "run.rejudged-3.h5") != NULL);
    program_end_free(&e);
    program_run(&e, in("program"), "show %s --completion 0", in("run.rejudged-3.h5"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(strstr(e.out, "answer: right by the independent judge\n  12\n") != NULL);
    program_end_free(&e);
    program_run(&e, in("program"), "rejudge");
    CHECK_EQ_INT(e.code, 2);
    program_end_free(&e);
}

/* The library is built as the program is. */
static bool has_faults(void) {
    setenv("RRL_FAULT", "*:probe:1:fail", 1);
    const bool yes = rrl_fault("probe");
    unsetenv("RRL_FAULT");
    return yes;
}

/* Killed, or out of disk, where the new record is made: there is none, and the next time there is. */
static void test_faults(void) {
    static const struct {
        const char *fault;
        int code;
    } CASES[] = {{"RRL_FAULT=*:rejudged.write:1:kill", -SIGKILL}, {"RRL_FAULT=*:rejudged.write:1:full", 1}};
    char digest[2][65];
    CHECK_OK(rrl_record_digest(digest[0], in("run.rejudged-3.h5")));
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        program_end e = {0};
        CHECK(unlink(in("run.rejudged-3.h5")) == 0);
        program_run(&e, in("program"), "%s rejudge %s", CASES[i].fault, in("run.h5"));
        CHECK_EQ_INT(e.code, CASES[i].code);
        CHECK(!program_exists(in("run.rejudged-3.h5")));
        program_end_free(&e);
        program_run(&e, in("program"), "rejudge %s", in("run.h5"));
        CHECK_EQ_INT(e.code, 0);
        program_end_free(&e);
        CHECK_OK(rrl_record_digest(digest[1], in("run.rejudged-3.h5")));
        CHECK_EQ_STR(digest[1], digest[0]);
    }
}

int main(void) {
    program_folder(folder, "rejudge");
    test_record();
    test_refused();
    test_program();
    if (has_faults()) test_faults();
    if (!check_failures) program_remove(folder);
    return CHECK_DONE();
}
