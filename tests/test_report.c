/* The report of a small study against values worked out by hand: arm flip at levels 0 and 0.4, three seeds,
 * four questions with two completions each. A marks letter is one completion: + right, - wrong, both rewarded
 * as the judge says; r and w right and wrong with reward 1; m wrong without a reward. */
#include "report/report.h"

#include <locale.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "check.h"
#include "record/metrics.h"
#include "record/run_folder.h"

enum { QUESTIONS = 4, SAMPLES = 2, SEEDS = 3, ROOT_CHARS = 256, PATH_CHARS = 1024 };

static const double TOLERANCE = 1e-12;

typedef struct {
    const char *arm, *method;
    double level;
    const char *marks[SEEDS]; /* [question][sample] */
    int trained;
} condition;

static const condition STUDY[] = {
    {"flip", "base", 0, {"+-+-+-+-", "+-+-+-+-", "+-+-+-+-"}, 0},
    {"flip", "baseline", 0, {"+++++-+-", "+++++-+-", "+++++-+-"}, 1},
    {"flip", "robust", 0, {"+++-+-+-", "+++-+-+-", "+++-+-+-"}, 1},
    {"flip", "base", 0.4, {"+-+-+-+-", "+-+-+-+-", "+-+-+-+-"}, 0},
    {"flip", "baseline", 0.4, {"rwwwrwww", "rwrwwwww", "rwrwrwww"}, 1},
    {"flip", "robust", 0.4, {"+++-+-+-", "+-+-+-+-", "+-+-+-mm"}, 1},
};
enum { N_STUDY = sizeof STUDY / sizeof *STUDY };

/* --- making records */

static char root[ROOT_CHARS];

static void empty_root(void) {
    char command[2 * PATH_CHARS];
    snprintf(root, sizeof root, "%s/report_case", RRL_BINARY_DIR);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", root, root);
    if (system(command) != 0) exit(1);
}

static char *question_text[QUESTIONS] = {"one", "two", "three", "four"};
static rrl_question question_rows[QUESTIONS];

static rrl_questions pool(void) {
    for (int i = 0; i < QUESTIONS; i++)
        question_rows[i] =
            (rrl_question){question_text[i], question_text[i], (char *)"1", (char *)"{}", (char *)"", 0};
    return (rrl_questions){.rows = question_rows, .n = QUESTIONS};
}

static void mark(rrl_completion *c, char m) {
    c->correct = m == '+' || m == 'r';
    c->reward = m == 'm' ? NAN : m == '+' || m == 'r' || m == 'w';
    c->shaped = isnan(c->reward) ? 0 : c->reward;
    c->confidence = c->scale = isnan(c->reward) ? 0 : 1;
    c->n_tokens = 0;
}

/* Each says "Final answer: 1" or 2, the reference being 1. */
static void give_text(rrl_group *g) {
    rrl_buffer text = {0};
    for (int i = 0; i < SAMPLES; i++) {
        const char *answer = g->rows[i].correct > 0 ? "1" : "2";
        size_t before = text.len;
        CHECK_OK(rrl_buffer_printf(&text, "Final answer: %s", answer));
        g->rows[i].n_text = (int32_t)(text.len - before);
        g->rows[i].n_answer = 1;
        CHECK_OK(rrl_buffer_puts(&text, answer));
        g->verdicts[i] = (rrl_verdict){.clean = g->rows[i].correct,
                                       .reward = g->rows[i].reward,
                                       .confidence = 1,
                                       .available = !isnan(g->rows[i].reward),
                                       .corrupted = g->rows[i].reward != g->rows[i].correct};
    }
    g->head.n_text = (int64_t)text.len;
    g->text = text.data;
}

static rrl_group *group_of(int question, const char *marks) {
    rrl_group *g = NULL;
    CHECK_OK(rrl_group_create(&g, SAMPLES, 0));
    CHECK_OK(rrl_group_set_members(g, 1));
    g->head.question = question;
    for (int i = 0; i < SAMPLES; i++) mark(&g->rows[i], marks[i]);
    give_text(g);
    return g;
}

