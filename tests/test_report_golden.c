/* The tables of a report against golden/report/tables.json: records made by a Python script, which also worked out with
 * numpy what the tables must say of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "check.h"
#include "record/metrics.h"
#include "report/csv.h"
#include "report/report.h"

enum { PATH_CHARS = 1024, MAX_QUESTIONS = 16, MAX_MEMBERS = 8 };

/* rewards are stored as f32, sums of a few dozen in double: 1e-7 is far above their rounding */
static const double TOLERANCE = 1e-7;

static char root[256];
static int n_questions, n_samples, n_members;

/* --- records */

static double number(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItem(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static bool flag(const cJSON *object, const char *key) {
    return cJSON_IsTrue(cJSON_GetObjectItem(object, key));
}

static rrl_questions pool(rrl_question rows[MAX_QUESTIONS]) {
    static char *const NAMES[MAX_QUESTIONS] = {"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"};
    for (int i = 0; i < n_questions; i++)
        rows[i] = (rrl_question){NAMES[i], NAMES[i], (char *)"1", (char *)"{}", (char *)"", 0};
    return (rrl_questions){.rows = rows, .n = n_questions};
}

static void fill_completion(rrl_group *g, int i, const cJSON *row) {
    rrl_completion *c = &g->rows[i];
    const cJSON *votes = cJSON_GetObjectItem(row, "votes");
    c->correct = flag(row, "correct");
    c->reward = (float)number(row, "reward");
    c->shaped = isnan(c->reward) ? 0 : c->reward;
    c->disagreement = (float)number(row, "disagreement");
    c->confidence = c->scale = 1;
    c->n_tokens = (int32_t)number(row, "tokens");
    c->finish = flag(row, "truncated") ? RRL_FINISH_LENGTH : RRL_FINISH_EOS;
    c->n_answer = flag(row, "answer") ? 0 : -1;
    for (int m = 0; m < n_members; m++) {
        const cJSON *vote = cJSON_GetArrayItem(votes, m);
        bool there = !cJSON_IsNull(vote);
        g->verdicts[i * n_members + m] = (rrl_verdict){.clean = c->correct,
                                                       .reward = there ? (float)cJSON_IsTrue(vote) : NAN,
                                                       .confidence = 1,
                                                       .available = there};
    }
}

static rrl_group *group_of(const cJSON *rows, int question) {
    rrl_group *g = NULL;
    int n_tokens = 0;
    for (int i = 0; i < n_samples; i++)
        n_tokens += (int)number(cJSON_GetArrayItem(rows, question * n_samples + i), "tokens");
    CHECK_OK(rrl_group_create(&g, n_samples, n_tokens));
    CHECK_OK(rrl_group_set_members(g, n_members));
    g->head.question = question;
    for (int i = 0; i < n_samples; i++) fill_completion(g, i, cJSON_GetArrayItem(rows, question * n_samples + i));
    return g;
}

static void make_record(const cJSON *record) {
    static const int64_t K[] = {1, 2, 3};
    const char *method = cJSON_GetObjectItem(record, "method")->valuestring;
    char dir[PATH_CHARS], yaml[256];
    rrl_question rows[MAX_QUESTIONS];
    rrl_questions q = pool(rows);
    rrl_member_config members[MAX_MEMBERS] = {{0}};
    rrl_verifier_config verifier = {.members = members, .n_members = n_members};
    rrl_group *groups[MAX_QUESTIONS];
    rrl_recorder *r = NULL;
    rrl_metric *m = NULL;
    int n = 0, seed = (int)number(record, "seed");
    double level = number(record, "level");
    for (int i = 0; i < n_members; i++) {
        members[i].kind = RRL_MEMBER_RULE;
        members[i].corruption.bias_key = members[i].corruption.bias_value = (char *)"";
    }
    snprintf(dir, sizeof dir, "%s/flip/level-%g/seed-%d/%s", root, level, seed, method);
    snprintf(yaml, sizeof yaml, "seed: %d\n", seed);
    rrl_record_header h = {.execution_kind = "evaluation", .arm = "flip", .method = method, .numeric_path = "f32",
                           .digest = "d", .config_yaml = yaml, .provenance_json = "{}", .model_digest = "model",
                           .parser_version = "1", .level = level, .seed = (uint64_t)seed, .verifier = &verifier};
    CHECK_OK(rrl_dir_make(dir));
    if (!CHECK_OK(rrl_recorder_open(&r, dir, &h, 25, 0))) exit(CHECK_DONE());
    for (int i = 0; i < n_questions; i++) groups[i] = group_of(cJSON_GetObjectItem(record, "rows"), i);
    CHECK_OK(rrl_metrics_of_groups(&m, &n, groups, n_questions, K, 3));
    CHECK_OK(rrl_recorder_evaluation(r, "test", &q, groups, n_questions, m, n));
    rrl_metrics_free(&m, n);
    CHECK_OK(rrl_recorder_finish(r, NULL));
    rrl_recorder_close(&r);
}

/* --- tables */

static char *slurp(const char *file) {
    char path[PATH_CHARS], *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/report/%s", root, file);
    return CHECK_OK(rrl_file_read(&text, &len, path, 1 << 24)) ? text : strdup("");
}

/* The number in `column` of the line that starts with prefix; NaN where the field is empty; -1e9 if there is no such line
 * or column. No field here is quoted. */
static double value(const char *csv, const char *prefix, const char *column) {
    int at = 0;
    double out;
    const char *name = csv, *line = strstr(csv, prefix);
    while (line && line != csv && line[-1] != '\n') line = strstr(line + 1, prefix);
    for (; strncmp(name, column, strlen(column)) != 0 || !strchr(",\n", name[strlen(column)]); at++) {
        name += strcspn(name, ",\n");
        if (*name++ != ',') return -1e9;
    }
    for (; line && at > 0; at--) line = strchr(line, ',') ? strchr(line, ',') + 1 : NULL;
    if (!line) return -1e9;
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, ",\n"), line);
    return *text && rrl_parse_double(&out, text) ? out : NAN;
}

