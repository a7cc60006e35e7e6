/* Every file in configs/ parses, passes its checks and resolves to the plan of its protocol. */
#include "check.h"

#include <stdbool.h>

#include "base/files.h"
#include "base/memory.h"
#include "rrl/config.h"

static const char CONFIGS[] = RRL_SOURCE_DIR "/configs";

static const struct {
    const char *name;
    rrl_purpose purpose;
} FILES[] = {
    {"baseline.yaml", RRL_FOR_TRAIN},  {"embedded.yaml", RRL_FOR_STUDY},
    {"evaluation.yaml", RRL_FOR_EVAL}, {"final_study.yaml", RRL_FOR_STUDY},
    {"pilot.yaml", RRL_FOR_STUDY},     {"qualification.yaml", RRL_FOR_QUALIFY},
    {"quick.yaml", RRL_FOR_STUDY},     {"robust.yaml", RRL_FOR_TRAIN},
    {"smoke.yaml", RRL_FOR_STUDY},     {"smollm2_arithmetic.yaml", RRL_FOR_STUDY},
    {"train.yaml", RRL_FOR_TRAIN},
};
enum { N_FILES = sizeof FILES / sizeof *FILES };

static rrl_config *open_config(const char *name) {
    rrl_config *c = NULL;
    char *path = NULL;
    CHECK_OK(rrl_path_join(&path, CONFIGS, name));
    CHECK_OK(rrl_config_open(&c, path, NULL, 0));
    free(path);
    return c;
}

/* Conditions of the grid: sum over arms of levels (1 with fixed members) x seeds x methods. */
static int64_t count_conditions(const rrl_config *c) {
    int64_t n = 0;
    for (int64_t i = 0; i < c->experiment.n_arms; i++) {
        const rrl_arm_config *a = &c->experiment.arms[i];
        n += (a->n_members ? 1 : a->levels.n) * c->experiment.seeds.n * a->methods.n;
    }
    return n;
}

static void check_reals(const rrl_reals *got, const double *want, int64_t n) {
    if (!CHECK_EQ_INT(got->n, n)) return;
    for (int64_t i = 0; i < n; i++) CHECK(got->v[i] == want[i]);
}

static void check_ints(const rrl_ints *got, const int64_t *want, int64_t n) {
    if (!CHECK_EQ_INT(got->n, n)) return;
    for (int64_t i = 0; i < n; i++) CHECK_EQ_INT(got->v[i], want[i]);
}

static void check_texts(const rrl_texts *got, const char *const *want, int64_t n) {
    if (!CHECK_EQ_INT(got->n, n)) return;
    for (int64_t i = 0; i < n; i++) CHECK_EQ_STR(got->v[i], want[i]);
}

static const int64_t SEEDS[] = {42, 123, 456}, K[] = {1, 4, 8};
static const char *const METHODS[] = {"base", "baseline", "robust"};
static const double LEVELS[] = {0, 0.1, 0.2, 0.4, 0.6};

/* What all files have: they round trip, and three rule members and one rule judge see no corruption but that
 * of the condition. */
static void test_all(void) {
    char **names = NULL;
    size_t n = 0;
    CHECK_OK(rrl_dir_list(&names, &n, CONFIGS));
    CHECK_EQ_INT(n, N_FILES); /* a file that this test does not know is a failure */
    for (size_t i = 0; i < n && i < N_FILES; i++) {
        CHECK_EQ_STR(names[i], FILES[i].name);
        rrl_config *c = open_config(names[i]), *again = NULL;
        if (!c) continue;
        if (!CHECK_OK(rrl_config_check(c, FILES[i].purpose))) fprintf(stderr, "  %s\n", names[i]);
        char *yaml = NULL, *second = NULL, *notes = NULL;
        CHECK_OK(rrl_config_yaml(&yaml, c, RRL_SOURCE_DIR));
        CHECK_OK(rrl_config_parse(&again, yaml, strlen(yaml), "again", RRL_SOURCE_DIR, NULL, 0));
        CHECK_OK(rrl_config_yaml(&second, again, RRL_SOURCE_DIR));
        CHECK_EQ_STR(yaml, second);
        CHECK_OK(rrl_config_check(again, FILES[i].purpose));
        CHECK_OK(rrl_config_notes(&notes, c));
        CHECK(!strstr(notes, "no effect"));
        CHECK_EQ_INT(c->training_verifier.n_members, 3);
        CHECK_EQ_INT(c->training_verifier.members[2].kind, RRL_MEMBER_RULE);
        CHECK_EQ_INT(c->training_verifier.strategy, RRL_ENSEMBLE_MEAN);
        CHECK_EQ_INT(c->evaluation_verifier.members[0].kind, RRL_MEMBER_RULE);
        free(yaml);
        free(second);
        free(notes);
        rrl_config_close(&again);
        rrl_config_close(&c);
    }
    rrl_names_free(&names, n);
}