static void put_evaluation(rrl_recorder *r, const char *marks) {
    static const int64_t K[] = {1, 2};
    rrl_questions q = pool();
    rrl_group *groups[QUESTIONS];
    rrl_metric *m = NULL;
    int n = 0;
    for (int i = 0; i < QUESTIONS; i++) groups[i] = group_of(i, marks + i * SAMPLES);
    CHECK_OK(rrl_metrics_of_groups(&m, &n, groups, QUESTIONS, K, 2));
    CHECK_OK(rrl_recorder_evaluation(r, "test", &q, groups, QUESTIONS, m, n));
    rrl_metrics_free(&m, n);
}

/* Two updates: rewards 1, 0 and none, 0.5 (shaped to 0.25 at scale 0.5). */
static void put_training(rrl_recorder *r) {
    for (int step = 0; step < 2; step++) {
        rrl_group *g = group_of(step, step ? "m-" : "+-");
        rrl_training_row row = {.step = step,
                                .grad_norm = step ? 3 : 1,
                                .kl = step ? 0.02 : 0,
                                .frac_reward_zero_std = step,
                                .lora_b_norm = step ? 0.2 : 0.1,
                                .nonfinite = 0,
                                .rollout_time = 1.5,
                                .verify_time = 0.25,
                                .learn_time = 2,
                                .step_time = 4,
                                .peak_memory = step ? 2000 : 1000};
        g->head.step = step;
        if (step) {
            g->rows[1].reward = 0.5F;
            g->rows[1].shaped = 0.25F;
            g->rows[1].scale = 0.5F;
        }
        CHECK_OK(rrl_recorder_step(r, &g, 1, &row));
    }
}

static void make_record(const char *dir, const condition *c, int seed, const char *extra, int finish) {
    char yaml[512];
    rrl_questions train = pool();
    rrl_member_config member = {.kind = RRL_MEMBER_RULE};
    rrl_verifier_config verifier = {.members = &member, .n_members = 1};
    rrl_recorder *r = NULL;
    member.corruption.bias_key = member.corruption.bias_value = (char *)"";
    snprintf(yaml, sizeof yaml, "seed: %d\nexperiment: {label: \"One | study\"}\nreward: {strategy: %s}\n%s",
             seed, strcmp(c->method, "robust") == 0 ? "combined" : "standard", extra);
    rrl_record_header h = {.execution_kind = strcmp(c->method, RRL_METHOD_AUDIT) == 0 ? "fixture_audit"
                                             : c->trained                             ? "training"
                                                                                      : "evaluation",
                           .arm = c->arm,
                           .method = c->method,
                           .numeric_path = "f32",
                           .digest = "d",
                           .config_yaml = yaml,
                           .provenance_json = "{}",
                           .model_digest = "model",
                           .parser_version = "1",
                           .level = c->level,
                           .seed = (uint64_t)seed,
                           .verifier = &verifier,
                           .train = c->trained ? &train : NULL};
    CHECK_OK(rrl_dir_make(dir));
    if (!CHECK_OK(rrl_recorder_open(&r, dir, &h, 25, 0))) exit(CHECK_DONE());
    if (c->trained) put_training(r);
    if (finish) put_evaluation(r, c->marks[seed - 1]);
    CHECK_OK(finish ? rrl_recorder_finish(r, NULL) : rrl_recorder_flush(r));
    rrl_recorder_close(&r);
}

static void condition_dir(char out[PATH_CHARS], const char *study, const condition *c, int seed) {
    snprintf(out, PATH_CHARS, "%s/%s/%s/level-%g/seed-%d/%s", root, study, c->arm, c->level, seed, c->method);
}

static void make_study(const char *study, const char *extra) {
    char dir[PATH_CHARS];
    for (int i = 0; i < N_STUDY; i++)
        for (int seed = 1; seed <= SEEDS; seed++) {
            condition_dir(dir, study, &STUDY[i], seed);
            make_record(dir, &STUDY[i], seed, extra, 1);
        }
}

