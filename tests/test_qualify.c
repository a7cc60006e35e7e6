/* rrl qualify and the gate of rrl study: what is measured, what is refused and with which words, what is measured once.
 * What the embedded model got right is counted here from the record's texts. */
#include <unistd.h>

#include "base/files.h"
#include "check.h"
#include "program.h"
#include "record/record.h"
#include "study/qualify.h"

static char folder[PROGRAM_PATH];

static const char *in(const char *name) {
    static char path[4][PROGRAM_PATH + 64];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

/* A study of two conditions on the embedded model that demands `least` of 8 validation questions. */
static void write_config(const char *least) {
    FILE *f = fopen(in("study.yaml"), "w");
    if (!CHECK(f != NULL)) return;
    fprintf(f,
            "output_dir: %s/study\n"
            "dataset: {path: %s/data/tiny/test.jsonl, limit: 4}\n"
            "model: {name: %s/data/tiny, prompt_template: \"Solve the problem. End with 'Final answer: <answer>'."
            "\\n\\nProblem: {question}\\n\\nSolution:\"}\n"
            "generation: {max_tokens: 40, num_generations: 2}\n"
            "evaluation: {k: [1, 2]}\n"
            "training_verifier: {members: [rule, rule, rule]}\n"
            "training: {max_steps: 1, batch_size: 2, learning_rate: 1e-3}\n"
            "experiment:\n"
            "  train_dataset: {path: %s/data/tiny/train.jsonl, limit: 4}\n"
            "  qualification_dataset: {path: %s/data/tiny/validation.jsonl, limit: 8}\n"
            "  qualification_min_pass1: %s\n"
            "  methods: [base, baseline]\n",
            folder, RRL_SOURCE_DIR, RRL_SOURCE_DIR, RRL_SOURCE_DIR, RRL_SOURCE_DIR, least);
    fclose(f);
}

/* pass@1 of 8 greedy answers as the record's own texts and references say. */
static double counted(void) {
    rrl_record *r = NULL;
    int64_t right = 0;
    if (!CHECK_OK(rrl_record_read(&r, in("study/qualification"), 1))) return NAN;
    CHECK_EQ_STR(r->execution_kind, "evaluation");
    CHECK_EQ_STR(r->method, "qualification");
    const rrl_record_set *s = rrl_record_evaluation(r, "test");
    if (CHECK(s != NULL) && CHECK_EQ_INT(s->n, 8) && CHECK_EQ_INT(s->n_questions, 8))
        for (int64_t i = 0; i < 8; i++) {
            char end[64];
            snprintf(end, sizeof end, "Final answer: %s", s->questions[s->rollouts[i].question].reference);
            size_t n = strlen(s->text[i]), m = strlen(end);
            right += n >= m && strcmp(s->text[i] + n - m, end) == 0;
            CHECK(strncmp(s->questions[i].id, "validation-", 11) == 0);
        }
    rrl_record_free(&r);
    return (double)right / 8;
}

static void test_measure(void) {
    program_end e = {0};
    char line[80];
    write_config("0.01");
    program_run(&e, in("measure"), "qualify %s --quiet --threads 1", in("study.yaml"));
    CHECK_EQ_INT(e.code, 0);
    double pass1 = counted();
    CHECK(pass1 > 0.1 && pass1 < 1); /* else this test would show little */
    snprintf(line, sizeof line, "pass@1 %.4f on 8 validation questions, greedy\n", pass1);
    CHECK(strncmp(e.out, line, strlen(line)) == 0);
    CHECK(strstr(e.out, "demanded: 0.0100, qualified\n") != NULL);
    program_end_free(&e);
    program_run(&e, in("again"), "qualify %s --quiet --threads 1", in("study.yaml"));
    CHECK(strstr(e.out, "(measured before)") != NULL);
    program_end_free(&e);
}

/* The report says what was measured at the gate: on the terminal (there in lines of 80 columns) and in both documents. */
static void check_report(const char *table) {
    static const char *const FILES[] = {"study/report/report.md", "study/report/report.html"};
    char line[160];
    snprintf(line, sizeof line, "pass@1 of the untrained model is %.4f on 8 validation questions (greedy).", counted());
    CHECK(strstr(table, line) != NULL);
    for (int i = 0; i < 2; i++) {
        char *text = NULL;
        size_t len;
        if (!CHECK_OK(rrl_file_read(&text, &len, in(FILES[i]), 1 << 24))) continue;
        CHECK(strstr(text, line) != NULL && strstr(text, "The study demands at least 0.01: qualified.") != NULL);
        free(text);
    }
}

/* Below the demand nothing of the study begins; the demand may be lowered without measuring again. */
static void test_gate(void) {
    program_end e = {0};
    write_config("0.999");
    program_run(&e, in("refused"), "qualify %s --quiet --threads 1", in("study.yaml"));
    CHECK_EQ_INT(e.code, 3);
    CHECK(strstr(e.out, "not qualified") != NULL);
    program_end_free(&e);
    program_run(&e, in("refused"), "mpirun -n 2 study %s --quiet --threads 1", in("study.yaml"));
    CHECK_EQ_INT(e.code, 3);
    CHECK_EQ_INT(program_count(e.err, "the model does not qualify: pass@1 is "), 1);
    CHECK_EQ_INT(program_count(e.err, "experiment.qualification_min_pass1 demands 0.999"), 1);
    CHECK(!program_exists(in("study/study.json")) && !program_exists(in("study/none")));
    program_end_free(&e);
    write_config("0.01");
    program_run(&e, in("passed"), "mpirun -n 2 study %s --quiet --threads 1 training.max_steps=1", in("study.yaml"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(program_exists(in("study/none/level-0/seed-42/baseline/run.h5")));
    check_report(e.out);
    program_end_free(&e);
}

/* A study that finds no measurement makes it, once for two teams. */
static void test_study_measures(void) {
    program_end e = {0};
    program_remove(in("study"));
    program_run(&e, in("both"), "mpirun -n 2 study %s --threads 1", in("study.yaml"));
    CHECK_EQ_INT(e.code, 0);
    CHECK(program_exists(in("study/qualification/run.h5")));
    CHECK_EQ_INT(program_count(e.err, "event=qualification pass1="), 1);
    CHECK_EQ_INT(program_count(e.err, "event=evaluation questions=8"), 1);
    program_end_free(&e);
}

static void test_config(void) {
    rrl_config *c = NULL, *q = NULL;
    static const char SAMPLED[] = "experiment.qualification_sampled=true";
    const char *sets[] = {SAMPLED, "training.learning_rate=0.5", "experiment.levels=[0, 0.2]",
                          "experiment.corruption=flip", "generation.temperature=0.9"};
    char first[65], second[65];
    CHECK_OK(rrl_config_open(&c, in("study.yaml"), NULL, 0));
    CHECK_OK(rrl_qualification_config(&q, c));
    CHECK(q->generation.temperature == 0 && q->generation.num_generations == 1);
    CHECK_EQ_INT(q->evaluation.k.n, 1);
    CHECK_EQ_INT(q->dataset.limit, 8);
    CHECK_EQ_STR(strrchr(q->output_dir, '/'), "/qualification");
    CHECK_OK(rrl_config_check(q, RRL_FOR_EVAL));
    CHECK_OK(rrl_config_digest(first, q, NULL));
    rrl_config_close(&c);
    rrl_config_close(&q);

    /* what is learnt afterwards does not enter, how answers are drawn does where it is used */
    CHECK_OK(rrl_config_open(&c, in("study.yaml"), sets + 1, 4));
    CHECK_OK(rrl_qualification_config(&q, c));
    CHECK_OK(rrl_config_digest(second, q, NULL));
    CHECK_EQ_STR(first, second);
    rrl_config_close(&c);
    rrl_config_close(&q);
    CHECK_OK(rrl_config_open(&c, in("study.yaml"), sets, 5));
    CHECK_OK(rrl_qualification_config(&q, c));
    CHECK(q->generation.temperature == 0.9 && q->generation.num_generations == 2);
    CHECK_OK(rrl_config_digest(second, q, NULL));
    CHECK(strcmp(first, second) != 0);
    rrl_config_close(&c);
    rrl_config_close(&q);
}

int main(void) {
    program_folder(folder, "qualify");
    test_measure();
    test_gate();
    test_study_measures();
    test_config();
    if (!check_failures) program_remove(folder);
    return CHECK_DONE();
}
