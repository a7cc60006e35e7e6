/* Metrics against values made by golden/make_metrics.py with exact fractions, from a recorded set and from
 * groups. */
#include "record/metrics.h"

#include <inttypes.h>

#include "base/json.h"
#include "check.h"

enum { MAX_K = 8 };

/* 256 sums of doubles near 50: 2^-53 relative each, far below this. */
static const double TOLERANCE = 1e-12;

static double number_or_nan(const cJSON *object, const char *key) {
    double v = NAN;
    CHECK_OK(rrl_json_double(&v, object, key, true, "metrics.json"));
    return v;
}

static int64_t integer(const cJSON *object, const char *key) {
    int64_t v = 0;
    CHECK_OK(rrl_json_int(&v, object, key, false, "metrics.json"));
    return v;
}

static void fill_set(rrl_record_set *s, const cJSON *rows) {
    s->n = cJSON_GetArraySize(rows);
    CHECK_OK(rrl_alloc(&s->rollouts, (size_t)s->n, sizeof *s->rollouts, "rows"));
    CHECK_OK(rrl_alloc(&s->answer, (size_t)s->n, sizeof *s->answer, "answers"));
    const cJSON *row = rows->child;
    for (int64_t i = 0; i < s->n; i++, row = row->next) {
        const char *answer = NULL;
        CHECK_OK(rrl_json_string(&answer, row, "answer", true, "metrics.json"));
        s->answer[i] = strdup(answer ? answer : "");
        s->rollouts[i] = (rrl_rollout_row){
            .question = (uint32_t)integer(row, "question"),
            .reward = (float)number_or_nan(row, "reward"),
            .correct = (float)number_or_nan(row, "correct"),
            .disagreement = (float)number_or_nan(row, "u"),
            .confidence = (float)number_or_nan(row, "c"),
            .tokens = (uint32_t)integer(row, "tokens"),
            .finish =
                cJSON_IsTrue(cJSON_GetObjectItem(row, "truncated")) ? RRL_FINISH_LENGTH : RRL_FINISH_EOS,
            .answer_bytes = answer ? (int32_t)strlen(answer) : -1,
        };
    }
}

/* The completions s->rollouts[first .. first + count) as a group; each has the text "t" before its answer. */
static rrl_group *group_of(const rrl_record_set *s, int64_t first, int32_t count) {
    rrl_group *g = NULL;
    rrl_buffer text = {0};
    if (!CHECK_OK(rrl_group_create(&g, count, 0))) return NULL;
    for (int32_t i = 0; i < count; i++) {
        const rrl_rollout_row *r = &s->rollouts[first + i];
        rrl_completion *to = &g->rows[i];
        to->reward = r->reward;
        to->correct = r->correct;
        to->disagreement = r->disagreement;
        to->confidence = r->confidence;
        to->n_tokens = (int32_t)r->tokens;
        to->finish = r->finish;
        to->n_text = 1;
        to->n_answer = r->answer_bytes;
        CHECK_OK(rrl_buffer_puts(&text, "t"));
        if (r->answer_bytes > 0) CHECK_OK(rrl_buffer_puts(&text, s->answer[first + i]));
    }
    g->head.question = (int32_t)s->rollouts[first].question;
    g->head.n_text = (int64_t)text.len;
    g->text = text.data;
    return g;
}

static void check_groups(const rrl_record_set *s, const int64_t *k, int n_k, const rrl_metric *same,
                         int n_same) {
    rrl_group *groups[64] = {0};
    rrl_metric *m = NULL;
    int64_t n_groups = 0;
    int n = 0;
    for (int64_t i = 0, end; i < s->n; i = end) {
        end = i + 1;
        while (end < s->n && s->rollouts[end].question == s->rollouts[i].question) end++;
        groups[n_groups++] = group_of(s, i, (int32_t)(end - i));
    }
    if (CHECK_OK(rrl_metrics_of_groups(&m, &n, groups, n_groups, k, n_k)) && CHECK_EQ_INT(n, n_same))
        for (int i = 0; i < n; i++) {
            CHECK_EQ_STR(m[i].name, same[i].name);
            CHECK_EQ_INT(m[i].defined, same[i].defined);
            CHECK(isnan(same[i].value) ? isnan(m[i].value) : m[i].value == same[i].value);
        }
    rrl_metrics_free(&m, n);
    for (int64_t g = 0; g < n_groups; g++) rrl_group_free(&groups[g]);
}