/* --- reading what was written */

static char *slurp(const char *study, const char *file) {
    char path[2 * PATH_CHARS], *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/%s/report/%s", root, study, file);
    return CHECK_OK(rrl_file_read(&text, &len, path, 1 << 24)) ? text : strdup("");
}

/* Field `column` of the line that starts with prefix; "?" if there is none. No field here is quoted. */
static const char *field(const char *csv, const char *prefix, const char *column) {
    static char out[256];
    size_t n = strlen(prefix), at = 0;
    const char *line = csv, *name = csv;
    while (name && strncmp(name, column, strlen(column)) != 0) {
        name += strcspn(name, ",\n");
        if (*name != ',') return "?";
        name++;
        at++;
    }
    while (line && (line == csv || strncmp(line, prefix, n) != 0)) {
        line = strchr(line, '\n');
        if (line) line++;
    }
    if (!line || !*line) return "?";
    for (; at; at--) line = strchr(line, ',') + 1;
    snprintf(out, sizeof out, "%.*s", (int)strcspn(line, ",\n"), line);
    return out;
}

static double value(const char *csv, const char *prefix, const char *column) {
    const char *text = field(csv, prefix, column);
    char *end;
    double v = strtod(text, &end);
    return end == text || *end ? NAN : v;
}

/* --- tests */

static void test_aggregate(void) {
    char *csv = slurp("study", "aggregate.csv");
    static const struct {
        const char *row;
        double mean, std;
    } WANT[] = {
        {"flip,0,base,independent_accuracy,3,", 0.5, 0},
        {"flip,0,baseline,independent_accuracy,3,", 0.75, 0},
        {"flip,0,robust,independent_accuracy,3,", 0.625, 0},
        {"flip,0.4,baseline,independent_accuracy,3,", 7.0 / 24,
         0.07216878364870323}, /* 2/8, 2/8, 3/8; sqrt(1/192) */
        {"flip,0.4,baseline,observed_reward,3,", 1, 0},
        {"flip,0.4,baseline,reward_hacking_gap,3,", 17.0 / 24, 0.07216878364870323},
        {"flip,0.4,baseline,false_positive_reward_rate,3,", 1, 0},
        {"flip,0.4,robust,independent_accuracy,3,", 0.5, 0.125},
        {"flip,0.4,robust,reward_coverage,3,", 11.0 / 12, 0.14433756729740643}, /* 1, 1, 3/4 */
        {"flip,0.4,robust,pass@2,3,", 11.0 / 12, 0.14433756729740643},          /* 4/4, 4/4, 3/4 questions */
    };
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        CHECK_NEAR(value(csv, WANT[i].row, "mean"), WANT[i].mean, TOLERANCE);
        CHECK_NEAR(value(csv, WANT[i].row, "std"), WANT[i].std, TOLERANCE);
    }
    /* a constant reward has no correlation: no seed, no mean */
    CHECK_EQ_STR(field(csv, "flip,0.4,baseline,reward_correctness_correlation,0,", "mean"), "");
    free(csv);
}