/* --- the embedded model */

static void check_embedded_model(const rrl_config *c, int64_t test_questions) {
    CHECK_EQ_STR(c->model.name, RRL_SOURCE_DIR "/data/tiny");
    CHECK_EQ_STR(c->model.prompt_template,
                 "Solve the problem. End with 'Final answer: <answer>'.\n\nProblem: {question}\n\nSolution:");
    CHECK_EQ_INT(c->model.prompt_format, RRL_PROMPT_CHAT);
    CHECK_EQ_STR(c->dataset.path, RRL_SOURCE_DIR "/data/tiny/test.jsonl");
    CHECK_EQ_INT(c->dataset.limit, test_questions);
    CHECK_EQ_STR(c->experiment.train_dataset.path, RRL_SOURCE_DIR "/data/tiny/train.jsonl");
    CHECK_EQ_INT(c->experiment.train_dataset.limit, 256);
    CHECK_EQ_INT(c->generation.num_generations, 8);
    CHECK_EQ_INT(c->generation.max_tokens, 48);
    CHECK(c->generation.temperature == 0.7 && c->generation.top_p == 0.95);
    CHECK_EQ_INT(c->training.max_steps, 100);
    CHECK_EQ_INT(c->training.batch_size * c->training.gradient_accumulation_steps, 16);
    CHECK(c->training.learning_rate == 1e-3 && c->training.beta == 0.04);
    CHECK_EQ_INT(c->training.scale_rewards, RRL_SCALE_NONE);
    CHECK_EQ_INT(c->training.lora.r, 8);
    CHECK(c->training.lora.alpha == 16 && c->training.lora.dropout == 0);
    check_ints(&c->evaluation.k, K, 3);
}

static void check_loophole(const rrl_arm_config *a) {
    CHECK_EQ_STR(a->name, "loophole");
    if (!CHECK_EQ_INT(a->n_members, 3)) return;
    CHECK_EQ_INT(a->members[0].kind, RRL_CORRUPT_EXPLOIT);
    CHECK_EQ_INT(a->members[1].kind, RRL_CORRUPT_EXPLOIT);
    CHECK_EQ_INT(a->members[2].kind, RRL_CORRUPT_NONE);
    CHECK(a->members[0].probability == 1 && a->members[1].probability == 1);
    check_texts(&a->methods, METHODS, 3);
}

static void test_train(void) {
    rrl_config *c = open_config("train.yaml");
    if (!c) return;
    check_embedded_model(c, 256);
    CHECK_EQ_STR(c->output_dir, RRL_SOURCE_DIR "/runs/train");
    for (int64_t i = 0; i < 3; i++) {
        const rrl_corruption_config *k = &c->training_verifier.members[i].corruption;
        CHECK_EQ_INT(k->kind, RRL_CORRUPT_FLIP);
        CHECK(k->probability == 0.2);
        CHECK_EQ_INT(k->seed, 42 + 1009 * i);
    }
    CHECK_EQ_INT(c->reward.strategy, RRL_SHAPE_STANDARD);
    rrl_config_close(&c);
}

static void test_quick(void) {
    rrl_config *c = open_config("quick.yaml");
    if (!c) return;
    const rrl_arm_config *a = c->experiment.arms;
    check_embedded_model(c, 128);
    check_ints(&c->experiment.seeds, SEEDS, 1);
    CHECK_EQ_INT(count_conditions(c), 2 + 6 + 3);
    if (!CHECK_EQ_INT(c->experiment.n_arms, 3)) return;
    CHECK_EQ_STR(a[0].name, "flip");
    check_reals(&a[0].levels, (const double[]){0}, 1);
    check_texts(&a[0].methods, METHODS, 2);
    CHECK_EQ_STR(a[1].name, "flip");
    CHECK_EQ_INT(a[1].corruption.kind, RRL_CORRUPT_FLIP);
    check_reals(&a[1].levels, (const double[]){0.2, 0.6}, 2);
    check_texts(&a[1].methods, METHODS, 3);
    check_loophole(&a[2]);
    CHECK_EQ_INT(c->n_hypotheses, 4);
    rrl_config_close(&c);
}

static void test_embedded(void) {
    rrl_config *c = open_config("embedded.yaml");
    if (!c) return;
    check_embedded_model(c, 256);
    check_ints(&c->experiment.seeds, SEEDS, 3);
    CHECK_EQ_INT(count_conditions(c), 45 + 9);
    CHECK_EQ_STR(c->experiment.arms[0].name, "flip");
    check_reals(&c->experiment.arms[0].levels, LEVELS, 5);
    check_texts(&c->experiment.arms[0].methods, METHODS, 3);
    check_loophole(&c->experiment.arms[1]);
    rrl_config_close(&c);
}

