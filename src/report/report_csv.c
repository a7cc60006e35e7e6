#include "report/report_csv.h"

#include <math.h>
#include <string.h>

#include "base/json_write.h"
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

static rrl_status difference_fields(rrl_buffer *b, const rrl_report_difference *d) {
    RRL_TRY(rrl_csv_text(b, d->arm));
    RRL_TRY(rrl_csv_level(b, d->level));
    RRL_TRY(rrl_csv_text(b, d->metric));
    RRL_TRY(rrl_csv_text(b, d->method_a));
    RRL_TRY(rrl_csv_text(b, d->method_b));
    RRL_TRY(rrl_csv_count(b, (uint64_t)d->n_seeds));
    RRL_TRY(rrl_csv_count(b, (uint64_t)d->n_questions));
    return rrl_csv_number(b, d->mean);
}

rrl_status rrl_csv_differences(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(HEADER(b, "arm", "level", "metric", "method_a", "method_b", "n_seeds", "n_questions", "mean",
                   "low", "high", "p", "p_holm"));
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < n->n_differences; i++) {
        const rrl_claim *c = &n->differences[i].about_runs;
        RRL_TRY(difference_fields(b, &n->differences[i]));
        RRL_TRY(rrl_csv_number(b, c->low));
        RRL_TRY(rrl_csv_number(b, c->high));
        RRL_TRY(rrl_csv_number(b, c->p));
        RRL_TRY(rrl_csv_number(b, c->p_holm));
        RRL_TRY(rrl_csv_end(b));
    }
    return RRL_OK;
}

rrl_status rrl_csv_method_differences(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(HEADER(b, "arm", "level", "metric", "method_a", "method_b", "n_seeds", "n_questions", "mean",
                   "low", "high", "p", "p_holm", "random_flips", "detectable", "few_seeds"));
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < n->n_differences; i++) {
        const rrl_claim *c = &n->differences[i].about_method;
        RRL_TRY(difference_fields(b, &n->differences[i]));
        RRL_TRY(rrl_csv_number(b, c->low));
        RRL_TRY(rrl_csv_number(b, c->high));
        RRL_TRY(rrl_csv_number(b, c->p));
        RRL_TRY(rrl_csv_number(b, c->p_holm));
        RRL_TRY(rrl_csv_count(b, (uint64_t)c->flips));
        RRL_TRY(rrl_csv_number(b, c->smallest));
        RRL_TRY(rrl_csv_count(b, n->differences[i].n_seeds < RRL_FEW_SEEDS));
        RRL_TRY(rrl_csv_end(b));
    }
    return RRL_OK;
}

rrl_status rrl_csv_intervals(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(HEADER(b, "statement", "arm", "level", "method", "metric", "n_seeds", "n_questions", "mean", "low", "high"));
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < 2 * n->n_aggregates; i++) {
        bool method = i >= n->n_aggregates;
        const rrl_report_aggregate *a = &n->aggregates[i % n->n_aggregates];
        const rrl_claim *c = method ? &a->about_method : &a->about_runs;
        if (!a->n_questions) continue;
        RRL_TRY(rrl_csv_text(b, method ? "method" : "runs"));
        RRL_TRY(rrl_csv_text(b, a->arm));
        RRL_TRY(rrl_csv_level(b, a->level));
        RRL_TRY(rrl_csv_text(b, a->method));
        RRL_TRY(rrl_csv_text(b, a->metric));
        RRL_TRY(rrl_csv_count(b, (uint64_t)a->n_seeds));
        RRL_TRY(rrl_csv_count(b, (uint64_t)a->n_questions));
        RRL_TRY(rrl_csv_number(b, a->question_mean));
        RRL_TRY(rrl_csv_number(b, c->low));
        RRL_TRY(rrl_csv_number(b, c->high));
        RRL_TRY(rrl_csv_end(b));
    }
    return RRL_OK;
}

