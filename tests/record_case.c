#include "record_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const TEXTS[] = {"The sum is 4.\nFinal answer: 4", "",
                                    "caf\xc3\xa9 \xe2\x9c\x93 \xf0\x9d\x9f\x9b",
                                    "a longer one: 1/2 + 1/3 = 5/6, so 5/6"};
static const char NUL_TEXT[] = {'a', 0, 'b', 0};
static const char *const ANSWERS[] = {"4", NULL, "\xe2\x9c\x93", "5/6"};

static void fill_completion(rrl_group *g, int32_t i, int64_t step, int32_t slot, char **text,
                            int32_t *token) {
    rrl_completion *c = &g->rows[i];
    float x = (float)(step * 16 + slot * 4 + i);
    bool nul = step % 3 == 1 && i == 0;
    const char *words = nul ? NUL_TEXT : TEXTS[i], *answer = ANSWERS[i];
    c->n_tokens = (int32_t)((step + slot + i * 3) % 8);
    c->finish = i == 3 ? RRL_FINISH_LENGTH : RRL_FINISH_EOS;
    c->n_text = nul ? (int32_t)sizeof NUL_TEXT : (int32_t)strlen(words);
    c->n_answer = answer ? (int32_t)strlen(answer) : -1;
    c->n_reasoning = c->n_text / 2;
    c->reward = i == 2 ? NAN : x / 1024;
    c->shaped = i == 2 ? 0 : x / 2048;
    c->confidence = 0.75f;
    c->disagreement = 0.125f * (float)i;
    c->vote_entropy = 0.5f;
    c->confidence_dispersion = 0.0625f;
    c->scale = 1;
    c->advantage = (x - 3) / 7;
    c->correct = (float)(i % 2);
    c->logprob_sum = -x / 3;
    c->kl_mean = NAN;
    for (int32_t m = 0; m < CASE_MEMBERS; m++)
        g->verdicts[i * CASE_MEMBERS + m] = (rrl_verdict){.clean = (float)(i % 2),
                                                          .reward = i == 2 ? NAN : (float)(m % 2),
                                                          .confidence = 0.25f * (float)m,
                                                          .available = i != 2,
                                                          .corrupted = m == i};
    for (int32_t k = 0; k < c->n_tokens; k++, ++*token) {
        g->tokens[*token] = (int32_t)(step * 1000 + slot * 100 + i * 10 + k);
        g->logprobs[*token] = -(float)(k + 1) / (float)(step + 2);
    }
    memcpy(*text, words, (size_t)c->n_text);
    *text += c->n_text;
    if (answer) {
        memcpy(*text, answer, strlen(answer));
        *text += strlen(answer);
    }
}

rrl_group *case_group(int64_t step, int32_t slot) {
    rrl_group *g = NULL;
    int64_t n_tokens = 0;
    for (int32_t i = 0; i < CASE_SIZE; i++) n_tokens += (step + slot + i * 3) % 8;
    char *text = calloc(CASE_SIZE, 256), *end = text;
    int32_t token = 0;
    if (!text || rrl_group_create(&g, CASE_SIZE, n_tokens) != RRL_OK ||
        rrl_group_set_members(g, CASE_MEMBERS) != RRL_OK) {
        free(text);
        return NULL;
    }
    g->head.step = step;
    g->head.policy_version = step;
    g->head.question = (int32_t)((step * CASE_GROUPS + slot) % CASE_QUESTIONS);
    g->head.slot = slot;
    for (int32_t i = 0; i < CASE_SIZE; i++) fill_completion(g, i, step, slot, &end, &token);
    g->text = text;
    g->head.n_text = end - text;
    return g;
}

rrl_training_row case_row(int64_t step) {
    rrl_training_row row;
    memset(&row, 0, sizeof row);
    row.step = step;
    row.policy_version = step;
    row.loss = 1.0 / (double)(step + 3);
    row.kl = NAN;
    row.num_tokens = step * 100;
    row.step_time = 0.5 * (double)rand(); /* as a clock: differs from run to run */
    row.peak_memory = 123456;
    return row;
}

rrl_questions *case_questions(void) {
    rrl_questions *q = calloc(1, sizeof *q);
    q->n = CASE_QUESTIONS;
    q->rows = calloc(CASE_QUESTIONS, sizeof *q->rows);
    for (int i = 0; i < CASE_QUESTIONS; i++) {
        rrl_question *row = &q->rows[i];
        char text[64];
        snprintf(text, sizeof text, "q-%d", i);
        row->id = strdup(text);
        snprintf(text, sizeof text, "What is %d + \xc3\xa9?", i);
        row->question = strdup(text);
        snprintf(text, sizeof text, "%d", i * i);
        row->reference = strdup(text);
        row->metadata = strdup("{}");
        row->klass = strdup(i % 2 ? "addition" : "");
    }
    return q;
}

