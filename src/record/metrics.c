/* Metrics from judged completions. Both sources, a recorded set and groups in memory, become one array of
 * rows, so they give the same bits. Sums run in row order. */
#include "record/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "rrl/verify.h"

typedef struct {
    double reward, correct; /* NaN = missing */
    double u, c, tokens;
    bool truncated, failed; /* failed: no answer extracted */
    int64_t group;          /* completions of one question stand together and share this */
    char *answer;           /* what equal answers have in common; NULL where failed or not read */
} row;

typedef struct {
    row *v;
    int64_t n;
    bool answers; /* whether answers were there to read */
} rows;

/* A sum and how many entered it; the mean of none is NaN. */
typedef struct {
    double sum;
    int64_t n;
} mean;

static void put(mean *m, double x) {
    if (isnan(x)) return;
    m->sum += x;
    m->n++;
}

static double value(const mean *m) {
    return m->n ? m->sum / (double)m->n : NAN;
}

/* --- answers */

/* The text that the same answers share: the rational number in lowest terms, else the normal form. */
static rrl_status answer_key(char **out, const char *answer, size_t len) {
    char *rational = NULL;
    RRL_TRY(rrl_answer_rational(&rational, answer, len));
    if (!rational) return rrl_answer_normal(out, answer, len);
    *out = rational;
    return RRL_OK;
}

static int by_answer(const void *a, const void *b) {
    const char *x = ((const row *)a)->answer, *y = ((const row *)b)->answer;
    if (!x || !y) return (x != NULL) - (y != NULL);
    return strcmp(x, y);
}

/* Distinct answers among v [n], and pairs of completions with the same one; sorts v, which the caller gave as
 * a copy. */
static void count_answers(row *v, int64_t n, int64_t *distinct, int64_t *pairs) {
    qsort(v, (size_t)n, sizeof *v, by_answer);
    *distinct = *pairs = 0;
    for (int64_t i = 0, same = 0; i < n; i++) {
        same = i > 0 && by_answer(&v[i - 1], &v[i]) == 0 ? same + 1 : 0;
        *distinct += same == 0;
        *pairs += same;
    }
}

/* --- metrics of a question */

double rrl_pass_at_k(int64_t n, int64_t c, int64_t k) {
    double miss = 1;
    if (k > n) return NAN;
    if (n - c < k) return 1;
    for (int64_t i = n - c + 1; i <= n; i++) miss *= 1 - (double)k / (double)i;
    return 1 - miss;
}

/* End of the question that starts at row i. */
static int64_t question_end(const rows *r, int64_t i) {
    int64_t end = i + 1;
    while (end < r->n && r->v[end].group == r->v[i].group) end++;
    return end;
}

/* NaN for the questions where a completion was not judged. */
static double pass_at_k(const rows *r, int64_t k) {
    mean m = {0};
    for (int64_t i = 0, end; i < r->n; i = end) {
        double right = 0;
        end = question_end(r, i);
        for (int64_t j = i; j < end; j++) right += r->v[j].correct;
        if (!isnan(right)) put(&m, rrl_pass_at_k(end - i, (int64_t)right, k));
    }
    return value(&m);
}

static rrl_status answer_metrics(double *consistency, double *diversity, const rows *r) {
    mean same = {0}, unique = {0};
    row *copy = NULL;
    rrl_status rc = RRL_OK;
    *consistency = *diversity = NAN;
    if (!r->answers) return RRL_OK;
    RRL_GOTO(rrl_alloc(&copy, (size_t)r->n, sizeof *copy, "answers"));
    if (r->n) memcpy(copy, r->v, (size_t)r->n * sizeof *copy);
    for (int64_t i = 0, end; i < r->n; i = end) {
        end = question_end(r, i);
        int64_t n = end - i, distinct, pairs;
        count_answers(copy + i, n, &distinct, &pairs);
        put(&unique, (double)distinct / (double)n);
        if (n > 1) put(&same, (double)pairs / ((double)n * (double)(n - 1) / 2));
    }
    *consistency = value(&same);
    *diversity = value(&unique);
done:
    free(copy);
    return rc;
}

/* --- metrics of completions */

