/* From a record to its judged-again twin. What a verifier decides is replaced, what a generator or learner decided
 * stays. */
#include "report/rejudge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json_write.h"
#include "base/text.h"
#include "record/metrics.h"
#include "record/record_file.h"
#include "roles/judge.h"

enum { MOST_EXAMPLES = 10, ANSWER_CHARS = 24 };
static const char MARK[] = ".rejudged-";

void rrl_rejudge_free(rrl_rejudge *r) {
    for (int64_t i = 0; i < r->n_sets; i++) free(r->sets[i].name);
    free(r->sets);
    free(r->written);
    rrl_buffer_free(&r->examples);
    *r = (rrl_rejudge){0};
}

static bool same(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

/* --- what changed */

typedef struct {
    double sum;
    int64_t n;
} mean;

static void add(mean *m, float v) {
    if (isnan(v)) return;
    m->sum += (double)v;
    m->n++;
}

static double value(const mean *m) { return m->n ? m->sum / (double)m->n : NAN; }

static bool same_answer(const rrl_record_set *a, const rrl_record_set *b, int64_t i) {
    int32_t n = a->rollouts[i].answer_bytes;
    return n == b->rollouts[i].answer_bytes && (n <= 0 || memcmp(a->answer[i], b->answer[i], (size_t)n) == 0);
}

/* An answer on one line, quoted and cut. */
static rrl_status put_answer(rrl_buffer *b, const rrl_record_set *s, int64_t i) {
    int32_t n = s->rollouts[i].answer_bytes;
    if (n < 0) return rrl_buffer_puts(b, "none");
    const char *end = s->answer[i] + n, *to = s->answer[i];
    for (int k = 0; k < ANSWER_CHARS && to < end; k++) rrl_utf8_next(&to, end);
    RRL_TRY(rrl_json_quote(b, s->answer[i], (size_t)(to - s->answer[i])));
    return to < end ? rrl_buffer_puts(b, "..") : RRL_OK;
}

static rrl_status put_example(rrl_buffer *b, const rrl_record_set *before, const rrl_record_set *now, int64_t i) {
    const rrl_rollout_row *x = &before->rollouts[i], *y = &now->rollouts[i];
    RRL_TRY(rrl_buffer_printf(b, "%s %" PRId64 ": ", *before->name ? before->name : "training", i));
    RRL_TRY(put_answer(b, before, i));
    if (!same_answer(before, now, i)) {
        RRL_TRY(rrl_buffer_puts(b, " -> "));
        RRL_TRY(put_answer(b, now, i));
    }
    if (!same(x->correct, y->correct))
        RRL_TRY(rrl_buffer_printf(b, ", judge %g -> %g", (double)x->correct, (double)y->correct));
    if (!same(x->reward, y->reward))
        RRL_TRY(rrl_buffer_printf(b, ", reward %.3g -> %.3g", (double)x->reward, (double)y->reward));
    return rrl_buffer_puts(b, "\n");
}

static rrl_status compare(rrl_rejudge_set *out, rrl_buffer *examples, const rrl_record_set *before,
                          const rrl_record_set *now, int64_t *shown) {
    mean right[2] = {{0}}, reward[2] = {{0}};
    out->n = before->n;
    for (int64_t i = 0; i < before->n; i++) {
        const rrl_rollout_row *x = &before->rollouts[i], *y = &now->rollouts[i];
        bool answer = !same_answer(before, now, i), judged = !same(x->correct, y->correct),
             rewarded = !same(x->reward, y->reward);
        add(&right[0], x->correct);
        add(&right[1], y->correct);
        add(&reward[0], x->reward);
        add(&reward[1], y->reward);
        out->answers += answer;
        out->rewards += rewarded;
        out->gained += judged && y->correct >= 0.5F;
        out->lost += judged && x->correct >= 0.5F;
        if (!answer && !judged && !rewarded) continue;
        if ((*shown)++ < MOST_EXAMPLES) RRL_TRY(put_example(examples, before, now, i));
    }
    for (int64_t i = 0; i < now->n_verdicts; i++)
        out->verdicts += !same(before->verdicts[i].clean, now->verdicts[i].clean) ||
                         !same(before->verdicts[i].reward, now->verdicts[i].reward);
    out->right_before = value(&right[0]);
    out->right_after = value(&right[1]);
    out->reward_before = value(&reward[0]);
    out->reward_after = value(&reward[1]);
    return RRL_OK;
}

/* --- judging */

/* Records keep the class of a question and no other metadata, which is all that a bias on "class" asks for. */
static rrl_status metadata_of(rrl_buffer *b, const rrl_record_question *q) {
    b->len = 0;
    if (!*q->klass) return rrl_buffer_puts(b, "{}");
    RRL_TRY(rrl_buffer_puts(b, "{\"class\": "));
    RRL_TRY(rrl_json_quote(b, q->klass, strlen(q->klass)));
    return rrl_buffer_puts(b, "}");
}

static rrl_status check_members(const rrl_record *r) {
    for (int32_t i = 0; i < r->n_members; i++)
        if (strcmp(r->members[i].corruption, "bias") == 0 && strcmp(r->members[i].bias_key, "class") != 0)
            return RRL_FAIL(RRL_ERR_DATA, "%s: member %d rewards by the metadata key \"%s\"; records keep the key "
                            "\"class\" alone, so this record cannot be judged again", r->path, i,
                            r->members[i].bias_key);
    return RRL_OK;
}

/* One judged completion over its row and its verdicts. */
static rrl_status store(rrl_record_set *s, int64_t at, const rrl_group *g, int32_t i) {
    const rrl_completion *c = &g->rows[i];
    rrl_rollout_row *row = &s->rollouts[at];
    char *answer = NULL;
    size_t n = c->n_answer > 0 ? (size_t)c->n_answer : 0;
    RRL_TRY(rrl_alloc(&answer, n + 1, 1, "answer"));
    if (n) memcpy(answer, g->text + rrl_group_answer_at(g, i), n);
    free(s->answer[at]);
    s->answer[at] = answer;
    row->answer_bytes = c->n_answer;
    row->reasoning_bytes = (uint32_t)c->n_reasoning;
    row->correct = c->correct;
    row->reward = c->reward;
    row->shaped = c->shaped;
    row->scale = c->scale;
    row->confidence = c->confidence;
    row->disagreement = c->disagreement;
    row->vote_entropy = c->vote_entropy;
    row->confidence_dispersion = c->confidence_dispersion;
    for (int32_t m = 0; m < g->head.members; m++) {
        const rrl_verdict *v = &g->verdicts[(int64_t)i * g->head.members + m];
        s->verdicts[at * g->head.members + m] =
            (rrl_verdict_row){.rollout = (uint64_t)at, .member = (uint16_t)m, .clean = v->clean, .reward = v->reward,
                              .confidence = v->confidence, .available = (uint8_t)v->available,
                              .corrupted = (uint8_t)v->corrupted};
    }
    return RRL_OK;
}

/* now: a copy of `before`, judged by j. Names, questions and metrics stay the record's. */
static rrl_status judge_set(rrl_record_set *now, const rrl_record_set *before, rrl_judge *j, const char *path) {
    rrl_status rc = RRL_OK;
    rrl_group **groups = NULL;
    rrl_buffer metadata = {0};
    int64_t n = 0, at = 0, members = rrl_judge_members(j);
    if (before->n_verdicts != before->n * members)
        return RRL_FAIL(RRL_ERR_DATA, "%s: %" PRId64 " verdicts of %" PRId64 " completions by %" PRId64 " members",
                        path, before->n_verdicts, before->n, members);
    if (before->n && !before->n_questions)
        return RRL_FAIL(RRL_ERR_DATA, "%s: the questions of its completions are not recorded", path);
    RRL_GOTO(rrl_set_slice(now, before, 0, before->n));
    RRL_GOTO(rrl_record_groups(&groups, &n, before));
    for (int64_t k = 0; k < n; k++) {
        const rrl_record_question *q = &before->questions[groups[k]->head.question];
        RRL_GOTO(metadata_of(&metadata, q));
        RRL_GOTO(rrl_judge_group(j, groups[k], &(rrl_question){.id = q->id, .question = q->question,
                                 .reference = q->reference, .metadata = metadata.data, .klass = q->klass}, NULL));
        for (int32_t i = 0; i < groups[k]->head.count; i++) RRL_GOTO(store(now, at++, groups[k], i));
        rrl_group_free(&groups[k]);
    }
done:
    for (int64_t k = 0; groups && k < n; k++) rrl_group_free(&groups[k]);
    free(groups);
    rrl_buffer_free(&metadata);
    return rc;
}

static rrl_status set_metrics(rrl_record_set *s, const rrl_ints *k) {
    rrl_metric *made = NULL;
    int n = 0;
    rrl_status rc;
    RRL_TRY(rrl_metrics_of(&made, &n, s, k->v, k->n));
    RRL_GOTO(rrl_alloc(&s->metrics, (size_t)n, sizeof *s->metrics, "metrics"));
    for (; s->n_metrics < n; s->n_metrics++) {
        char *name = NULL;
        RRL_GOTO(rrl_strdup(&name, made[s->n_metrics].name));
        s->metrics[s->n_metrics] = made[s->n_metrics];
        s->metrics[s->n_metrics].name = name;
    }
done:
    rrl_metrics_free(&made, n);
    return rc;
}

/* --- records */

/* A record that shares everything but its completions with another. */
static void lend(rrl_record_set *to, const rrl_record_set *from) {
    to->name = from->name;
    to->questions = from->questions;
    to->n_questions = from->n_questions;
}

static void clear_lent(rrl_record_set *s) {
    s->name = NULL;
    s->questions = NULL;
    s->n_questions = 0;
    rrl_set_clear(s);
}

static rrl_status judge_record(rrl_rejudge *out, rrl_record *now, const rrl_record *r) {
    rrl_status rc = RRL_OK;
    rrl_config *c = NULL;
    rrl_judge *j = NULL;
    int64_t shown = 0;
    RRL_GOTO(check_members(r));
    RRL_GOTO(rrl_config_parse(&c, r->config_yaml, strlen(r->config_yaml), r->path, NULL, NULL, 0));
    RRL_GOTO(rrl_judge_open(&j, c));
    RRL_GOTO(rrl_alloc(&out->sets, (size_t)r->n_evaluations + 1, sizeof *out->sets, "sets of completions"));
    for (int64_t i = r->training.n ? -1 : 0; i < r->n_evaluations; i++) {
        const rrl_record_set *before = i < 0 ? &r->training : &r->evaluations[i];
        rrl_record_set *set = i < 0 ? &now->training : &now->evaluations[i];
        rrl_rejudge_set *t = &out->sets[out->n_sets];
        RRL_GOTO(judge_set(set, before, j, r->path));
        lend(set, before);
        if (i >= 0) RRL_GOTO(set_metrics(set, &c->evaluation.k));
        RRL_GOTO(rrl_strdup(&t->name, before->name));
        out->n_sets++;
        RRL_GOTO(compare(t, &out->examples, before, set, &shown));
    }
    if (!r->training.n) lend(&now->training, &r->training);
    if (shown > MOST_EXAMPLES)
        RRL_GOTO(rrl_buffer_printf(&out->examples, "and %" PRId64 " more\n", shown - MOST_EXAMPLES));
done:
    rrl_judge_close(&j);
    rrl_config_close(&c);
    return rc;
}

/* NAME.h5 of a file or of a run's folder. */
static rrl_status source_of(char **out, const char *path) {
    const char *name = strrchr(path, '/');
    size_t n = strlen(path);
    if (rrl_dir_exists(path)) return rrl_path_join(out, path, "run.h5");
    if (strstr(name ? name : path, MARK))
        return RRL_FAIL(RRL_ERR_DATA, "%s is a record that was judged again; name the one that it came from", path);
    if (n < 4 || strcmp(path + n - 3, ".h5") != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: neither a record (NAME.h5) nor the folder of a run", path);
    return rrl_strdup(out, path);
}

static rrl_status publish(char **written, const char *source, const rrl_record *now, const rrl_record *before) {
    rrl_status rc;
    rrl_buffer path = {0};
    uint8_t sum[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX];
    RRL_GOTO(rrl_buffer_printf(&path, "%.*s%s%d.h5", (int)(strlen(source) - 3), source, MARK, RRL_PARSER_VERSION));
    RRL_GOTO(rrl_sha256_file(sum, source));
    rrl_sha256_hex(hex, sum);
    RRL_GOTO(rrl_record_publish_rejudged(path.data, now, before, hex));
    *written = path.data;
    path = (rrl_buffer){0};
done:
    rrl_buffer_free(&path);
    return rc;
}

rrl_status rrl_rejudge_record(rrl_rejudge *out, const char *path, bool dry) {
    rrl_status rc;
    rrl_record *r = NULL, now = {0};
    char *source = NULL, parser[16];
    *out = (rrl_rejudge){0};
    snprintf(parser, sizeof parser, "%d", RRL_PARSER_VERSION);
    RRL_GOTO(source_of(&source, path));
    RRL_GOTO(rrl_record_read(&r, source, 1));
    now = *r;
    now.parser_version = parser;
    now.training = (rrl_record_set){0};
    now.evaluations = NULL;
    RRL_GOTO(rrl_alloc(&now.evaluations, (size_t)r->n_evaluations, sizeof *now.evaluations, "evaluations"));
    RRL_GOTO(judge_record(out, &now, r));
    if (!dry) RRL_GOTO(publish(&out->written, source, &now, r));
done:
    clear_lent(&now.training);
    for (int64_t i = 0; now.evaluations && i < now.n_evaluations; i++) clear_lent(&now.evaluations[i]);
    free(now.evaluations);
    free(source);
    rrl_record_free(&r);
    if (rc != RRL_OK) rrl_rejudge_free(out);
    return rc;
}

/* --- table */

static rrl_status put_share(rrl_buffer *b, double v) {
    return isnan(v) ? rrl_buffer_printf(b, " %7s", "-") : rrl_buffer_printf(b, " %7.4f", v);
}

rrl_status rrl_rejudge_table(rrl_buffer *b, const rrl_rejudge *r) {
    RRL_TRY(rrl_buffer_printf(b, "%-10s %7s %7s %7s %7s %6s %6s %7s %7s\n", "set", "texts", "answers", "right", "now",
                              "gained", "lost", "reward", "now"));
    for (int64_t i = 0; i < r->n_sets; i++) {
        const rrl_rejudge_set *s = &r->sets[i];
        RRL_TRY(rrl_buffer_printf(b, "%-10.10s %7" PRId64 " %7" PRId64, *s->name ? s->name : "training", s->n,
                                  s->answers));
        RRL_TRY(put_share(b, s->right_before));
        RRL_TRY(put_share(b, s->right_after));
        RRL_TRY(rrl_buffer_printf(b, " %6" PRId64 " %6" PRId64, s->gained, s->lost));
        RRL_TRY(put_share(b, s->reward_before));
        RRL_TRY(put_share(b, s->reward_after));
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    return r->examples.len ? rrl_buffer_put(b, r->examples.data, r->examples.len) : RRL_OK;
}
