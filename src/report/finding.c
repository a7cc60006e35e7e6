/* The sentence under the main table. It counts and quotes numbers of the tables and says nothing else. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/report_text.h"

static const char ACCURACY[] = "independent_accuracy";

/* An arm and level where base, baseline and robust were all measured. */
typedef struct {
    const char *arm;
    double level, base;
    const rrl_report_difference *baseline, *robust, *between; /* - base, - base, robust - baseline */
} cell;

static bool cell_at(cell *out, const rrl_report_numbers *n, size_t i) {
    const rrl_report_condition *c = n->section->v[i];
    const rrl_report_aggregate *base = rrl_report_find_aggregate(n, c->arm, c->level, "base", ACCURACY);
    *out = (cell){.arm = c->arm,
                  .level = c->level,
                  .base = base ? base->mean : NAN,
                  .baseline = rrl_report_find_difference(n, c->arm, c->level, "baseline", "base", ACCURACY),
                  .robust = rrl_report_find_difference(n, c->arm, c->level, "robust", "base", ACCURACY),
                  .between = rrl_report_find_difference(n, c->arm, c->level, "robust", "baseline", ACCURACY)};
    return base && out->baseline && out->robust && out->between && out->baseline->n_seeds &&
           out->robust->n_seeds && out->between->n_seeds;
}

void rrl_report_cell_name(char out[96], const char *arm, double level) {
    char number[RRL_NUMBER_CHARS] = "fixed";
    if (!isnan(level)) rrl_format_double(number, level);
    if (*arm)
        snprintf(out, 96, "%.60s %s", arm, number);
    else
        snprintf(out, 96, "%s%s", isnan(level) ? "all" : "level ", isnan(level) ? "" : number);
}

/* One more sentence. */
static rrl_status say(rrl_buffer *b, const char *text) {
    return rrl_buffer_printf(b, "%s%s", b->len ? " " : "", text);
}

/* --- the finding */

typedef struct {
    int measured, lost, kept, above, below;
    double least, most; /* robust - baseline over all cells */
    int64_t seeds_low, seeds_high, questions_low, questions_high;
} counts;

static counts count(const rrl_report_numbers *n) {
    counts k = {.least = INFINITY, .most = -INFINITY};
    for (size_t i = 0; i < n->section->n; i = rrl_report_cell_end(n->section, i)) {
        cell c;
        if (!cell_at(&c, n, i)) continue;
        bool lost = c.baseline->mean < 0;
        const rrl_report_difference *d = c.between;
        bool first = k.measured++ == 0;
        k.seeds_low = first || d->n_seeds < k.seeds_low ? d->n_seeds : k.seeds_low;
        k.seeds_high = first || d->n_seeds > k.seeds_high ? d->n_seeds : k.seeds_high;
        k.questions_low = first || d->n_questions < k.questions_low ? d->n_questions : k.questions_low;
        k.questions_high = first || d->n_questions > k.questions_high ? d->n_questions : k.questions_high;
        k.lost += lost;
        k.kept += lost && c.robust->mean >= 0;
        k.above += c.between->about_runs.low > 0;
        k.below += c.between->about_runs.high < 0;
        k.least = fmin(k.least, c.between->mean);
        k.most = fmax(k.most, c.between->mean);
    }
    return k;
}

/* A difference with its interval, where it has one. */
static void quote(char out[64], const rrl_report_difference *d) {
    if (isnan(d->about_runs.low))
        snprintf(out, 64, "%+.3f", d->mean);
    else
        snprintf(out, 64, "%+.3f [%+.3f, %+.3f]", d->mean, d->about_runs.low, d->about_runs.high);
}

static rrl_status quote_loss(rrl_buffer *b, const cell *c) {
    char name[96], text[640], baseline[64], robust[64];
    rrl_report_cell_name(name, c->arm, c->level);
    quote(baseline, c->baseline);
    quote(robust, c->robust);
    snprintf(text, sizeof text, "At %s: base %.3f, baseline - base %s, robust - base %s.", name, c->base,
             baseline, robust);
    return say(b, text);
}

static rrl_status quote_losses(rrl_buffer *b, const rrl_report_numbers *n) {
    enum { QUOTED = 6 };
    int quoted = 0;
    for (size_t i = 0; i < n->section->n && quoted < QUOTED; i = rrl_report_cell_end(n->section, i)) {
        cell c;
        if (!cell_at(&c, n, i) || !(c.baseline->mean < 0)) continue;
        RRL_TRY(quote_loss(b, &c));
        quoted++;
    }
    return RRL_OK;
}

/* "3 seeds", "1 to 3 seeds". */
static void quote_range(char out[64], int64_t low, int64_t high, const char *what) {
    if (low == high)
        snprintf(out, 64, "%lld %s%s", (long long)low, what, low == 1 ? "" : "s");
    else
        snprintf(out, 64, "%lld to %lld %ss", (long long)low, (long long)high, what);
}

rrl_status rrl_report_finding(rrl_buffer *b, const rrl_report_numbers *n) {
    char text[512], seeds[64], questions[64];
    counts k = count(n);
    if (n->section->n == 1) return RRL_OK;
    if (!k.measured)
        return say(b, "base, baseline and robust were not all measured at any arm and level, so these "
                         "records do not say whether robust keeps correctness that baseline loses.");
    quote_range(seeds, k.seeds_low, k.seeds_high, "seed");
    quote_range(questions, k.questions_low, k.questions_high, "question");
    snprintf(
        text, sizeof text,
        "Correctness by the independent judge, at the %d arm-level%s where base, baseline and robust were "
        "all measured (%s, %s): baseline's mean accuracy is below base at %d.",
        k.measured, k.measured == 1 ? "" : "s", seeds, questions, k.lost);
    RRL_TRY(say(b, text));
    if (k.lost)
        snprintf(text, sizeof text,
                 "There, where baseline lost it, robust kept it (is at or above base) at %d of %d.", k.kept,
                 k.lost);
    else
        snprintf(text, sizeof text, "So there was no loss that robust could have prevented.");
    RRL_TRY(say(b, text));
    RRL_TRY(quote_losses(b, n));
    snprintf(
        text, sizeof text,
        "robust - baseline runs from %+.3f to %+.3f; its 95 %% interval over questions lies above 0 at %d "
        "and below 0 at %d of the %d.",
        k.least, k.most, k.above, k.below, k.measured);
    return say(b, text);
}
