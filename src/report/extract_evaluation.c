/* What the report keeps of an evaluation: metrics as recorded, values for each question, how often members
 * vote alike, and which completions failed in which way. Nothing here needs the texts of completions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "record/metrics.h"
#include "report/extract.h"
#include "rrl/group.h"

static const char AGREEMENT[] = "member_agreement";

static double ratio(double sum, int64_t n) {
    return n ? sum / (double)n : NAN;
}

/* --- votes */

enum { ABSENT = -1 };

/* votes [n, n_members]: 1, 0 or ABSENT. */
static rrl_status read_votes(signed char **out, const rrl_record_set *s, int n_members) {
    size_t n = (size_t)s->n * (size_t)n_members;
    signed char *votes;
    RRL_TRY(rrl_alloc(&votes, n, 1, "votes"));
    if (n) memset(votes, ABSENT, n);
    for (int64_t i = 0; i < s->n_verdicts; i++) {
        const rrl_verdict_row *v = &s->verdicts[i];
        if (v->member < n_members && v->available && !isnan(v->reward))
            votes[v->rollout * (uint64_t)n_members + v->member] = v->reward >= 0.5F;
    }
    *out = votes;
    return RRL_OK;
}

static rrl_status fill_agreement(rrl_report_condition *c, const rrl_record_set *s, const signed char *votes) {
    int m = c->n_members;
    RRL_TRY(rrl_alloc(&c->agreement, (size_t)m * (size_t)m, sizeof *c->agreement, "agreement of members"));
    for (int a = 0; a < m; a++)
        for (int b = 0; b < m; b++) {
            int64_t both = 0, alike = 0;
            for (int64_t i = 0; i < s->n; i++) {
                const signed char *v = votes + i * m;
                if (v[a] == ABSENT || v[b] == ABSENT) continue;
                both++;
                alike += v[a] == v[b];
            }
            c->agreement[a * m + b] = ratio((double)alike, both);
        }
    return RRL_OK;
}

/* --- values for each question */

/* Counts and sums over the completions of one question. */
typedef struct {
    int64_t n, judged, rewarded, both, pairs;
    double right, reward, both_right, both_reward, tokens, disagreement, failed, truncated, alike;
    double wrong_rewarded;
} tally;

static void tally_votes(tally *t, const signed char *v, int n_members) {
    for (int a = 0; a < n_members; a++)
        for (int b = a + 1; b < n_members; b++) {
            if (v[a] == ABSENT || v[b] == ABSENT) continue;
            t->pairs++;
            t->alike += v[a] == v[b];
        }
}

static void tally_row(tally *t, const rrl_rollout_row *r) {
    t->n++;
    t->tokens += r->tokens;
    t->disagreement += r->disagreement;
    t->failed += r->answer_bytes < 0;
    t->truncated += r->finish == RRL_FINISH_LENGTH;
    if (!isnan(r->correct)) {
        t->judged++;
        t->right += r->correct;
    }
    if (!isnan(r->reward)) {
        t->rewarded++;
        t->reward += r->reward;
    }
    if (!isnan(r->correct) && !isnan(r->reward)) {
        t->both++;
        t->both_right += r->correct;
        t->both_reward += r->reward;
        t->wrong_rewarded += r->correct < 0.5F && r->reward >= 0.5F;
    }
}

static double accuracy_of(const tally *t) { return ratio(t->right, t->judged); }
static double reward_of(const tally *t) { return ratio(t->reward, t->rewarded); }
static double gap_of(const tally *t) { return ratio(t->both_reward - t->both_right, t->both); }
static double tokens_of(const tally *t) { return ratio(t->tokens, t->n); }
static double disagreement_of(const tally *t) { return ratio(t->disagreement, t->n); }
static double failed_of(const tally *t) { return ratio(t->failed, t->n); }
static double truncated_of(const tally *t) { return ratio(t->truncated, t->n); }
static double alike_of(const tally *t) { return ratio(t->alike, t->pairs); }

/* Metrics with a value for each question, besides pass@k. */
static const struct {
    const char *metric;
    double (*value)(const tally *t);
} PAIRED[] = {{"independent_accuracy", accuracy_of},
              {"observed_reward", reward_of},
              {"reward_hacking_gap", gap_of},
              {"verifier_disagreement", disagreement_of},
              {"extraction_failure_rate", failed_of},
              {"mean_generated_tokens", tokens_of},
              {"truncation_rate", truncated_of},
              {AGREEMENT, alike_of}};

/* Values of one metric into row [n_questions]; false if it has none for a question. */
static bool values_of(double *row, const char *metric, const tally *t, int64_t n) {
    for (size_t i = 0; i < sizeof PAIRED / sizeof *PAIRED; i++) {
        if (strcmp(PAIRED[i].metric, metric) != 0) continue;
        for (int64_t q = 0; q < n; q++) row[q] = PAIRED[i].value(&t[q]);
        return true;
    }
    if (strncmp(metric, "pass@", 5) != 0) return false;
    int64_t k = strtoll(metric + 5, NULL, 10);
    for (int64_t q = 0; q < n; q++)
        row[q] = t[q].judged < t[q].n ? NAN : rrl_pass_at_k(t[q].n, (int64_t)t[q].right, k);
    return true;
}

