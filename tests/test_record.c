/* Records: what is put is what is read, from segments and from run.h5; the digest sees content and nothing
 * else. */
#include "record/record.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "check.h"
#include "data/safetensors.h"
#include "record_case.h"

static const case_change NONE = {.step = -1};

/* Compare float bits: NaN equals NaN. */
static int same(float a, float b) {
    return (isnan(a) && isnan(b)) || a == b;
}

static void check_group(const rrl_record_set *s, int64_t first, const rrl_group *g, uint64_t token) {
    for (int32_t i = 0; i < g->head.count; i++) {
        const rrl_completion *c = &g->rows[i];
        const rrl_rollout_row *row = &s->rollouts[first + i];
        CHECK_EQ_INT(row->step, g->head.step);
        CHECK_EQ_INT(row->question, g->head.question);
        CHECK_EQ_INT(row->sample, c->sample);
        CHECK_EQ_INT(row->policy_version, g->head.policy_version);
        CHECK_EQ_INT(row->finish, c->finish);
        CHECK(same(row->reward, c->reward) && same(row->shaped, c->shaped) &&
              same(row->confidence, c->confidence));
        CHECK(same(row->disagreement, c->disagreement) && same(row->vote_entropy, c->vote_entropy));
        CHECK(same(row->confidence_dispersion, c->confidence_dispersion) && same(row->scale, c->scale));
        CHECK(same(row->advantage, c->advantage) && same(row->correct, c->correct));
        CHECK(same(row->logprob_sum, c->logprob_sum) && same(row->kl_mean, c->kl_mean));
        CHECK_EQ_INT(row->reasoning_bytes, c->n_reasoning);
        CHECK_EQ_INT(row->token_offset, token);
        CHECK_EQ_INT(row->tokens, c->n_tokens);
        CHECK_EQ_INT(row->text_bytes, c->n_text);
        CHECK_EQ_INT(row->answer_bytes, c->n_answer);
        CHECK(memcmp(s->text[first + i], g->text + rrl_group_text_at(g, i), (size_t)c->n_text) == 0);
        CHECK_EQ_INT(s->text[first + i][c->n_text], 0);
        if (c->n_answer > 0)
            CHECK(memcmp(s->answer[first + i], g->text + rrl_group_answer_at(g, i), (size_t)c->n_answer) ==
                  0);
        for (int32_t k = 0; k < c->n_tokens; k++, token++) {
            CHECK_EQ_INT(s->tokens[token], g->tokens[rrl_group_token_at(g, i) + k]);
            CHECK(same(s->logprobs[token], g->logprobs[rrl_group_token_at(g, i) + k]));
        }
        for (int32_t m = 0; m < g->head.members; m++) {
            const rrl_verdict *v = &g->verdicts[i * g->head.members + m];
            const rrl_verdict_row *w = &s->verdicts[(first + i) * g->head.members + m];
            CHECK_EQ_INT(w->rollout, first + i);
            CHECK_EQ_INT(w->member, m);
            CHECK(same(w->clean, v->clean) && same(w->reward, v->reward) &&
                  same(w->confidence, v->confidence));
            CHECK_EQ_INT(w->available, v->available);
            CHECK_EQ_INT(w->corrupted, v->corrupted);
        }
    }
}

/* All of a run of n steps. */
static void check_training(const rrl_record *r, int64_t n) {
    int64_t row = 0;
    uint64_t token = 0;
    CHECK_EQ_INT(r->n_rows, n);
    for (int64_t step = 0; step < n; step++) {
        CHECK_EQ_INT(r->rows[step].step, step);
        CHECK_NEAR(r->rows[step].loss, 1.0 / (double)(step + 3), 0);
        CHECK(isnan(r->rows[step].kl));
        CHECK_EQ_INT(r->rows[step].num_tokens, step * 100);
        CHECK_EQ_INT(r->rows[step].peak_memory, 123456);
        for (int32_t slot = 0; slot < CASE_GROUPS && step % 4 != 3; slot++) {
            rrl_group *g = case_group(step, slot);
            check_group(&r->training, row, g, token);
            row += g->head.count;
            token += (uint64_t)g->head.n_tokens;
            rrl_group_free(&g);
        }
    }
    CHECK_EQ_INT(r->training.n, row);
    CHECK_EQ_INT(r->training.n_tokens, token);
    CHECK_EQ_INT(r->training.n_verdicts, row * CASE_MEMBERS);
}