static void check_values(const char *name, const cJSON *want, const rrl_metric *m, int n) {
    CHECK_EQ_INT(n, cJSON_GetArraySize(want));
    for (int i = 0; i < n; i++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(want, m[i].name);
        int ok = CHECK(value != NULL) && CHECK_EQ_INT(m[i].defined, !cJSON_IsNull(value));
        if (ok) ok = CHECK_NEAR(m[i].value, cJSON_IsNull(value) ? NAN : value->valuedouble, TOLERANCE);
        if (!ok) fprintf(stderr, "  %s: %s\n", name, m[i].name);
    }
}

/* Without the text the same, but for the two metrics that need it. */
static void check_tables_only(rrl_record_set *s, const rrl_metric *with, int n_with) {
    char **answer = s->answer;
    rrl_metric *m = NULL;
    int n = 0;
    s->answer = NULL;
    if (CHECK_OK(rrl_metrics_of(&m, &n, s, NULL, 0)))
        for (int i = 0; i < n && i < n_with; i++) {
            bool text =
                strcmp(m[i].name, "answer_consistency") == 0 || strcmp(m[i].name, "answer_diversity") == 0;
            CHECK_NEAR(m[i].value, text ? NAN : with[i].value, 0);
            CHECK_EQ_INT(m[i].defined, text ? 0 : with[i].defined);
        }
    rrl_metrics_free(&m, n);
    s->answer = answer;
}

static void test_case(const cJSON *c) {
    const char *name = "?";
    rrl_record_set s = {0};
    rrl_metric *m = NULL;
    int64_t k[MAX_K];
    int n = 0, n_k = 0;
    const cJSON *ks = cJSON_GetObjectItem(c, "k");
    CHECK_OK(rrl_json_string(&name, c, "name", false, "metrics.json"));
    for (const cJSON *item = ks ? ks->child : NULL; item && n_k < MAX_K; item = item->next)
        k[n_k++] = item->valueint;
    fill_set(&s, cJSON_GetObjectItem(c, "rows"));
    if (CHECK_OK(rrl_metrics_of(&m, &n, &s, k, n_k))) {
        check_values(name, cJSON_GetObjectItem(c, "want"), m, n);
        check_groups(&s, k, n_k, m, n);
        check_tables_only(&s, m, n);
    }
    rrl_metrics_free(&m, n);
    for (int64_t i = 0; i < s.n; i++) free(s.answer[i]);
    free(s.answer);
    free(s.rollouts);
}

int main(void) {
    cJSON *doc = NULL;
    if (!CHECK_OK(rrl_json_file(&doc, RRL_SOURCE_DIR "/tests/golden/metrics.json", 1 << 20)))
        return CHECK_DONE();
    const cJSON *cases = cJSON_GetObjectItem(doc, "cases");
    CHECK(cJSON_GetArraySize(cases) >= 10);
    for (const cJSON *c = cases ? cases->child : NULL; c; c = c->next) test_case(c);
    cJSON_Delete(doc);
    CHECK_NEAR(rrl_pass_at_k(8, 0, 4), 0, 0);
    CHECK_NEAR(rrl_pass_at_k(8, 2, 1), 0.25, 1e-15);
    CHECK_NEAR(rrl_pass_at_k(8, 5, 4), 1, 0);
    CHECK_NEAR(rrl_pass_at_k(3, 3, 4), NAN, 0);
    return CHECK_DONE();
}