/* Statement 1: p by flips of questions, 10,000 of them, so known to 4 deviations of at most 0.005. */
static void test_differences(void) {
    char *csv = slurp("study", "paired_method_differences.csv");
    CHECK(strncmp(csv, "arm,level,metric,method_a,method_b,n_seeds,n_questions,mean,low,high,p,p_holm\n",
                  78) == 0);
    const char *row = "flip,0,independent_accuracy,baseline,base,";
    CHECK_NEAR(value(csv, row, "n_seeds"), 3, 0);
    CHECK_NEAR(value(csv, row, "n_questions"), 4, 0);
    CHECK_NEAR(value(csv, row, "mean"), 0.25, TOLERANCE); /* 1/2, 1/2, 0, 0 in every seed */
    CHECK_NEAR(value(csv, row, "low"), 0, TOLERANCE);     /* no draw of the first two: 1/16 */
    CHECK_NEAR(value(csv, row, "high"), 0.5, TOLERANCE);
    CHECK_NEAR(value(csv, row, "p"), 0.5, 0.02); /* the first two of one sign: 2 of 4 */
    CHECK_NEAR(value(csv, row, "p_holm"), 1, 0);
    row = "flip,0.4,independent_accuracy,baseline,base,";
    CHECK_NEAR(value(csv, row, "mean"), -5.0 / 24, TOLERANCE); /* -2/8, -2/8, -1/8 */
    CHECK_NEAR(value(csv, row, "p"), 0.25, 0.018);             /* three questions differ: 2 of 8 */
    CHECK(value(csv, row, "low") < -5.0 / 24 && value(csv, row, "high") > -5.0 / 24);
    row = "flip,0.4,independent_accuracy,robust,base,";
    CHECK_NEAR(value(csv, row, "mean"), 0, TOLERANCE); /* 1/8, 0, -1/8 */
    CHECK_NEAR(value(csv, row, "p"), 1, 0);
    row = "flip,0.4,independent_accuracy,robust,baseline,";
    CHECK_NEAR(value(csv, row, "mean"), 5.0 / 24, TOLERANCE); /* 3/8, 2/8, 0 */
    CHECK_NEAR(value(csv, row, "p"), 0.125, 0.014);           /* four questions of one sign: 2 of 16 */
    /* the last question has no reward in seed 3: robust 1, 1/2, 1/2 | 1/2 x 4 | 1/2 x 3 against rewards of 1
     */
    row = "flip,0.4,observed_reward,robust,baseline,";
    CHECK_NEAR(value(csv, row, "mean"), (-3.0 / 8 - 0.5 - 0.5) / 3, TOLERANCE);
    CHECK_NEAR(value(csv, row, "n_questions"), 4, 0);
    free(csv);
}

/* Statement 2: p by all flips of the three seeds; t of 2 degrees of freedom, so the interval is wide. */
static void test_method_differences(void) {
    char *csv = slurp("study", "method_differences.csv");
    const char *row = "flip,0,independent_accuracy,baseline,base,";
    CHECK_NEAR(value(csv, row, "p"), 0.25, TOLERANCE); /* all three the same sign: 2 of 8 */
    CHECK_NEAR(value(csv, row, "p_holm"), 1, 0);
    CHECK_NEAR(value(csv, row, "few_seeds"), 1, 0);
    CHECK_NEAR(value(csv, row, "random_flips"), 0, 0);
    row = "flip,0.4,independent_accuracy,baseline,base,";
    CHECK_NEAR(value(csv, row, "p"), 0.25, TOLERANCE);
    CHECK(value(csv, row, "low") < -0.4 && value(csv, row, "high") > 0);
    CHECK_NEAR(value(csv, "flip,0.4,independent_accuracy,robust,base,", "p"), 1, 0);
    CHECK_NEAR(value(csv, "flip,0.4,independent_accuracy,robust,baseline,", "p"), 0.5, TOLERANCE); /* 3/8, 2/8, 0 */
    free(csv);
    csv = slurp("study", "intervals.csv");
    CHECK_NEAR(value(csv, "runs,flip,0.4,robust,independent_accuracy,", "mean"), 0.5, TOLERANCE);
    CHECK_NEAR(value(csv, "method,flip,0.4,robust,independent_accuracy,", "n_seeds"), 3, 0);
    CHECK_EQ_STR(field(csv, "runs,flip,0.4,robust,confidence,", "mean"), "?"); /* has no value for each question */
    free(csv);
}