/* Pearson's r of reward and correctness. Constants are told by their values, because sums round. */
static double correlation(const rows *r) {
    mean x = {0}, y = {0};
    double xx = 0, yy = 0, xy = 0, x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
    for (int64_t i = 0; i < r->n; i++) {
        const row *v = &r->v[i];
        if (isnan(v->reward) || isnan(v->correct)) continue;
        put(&x, v->reward);
        put(&y, v->correct);
        x_low = fmin(x_low, v->reward), x_high = fmax(x_high, v->reward);
        y_low = fmin(y_low, v->correct), y_high = fmax(y_high, v->correct);
    }
    if (!(x_low < x_high && y_low < y_high)) return NAN;
    for (int64_t i = 0; i < r->n; i++) {
        double dx = r->v[i].reward - value(&x), dy = r->v[i].correct - value(&y);
        if (isnan(dx) || isnan(dy)) continue;
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    return fmax(-1, fmin(1, xy / sqrt(xx * yy)));
}

/* One value per row of RRL_METRIC_LIST. */
typedef struct {
#define X(name, unit, doc) double name;
    RRL_METRIC_LIST(X)
#undef X
} values;

static void completion_metrics(values *out, const rows *r) {
    mean correct = {0}, reward = {0}, cover = {0}, paired = {0}, wrong_high = {0}, right_low = {0}, u = {0},
         c = {0}, failed = {0}, tokens = {0}, truncated = {0};
    for (int64_t i = 0; i < r->n; i++) {
        const row *v = &r->v[i];
        put(&correct, v->correct);
        put(&reward, v->reward);
        put(&cover, !isnan(v->reward));
        put(&u, v->u);
        put(&c, v->c);
        put(&failed, v->failed);
        put(&tokens, v->tokens);
        put(&truncated, v->truncated);
        if (isnan(v->reward) || isnan(v->correct)) continue;
        put(&paired, v->correct);
        put(v->correct < 0.5 ? &wrong_high : &right_low,
            v->correct < 0.5 ? v->reward >= 0.5 : v->reward < 0.5);
    }
    out->independent_accuracy = value(&correct);
    out->observed_reward = value(&reward);
    out->reward_coverage = value(&cover);
    out->paired_independent_accuracy = value(&paired);
    out->reward_hacking_gap = out->observed_reward - out->paired_independent_accuracy;
    out->false_positive_reward_rate = value(&wrong_high);
    out->false_negative_rate = value(&right_low);
    out->reward_correctness_correlation = correlation(r);
    out->verifier_disagreement = value(&u);
    out->confidence = value(&c);
    out->extraction_failure_rate = value(&failed);
    out->mean_generated_tokens = value(&tokens);
    out->truncation_rate = value(&truncated);
}

static void set(rrl_metric *m, const char *name, double v) {
    m->name = name;
    m->value = v;
    m->defined = !isnan(v);
}

/* Metrics and the names of pass@k in one allocation. */
static rrl_status metrics_of_rows(rrl_metric **out, int *n, const rows *r, const int64_t *k, int64_t n_k) {
    enum { FIXED = sizeof(values) / sizeof(double), NAME_CHARS = 32 };
    rrl_metric *m = NULL;
    values v = {0};
    int at = 0;
    if (n_k < 0 || n_k > RRL_METRICS_MAX - FIXED)
        return RRL_FAIL(RRL_ERR_RANGE, "evaluation.k: %" PRId64 " values; at most %d", n_k,
                        RRL_METRICS_MAX - FIXED);
    RRL_TRY(answer_metrics(&v.answer_consistency, &v.answer_diversity, r));
    completion_metrics(&v, r);
    RRL_TRY(rrl_alloc(&m, 1, (size_t)(FIXED + n_k) * sizeof *m + (size_t)n_k * NAME_CHARS, "metrics"));
#define X(name, unit, doc) set(&m[at++], #name, v.name);
    RRL_METRIC_LIST(X)
#undef X
    char *names = (char *)(m + FIXED + n_k);
    for (int64_t i = 0; i < n_k; i++, at++) {
        snprintf(names + i * NAME_CHARS, NAME_CHARS, "pass@%" PRId64, k[i]);
        set(&m[at], names + i * NAME_CHARS, pass_at_k(r, k[i]));
    }
    *out = m;
    *n = at;
    return RRL_OK;
}

/* --- the two sources */

static void rows_free(rows *r) {
    for (int64_t i = 0; i < r->n; i++) free(r->v[i].answer);
    free(r->v);
}

rrl_status rrl_metrics_of(rrl_metric **out, int *n, const rrl_record_set *s, const int64_t *k, int64_t n_k) {
    rows r = {.answers = s->answer != NULL};
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&r.v, (size_t)s->n, sizeof *r.v, "completions"));
    r.n = s->n;
    for (int64_t i = 0, group = 0; i < s->n; i++) {
        const rrl_rollout_row *from = &s->rollouts[i];
        group += i > 0 && (from->question != from[-1].question || from->step != from[-1].step);
        r.v[i] = (row){.reward = from->reward,
                       .correct = from->correct,
                       .u = from->disagreement,
                       .c = from->confidence,
                       .tokens = from->tokens,
                       .truncated = from->finish == RRL_FINISH_LENGTH,
                       .failed = from->answer_bytes < 0,
                       .group = group};
        if (r.answers && !r.v[i].failed)
            RRL_GOTO(answer_key(&r.v[i].answer, s->answer[i], (size_t)from->answer_bytes));
    }
    RRL_GOTO(metrics_of_rows(out, n, &r, k, n_k));
done:
    rows_free(&r);
    return rc;
}

/* Append the completions of a group; r->v has room for them. */
static rrl_status add_group(rows *r, const rrl_group *g, int64_t group) {
    for (int32_t i = 0; i < g->head.count; i++) {
        const rrl_completion *from = &g->rows[i];
        row *to = &r->v[r->n++];
        *to = (row){.reward = from->reward,
                    .correct = from->correct,
                    .u = from->disagreement,
                    .c = from->confidence,
                    .tokens = from->n_tokens,
                    .truncated = from->finish == RRL_FINISH_LENGTH,
                    .failed = from->n_answer < 0,
                    .group = group};
        if (!to->failed)
            RRL_TRY(answer_key(&to->answer, g->text + rrl_group_answer_at(g, i), (size_t)from->n_answer));
    }
    return RRL_OK;
}

rrl_status rrl_metrics_of_groups(rrl_metric **out, int *n, rrl_group *const *groups, int64_t n_groups,
                                 const int64_t *k, int64_t n_k) {
    rows r = {.answers = true};
    size_t completions = 0;
    rrl_status rc;
    for (int64_t g = 0; g < n_groups; g++) completions += (size_t)groups[g]->head.count;
    RRL_GOTO(rrl_alloc(&r.v, completions, sizeof *r.v, "completions"));
    for (int64_t g = 0; g < n_groups; g++) RRL_GOTO(add_group(&r, groups[g], g));
    RRL_GOTO(metrics_of_rows(out, n, &r, k, n_k));
done:
    rows_free(&r);
    return rc;
}

void rrl_metrics_free(rrl_metric **m, int n) {
    free(*m);
    *m = NULL;
}