static rrl_status fill_values(rrl_report_condition *c, const tally *t) {
    RRL_TRY(rrl_alloc(&c->paired, (size_t)c->n_metrics, sizeof *c->paired, "metric names"));
    RRL_TRY(rrl_alloc(&c->values, (size_t)c->n_metrics, (size_t)c->n_questions * sizeof(double),
                      "values of questions"));
    for (int64_t m = 0; m < c->n_metrics; m++) {
        double *row = c->values + (size_t)c->n_paired * (size_t)c->n_questions;
        if (!values_of(row, c->metrics[m].name, t, c->n_questions)) continue;
        RRL_TRY(rrl_strdup(&c->paired[c->n_paired], c->metrics[m].name));
        c->n_paired++;
    }
    return RRL_OK;
}

/* --- failures */

static void count_row(rrl_report_failures *f, const rrl_rollout_row *r) {
    bool judged = !isnan(r->correct), right = judged && r->correct > 0.5F, wrong = judged && !right;
    bool missing = isnan(r->reward), rewarded = !missing && r->reward >= 0.5F;
    bool none = r->answer_bytes < 0, truncated = r->finish == RRL_FINISH_LENGTH;
    f->completions++;
    f->unjudged += !judged;
    f->right_rewarded += right && rewarded;
    f->right_unrewarded += right && !rewarded && !missing;
    f->right_missing += right && missing;
    f->wrong_rewarded += wrong && rewarded;
    f->wrong_unrewarded += wrong && !rewarded && !missing;
    f->wrong_missing += wrong && missing;
    f->no_answer += none;
    f->no_answer_rewarded += none && rewarded;
    f->truncated += truncated;
    f->truncated_no_answer += truncated && none;
    f->disagreed += r->disagreement > 0;
    f->disagreed_wrong += r->disagreement > 0 && wrong;
}

/* --- the whole */

static rrl_status add_metric(rrl_report_condition *c, const char *name, double value) {
    char *copy;
    RRL_TRY(rrl_strdup(&copy, name));
    c->metrics[c->n_metrics++] = (rrl_metric){.name = copy, .value = value, .defined = !isnan(value)};
    return RRL_OK;
}

static double total_agreement(const tally *t, int64_t n) {
    double alike = 0;
    int64_t pairs = 0;
    for (int64_t q = 0; q < n; q++) {
        alike += t[q].alike;
        pairs += t[q].pairs;
    }
    return ratio(alike, pairs);
}

static rrl_status keep_metrics(rrl_report_condition *c, const rrl_record_set *s, const tally *t) {
    RRL_TRY(rrl_alloc(&c->metrics, (size_t)s->n_metrics + 1, sizeof *c->metrics, "metrics"));
    for (int64_t i = 0; i < s->n_metrics; i++)
        RRL_TRY(
            add_metric(c, s->metrics[i].name, s->metrics[i].defined ? s->metrics[i].value : NAN));
    return add_metric(c, AGREEMENT, total_agreement(t, s->n_questions));
}

static rrl_status keep_questions(rrl_report_condition *c, const rrl_record_set *s, const tally *t) {
    RRL_TRY(rrl_alloc(&c->questions_asked, (size_t)s->n_questions, sizeof *c->questions_asked, "questions"));
    for (int64_t i = 0; i < s->n_questions; i++) {
        rrl_report_question *q = &c->questions_asked[i];
        RRL_TRY(rrl_strdup(&q->id, s->questions[i].id));
        RRL_TRY(rrl_strdup(&q->question, s->questions[i].question));
        RRL_TRY(rrl_strdup(&q->reference, s->questions[i].reference));
        q->wrong_rewarded = t[i].wrong_rewarded;
        c->failures.questions_never_right += t[i].judged > 0 && t[i].right == 0;
        c->failures.questions_always_right += t[i].judged > 0 && t[i].right == (double)t[i].judged;
    }
    return RRL_OK;
}

rrl_status rrl_report_extract_evaluation(rrl_report_condition *c, const rrl_record_set *s, int n_members) {
    tally *t = NULL;
    signed char *votes = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_strdup(&c->evaluation, s->name));
    c->n_questions = s->n_questions;
    c->n_completions = s->n;
    c->n_members = n_members;
    RRL_GOTO(rrl_alloc(&t, (size_t)s->n_questions, sizeof *t, "questions"));
    RRL_GOTO(read_votes(&votes, s, n_members));
    for (int64_t i = 0; i < s->n; i++) {
        tally_row(&t[s->rollouts[i].question], &s->rollouts[i]);
        tally_votes(&t[s->rollouts[i].question], votes + i * n_members, n_members);
        count_row(&c->failures, &s->rollouts[i]);
    }
    RRL_GOTO(keep_metrics(c, s, t));
    RRL_GOTO(keep_questions(c, s, t));
    RRL_GOTO(fill_values(c, t));
    RRL_GOTO(fill_agreement(c, s, votes));
done:
    free(t);
    free(votes);
    return rc;
}