static void test_failures(void) {
    char *csv = slurp("study", "failure_analysis.csv"), *md = slurp("study", "failure_analysis.md");
    const char *row = "flip,0.4,baseline,1,";
    CHECK_NEAR(value(csv, row, "completions"), 8, 0);
    CHECK_NEAR(value(csv, row, "right_rewarded"), 2, 0);
    CHECK_NEAR(value(csv, row, "wrong_rewarded"), 6, 0);
    CHECK_NEAR(value(csv, row, "questions_never_right"), 2, 0);
    row = "flip,0.4,robust,3,";
    CHECK_NEAR(value(csv, row, "right_rewarded"), 3, 0);
    CHECK_NEAR(value(csv, row, "wrong_unrewarded"), 3, 0);
    CHECK_NEAR(value(csv, row, "wrong_missing"), 2, 0);
    CHECK(strstr(md, "| flip | 0.4 | baseline | 24 | 0.708 | 0.000 |") != NULL); /* 6 + 6 + 5 of 24 */
    CHECK(strstr(md, "| four | four | 1 | 6 |") != NULL);                        /* 2 completions x 3 seeds */
    free(csv);
    free(md);
}

static void test_json(void) {
    char *text = slurp("study", "summary.json");
    cJSON *json = NULL;
    if (CHECK_OK(rrl_json_parse(&json, text, strlen(text), "summary.json"))) {
        const cJSON *row, *last = NULL;
        cJSON_ArrayForEach(row, json) {
            bool third = cJSON_GetObjectItem(row, "seed")->valuedouble == 3;
            if (third && cJSON_GetObjectItem(row, "level")->valuedouble == 0.4) last = row; /* the last one is robust */
        }
        const cJSON *metrics = cJSON_GetObjectItem(last, "metrics");
        CHECK_EQ_STR(cJSON_GetObjectItem(last, "method")->valuestring, "robust");
        CHECK_NEAR(cJSON_GetObjectItem(metrics, "reward_coverage")->valuedouble, 0.75, 0);
        CHECK(cJSON_IsNull(cJSON_GetObjectItem(metrics, "member_agreement"))); /* one member has no pair */
        CHECK_NEAR(cJSON_GetObjectItem(cJSON_GetObjectItem(last, "training"), "steps")->valuedouble, 2, 0);
    }
    cJSON_Delete(json);
    free(text);
}

/* The page stands alone: style and drawings inside, nothing loaded, every element of the drawings closed. */
static void test_html(void) {
    char *page = slurp("study", "report.html");
    static const char *const SAYS[] = {"<!doctype html>", "prefers-color-scheme:dark", "@media print",
                                       "One | study", "Statement 1: about these runs", "Statement 2: about the method",
                                       "3 seeds are few", "plots/independent_accuracy.csv", "Provenance"};
    for (size_t i = 0; i < sizeof SAYS / sizeof *SAYS; i++) CHECK(strstr(page, SAYS[i]) != NULL);
    CHECK(strstr(page, "<script") == NULL && strstr(page, "src=") == NULL && strstr(page, "@import") == NULL);
    int open = 0, closed = 0;
    for (const char *p = page; (p = strstr(p, "<svg ")); p++) open++;
    for (const char *p = page; (p = strstr(p, "</svg>")); p++) closed++;
    CHECK_EQ_INT(open, closed);
    CHECK(open > 0 || strstr(page, "gnuplot is not installed") != NULL);
    free(page);
}

/* Without gnuplot a report comes all the same, with a note and the data of the plots. */
static void test_no_gnuplot(const char *dir) {
    char *path = strdup(getenv("PATH"));
    CHECK(setenv("PATH", "/nowhere", 1) == 0);
    CHECK_OK(rrl_report_write(NULL, dir));
    CHECK(setenv("PATH", path, 1) == 0);
    char *page = slurp("study", "report.html"), *csv = slurp("study", "plots/independent_accuracy.csv");
    CHECK(strstr(page, "gnuplot is not installed") != NULL && strstr(page, "<svg ") == NULL);
    CHECK_EQ_STR(field(csv, "flip,0,baseline,1,", "mean"), "0.75");
    free(page);
    free(csv);
    free(path);
}