static void check_head(const rrl_record *r, const char *provenance) {
    CHECK_EQ_STR(r->execution_kind, "training");
    CHECK_EQ_STR(r->arm, "flip");
    CHECK_EQ_STR(r->method, "robust");
    CHECK_EQ_STR(r->numeric_path, "f32");
    CHECK_EQ_STR(r->config_yaml, "seed: 42\n");
    CHECK_EQ_STR(r->provenance_json, provenance);
    CHECK_EQ_STR(r->model_digest, "m");
    CHECK_EQ_STR(r->parser_version, "1");
    CHECK_EQ_INT(strlen(r->created_utc), 24);
    CHECK_NEAR(r->level, 0.2, 0);
    CHECK(r->seed == 9223372036854775807u);
    CHECK_EQ_INT(r->n_members, CASE_MEMBERS);
    CHECK_EQ_STR(r->members[0].kind, "exact");
    CHECK_EQ_STR(r->members[2].kind, "rule");
    CHECK_EQ_STR(r->members[1].corruption, "flip");
    CHECK_EQ_INT(r->members[2].seed, 42 + 2 * 1009);
    CHECK_NEAR(r->members[2].confidence_scale, 0.5, 0);
    CHECK_EQ_STR(r->members[2].bias_value, "addition");
    CHECK_EQ_INT(r->training.n_questions, CASE_QUESTIONS);
    CHECK_EQ_STR(r->training.questions[3].id, "q-3");
    CHECK_EQ_STR(r->training.questions[3].question, "What is 3 + \xc3\xa9?");
    CHECK_EQ_STR(r->training.questions[3].reference, "9");
    CHECK_EQ_STR(r->training.questions[3].klass, "addition");
    CHECK_EQ_STR(r->training.questions[2].klass, "");
}

static void check_evaluation(const rrl_record *r) {
    const rrl_record_set *s = rrl_record_evaluation(r, "final");
    CHECK(rrl_record_evaluation(r, "other") == NULL);
    if (!CHECK(s != NULL)) return;
    uint64_t token = 0;
    CHECK_EQ_INT(s->n, CASE_QUESTIONS * CASE_SIZE);
    CHECK_EQ_INT(s->n_questions, CASE_QUESTIONS);
    CHECK_EQ_STR(s->questions[4].reference, "16");
    CHECK_EQ_INT(s->n_metrics, 2);
    CHECK_EQ_STR(s->metrics[0].name, "independent_accuracy");
    CHECK_NEAR(s->metrics[0].value, 0.5, 0);
    CHECK_EQ_INT(s->metrics[0].defined, 1);
    CHECK(isnan(s->metrics[1].value) && s->metrics[1].defined == 0);
    for (int32_t i = 0; i < CASE_QUESTIONS; i++) {
        rrl_group *g = case_group(100 + i, 0);
        g->head.step = 0;
        g->head.question = i;
        check_group(s, i * CASE_SIZE, g, token);
        token += (uint64_t)g->head.n_tokens;
        rrl_group_free(&g);
    }
}

static void test_round_trip(void) {
    rrl_record *r = NULL;
    const char *dir = case_folder("round");
    char path[600];
    if (!CHECK_OK(case_run(dir, 11, 3, 0, NONE))) return;
    if (!CHECK_OK(rrl_record_read(&r, dir, 1))) return;
    CHECK_EQ_INT(r->complete, 0);
    check_head(r, "{\"host\": \"a\"}");
    check_training(r, 11);
    check_evaluation(r);
    rrl_record_free(&r);

    dir = case_folder("round");
    if (!CHECK_OK(case_run(dir, 11, 3, 1, NONE))) return;
    if (!CHECK_OK(rrl_record_read(&r, dir, 1))) return;
    CHECK_EQ_INT(r->complete, 1);
    check_head(r, "{\"host\": \"b\"}");
    check_training(r, 11);
    check_evaluation(r);
    rrl_record_free(&r);
    CHECK_OK(rrl_record_complete(dir));
    snprintf(path, sizeof path, "%s/records", dir);
    CHECK(!rrl_dir_exists(path)); /* removed after the join */

    snprintf(path, sizeof path, "%s/run.h5", dir);
    if (!CHECK_OK(rrl_record_read(&r, path, 0))) return;
    CHECK(r->training.text == NULL && r->training.tokens == NULL);
    CHECK_EQ_INT(r->training.n, 9 * CASE_GROUPS * CASE_SIZE);
    CHECK(r->training.n_tokens > 0);
    CHECK_EQ_INT(r->n_rows, 11);
    rrl_record_free(&r);
}

