/* Sets and records in memory. Nothing here knows a file. */
#include "record/record_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"

int64_t rrl_set_text_bytes(const void *rollouts, int64_t i) {
    return ((const rrl_rollout_row *)rollouts)[i].text_bytes;
}

int64_t rrl_set_answer_bytes(const void *rollouts, int64_t i) {
    return ((const rrl_rollout_row *)rollouts)[i].answer_bytes;
}

static void free_texts(char **texts, int64_t n) {
    for (int64_t i = 0; texts && i < n; i++) free(texts[i]);
    free(texts);
}

void rrl_set_clear(rrl_record_set *s) {
    for (int64_t i = 0; i < s->n_metrics; i++) free((char *)s->metrics[i].name);
    for (int64_t i = 0; i < s->n_questions; i++) {
        rrl_record_question *q = &s->questions[i];
        free(q->id);
        free(q->question);
        free(q->reference);
        free(q->klass);
    }
    free_texts(s->text, s->n);
    free_texts(s->answer, s->n);
    free(s->name);
    free(s->rollouts);
    free(s->tokens);
    free(s->logprobs);
    free(s->verdicts);
    free(s->metrics);
    free(s->questions);
    *s = (rrl_record_set){0};
}

/* Room for so many more completions, tokens and verdicts, with or without texts. */
static rrl_status make_room(rrl_record_set *s, rrl_set_room *room, int64_t n, int64_t n_tokens,
                            int64_t n_verdicts, bool with_text) {
    size_t rows = (size_t)(s->n + n), tokens = (size_t)(s->n_tokens + n_tokens);
    RRL_TRY(rrl_grow(&s->rollouts, &room->rollouts, rows, sizeof *s->rollouts, "rollouts"));
    RRL_TRY(rrl_grow(&s->verdicts, &room->verdicts, (size_t)(s->n_verdicts + n_verdicts), sizeof *s->verdicts,
                     "verdicts"));
    if (!with_text) return RRL_OK;
    RRL_TRY(rrl_grow(&s->text, &room->texts, rows, sizeof *s->text, "texts"));
    RRL_TRY(rrl_grow(&s->answer, &room->answers, rows, sizeof *s->answer, "answers"));
    RRL_TRY(rrl_grow(&s->tokens, &room->tokens, tokens, sizeof *s->tokens, "tokens"));
    return rrl_grow(&s->logprobs, &room->logprobs, tokens, sizeof *s->logprobs, "log-probs");
}

static rrl_status copy_bytes(char **out, const char *bytes, int64_t n) {
    char *copy = NULL;
    size_t length = n > 0 ? (size_t)n : 0;
    RRL_TRY(rrl_alloc(&copy, length + 1, 1, "text of a completion"));
    if (length) memcpy(copy, bytes, length);
    *out = copy;
    return RRL_OK;
}

/* --- from groups */

static rrl_rollout_row row_of(const rrl_group *g, const rrl_completion *c, int64_t token_offset) {
    return (rrl_rollout_row){
        .step = g->head.step,
        .question = (uint32_t)g->head.question,
        .sample = (uint32_t)c->sample,
        .policy_version = g->head.policy_version,
        .tokens = (uint32_t)c->n_tokens,
        .finish = (uint8_t)c->finish,
        .reward = c->reward,
        .shaped = c->shaped,
        .confidence = c->confidence,
        .disagreement = c->disagreement,
        .vote_entropy = c->vote_entropy,
        .confidence_dispersion = c->confidence_dispersion,
        .scale = c->scale,
        .advantage = c->advantage,
        .correct = c->correct,
        .logprob_sum = c->logprob_sum,
        .kl_mean = c->kl_mean,
        .token_offset = (uint64_t)token_offset,
        .text_bytes = (uint32_t)c->n_text,
        .answer_bytes = c->n_answer,
        .reasoning_bytes = (uint32_t)c->n_reasoning,
    };
}

static rrl_status add_texts(rrl_record_set *s, const rrl_group *g, int32_t i) {
    const rrl_completion *c = &g->rows[i];
    char *text = NULL, *answer = NULL;
    RRL_TRY(copy_bytes(&text, g->text ? g->text + rrl_group_text_at(g, i) : NULL, c->n_text));
    rrl_status rc = copy_bytes(&answer, g->text ? g->text + rrl_group_answer_at(g, i) : NULL, c->n_answer);
    if (rc != RRL_OK) {
        free(text);
        return rc;
    }
    s->text[s->n] = text;
    s->answer[s->n] = answer;
    return RRL_OK;
}

