/* From a record to what the report keeps of it: identity, recorded metrics, values for each question,
 * training totals. Nothing here needs the texts of completions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "record/metrics.h"
#include "report/report_data.h"

/* --- digests of questions */

static rrl_status add_text(rrl_sha256 *h, const char *text) {
    uint32_t len = (uint32_t)strlen(text);
    uint8_t head[4] = {(uint8_t)len, (uint8_t)(len >> 8), (uint8_t)(len >> 16), (uint8_t)(len >> 24)};
    RRL_TRY(rrl_sha256_add(h, head, sizeof head));
    return rrl_sha256_add(h, text, len);
}

/* SHA-256 over id, question and reference of the rows in order; "" for none. */
static rrl_status questions_digest(char out[65], const rrl_record_set *s) {
    rrl_sha256 *h = NULL;
    uint8_t digest[RRL_SHA256_BYTES];
    rrl_status rc;
    out[0] = '\0';
    if (s->n_questions == 0) return RRL_OK;
    RRL_GOTO(rrl_sha256_open(&h));
    for (int64_t i = 0; i < s->n_questions; i++) {
        RRL_GOTO(add_text(h, s->questions[i].id));
        RRL_GOTO(add_text(h, s->questions[i].question));
        RRL_GOTO(add_text(h, s->questions[i].reference));
    }
    RRL_GOTO(rrl_sha256_end(h, digest));
    rrl_sha256_hex(out, digest);
done:
    rrl_sha256_close(&h);
    return rc;
}

/* --- values for each question */

/* Counts and sums over the completions of one question. */
typedef struct {
    int64_t n, judged, rewarded, both;
    double right, reward, both_right, both_reward, tokens;
} tally;

static void tally_row(tally *t, const rrl_rollout_row *r) {
    t->n++;
    t->tokens += r->tokens;
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
    }
}

static double ratio(double sum, int64_t n) {
    return n ? sum / (double)n : NAN;
}

static double value_of(const char *metric, const tally *t) {
    if (strcmp(metric, "independent_accuracy") == 0) return ratio(t->right, t->judged);
    if (strcmp(metric, "observed_reward") == 0) return ratio(t->reward, t->rewarded);
    if (strcmp(metric, "reward_hacking_gap") == 0) return ratio(t->both_reward - t->both_right, t->both);
    if (strcmp(metric, "mean_generated_tokens") == 0) return ratio(t->tokens, t->n);
    if (t->judged < t->n) return NAN; /* pass@k */
    return rrl_pass_at_k(t->n, (int64_t)t->right, strtoll(metric + strlen("pass@"), NULL, 10));
}

static bool is_paired(const char *metric) {
    return strcmp(metric, "independent_accuracy") == 0 || strcmp(metric, "observed_reward") == 0 ||
           strcmp(metric, "reward_hacking_gap") == 0 || strcmp(metric, "mean_generated_tokens") == 0 ||
           strncmp(metric, "pass@", 5) == 0;
}

static rrl_status fill_values(rrl_report_condition *c, const rrl_record_set *s) {
    tally *t = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&t, (size_t)s->n_questions, sizeof *t, "questions"));
    for (int64_t i = 0; i < s->n; i++) tally_row(&t[s->rollouts[i].question], &s->rollouts[i]);
    RRL_GOTO(rrl_alloc(&c->paired, (size_t)c->n_metrics, sizeof *c->paired, "metric names"));
    RRL_GOTO(rrl_alloc(&c->values, (size_t)c->n_metrics, (size_t)s->n_questions * sizeof(double),
                       "values of questions"));
    for (int64_t m = 0; m < c->n_metrics; m++) {
        if (!is_paired(c->metrics[m].name)) continue;
        double *row = c->values + (size_t)c->n_paired * (size_t)s->n_questions;
        RRL_GOTO(rrl_strdup(&c->paired[c->n_paired], c->metrics[m].name));
        c->n_paired++;
        for (int64_t q = 0; q < s->n_questions; q++) row[q] = value_of(c->metrics[m].name, &t[q]);
    }
done:
    free(t);
    return rc;
}

static rrl_status extract_evaluation(rrl_report_condition *c, const rrl_record_set *s) {
    RRL_TRY(rrl_strdup(&c->evaluation, s->name));
    RRL_TRY(questions_digest(c->questions, s));
    RRL_TRY(rrl_alloc(&c->metrics, (size_t)s->n_metrics, sizeof *c->metrics, "metrics"));
    for (int64_t i = 0; i < s->n_metrics; i++) {
        char *name;
        RRL_TRY(rrl_strdup(&name, s->metrics[i].name));
        c->metrics[c->n_metrics] = s->metrics[i];
        c->metrics[c->n_metrics++].name = name;
    }
    c->n_questions = s->n_questions;
    c->n_completions = s->n;
    return s->n_questions ? fill_values(c, s) : RRL_OK;
}

/* --- training totals */

typedef struct {
    double sum, square, low, high;
    int64_t n;
} moments;

static void put(moments *m, double x) {
    if (isnan(x)) return;
    m->low = m->n ? fmin(m->low, x) : x;
    m->high = m->n ? fmax(m->high, x) : x;
    m->sum += x;
    m->square += x * x;
    m->n++;
}