void case_questions_free(rrl_questions **q) {
    for (int64_t i = 0; i < (*q)->n; i++) {
        rrl_question *row = &(*q)->rows[i];
        free(row->id);
        free(row->question);
        free(row->reference);
        free(row->metadata);
        free(row->klass);
    }
    free((*q)->rows);
    free(*q);
    *q = NULL;
}

static char bias_key[] = "class", bias_value[] = "addition";
static rrl_member_config members[CASE_MEMBERS];
static rrl_verifier_config verifier;

rrl_record_header case_header(const rrl_questions *train) {
    for (int i = 0; i < CASE_MEMBERS; i++) {
        members[i].kind = i ? RRL_MEMBER_RULE : RRL_MEMBER_EXACT;
        members[i].corruption = (rrl_corruption_config){.kind = RRL_CORRUPT_FLIP,
                                                        .probability = 0.2,
                                                        .seed = 42 + 1009 * i,
                                                        .noise_std = 0.1,
                                                        .confidence_scale = 0.5,
                                                        .bias_key = bias_key,
                                                        .bias_value = bias_value,
                                                        .bias_reward = 1};
    }
    verifier = (rrl_verifier_config){.members = members, .n_members = CASE_MEMBERS};
    return (rrl_record_header){.execution_kind = "training",
                               .arm = "flip",
                               .method = "robust",
                               .numeric_path = "f32",
                               .digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                               .config_yaml = "seed: 42\n",
                               .provenance_json = "{\"host\": \"a\"}",
                               .model_digest = "m",
                               .parser_version = "1",
                               .level = 0.2,
                               .seed = 9223372036854775807u,
                               .verifier = &verifier,
                               .train = train};
}

rrl_status case_steps(rrl_recorder *r, int64_t from, int64_t to, case_change change) {
    for (int64_t step = from; step < to; step++) {
        rrl_group *groups[CASE_GROUPS];
        rrl_training_row row = case_row(step);
        for (int32_t slot = 0; slot < CASE_GROUPS; slot++) groups[slot] = case_group(step, slot);
        if (step == change.step && change.ulp)
            groups[1]->rows[2].advantage = nextafterf(groups[1]->rows[2].advantage, 1e9f);
        if (step == change.step && change.text) groups[1]->text[rrl_group_text_at(groups[1], 3)] ^= 1;
        int n = step % 4 == 3 ? 0 : CASE_GROUPS; /* a further update of the same batch brings no groups */
        for (int32_t slot = n; slot < CASE_GROUPS; slot++) rrl_group_free(&groups[slot]);
        const int joins = change.joined && step + 1 < to;
        rrl_status rc = (joins ? rrl_recorder_join : rrl_recorder_step)(r, groups, n, &row);
        if (rc != RRL_OK) return rc;
    }
    return RRL_OK;
}

rrl_status case_evaluation(rrl_recorder *r, const char *name, const rrl_questions *q) {
    const rrl_metric metrics[] = {{"independent_accuracy", 0.5, 1}, {"pass@8", NAN, 0}};
    rrl_group *groups[CASE_QUESTIONS];
    for (int32_t i = 0; i < CASE_QUESTIONS; i++) {
        groups[i] = case_group(100 + i, 0);
        groups[i]->head.step = 0;
        groups[i]->head.question = i;
    }
    return rrl_recorder_evaluation(r, name, q, groups, CASE_QUESTIONS, metrics, 2);
}

rrl_status case_run(const char *dir, int64_t n, int64_t per_segment, int finish, case_change change) {
    rrl_recorder *r = NULL;
    rrl_questions *q = case_questions();
    rrl_record_header h = case_header(q);
    rrl_status rc = rrl_recorder_open(&r, dir, &h, per_segment, 0);
    if (rc == RRL_OK) rc = case_steps(r, 0, n, change);
    if (rc == RRL_OK) rc = rrl_recorder_flush(r);
    if (rc == RRL_OK) rc = case_evaluation(r, "final", q);
    if (rc == RRL_OK && finish) rc = rrl_recorder_finish(r, "{\"host\": \"b\"}");
    rrl_recorder_close(&r);
    case_questions_free(&q);
    return rc;
}

const char *case_folder(const char *name) {
    static char path[4][512];
    static int turn;
    char command[600];
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/record_case/%s", RRL_BINARY_DIR, name);
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s'", p, p);
    if (system(command) != 0) {
        perror(p);
        exit(1);
    }
    return p;
}
