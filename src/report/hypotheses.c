#include "report/hypotheses.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/csv.h"
#include "report/report_text.h"
#include "report/statistics.h"

static const double ALPHA = 0.05;

/* --- finding the differences */

/* The two methods of "a - b". */
static void split(char a[64], char b[64], const char *contrast) {
    const char *minus = strstr(contrast, " - ");
    size_t n = minus ? (size_t)(minus - contrast) : 0;
    snprintf(a, 64, "%.*s", (int)(n < 63 ? n : 63), contrast);
    snprintf(b, 64, "%s", minus ? minus + 3 + strspn(minus + 3, " ") : "");
    for (size_t i = strlen(a); i && a[i - 1] == ' '; i--) a[i - 1] = '\0';
    for (size_t i = strlen(b); i && b[i - 1] == ' '; i--) b[i - 1] = '\0';
}

static rrl_claim negative(const rrl_claim *c) {
    rrl_claim out = *c;
    out.low = -c->high;
    out.high = -c->low;
    return out;
}

static bool speaks_of(const rrl_hypothesis_config *h, const char *arm, double level) {
    bool named = h->levels.n == 0;
    for (int64_t i = 0; i < h->levels.n && !named; i++) named = h->levels.v[i] == level;
    return named && (!*h->arm || strcmp(h->arm, arm) == 0);
}

static rrl_status add(rrl_report_answers *out, const rrl_report_answer *a) {
    RRL_TRY(rrl_grow(&out->v, &out->capacity, out->n + 1, sizeof *out->v, "answers"));
    out->v[out->n++] = *a;
    return RRL_OK;
}

/* Differences are kept once for a pair of methods; a contrast the other way round is their negative. */
static rrl_status add_matches(rrl_report_answers *out, const rrl_hypothesis_config *h,
                              const rrl_report_numbers *n) {
    char a[64], b[64];
    split(a, b, h->contrast);
    for (size_t i = 0; i < n->n_differences; i++) {
        const rrl_report_difference *d = &n->differences[i];
        bool same = strcmp(d->method_a, a) == 0 && strcmp(d->method_b, b) == 0;
        bool reverse = strcmp(d->method_a, b) == 0 && strcmp(d->method_b, a) == 0;
        if (!(same || reverse) || strcmp(d->metric, h->metric) != 0 || !d->n_seeds) continue;
        if (!speaks_of(h, d->arm, d->level)) continue;
        rrl_report_answer answer = {.hypothesis = h,
                                    .arm = d->arm,
                                    .level = d->level,
                                    .mean = same ? d->mean : -d->mean,
                                    .n_seeds = d->n_seeds,
                                    .n_questions = d->n_questions,
                                    .about_runs = same ? d->about_runs : negative(&d->about_runs),
                                    .about_method = same ? d->about_method : negative(&d->about_method)};
        RRL_TRY(add(out, &answer));
    }
    return RRL_OK;
}

/* --- verdicts */

static rrl_answer_verdict verdict_of(const rrl_claim *c, const char *direction) {
    if (isnan(c->low)) return RRL_ANSWER_UNKNOWN;
    bool above = c->low > 0, below = c->high < 0, sure = c->p_holm <= ALPHA;
    if (strcmp(direction, "equal") == 0)
        return !above && !below ? RRL_ANSWER_EXPECTED : sure ? RRL_ANSWER_CONTRARY : RRL_ANSWER_UNDECIDED;
    bool expected = strcmp(direction, "greater") == 0 ? above : below;
    if (!(above || below) || !sure) return RRL_ANSWER_UNDECIDED;
    return expected ? RRL_ANSWER_EXPECTED : RRL_ANSWER_CONTRARY;
}

/* Holm over all answers, for each statement by itself. */
static rrl_status judge(rrl_report_answers *out) {
    double *p = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_alloc(&p, out->n, sizeof *p, "p-values"));
    for (int method = 0; method < 2; method++) {
        for (size_t i = 0; i < out->n; i++) p[i] = method ? out->v[i].about_method.p : out->v[i].about_runs.p;
        RRL_GOTO(rrl_holm(p, (int64_t)out->n));
        for (size_t i = 0; i < out->n; i++) {
            rrl_report_answer *a = &out->v[i];
            rrl_claim *c = method ? &a->about_method : &a->about_runs;
            c->p_holm = p[i];
            *(method ? &a->method : &a->runs) = verdict_of(c, a->hypothesis->direction);
        }
    }
done:
    free(p);
    return rc;
}

rrl_status rrl_report_answers_make(rrl_report_answers *out, const rrl_report_page *page) {
    const rrl_config *c = page->study->config;
    rrl_report_answers answers = {0};
    rrl_status rc = RRL_OK;
    for (int64_t i = 0; c && i < c->n_hypotheses; i++) {
        const rrl_hypothesis_config *h = &c->hypotheses[i];
        size_t before = answers.n;
        for (size_t s = 0; s < page->n; s++) RRL_GOTO(add_matches(&answers, h, &page->numbers[s]));
        rrl_report_answer none = {.hypothesis = h,
                                  .level = NAN,
                                  .mean = NAN,
                                  .about_runs = RRL_NO_CLAIM,
                                  .about_method = RRL_NO_CLAIM};
        if (answers.n == before) RRL_GOTO(add(&answers, &none));
    }
    RRL_GOTO(judge(&answers));
    *out = answers;
    answers = (rrl_report_answers){0};
done:
    rrl_report_answers_free(&answers);
    return rc;
}