/* A real model: the worked examples are turns of its own chat, and the pools are three files. */
static void test_smollm2_arithmetic(void) {
    rrl_config *c = open_config("smollm2_arithmetic.yaml");
    if (!c) return;
    const char *t = c->model.prompt_template;
    CHECK_EQ_STR(c->model.name, "HuggingFaceTB/SmolLM2-135M-Instruct");
    CHECK_EQ_INT(c->model.prompt_format, RRL_PROMPT_TEXT);
    const char *start = "<|im_start|>user\nWhat is 12 + 5?<|im_end|>\n<|im_start|>assistant\n";
    CHECK(strncmp(t, start, strlen(start)) == 0);
    const char *end = "<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n";
    CHECK(strlen(t) > strlen(end));
    CHECK_EQ_STR(t + strlen(t) - strlen(end), end); /* one newline closes the prompt, as in training of the model */
    CHECK_EQ_STR(c->dataset.path, RRL_SOURCE_DIR "/data/arithmetic/test.jsonl");
    CHECK_EQ_STR(c->experiment.train_dataset.path, RRL_SOURCE_DIR "/data/arithmetic/train.jsonl");
    CHECK_EQ_STR(c->experiment.qualification_dataset.path, RRL_SOURCE_DIR "/data/arithmetic/validation.jsonl");
    CHECK(c->training.learning_rate == 3e-4);
    CHECK_EQ_INT(count_conditions(c), 2 + 6 + 3);
    check_loophole(&c->experiment.arms[2]);
    check_ints(&c->evaluation.k, K, 3);
    rrl_config_close(&c);
}

/* --- the reference's protocols */

static void check_gsm8k(const rrl_dataset_config *d, const char *split, const char *pool,
                        const char *prefix) {
    CHECK(d->given);
    CHECK_EQ_STR(d->source, "gsm8k");
    CHECK_EQ_STR(d->split, split);
    CHECK_EQ_STR(d->pool, pool);
    CHECK_EQ_STR(d->answer_separator, "####");
    CHECK_EQ_STR(d->id_column, "");
    CHECK_EQ_STR(d->id_prefix, prefix);
}

static void check_reference_training(const rrl_config *c) {
    CHECK(c->training.learning_rate == 5e-6 && c->training.beta == 0.04);
    CHECK_EQ_INT(c->training.scale_rewards, RRL_SCALE_NONE);
    CHECK_EQ_INT(c->training.loss_type, RRL_LOSS_DAPO);
    CHECK_EQ_INT(c->training.lora.r, 8);
    CHECK(c->training.lora.alpha == 16 && c->training.lora.dropout == 0.05);
    CHECK_EQ_STR(c->training.lora.target_modules.v[0], "all-linear");
    CHECK_EQ_INT(c->training.gradient_accumulation_steps, 2);
    CHECK(c->generation.temperature == 0.7 && c->generation.top_p == 0.95);
    CHECK_EQ_INT(c->generation.max_tokens, 512);
    CHECK_EQ_INT(c->model.prompt_format, RRL_PROMPT_CHAT);
    CHECK_EQ_STR(c->model.prompt_template, "");
}

static void check_final_run(const rrl_config *c) {
    check_reference_training(c);
    CHECK_EQ_STR(c->model.name, "Qwen/Qwen2.5-0.5B-Instruct");
    CHECK_EQ_STR(c->model.revision, "7ae5576");
    CHECK_EQ_INT(c->generation.num_generations, 8);
    CHECK_EQ_INT(c->training.max_steps, 200);
    CHECK_EQ_INT(c->training.batch_size, 8);
    check_ints(&c->evaluation.k, K, 3);
    check_gsm8k(&c->dataset, "test", "final_test", "gsm8k-final-test-");
    check_gsm8k(&c->experiment.train_dataset, "train", "final_train", "gsm8k-final-train-");
}

static void check_combined(const rrl_reward_config *r) {
    CHECK_EQ_INT(r->strategy, RRL_SHAPE_COMBINED);
    CHECK(r->penalty == 0.2 && r->moderate_threshold == 0.4 && r->severe_threshold == 0.9);
    CHECK(r->moderate_scale == 0.5 && r->severe_scale == 0);
    CHECK_EQ_INT(r->missing, RRL_MISSING_ZERO);
}

