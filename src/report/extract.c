/* From a record to what the report keeps of it: identity, recorded metrics, values for each question,
 * training totals. Nothing here needs the texts of completions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "report/extract.h"

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

/* --- training totals */

static double ratio(double sum, int64_t n) {
    return n ? sum / (double)n : NAN;
}

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

/* J and Pearson's correlation of the shaped reward with being right. */
static void gain_over(double *j, double *rho, const rrl_record_set *s, bool available_only) {
    double n[2] = {0}, sum[2] = {0}, square = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const rrl_rollout_row *r = &s->rollouts[i];
        if (isnan(r->correct) || (available_only && isnan(r->reward))) continue;
        int right = r->correct > 0.5;
        n[right]++;
        sum[right] += r->shaped;
        square += (double)r->shaped * r->shaped;
    }
    *j = *rho = NAN;
    if (!(n[0] && n[1])) return;
    double all = n[0] + n[1], mean = (sum[0] + sum[1]) / all, p = n[1] / all;
    double variance = square / all - mean * mean;
    *j = sum[1] / n[1] - sum[0] / n[0];
    if (variance > 1e-12) *rho = *j * sqrt(p * (1 - p) / variance);
}

/* How often the first member that can act on some completions only did so, by the probability of its event. */
static void eligible_shares(double out[2], const rrl_record *r) {
    const rrl_record_set *s = &r->training;
    int member = -1;
    double n[2] = {0}, fired[2] = {0};
    out[0] = out[1] = NAN;
    for (int m = 0; m < r->n_members && member < 0; m++) {
        const char *kind = r->members[m].corruption;
        if ((strcmp(kind, "exploit") == 0 || strcmp(kind, "bias") == 0) && r->members[m].probability > 0) member = m;
    }
    for (int64_t i = 0; member >= 0 && i < s->n_verdicts; i++) {
        const rrl_verdict_row *v = &s->verdicts[i];
        float correct = s->rollouts[v->rollout].correct;
        if (v->member != member || isnan(correct)) continue;
        n[correct > 0.5F]++;
        fired[correct > 0.5F] += v->corrupted;
    }
    for (int side = 0; side < 2; side++)
        if (n[side] > 0) out[side] = fmin(1, fired[side] / n[side] / r->members[member].probability);
}

static rrl_report_gain gain_of(const rrl_record *r) {
    const rrl_record_set *s = &r->training;
    rrl_report_gain g;
    eligible_shares(g.eligible, r);
    gain_over(&g.j, &g.rho, s, false);
    gain_over(&g.j_available, &g.rho_available, s, true);
    return g;
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
    RRL_TRY(rrl_strdup(&c->provenance, r->provenance_json ? r->provenance_json : ""));
    c->level = r->level;
    c->seed = r->seed;
    c->complete = r->complete;
    c->trained = r->n_rows > 0;
    c->steps = r->n_rows;
    RRL_TRY(questions_digest(c->train_questions, &r->training));
    if (c->trained) {
        completion_totals(&c->training, &r->training);
        step_totals(&c->training, r->rows, r->n_rows);
        c->gain = gain_of(r);
        RRL_TRY(rrl_alloc(&c->rows, (size_t)r->n_rows, sizeof *c->rows, "training rows"));
        memcpy(c->rows, r->rows, (size_t)r->n_rows * sizeof *c->rows);
    }
    if (!r->n_evaluations) return RRL_OK;
    const rrl_record_set *last = &r->evaluations[r->n_evaluations - 1];
    RRL_TRY(questions_digest(c->questions, last));
    return rrl_report_extract_evaluation(c, last, r->n_members);
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
                     c->digest, c->config_yaml, c->model_digest, c->evaluation, c->parser_version,
                     c->provenance};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
    for (int64_t i = 0; i < c->n_metrics; i++) free((char *)c->metrics[i].name);
    for (int i = 0; i < c->n_paired; i++) free(c->paired[i]);
    for (int64_t i = 0; c->questions_asked && i < c->n_questions; i++) {
        free(c->questions_asked[i].id);
        free(c->questions_asked[i].question);
        free(c->questions_asked[i].reference);
    }
    free(c->questions_asked);
    free(c->agreement);
    free(c->rows);
    free(c->metrics);
    free(c->paired);
    free(c->values);
    *c = (rrl_report_condition){0};
}