static void test_groups(void) {
    rrl_record *r = NULL;
    rrl_group **groups = NULL;
    int64_t n = 0;
    const char *dir = case_folder("groups");
    CHECK_OK(case_run(dir, 3, 2, 1, NONE));
    if (!CHECK_OK(rrl_record_read(&r, dir, 1))) return;
    if (!CHECK_OK(rrl_record_groups(&groups, &n, &r->training))) return;
    CHECK_EQ_INT(n, 3 * CASE_GROUPS);
    for (int64_t i = 0; i < n; i++) {
        rrl_group *want = case_group(i / CASE_GROUPS, (int32_t)(i % CASE_GROUPS));
        rrl_group *g = groups[i];
        CHECK_EQ_INT(g->head.step, want->head.step);
        CHECK_EQ_INT(g->head.slot, want->head.slot);
        CHECK_EQ_INT(g->head.question, want->head.question);
        CHECK_EQ_INT(g->head.count, want->head.count);
        CHECK_EQ_INT(g->head.group_size, CASE_SIZE);
        CHECK_EQ_INT(g->head.members, CASE_MEMBERS);
        CHECK_EQ_INT(g->head.n_tokens, want->head.n_tokens);
        CHECK_EQ_INT(g->head.n_text, want->head.n_text);
        CHECK(memcmp(g->text, want->text, (size_t)want->head.n_text) == 0);
        CHECK(memcmp(g->tokens, want->tokens, (size_t)want->head.n_tokens * 4) == 0);
        CHECK(memcmp(g->logprobs, want->logprobs, (size_t)want->head.n_tokens * 4) == 0);
        CHECK_EQ_INT(g->rows[3].n_answer, want->rows[3].n_answer);
        CHECK_EQ_INT(g->rows[1].available, CASE_MEMBERS);
        CHECK_EQ_INT(g->rows[2].available, 0);
        CHECK(same(g->rows[3].advantage, want->rows[3].advantage));
        CHECK(same(g->verdicts[3 * CASE_MEMBERS + 2].confidence,
                   want->verdicts[3 * CASE_MEMBERS + 2].confidence));
        rrl_group_free(&want);
        rrl_group_free(&groups[i]);
    }
    free(groups);
    rrl_record_free(&r);
}

/* --- the digest */

static void digest_of(char out[65], const char *name, int64_t n, int64_t per_segment, int finish,
                      case_change change) {
    const char *dir = case_folder(name);
    strcpy(out, "none");
    CHECK_OK(case_run(dir, n, per_segment, finish, change));
    CHECK_OK(rrl_record_digest(out, dir));
}

static void write_adapter(const char *dir, const char *first, const char *second, float value) {
    char path[600];
    float a[4] = {1, 2, 3, value}, b[2] = {-1, NAN};
    rrl_st_write tensors[] = {{.name = first, .data = a, .n_dims = 2, .dims = {2, 2}},
                              {.name = second, .data = b, .n_dims = 1, .dims = {2}}};
    if (strcmp(first, "a") != 0) { /* the same tensors, in the other order */
        tensors[0] = (rrl_st_write){.name = first, .data = b, .n_dims = 1, .dims = {2}};
        tensors[1] = (rrl_st_write){.name = second, .data = a, .n_dims = 2, .dims = {2, 2}};
    }
    snprintf(path, sizeof path, "%s/adapter", dir);
    CHECK_OK(rrl_dir_make(path));
    strcat(path, "/adapter_model.safetensors");
    CHECK_OK(rrl_safetensors_publish(path, tensors, 2));
}