static void check(const char *csv, const char *prefix, const char *column, double want) {
    double got = value(csv, prefix, column);
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= TOLERANCE))
        printf("%s %s: %.12g, expected %.12g\n", prefix, column, got, want);
    CHECK(isnan(want) ? isnan(got) : fabs(got - want) <= TOLERANCE);
}

static void test_records(const cJSON *golden) {
    char *summary = slurp("summary.csv"), *failures = slurp("failure_analysis.csv");
    const cJSON *record, *item;
    cJSON_ArrayForEach(record, cJSON_GetObjectItem(golden, "records")) {
        char prefix[128];
        snprintf(prefix, sizeof prefix, "flip,%g,%s,%d,", number(record, "level"),
                 cJSON_GetObjectItem(record, "method")->valuestring, (int)number(record, "seed"));
        cJSON_ArrayForEach(item, cJSON_GetObjectItem(record, "metrics"))
            check(summary, prefix, item->string, cJSON_IsNull(item) ? NAN : item->valuedouble);
        cJSON_ArrayForEach(item, cJSON_GetObjectItem(record, "failures"))
            check(failures, prefix, item->string, item->valuedouble);
    }
    free(summary);
    free(failures);
}

static void test_aggregates(const cJSON *golden) {
    char *csv = slurp("aggregate.csv"), prefix[128];
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(golden, "aggregates")) {
        snprintf(prefix, sizeof prefix, "flip,%g,%s,%s,", number(row, "level"), cJSON_GetObjectItem(row, "method")->valuestring,
                 cJSON_GetObjectItem(row, "metric")->valuestring);
        check(csv, prefix, "mean", number(row, "mean"));
        check(csv, prefix, "std", number(row, "std"));
    }
    free(csv);
}

static void test_differences(const cJSON *golden) {
    char *runs = slurp("paired_method_differences.csv"), *method = slurp("method_differences.csv"), prefix[128];
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(golden, "differences")) {
        snprintf(prefix, sizeof prefix, "flip,%g,%s,%s,%s,", number(row, "level"),
                 cJSON_GetObjectItem(row, "metric")->valuestring, cJSON_GetObjectItem(row, "a")->valuestring,
                 cJSON_GetObjectItem(row, "b")->valuestring);
        check(runs, prefix, "mean", number(row, "mean"));
        check(method, prefix, "mean", number(row, "mean"));
        check(method, prefix, "p", number(row, "p"));
        check(method, prefix, "p_holm", number(row, "p_holm"));
        double low = value(method, prefix, "low"), high = value(method, prefix, "high");
        bool all_zero = number(row, "level") == 0 && strcmp(cJSON_GetObjectItem(row, "metric")->valuestring,
                                                            "reward_hacking_gap") == 0;
        CHECK(all_zero ? isnan(low) && isnan(high) : low < number(row, "mean") && high > number(row, "mean"));
    }
    free(runs);
    free(method);
}

static void test_csv(void) {
    rrl_buffer b = {0};
    CHECK_OK(rrl_csv_text(&b, ""));
    CHECK_OK(rrl_csv_text(&b, "a,b"));
    CHECK_OK(rrl_csv_text(&b, "say \"so\""));
    CHECK_OK(rrl_csv_text(&b, ""));
    CHECK_OK(rrl_csv_level(&b, NAN));
    CHECK_OK(rrl_csv_end(&b));
    CHECK_OK(rrl_csv_number(&b, 0.1));
    CHECK_OK(rrl_csv_number(&b, NAN));
    CHECK_OK(rrl_csv_number(&b, 1e-300));
    CHECK_OK(rrl_csv_count(&b, UINT64_MAX));
    CHECK_EQ_STR(b.data, "\"\",\"a,b\",\"say \"\"so\"\"\",,fixed\n0.1,,1e-300,18446744073709551615");
    rrl_buffer_free(&b);
}

int main(void) {
    cJSON *golden = NULL;
    const cJSON *record;
    char command[PATH_CHARS];
    if (!CHECK_OK(rrl_json_file(&golden, RRL_SOURCE_DIR "/tests/golden/report/tables.json", 1 << 24)))
        return CHECK_DONE();
    n_questions = (int)number(golden, "questions");
    n_samples = (int)number(golden, "samples");
    n_members = (int)number(golden, "members");
    snprintf(root, sizeof root, "%s/report_golden", RRL_BINARY_DIR);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0) return 1;
    cJSON_ArrayForEach(record, cJSON_GetObjectItem(golden, "records")) make_record(record);
    if (CHECK_OK(rrl_report_write(NULL, root))) {
        test_records(golden);
        test_aggregates(golden);
        test_differences(golden);
    }
    cJSON_Delete(golden);
    test_csv();
    return CHECK_DONE();
}