static void test_diagnostics(void) {
    char *csv = slurp("study", "training_diagnostics.csv");
    const char *row = "flip,0.4,robust,2,";
    static const struct {
        const char *column;
        double want;
    } WANT[] = {
        {"steps", 2},
        {"samples", 4},
        {"observed_reward_sum", 1.5},
        {"shaped_reward_sum", 1.25},
        {"observed_reward_mean", 0.5},
        {"shaped_reward_mean", 0.3125},
        {"observed_reward_variance", 1.0 / 6},
        {"shaped_reward_variance", 0.16796875},
        {"mean_penalty", 0.25 / 3},
        {"independent_accuracy", 0.25},
        {"mean_grad_norm", 2},
        {"mean_kl", 0.01},
        {"zero_variance_fraction", 0.5},
        {"lora_b_norm", 0.2},
        {"missing", 1},
        {"suppressed", 1},
        {"downweighted", 1},
        {"nonfinite", 0},
        {"rollout_s", 3},
        {"verify_s", 0.5},
        {"learn_s", 4},
        {"step_s", 8},
        {"peak_memory_bytes", 2000},
    };
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++)
        CHECK_NEAR(value(csv, row, WANT[i].column), WANT[i].want, TOLERANCE);
    CHECK_EQ_STR(field(csv, "flip,0,base,", "steps"), "?"); /* nothing was trained there */
    free(csv);
}

static void test_summary(void) {
    char *csv = slurp("study", "summary.csv"), *seeds = slurp("study", "per_seed.csv");
    CHECK_NEAR(value(csv, "flip,0.4,baseline,3,", "independent_accuracy"), 3.0 / 8, TOLERANCE);
    CHECK_EQ_STR(field(csv, "flip,0.4,baseline,3,", "path"), "flip/level-0.4/seed-3/baseline");
    CHECK_EQ_STR(field(csv, "flip,0.4,baseline,3,", "reward_correctness_correlation"), "");
    CHECK_NEAR(value(csv, "flip,0,base,1,", "updates"), 0, 0);
    CHECK_NEAR(value(seeds, "flip,0.4,robust,3,observed_reward,", "value"), 0.5, TOLERANCE);
    const char *base = strstr(csv, "\nflip,0,base"), *baseline = strstr(csv, "\nflip,0,baseline"),
               *robust = strstr(csv, "\nflip,0,robust");
    CHECK(base && baseline && robust && base < baseline && baseline < robust &&
          robust < strstr(csv, "\nflip,0.4,"));
    free(csv);
    free(seeds);
}

/* Conditions that were planned, begun or failed are named with the reason. */
static void make_gaps(void) {
    char path[2 * PATH_CHARS], dir[PATH_CHARS];
    static const char PLAN[] = "{\"version\": 1, \"conditions\": ["
                               "{\"arm\": \"flip\", \"level\": 0, \"seed\": 1, \"method\": \"base\","
                               " \"dir\": \"flip/level-0/seed-1/base\"},"
                               "{\"arm\": \"flip\", \"level\": 0.6, \"seed\": 1, \"method\": \"base\","
                               " \"dir\": \"flip/level-0.6/seed-1/base\"},"
                               "{\"arm\": \"flip\", \"level\": 0.6, \"seed\": 1, \"method\": \"robust\","
                               " \"dir\": \"flip/level-0.6/seed-1/robust\"}]}";
    rrl_run_folder *f = NULL;
    rrl_run_state state;
    snprintf(path, sizeof path, "%s/study/study.json", root);
    CHECK_OK(rrl_file_publish(path, PLAN, strlen(PLAN)));
    snprintf(path, sizeof path, "%s/study/flip/level-0.6/seed-1/robust", root);
    CHECK_OK(rrl_run_folder_open(&f, &state, path, "d", "{}", false));
    CHECK_OK(rrl_run_folder_status(f, "failed", "the loss of step 7 is not finite"));
    rrl_run_folder_close(&f);
    condition c = {"flip", "baseline", 0.6, {0}, 1};
    condition_dir(dir, "study", &c, 1);
    make_record(dir, &c, 1, "", 0);
}