static double mean_of(const moments *m) {
    return ratio(m->sum, m->n);
}

/* Rewards lie near [-1,1], so the difference of moments keeps more digits than f32 inputs have; equal ones
 * give 0. */
static double variance_of(const moments *m) {
    double mean = mean_of(m);
    if (isnan(mean) || m->low == m->high) return isnan(mean) ? NAN : 0;
    return fmax(0, m->square / (double)m->n - mean * mean);
}

static void completion_totals(rrl_report_diagnostics *d, const rrl_record_set *s) {
    moments observed = {0}, shaped = {0}, penalty = {0}, right = {0};
    for (int64_t i = 0; i < s->n; i++) {
        const rrl_rollout_row *r = &s->rollouts[i];
        put(&observed, r->reward);
        put(&shaped, r->shaped);
        put(&penalty, (double)r->reward - (double)r->shaped);
        put(&right, r->correct);
        d->tokens += r->tokens;
        d->missing += isnan(r->reward);
        d->suppressed += r->scale == 0;
        d->downweighted += r->scale > 0 && r->scale < 1;
    }
    d->samples = (double)s->n;
    d->observed_reward_sum = observed.sum;
    d->shaped_reward_sum = shaped.sum;
    d->observed_reward_mean = mean_of(&observed);
    d->shaped_reward_mean = mean_of(&shaped);
    d->observed_reward_variance = variance_of(&observed);
    d->shaped_reward_variance = variance_of(&shaped);
    d->mean_penalty = mean_of(&penalty);
    d->independent_accuracy = mean_of(&right);
}

static void step_totals(rrl_report_diagnostics *d, const rrl_training_row *rows, int64_t n) {
    moments norm = {0}, kl = {0}, flat = {0}, rollout = {0}, verify = {0}, learn = {0}, step = {0};
    d->lora_b_norm = n ? rows[n - 1].lora_b_norm : NAN;
    for (int64_t i = 0; i < n; i++) {
        put(&norm, rows[i].grad_norm);
        put(&kl, rows[i].kl);
        put(&flat, rows[i].frac_reward_zero_std);
        put(&rollout, rows[i].rollout_time);
        put(&verify, rows[i].verify_time);
        put(&learn, rows[i].learn_time);
        put(&step, rows[i].step_time);
        d->nonfinite += (double)rows[i].nonfinite;
        d->peak_memory_bytes = fmax(d->peak_memory_bytes, (double)rows[i].peak_memory);
    }
    d->steps = (double)n;
    d->mean_grad_norm = mean_of(&norm);
    d->mean_kl = mean_of(&kl);
    d->zero_variance_fraction = mean_of(&flat);
    d->rollout_s = rollout.sum;
    d->verify_s = verify.sum;
    d->learn_s = learn.sum;
    d->step_s = step.sum;
}

/* --- the whole */

static rrl_status extract(rrl_report_condition *c, const rrl_record *r, const char *path) {
    RRL_TRY(rrl_strdup(&c->path, path));
    RRL_TRY(rrl_strdup(&c->kind, r->execution_kind));
    RRL_TRY(rrl_strdup(&c->arm, r->arm));
    RRL_TRY(rrl_strdup(&c->method, r->method));
    RRL_TRY(rrl_strdup(&c->numeric_path, r->numeric_path));
    RRL_TRY(rrl_strdup(&c->digest, r->digest));
    RRL_TRY(rrl_strdup(&c->config_yaml, r->config_yaml));
    RRL_TRY(rrl_strdup(&c->model_digest, r->model_digest));
    RRL_TRY(rrl_strdup(&c->parser_version, r->parser_version));
    c->level = r->level;
    c->seed = r->seed;
    c->complete = r->complete;
    c->trained = r->n_rows > 0;
    c->steps = r->n_rows;
    RRL_TRY(questions_digest(c->train_questions, &r->training));
    if (c->trained) {
        completion_totals(&c->training, &r->training);
        step_totals(&c->training, r->rows, r->n_rows);
    }
    return r->n_evaluations ? extract_evaluation(c, &r->evaluations[r->n_evaluations - 1]) : RRL_OK;
}

rrl_status rrl_report_extract(rrl_report_condition *out, const rrl_record *r, const char *path) {
    rrl_report_condition c = {0};
    rrl_status rc = extract(&c, r, path);
    if (rc == RRL_OK)
        *out = c;
    else
        rrl_report_condition_free(&c);
    return rc;
}

void rrl_report_condition_free(rrl_report_condition *c) {
    char *texts[] = {c->path,   c->kind,        c->arm,          c->method,     c->numeric_path,
                     c->digest, c->config_yaml, c->model_digest, c->evaluation, c->parser_version};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
    for (int64_t i = 0; i < c->n_metrics; i++) free((char *)c->metrics[i].name);
    for (int i = 0; i < c->n_paired; i++) free(c->paired[i]);
    free(c->metrics);
    free(c->paired);
    free(c->values);
    *c = (rrl_report_condition){0};
}