static void add_verdicts(rrl_record_set *s, const rrl_group *g, int32_t i) {
    for (int32_t m = 0; m < g->head.members; m++) {
        const rrl_verdict *v = &g->verdicts[(int64_t)i * g->head.members + m];
        s->verdicts[s->n_verdicts++] = (rrl_verdict_row){.rollout = (uint64_t)s->n,
                                                         .member = (uint16_t)m,
                                                         .clean = v->clean,
                                                         .reward = v->reward,
                                                         .confidence = v->confidence,
                                                         .available = (uint8_t)v->available,
                                                         .corrupted = (uint8_t)v->corrupted};
    }
}

/* Back to n completions, after an error in the middle of a group. */
static void cut_back(rrl_record_set *s, int64_t n, int64_t n_tokens, int64_t n_verdicts) {
    while (s->n > n) {
        s->n--;
        free(s->text[s->n]);
        free(s->answer[s->n]);
    }
    s->n_tokens = n_tokens;
    s->n_verdicts = n_verdicts;
}

/* What the heads promise must be there: this data came over a wire. */
static rrl_status check_group(const rrl_group *g) {
    int32_t last = g->head.count - 1;
    int64_t tokens = rrl_group_token_at(g, last) + g->rows[last].n_tokens;
    int64_t text = rrl_group_answer_at(g, last) + (g->rows[last].n_answer > 0 ? g->rows[last].n_answer : 0);
    if (tokens == g->head.n_tokens && text == g->head.n_text && (!text || g->text) &&
        (!g->head.members || g->verdicts))
        return RRL_OK;
    return RRL_FAIL(RRL_ERR_INTERNAL,
                    "group of question %d, step %lld: rows have %lld tokens and %lld bytes, head says "
                    "%lld and %lld",
                    g->head.question, (long long)g->head.step, (long long)tokens, (long long)text,
                    (long long)g->head.n_tokens, (long long)g->head.n_text);
}

rrl_status rrl_set_add_group(rrl_record_set *s, rrl_set_room *room, const rrl_group *g) {
    int64_t n = s->n, n_tokens = s->n_tokens, n_verdicts = s->n_verdicts;
    RRL_TRY(check_group(g));
    RRL_TRY(
        make_room(s, room, g->head.count, g->head.n_tokens, (int64_t)g->head.count * g->head.members, true));
    for (int32_t i = 0; i < g->head.count; i++) {
        const rrl_completion *c = &g->rows[i];
        rrl_status rc = add_texts(s, g, i);
        if (rc != RRL_OK) {
            cut_back(s, n, n_tokens, n_verdicts);
            return rc;
        }
        size_t tokens = (size_t)c->n_tokens;
        int64_t from = rrl_group_token_at(g, i);
        if (tokens) {
            memcpy(s->tokens + s->n_tokens, g->tokens + from, tokens * sizeof *s->tokens);
            memcpy(s->logprobs + s->n_tokens, g->logprobs + from, tokens * sizeof *s->logprobs);
        }
        s->rollouts[s->n] = row_of(g, c, s->n_tokens);
        add_verdicts(s, g, i);
        s->n_tokens += c->n_tokens;
        s->n++;
    }
    return RRL_OK;
}

/* --- from sets */

rrl_status rrl_set_add_set(rrl_record_set *s, rrl_set_room *room, rrl_record_set *from) {
    bool with_text = from->text != NULL;
    RRL_TRY(make_room(s, room, from->n, from->n_tokens, from->n_verdicts, with_text));
    for (int64_t i = 0; i < from->n; i++) {
        s->rollouts[s->n + i] = from->rollouts[i];
        s->rollouts[s->n + i].token_offset += (uint64_t)s->n_tokens;
    }
    for (int64_t i = 0; i < from->n_verdicts; i++) {
        s->verdicts[s->n_verdicts + i] = from->verdicts[i];
        s->verdicts[s->n_verdicts + i].rollout += (uint64_t)s->n;
    }
    if (with_text && from->n) {
        memcpy(s->text + s->n, from->text, (size_t)from->n * sizeof *s->text);
        memcpy(s->answer + s->n, from->answer, (size_t)from->n * sizeof *s->answer);
        memset(from->text, 0, (size_t)from->n * sizeof *s->text);
        memset(from->answer, 0, (size_t)from->n * sizeof *s->answer);
    }
    if (with_text && from->n_tokens) {
        memcpy(s->tokens + s->n_tokens, from->tokens, (size_t)from->n_tokens * sizeof *s->tokens);
        memcpy(s->logprobs + s->n_tokens, from->logprobs, (size_t)from->n_tokens * sizeof *s->logprobs);
    }
    s->n += from->n;
    s->n_tokens += from->n_tokens;
    s->n_verdicts += from->n_verdicts;
    rrl_set_clear(from);
    return RRL_OK;
}

