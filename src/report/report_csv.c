#include "report/report_csv.h"

#include <math.h>
#include <string.h>

#include "report/csv.h"

static rrl_status header(rrl_buffer *b, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) RRL_TRY(rrl_csv_text(b, names[i]));
    return RRL_OK;
}

#define HEADER(b, ...)                                                                                       \
    header(b, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static rrl_status condition_fields(rrl_buffer *b, const rrl_report_condition *c) {
    RRL_TRY(rrl_csv_text(b, c->arm));
    RRL_TRY(rrl_csv_level(b, c->level));
    RRL_TRY(rrl_csv_text(b, c->method));
    return rrl_csv_count(b, c->seed);
}

/* The record whose metrics name the columns; NULL if nothing was evaluated. */
static const rrl_report_condition *evaluated(const rrl_report_section *s) {
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i]->evaluation) return s->v[i];
    return NULL;
}

rrl_status rrl_csv_summary(rrl_buffer *b, const rrl_report_numbers *n) {
    const rrl_report_section *s = n->section;
    const rrl_report_condition *names = evaluated(s);
    int64_t n_metrics = names ? names->n_metrics : 0;
    RRL_TRY(HEADER(b, "arm", "level", "method", "seed", "execution_kind", "complete", "updates", "evaluation",
                   "questions", "completions"));
    for (int64_t m = 0; m < n_metrics; m++) RRL_TRY(rrl_csv_text(b, names->metrics[m].name));
    RRL_TRY(HEADER(b, "path", "digest"));
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_condition *c = s->v[i];
        RRL_TRY(condition_fields(b, c));
        RRL_TRY(rrl_csv_text(b, c->kind));
        RRL_TRY(rrl_csv_count(b, c->complete));
        RRL_TRY(rrl_csv_count(b, (uint64_t)c->steps));
        RRL_TRY(rrl_csv_text(b, c->evaluation ? c->evaluation : ""));
        RRL_TRY(rrl_csv_count(b, (uint64_t)c->n_questions));
        RRL_TRY(rrl_csv_count(b, (uint64_t)c->n_completions));
        for (int64_t m = 0; m < n_metrics; m++)
            RRL_TRY(rrl_csv_number(b, rrl_report_metric(c, names->metrics[m].name)));
        RRL_TRY(rrl_csv_text(b, c->path));
        RRL_TRY(rrl_csv_text(b, c->digest));
        RRL_TRY(rrl_csv_end(b));
    }
    return RRL_OK;
}

rrl_status rrl_csv_per_seed(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(HEADER(b, "arm", "level", "method", "seed", "metric", "value"));
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < n->section->n; i++) {
        const rrl_report_condition *c = n->section->v[i];
        for (int64_t m = 0; m < c->n_metrics; m++) {
            RRL_TRY(condition_fields(b, c));
            RRL_TRY(rrl_csv_text(b, c->metrics[m].name));
            RRL_TRY(rrl_csv_number(b, rrl_report_metric(c, c->metrics[m].name)));
            RRL_TRY(rrl_csv_end(b));
        }
    }
    return RRL_OK;
}

rrl_status rrl_csv_aggregate(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(HEADER(b, "arm", "level", "method", "metric", "n_seeds", "mean", "std"));
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < n->n_aggregates; i++) {
        const rrl_report_aggregate *a = &n->aggregates[i];
        RRL_TRY(rrl_csv_text(b, a->arm));
        RRL_TRY(rrl_csv_level(b, a->level));
        RRL_TRY(rrl_csv_text(b, a->method));
        RRL_TRY(rrl_csv_text(b, a->metric));
        RRL_TRY(rrl_csv_count(b, (uint64_t)a->n_seeds));
        RRL_TRY(rrl_csv_number(b, a->mean));
        RRL_TRY(rrl_csv_number(b, a->std));
        RRL_TRY(rrl_csv_end(b));
    }
    return RRL_OK;
}

rrl_status rrl_csv_differences(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(HEADER(b, "arm", "level", "metric", "method_a", "method_b", "n_seeds", "n_questions", "mean",
                   "low", "high", "p", "p_holm"));
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < n->n_differences; i++) {
        const rrl_report_difference *d = &n->differences[i];
        RRL_TRY(rrl_csv_text(b, d->arm));
        RRL_TRY(rrl_csv_level(b, d->level));
        RRL_TRY(rrl_csv_text(b, d->metric));
        RRL_TRY(rrl_csv_text(b, d->method_a));
        RRL_TRY(rrl_csv_text(b, d->method_b));
        RRL_TRY(rrl_csv_count(b, (uint64_t)d->n_seeds));
        RRL_TRY(rrl_csv_count(b, (uint64_t)d->n_questions));
        RRL_TRY(rrl_csv_number(b, d->mean));
        RRL_TRY(rrl_csv_number(b, d->low));
        RRL_TRY(rrl_csv_number(b, d->high));
        RRL_TRY(rrl_csv_number(b, d->p));
        RRL_TRY(rrl_csv_number(b, d->p_holm));
        RRL_TRY(rrl_csv_end(b));
    }
    return RRL_OK;
}

rrl_status rrl_csv_diagnostics(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(HEADER(b, "arm", "level", "method", "seed", "complete"));
#define X(name, doc) RRL_TRY(rrl_csv_text(b, #name));
    RRL_DIAGNOSTIC_LIST(X)
#undef X
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < n->section->n; i++) {
        const rrl_report_condition *c = n->section->v[i];
        if (!c->trained) continue;
        RRL_TRY(condition_fields(b, c));
        RRL_TRY(rrl_csv_count(b, c->complete));
#define X(name, doc) RRL_TRY(rrl_csv_number(b, c->training.name));
        RRL_DIAGNOSTIC_LIST(X)
#undef X
        RRL_TRY(rrl_csv_end(b));
    }
    return RRL_OK;
}