void rrl_report_answers_free(rrl_report_answers *a) {
    free(a->v);
    *a = (rrl_report_answers){0};
}

/* --- words */

static const char *const WORDS[] = {"not measured", "as expected", "contrary to the hypothesis", "not decided"};

/* Why an interval that excludes 0 is not enough, or what could have been seen. */
static rrl_status put_reason(rrl_buffer *b, const rrl_claim *c, rrl_answer_verdict v, bool equal) {
    if (v == RRL_ANSWER_UNDECIDED && (c->low > 0 || c->high < 0))
        return rrl_buffer_printf(b, " (the interval excludes 0, the p corrected for all hypotheses is above %g)", ALPHA);
    if (v == RRL_ANSWER_EXPECTED && equal)
        return rrl_buffer_printf(b, " (no difference seen; one beyond %.3f is excluded)",
                                 fmax(fabs(c->low), fabs(c->high)));
    if (v == RRL_ANSWER_UNDECIDED && !isnan(c->smallest))
        return rrl_buffer_printf(b, " (an effect of %.3f would be found in 80 %% of such designs)", c->smallest);
    return RRL_OK;
}

static rrl_status put_claim(rrl_buffer *b, const char *what, const rrl_claim *c, rrl_answer_verdict v, bool equal) {
    RRL_TRY(rrl_buffer_printf(b, " %s: ", what));
    if (isnan(c->low)) return rrl_buffer_puts(b, "nothing can be said.");
    RRL_TRY(rrl_buffer_printf(b, "%s; 95 %% interval %+.3f to %+.3f, p = %.3g, corrected %.3g", WORDS[v], c->low, c->high,
                              c->p, c->p_holm));
    RRL_TRY(put_reason(b, c, v, equal));
    return rrl_buffer_puts(b, ".");
}

static const char *expected_words(const char *direction) {
    return strcmp(direction, "greater") == 0 ? "above 0" : strcmp(direction, "less") == 0 ? "below 0" : "0";
}

rrl_status rrl_report_answer_text(rrl_buffer *b, const rrl_report_answer *a) {
    const rrl_hypothesis_config *h = a->hypothesis;
    char cell[96] = "";
    bool equal = strcmp(h->direction, "equal") == 0;
    if (a->arm) rrl_report_cell_name(cell, a->arm, a->level);
    RRL_TRY(rrl_buffer_printf(b, "%s of %s%s%s was expected to be %s. ", h->metric, h->contrast, a->arm ? " at " : "", cell,
                              expected_words(h->direction)));
    if (!a->arm) return rrl_buffer_puts(b, "No record measures it.");
    RRL_TRY(rrl_buffer_printf(b, "Measured: %+.3f (%lld seed%s, %lld questions).", a->mean, (long long)a->n_seeds,
                              a->n_seeds == 1 ? "" : "s", (long long)a->n_questions));
    RRL_TRY(put_claim(b, "About these runs", &a->about_runs, a->runs, equal));
    return put_claim(b, "About the method", &a->about_method, a->method, equal);
}

/* --- file */

static rrl_status put_claim_fields(rrl_buffer *b, const rrl_claim *c, rrl_answer_verdict v) {
    RRL_TRY(rrl_csv_number(b, c->low));
    RRL_TRY(rrl_csv_number(b, c->high));
    RRL_TRY(rrl_csv_number(b, c->p));
    RRL_TRY(rrl_csv_number(b, c->p_holm));
    return rrl_csv_text(b, WORDS[v]);
}

rrl_status rrl_report_hypotheses_csv(rrl_buffer *b, const rrl_report_page *page) {
    rrl_report_answers answers = {0};
    rrl_status rc;
    RRL_GOTO(rrl_buffer_puts(b, "hypothesis,metric,contrast,direction,arm,level,n_seeds,n_questions,mean,runs_low,runs_high,"
                                "runs_p,runs_p_holm,runs_verdict,method_low,method_high,method_p,method_p_holm,"
                                "method_verdict\n"));
    RRL_GOTO(rrl_report_answers_make(&answers, page));
    for (size_t i = 0; i < answers.n; i++) {
        const rrl_report_answer *a = &answers.v[i];
        RRL_GOTO(rrl_csv_text(b, a->hypothesis->name));
        RRL_GOTO(rrl_csv_text(b, a->hypothesis->metric));
        RRL_GOTO(rrl_csv_text(b, a->hypothesis->contrast));
        RRL_GOTO(rrl_csv_text(b, a->hypothesis->direction));
        RRL_GOTO(rrl_csv_text(b, a->arm ? a->arm : a->hypothesis->arm));
        RRL_GOTO(a->arm ? rrl_csv_level(b, a->level) : rrl_csv_text(b, ""));
        RRL_GOTO(rrl_csv_count(b, (uint64_t)a->n_seeds));
        RRL_GOTO(rrl_csv_count(b, (uint64_t)a->n_questions));
        RRL_GOTO(rrl_csv_number(b, a->mean));
        RRL_GOTO(put_claim_fields(b, &a->about_runs, a->runs));
        RRL_GOTO(put_claim_fields(b, &a->about_method, a->method));
        RRL_GOTO(rrl_csv_end(b));
    }
done:
    rrl_report_answers_free(&answers);
    return rc;
}