static rrl_status slice_rows(rrl_record_set *s, const rrl_record_set *from, int64_t first, int64_t end) {
    uint64_t token = first < from->n ? from->rollouts[first].token_offset : 0;
    for (int64_t i = first; i < end; i++) {
        rrl_rollout_row row = from->rollouts[i];
        if (from->text) {
            RRL_TRY(copy_bytes(&s->text[s->n], from->text[i], row.text_bytes));
            rrl_status rc = copy_bytes(&s->answer[s->n], from->answer[i], row.answer_bytes);
            if (rc != RRL_OK) free(s->text[s->n]);
            RRL_TRY(rc);
        }
        row.token_offset -= token;
        s->rollouts[s->n++] = row;
        s->n_tokens += row.tokens;
    }
    if (from->text && s->n_tokens) {
        memcpy(s->tokens, from->tokens + token, (size_t)s->n_tokens * sizeof *s->tokens);
        memcpy(s->logprobs, from->logprobs + token, (size_t)s->n_tokens * sizeof *s->logprobs);
    }
    for (int64_t i = 0; i < from->n_verdicts; i++) {
        rrl_verdict_row v = from->verdicts[i];
        if (v.rollout < (uint64_t)first || v.rollout >= (uint64_t)end) continue;
        v.rollout -= (uint64_t)first;
        s->verdicts[s->n_verdicts++] = v;
    }
    return RRL_OK;
}

rrl_status rrl_set_slice(rrl_record_set *out, const rrl_record_set *from, int64_t first, int64_t end) {
    rrl_record_set s = {0};
    rrl_set_room room = {0};
    rrl_status rc = make_room(&s, &room, end - first, from->n_tokens, from->n_verdicts, from->text != NULL);
    if (rc == RRL_OK) rc = slice_rows(&s, from, first, end);
    if (rc == RRL_OK)
        *out = s;
    else
        rrl_set_clear(&s);
    return rc;
}

/* --- records */

void rrl_record_free(rrl_record **record) {
    if (!record || !*record) return;
    rrl_record *r = *record;
    char *texts[] = {r->path,         r->execution_kind, r->arm,         r->method,
                     r->numeric_path, r->digest,         r->config_yaml, r->provenance_json,
                     r->model_digest, r->parser_version, r->created_utc, r->rrl_version};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
    for (int32_t i = 0; i < r->n_members; i++) {
        free(r->members[i].kind);
        free(r->members[i].corruption);
        free(r->members[i].bias_key);
        free(r->members[i].bias_value);
    }
    free(r->members);
    rrl_set_clear(&r->training);
    free(r->rows);
    for (int64_t i = 0; i < r->n_evaluations; i++) rrl_set_clear(&r->evaluations[i]);
    free(r->evaluations);
    free(r);
    *record = NULL;
}

const rrl_record_set *rrl_record_evaluation(const rrl_record *r, const char *name) {
    for (int64_t i = 0; i < r->n_evaluations; i++)
        if (strcmp(r->evaluations[i].name, name) == 0) return &r->evaluations[i];
    return NULL;
}

/* --- groups again */

static bool same_group(const rrl_rollout_row *a, const rrl_rollout_row *b) {
    return a->step == b->step && a->question == b->question && a->policy_version == b->policy_version &&
           b->sample > a->sample;
}

static rrl_completion completion_of(const rrl_rollout_row *row) {
    return (rrl_completion){
        .sample = (int32_t)row->sample,
        .n_tokens = (int32_t)row->tokens,
        .finish = row->finish,
        .n_text = (int32_t)row->text_bytes,
        .n_answer = row->answer_bytes,
        .n_reasoning = (int32_t)row->reasoning_bytes,
        .correct = row->correct,
        .reward = row->reward,
        .shaped = row->shaped,
        .confidence = row->confidence,
        .disagreement = row->disagreement,
        .vote_entropy = row->vote_entropy,
        .confidence_dispersion = row->confidence_dispersion,
        .scale = row->scale,
        .advantage = row->advantage,
        .logprob_sum = row->logprob_sum,
        .kl_mean = row->kl_mean,
    };
}