static void test_gaps(const char *table) {
    char *md = slurp("study", "report.md");
    static const char *const WANT[] = {
        "- flip/level-0.6/seed-1/base: waiting\n",
        "- flip/level-0.6/seed-1/baseline: waiting (2 updates recorded)\n",
        "- flip/level-0.6/seed-1/robust: failed (the loss of step 7 is not finite)\n",
    };
    for (int i = 0; i < 3; i++) {
        CHECK(strstr(md, WANT[i]) != NULL);
        CHECK(strstr(table, WANT[i]) != NULL);
    }
    CHECK(strstr(table, "Not complete: 3\n") != NULL);
    CHECK(strstr(md, "# One | study\n") != NULL);
    free(md);
}

static void test_table(char *table) {
    for (const char *line = table; *line;) {
        size_t len = strcspn(line, "\n");
        if (*line != '-' && !CHECK(len <= 80)) fprintf(stderr, "  %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
    CHECK(strstr(table, "arm   level method   seeds  accuracy (sd)  reward     gap   pass@2\n") != NULL);
    for (char *p = table; *p; p++)
        if (*p == '\n') *p = ' ';
    CHECK(strstr(table, "at the 2 arm-levels where base, baseline and robust were all measured (3 seeds, 4 "
                        "questions): baseline's mean accuracy is below base at 1. There, where baseline lost "
                        "it, robust kept it (is at or above base) at 1 of 1.") != NULL);
    CHECK(strstr(table, "At flip 0.4: base 0.500, baseline - base -0.208 [") != NULL);
    CHECK(strstr(table, "robust - base +0.000 [") != NULL);
    CHECK(strstr(table, "robust - baseline runs from -0.125 to +0.208;") != NULL);
}

/* The same bytes again, also where the user's numbers have a comma. */
static void test_twice(const char *dir) {
    static const char *const FILES[] = {"report.md",
                                        "summary.csv",
                                        "per_seed.csv",
                                        "aggregate.csv",
                                        "summary.json",
                                        "paired_method_differences.csv",
                                        "method_differences.csv",
                                        "intervals.csv",
                                        "failure_analysis.md",
                                        "report.html",
                                        "plots/independent_accuracy.csv",
                                        "plots/independent_accuracy.gp",
                                        "training_diagnostics.csv"};
    enum { N = sizeof FILES / sizeof *FILES };
    char *before[N];
    for (int i = 0; i < N; i++) before[i] = slurp("study", FILES[i]);
    (void)setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed */
    CHECK_OK(rrl_report_write(NULL, dir));
    (void)setlocale(LC_ALL, "C");
    for (int i = 0; i < N; i++) {
        char *after = slurp("study", FILES[i]);
        CHECK_EQ_STR(after, before[i]);
        free(before[i]);
        free(after);
    }
}

static void make_one(const char *below, const condition *c, int seed, const char *extra) {
    char dir[PATH_CHARS];
    snprintf(dir, sizeof dir, "%s/two/%s", root, below);
    make_record(dir, c, seed, extra, 1);
}

static void publish_old(const char *file) {
    char path[PATH_CHARS], *parent = NULL;
    snprintf(path, sizeof path, "%s/two/report/%s", root, file);
    CHECK_OK(rrl_path_parent(&parent, path));
    CHECK_OK(rrl_dir_make(parent));
    CHECK_OK(rrl_file_publish(path, "old\n", 4));
    free(parent);
}

/* Another learning rate, an audit, another sampling: tables of their own, the base in each it belongs to. */
static void make_sections(void) {
    condition audit = {"flip", RRL_METHOD_AUDIT, 0, {"+-+-+-+-"}, 0};
    condition base = {"flip", "base", 0.8, {"--------", "", "++++++++"}, 0};
    condition late = {"flip", "baseline", 0.8, {"", "", "++++++++"}, 1};
    make_study("two/a", "");
    make_one("b1", &STUDY[1], 1, "training: {learning_rate: 0.5}\n");
    make_one("b2", &base, 1, "");
    make_one("b3", &base, 3, "");
    make_one("b4", &late, 3, "training: {learning_rate: 0.5}\n");
    make_one("c", &audit, 1, "");
    make_one("d", &STUDY[0], 1, "generation: {top_k: 7}\n");
    publish_old("section-9/summary.csv");
    publish_old("summary.csv");
}

static void test_sections(void) {
    char dir[PATH_CHARS], old[2 * PATH_CHARS];
    make_sections();
    snprintf(dir, sizeof dir, "%s/two", root);
    if (!CHECK_OK(rrl_report_write(NULL, dir))) return;
    snprintf(old, sizeof old, "%s/report/summary.csv", dir);
    CHECK(!rrl_file_exists(old));
    snprintf(old, sizeof old, "%s/report/section-9", dir);
    CHECK(!rrl_dir_exists(old));
    char *first = slurp("two", "section-1/summary.csv"), *second = slurp("two", "section-2/summary.csv"),
         *pairs = slurp("two", "section-2/paired_method_differences.csv"),
         *third = slurp("two", "section-3/summary.csv"), *fourth = slurp("two", "section-4/summary.csv"),
         *md = slurp("two", "report.md");
    CHECK_EQ_STR(field(first, "flip,0,baseline,1,", "path"), "a/flip/level-0/seed-1/baseline");
    CHECK_EQ_STR(field(first, "flip,0,robust,1,", "path"), "a/flip/level-0/seed-1/robust");
    CHECK_EQ_STR(field(second, "flip,0,baseline,1,", "path"), "b1");
    CHECK_EQ_STR(field(second, "flip,0,base,2,", "path"), "a/flip/level-0/seed-2/base");
    CHECK_EQ_STR(field(second, "flip,0,robust,", "path"), "?");
    /* the one seed that both have is the third, where both are right everywhere */
    CHECK_NEAR(value(pairs, "flip,0.8,independent_accuracy,baseline,base,", "n_seeds"), 1, 0);
    CHECK_NEAR(value(pairs, "flip,0.8,independent_accuracy,baseline,base,", "mean"), 0, 0);
    CHECK_EQ_STR(field(third, "flip,0,base,", "path"), "d");
    CHECK_EQ_STR(field(third, "flip,0,fixture_verifier_audit,", "path"), "?");
    CHECK_EQ_STR(field(fourth, "flip,0,fixture_verifier_audit,1,", "path"), "c");
    CHECK_EQ_STR(field(fourth, "flip,0,base,", "path"), "?");
    CHECK(strstr(md, "- training.learning_rate: 5e-06 -> 0.5\n") != NULL);
    CHECK(strstr(md, "- generation.top_k: 0 -> 7\n") != NULL);
    CHECK(strstr(md, "- execution kind: training -> fixture_audit\n") != NULL);
    free(first);
    free(second);
    free(pairs);
    free(third);
    free(fourth);
    free(md);
}

static void test_refused(void) {
    char dir[PATH_CHARS];
    snprintf(dir, sizeof dir, "%s/empty", root);
    CHECK_OK(rrl_dir_make(dir));
    CHECK_STATUS(rrl_report_write(NULL, dir), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "no record found below it") != NULL);
    snprintf(dir, sizeof dir, "%s/nowhere", root);
    CHECK_STATUS(rrl_report_write(NULL, dir), RRL_ERR_DATA);
}

int main(void) {
    char dir[PATH_CHARS], *table = NULL;
    empty_root();
    snprintf(dir, sizeof dir, "%s/study", root);
    make_study("study", "");
    make_gaps();
    if (CHECK_OK(rrl_report_write(&table, dir))) {
        test_aggregate();
        test_differences();
        test_method_differences();
        test_failures();
        test_json();
        test_html();
        test_diagnostics();
        test_summary();
        test_gaps(table);
        test_table(table);
        test_twice(dir);
        test_no_gnuplot(dir);
        CHECK_OK(rrl_report_write(NULL, dir)); /* with the drawings again, for who looks at it */
    }
    free(table);
    test_sections();
    test_refused();
    return CHECK_DONE();
}