static void test_digest(void) {
    char base[65], other[65];
    digest_of(base, "digest", 11, 3, 1, NONE);
    CHECK_EQ_INT(strlen(base), 64);
    static const struct {
        const char *what;
        int64_t n, per_segment;
        int finish;
        case_change change;
        int equal;
    } CASES[] = {
        {"one segment", 11, 100, 1, {.step = -1}, 1},
        {"a segment a step", 11, 1, 1, {.step = -1}, 1},
        {"segments, not joined", 11, 4, 0, {.step = -1}, 1},
        {"an advantage by one ulp", 11, 3, 1, {.step = 6, .ulp = 1}, 0},
        {"a byte of text", 11, 3, 1, {.step = 6, .text = 1}, 0},
        {"a step less", 10, 3, 1, {.step = -1}, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        digest_of(other, "digest-other", CASES[i].n, CASES[i].per_segment, CASES[i].finish, CASES[i].change);
        if ((strcmp(base, other) == 0) != CASES[i].equal)
            CHECK_EQ_STR(CASES[i].what, CASES[i].equal ? "should not matter" : "should matter");
    }
}

static void test_digest_adapter(void) {
    char without[65], with[65], again[65], file[600];
    const char *dir = case_folder("digest-adapter");
    CHECK_OK(case_run(dir, 3, 3, 1, NONE));
    CHECK_OK(rrl_record_digest(without, dir));
    write_adapter(dir, "a", "b", 4);
    CHECK_OK(rrl_record_digest(with, dir));
    CHECK(strcmp(without, with) != 0);
    snprintf(file, sizeof file, "%s/run.h5", dir);
    CHECK_OK(rrl_record_digest(again, file));
    CHECK_EQ_STR(again, with);
    write_adapter(dir, "b", "a", 4); /* the order in the file does not enter */
    CHECK_OK(rrl_record_digest(again, dir));
    CHECK_EQ_STR(again, with);
    write_adapter(dir, "a", "b", nextafterf(4, 5));
    CHECK_OK(rrl_record_digest(again, dir));
    CHECK(strcmp(again, with) != 0);
}

static void test_digest_study(void) {
    char study[65], again[65], path[600];
    const char *dir = case_folder("digest-study");
    CHECK_STATUS(rrl_record_digest(study, dir), RRL_ERR_DATA);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/flip/level-0.%d/seed-1/robust", dir, i);
        CHECK_OK(rrl_dir_make(path));
        CHECK_OK(case_run(path, 2 + i, 3, i, NONE));
    }
    CHECK_OK(rrl_record_digest(study, dir));
    snprintf(path, sizeof path, "%s/flip/level-0.1/seed-1/robust.old-1", dir);
    CHECK_OK(rrl_dir_make(path));
    CHECK_OK(case_run(path, 1, 3, 1, NONE));
    CHECK_OK(rrl_record_digest(again, dir));
    CHECK_EQ_STR(again, study); /* an old run does not count */
    snprintf(path, sizeof path, "%s/flip/level-0.2/seed-1/robust", dir);
    CHECK_OK(rrl_dir_make(path));
    CHECK_OK(case_run(path, 1, 3, 1, NONE));
    CHECK_OK(rrl_record_digest(again, dir));
    CHECK(strcmp(again, study) != 0);
}

/* --- odd sizes */

static void test_large_config(void) {
    rrl_recorder *r = NULL;
    rrl_record *back = NULL;
    size_t n = 70 * 1024;
    char *yaml = malloc(n + 1);
    const char *dir = case_folder("large");
    rrl_questions *q = case_questions();
    rrl_record_header h = case_header(NULL);
    memset(yaml, 'y', n);
    yaml[n] = 0;
    h.config_yaml = yaml;
    h.provenance_json = "";
    h.level = NAN;
    h.verifier = NULL;
    if (!CHECK_OK(rrl_recorder_open(&r, dir, &h, 25, 0))) return; /* no steps at all: an evaluation run */
    CHECK_STATUS(case_evaluation(r, "a/b", q), RRL_ERR_USAGE);
    rrl_metric none = {0};
    CHECK_OK(rrl_recorder_evaluation(r, "empty", q, NULL, 0, &none, 0));
    CHECK_OK(rrl_recorder_finish(r, NULL));
    rrl_recorder_close(&r);
    if (CHECK_OK(rrl_record_read(&back, dir, 1))) {
        CHECK_EQ_STR(back->config_yaml, yaml);
        CHECK_EQ_STR(back->provenance_json, "");
        CHECK(isnan(back->level));
        CHECK_EQ_INT(back->n_members, 0);
        CHECK_EQ_INT(back->n_rows, 0);
        CHECK_EQ_INT(back->training.n, 0);
        CHECK_EQ_INT(back->n_evaluations, 1);
        CHECK_EQ_INT(back->evaluations[0].n_questions, CASE_QUESTIONS);
    }
    rrl_record_free(&back);
    case_questions_free(&q);
    free(yaml);
}

static void test_misuse(void) {
    rrl_recorder *r = NULL;
    const char *dir = case_folder("misuse");
    rrl_record_header h = case_header(NULL);
    if (!CHECK_OK(rrl_recorder_open(&r, dir, &h, 2, 0))) return;
    CHECK_STATUS(case_steps(r, 1, 2, NONE), RRL_ERR_INTERNAL); /* step 0 is missing */
    CHECK_OK(case_steps(r, 0, 1, NONE));
    CHECK_STATUS(case_steps(r, 0, 1, NONE), RRL_ERR_INTERNAL); /* twice */
    CHECK_OK(rrl_recorder_finish(r, NULL));
    rrl_recorder_close(&r);
    CHECK_STATUS(rrl_recorder_open(&r, dir, &h, 2, 1), RRL_ERR_USAGE); /* complete */
    CHECK(r == NULL);
    dir = case_folder("misuse");
    rrl_record *none = NULL;
    CHECK_STATUS(rrl_record_read(&none, dir, 1), RRL_ERR_DATA);
    CHECK(strstr(rrl_error_message(), "neither run.h5 nor records") != NULL);
}

int main(void) {
    test_round_trip();
    test_groups();
    test_digest();
    test_digest_adapter();
    test_digest_study();
    test_large_config();
    test_misuse();
    return CHECK_DONE();
}