rrl_status rrl_csv_agreement(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(HEADER(b, "arm", "level", "method", "seed", "member_a", "member_b", "agreement"));
    RRL_TRY(rrl_csv_end(b));
    for (size_t i = 0; i < n->section->n; i++) {
        const rrl_report_condition *c = n->section->v[i];
        for (int x = 0; x < c->n_members; x++)
            for (int y = x + 1; y < c->n_members; y++) {
                RRL_TRY(condition_fields(b, c));
                RRL_TRY(rrl_csv_count(b, (uint64_t)x));
                RRL_TRY(rrl_csv_count(b, (uint64_t)y));
                RRL_TRY(rrl_csv_number(b, c->agreement[x * c->n_members + y]));
                RRL_TRY(rrl_csv_end(b));
            }
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

/* --- JSON */

static rrl_status json_text(rrl_buffer *b, const char *key, const char *text) {
    RRL_TRY(rrl_buffer_printf(b, "\"%s\": ", key));
    RRL_TRY(rrl_json_quote(b, text, strlen(text)));
    return rrl_buffer_puts(b, ", ");
}

static rrl_status json_condition(rrl_buffer *b, const rrl_report_condition *c) {
    RRL_TRY(rrl_buffer_puts(b, "  {"));
    RRL_TRY(json_text(b, "arm", c->arm));
    RRL_TRY(rrl_buffer_puts(b, "\"level\": "));
    RRL_TRY(isnan(c->level) ? rrl_buffer_puts(b, "\"fixed\"") : rrl_json_number(b, c->level));
    RRL_TRY(rrl_buffer_puts(b, ", "));
    RRL_TRY(json_text(b, "method", c->method));
    RRL_TRY(rrl_buffer_printf(b, "\"seed\": %llu, ", (unsigned long long)c->seed));
    RRL_TRY(json_text(b, "execution_kind", c->kind));
    RRL_TRY(rrl_buffer_printf(b, "\"complete\": %s, \"updates\": %lld, ", c->complete ? "true" : "false",
                              (long long)c->steps));
    RRL_TRY(json_text(b, "evaluation", c->evaluation ? c->evaluation : ""));
    RRL_TRY(rrl_buffer_printf(b, "\"questions\": %lld, \"completions\": %lld, ", (long long)c->n_questions,
                              (long long)c->n_completions));
    RRL_TRY(json_text(b, "path", c->path));
    RRL_TRY(json_text(b, "digest", c->digest));
    RRL_TRY(rrl_buffer_puts(b, "\"metrics\": {"));
    for (int64_t m = 0; m < c->n_metrics; m++) {
        RRL_TRY(rrl_buffer_printf(b, "%s\"%s\": ", m ? ", " : "", c->metrics[m].name));
        RRL_TRY(rrl_json_number(b, rrl_report_metric(c, c->metrics[m].name)));
    }
    RRL_TRY(rrl_buffer_puts(b, "}, \"training\": "));
    if (!c->trained) return rrl_buffer_puts(b, "null}");
    const char *comma = "{";
#define X(name, doc)                                                                                         \
    RRL_TRY(rrl_buffer_printf(b, "%s\"" #name "\": ", comma));                                               \
    RRL_TRY(rrl_json_number(b, c->training.name));                                                           \
    comma = ", ";
    RRL_DIAGNOSTIC_LIST(X)
#undef X
    return rrl_buffer_puts(b, "}}");
}

rrl_status rrl_json_summary(rrl_buffer *b, const rrl_report_numbers *n) {
    RRL_TRY(rrl_buffer_puts(b, "[\n"));
    for (size_t i = 0; i < n->section->n; i++) {
        RRL_TRY(json_condition(b, n->section->v[i]));
        RRL_TRY(rrl_buffer_puts(b, i + 1 < n->section->n ? ",\n" : "\n"));
    }
    return rrl_buffer_puts(b, "]\n");
}