static void test_final_study(void) {
    rrl_config *c = open_config("final_study.yaml");
    if (!c) return;
    check_final_run(c);
    check_ints(&c->experiment.seeds, SEEDS, 3);
    CHECK_EQ_INT(c->experiment.n_arms, 1);
    CHECK_EQ_STR(c->experiment.arms[0].name, "flip");
    CHECK_EQ_INT(c->experiment.arms[0].corruption.kind, RRL_CORRUPT_FLIP);
    check_reals(&c->experiment.arms[0].levels, LEVELS, 5);
    check_texts(&c->experiment.arms[0].methods, METHODS, 3);
    CHECK_EQ_INT(count_conditions(c), 45);
    check_combined(&c->experiment.robust_reward);
    CHECK(c->experiment.qualification_min_pass1 == 0.1);
    check_gsm8k(&c->experiment.qualification_dataset, "train", "validation", "gsm8k-validation-");
    rrl_config_close(&c);
}

static void test_pilot(void) {
    rrl_config *c = open_config("pilot.yaml");
    if (!c) return;
    check_reference_training(c);
    CHECK_EQ_STR(c->model.name, "HuggingFaceTB/SmolLM2-135M-Instruct");
    CHECK_EQ_STR(c->model.revision, "12fd25f");
    CHECK_EQ_INT(c->training.max_steps, 2);
    CHECK_EQ_INT(c->generation.num_generations, 4);
    CHECK_EQ_INT(c->dataset.limit, 4);
    CHECK_EQ_INT(c->dataset.shuffle_seed, 20261004);
    CHECK_EQ_STR(c->dataset.source, "huggingface");
    CHECK_EQ_STR(c->dataset.name, "openai/gsm8k");
    CHECK_EQ_STR(c->dataset.split, "test");
    CHECK_EQ_INT(c->experiment.train_dataset.limit, 32);
    CHECK_EQ_INT(c->experiment.train_dataset.shuffle_seed, 20261004);
    check_ints(&c->experiment.seeds, SEEDS, 3);
    check_reals(&c->experiment.arms[0].levels, (const double[]){0, 0.2, 0.4}, 3);
    check_texts(&c->experiment.arms[0].methods, METHODS, 3);
    CHECK_EQ_INT(count_conditions(c), 27);
    check_combined(&c->experiment.robust_reward);
    check_ints(&c->evaluation.k, K, 2);
    rrl_config_close(&c);
}

static void test_qualification(void) {
    rrl_config *c = open_config("qualification.yaml");
    if (!c) return;
    CHECK(c->generation.temperature == 0);
    CHECK_EQ_INT(c->generation.num_generations, 1);
    CHECK_EQ_INT(c->generation.max_tokens, 512);
    check_ints(&c->evaluation.k, K, 1);
    check_gsm8k(&c->dataset, "train", "validation", "gsm8k-validation-");
    CHECK_OK(rrl_config_check(c, RRL_FOR_EVAL));
    CHECK_STATUS(rrl_config_check(c, RRL_FOR_TRAIN), RRL_ERR_CONFIG);
    rrl_config_close(&c);
}

/* baseline and robust differ in the reward and the folder, in nothing else. */
static void test_single_runs(void) {
    rrl_config *a = open_config("baseline.yaml"), *b = open_config("robust.yaml"),
               *e = open_config("evaluation.yaml");
    if (!a || !b || !e) return;
    check_final_run(a);
    check_final_run(b);
    check_combined(&b->reward);
    CHECK_EQ_INT(a->training_verifier.members[1].corruption.seed, 42 + 1009);
    char *ya = NULL, *yb = NULL, *difference = NULL;
    CHECK_OK(rrl_config_yaml(&ya, a, NULL));
    CHECK_OK(rrl_config_yaml(&yb, b, NULL));
    CHECK_OK(rrl_config_difference(&difference, ya, yb));
    CHECK_EQ_STR(difference, "reward.strategy: standard -> combined\n");
    check_gsm8k(&e->dataset, "test", "final_test", "gsm8k-final-test-");
    CHECK_EQ_STR(e->model.adapter, "");
    free(ya);
    free(yb);
    free(difference);
    rrl_config_close(&a);
    rrl_config_close(&b);
    rrl_config_close(&e);
}

static void test_smoke(void) {
    rrl_config *c = open_config("smoke.yaml");
    if (!c) return;
    CHECK_EQ_INT(c->experiment.mode, RRL_MODE_FIXTURE);
    CHECK_EQ_INT(c->model.backend, RRL_BACKEND_FIXTURE);
    check_texts(&c->experiment.arms[0].methods, (const char *const[]){RRL_METHOD_AUDIT}, 1);
    check_ints(&c->experiment.seeds, SEEDS, 3);
    CHECK_EQ_INT(count_conditions(c), 9);
    rrl_config_close(&c);
}

int main(void) {
    test_all();
    test_train();
    test_quick();
    test_embedded();
    test_smollm2_arithmetic();
    test_final_study();
    test_pilot();
    test_qualification();
    test_single_runs();
    test_smoke();
    return CHECK_DONE();
}