static rrl_status fill_text(rrl_group *g, const rrl_record_set *s, int64_t first) {
    int64_t bytes = 0;
    for (int32_t i = 0; i < g->head.count; i++)
        bytes += g->rows[i].n_text + (g->rows[i].n_answer > 0 ? g->rows[i].n_answer : 0);
    RRL_TRY(rrl_alloc(&g->text, (size_t)bytes + 1, 1, "text of a group"));
    g->head.n_text = bytes;
    char *at = g->text;
    for (int32_t i = 0; i < g->head.count; i++) {
        size_t text = (size_t)g->rows[i].n_text,
               answer = g->rows[i].n_answer > 0 ? (size_t)g->rows[i].n_answer : 0;
        memcpy(at, s->text[first + i], text);
        memcpy(at + text, s->answer[first + i], answer);
        at += text + answer;
    }
    return RRL_OK;
}

static void fill_verdict(rrl_group *g, int64_t first, const rrl_verdict_row *v) {
    int64_t i = (int64_t)v->rollout - first;
    g->verdicts[i * g->head.members + v->member] = (rrl_verdict){.clean = v->clean,
                                                                 .reward = v->reward,
                                                                 .confidence = v->confidence,
                                                                 .available = v->available,
                                                                 .corrupted = v->corrupted};
    g->rows[i].available += v->available;
}

/* Completions [first, first + count) as a group; verdicts are those from *verdict on, which moves past them.
 */
static rrl_status group_of(rrl_group **out, const rrl_record_set *s, int64_t first, int32_t count,
                           int32_t members, int64_t *verdict) {
    rrl_status rc = RRL_OK;
    rrl_group *g = NULL;
    const rrl_rollout_row *rows = s->rollouts + first;
    int64_t n_tokens = 0;
    for (int32_t i = 0; i < count; i++) n_tokens += rows[i].tokens;
    RRL_GOTO(rrl_group_create(&g, count, n_tokens));
    g->head.purpose = s->name && s->name[0] ? rrl_rng_evaluation(s->name) : RRL_RNG_TRAIN;
    g->head.step = rows[0].step;
    g->head.policy_version = rows[0].policy_version;
    g->head.question = (int32_t)rows[0].question;
    g->head.group_size = g->head.count = count;
    g->head.first = 0;
    for (int32_t i = 0; i < count; i++) g->rows[i] = completion_of(&rows[i]);
    if (n_tokens) {
        memcpy(g->tokens, s->tokens + rows[0].token_offset, (size_t)n_tokens * sizeof *g->tokens);
        memcpy(g->logprobs, s->logprobs + rows[0].token_offset, (size_t)n_tokens * sizeof *g->logprobs);
    }
    RRL_GOTO(fill_text(g, s, first));
    if (members) RRL_GOTO(rrl_group_set_members(g, members));
    for (; *verdict < s->n_verdicts && s->verdicts[*verdict].rollout < (uint64_t)(first + count); ++*verdict)
        if (s->verdicts[*verdict].rollout >= (uint64_t)first) fill_verdict(g, first, &s->verdicts[*verdict]);
    *out = g;
    g = NULL;
done:
    rrl_group_free(&g);
    return rc;
}

rrl_status rrl_record_groups(rrl_group ***groups, int64_t *n, const rrl_record_set *s) {
    rrl_status rc = RRL_OK;
    rrl_group **made = NULL;
    int64_t count = 0, verdict = 0;
    int32_t members = 0, slot = 0;
    if (s->n && !s->text)
        return RRL_FAIL(RRL_ERR_INTERNAL, "groups need a record that was read with its texts");
    for (int64_t i = 0; i < s->n_verdicts; i++)
        if (s->verdicts[i].member >= members) members = s->verdicts[i].member + 1;
    RRL_GOTO(rrl_alloc(&made, (size_t)s->n + 1, sizeof *made, "groups of a record"));
    for (int64_t i = 0, end; i < s->n; i = end) {
        for (end = i + 1; end < s->n && same_group(&s->rollouts[end - 1], &s->rollouts[end]); end++) {
        }
        RRL_GOTO(group_of(&made[count], s, i, (int32_t)(end - i), members, &verdict));
        slot = i && s->rollouts[i].step == s->rollouts[i - 1].step ? slot + 1 : 0;
        made[count++]->head.slot = slot;
    }
    *groups = made;
    *n = count;
    made = NULL;
done:
    for (int64_t i = 0; made && i < count; i++) rrl_group_free(&made[i]);
    free(made);
    return rc;
}
