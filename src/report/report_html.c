/* The page in the order of its reader: what was found, the numbers behind it, the pictures, what training did,
 * what is missing, where it came from. */
#include "report/report_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/failure.h"
#include "report/html.h"
#include "report/hypotheses.h"
#include "report/measured.h"
#include "report/report_csv.h"
#include "report/report_text.h"

#define TABLE(b, caption, n_text, ...)                                                                       \
    rrl_html_table(b, caption, (const char *const[]){__VA_ARGS__},                                           \
                   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), n_text)

/* --- text */

static rrl_status paragraph(rrl_buffer *b, const char *class, const char *text) {
    RRL_TRY(rrl_buffer_printf(b, "<p%s%s%s>", *class ? " class=\"" : "", class, *class ? "\"" : ""));
    RRL_TRY(rrl_html_text(b, text));
    return rrl_buffer_puts(b, "</p>\n");
}

static rrl_status finding(rrl_buffer *b, const rrl_report_numbers *n) {
    rrl_buffer text = {0};
    rrl_status rc;
    RRL_GOTO(rrl_report_finding(&text, n, 1 << 20));
    RRL_GOTO(rrl_buffer_puts(b, "<div class=\"finding\">"));
    RRL_GOTO(paragraph(b, "", text.data));
    RRL_GOTO(rrl_buffer_puts(b, "</div>\n"));
done:
    rrl_buffer_free(&text);
    return rc;
}

/* --- main table */

static rrl_status mean_cell(rrl_buffer *b, const rrl_report_numbers *n, const rrl_report_condition *c,
                            const char *metric) {
    const rrl_report_aggregate *a = rrl_report_find_aggregate(n, c->arm, c->level, c->method, metric);
    char text[64];
    if (!a || isnan(a->mean)) return rrl_html_number(b, "", NAN);
    snprintf(text, sizeof text, isnan(a->std) ? "%.3f" : "%.3f (%.3f)", a->mean, a->std);
    return rrl_html_cell(b, text);
}

static rrl_status main_table(rrl_buffer *b, const rrl_report_numbers *n) {
    static const char *const METRICS[] = {"independent_accuracy",       "observed_reward",
                                          "reward_hacking_gap",         "reward_correctness_correlation",
                                          "false_positive_reward_rate", "false_negative_rate"};
    const rrl_report_section *s = n->section;
    char pass[32];
    snprintf(pass, sizeof pass, "pass@%lld", (long long)rrl_report_largest_k(s));
    RRL_TRY(TABLE(b, "Evaluation: mean over seeds (standard deviation across seeds)", 3, "arm", "level", "method",
                  "seeds", "accuracy", "observed reward", "gap", "correlation", "false positives",
                  "false negatives", pass));
    for (size_t i = 0, end; i < s->n; i = end) {
        const rrl_report_condition *c = s->v[i];
        int64_t seeds = 0;
        end = rrl_report_method_end(s, i);
        for (size_t j = i; j < end; j++) seeds += s->v[j]->evaluation != NULL;
        if (!seeds) continue;
        RRL_TRY(rrl_html_row(b));
        RRL_TRY(rrl_html_cell(b, c->arm));
        RRL_TRY(rrl_html_level(b, c->level));
        RRL_TRY(rrl_html_cell(b, c->method));
        RRL_TRY(rrl_html_number(b, "%.0f", (double)seeds));
        for (size_t m = 0; m < sizeof METRICS / sizeof *METRICS; m++) RRL_TRY(mean_cell(b, n, c, METRICS[m]));
        RRL_TRY(mean_cell(b, n, c, pass));
    }
    RRL_TRY(rrl_html_table_end(b));
    return paragraph(b, "note",
                     "Accuracy is the independent judge's, which training never sees. Gap = observed reward - accuracy on "
                     "the completions that have a reward. Correlation is between reward and being right. A dash is "
                     "an undefined value, never 0.");
}

/* --- the two statements */

static rrl_status interval_cell(rrl_buffer *b, const rrl_claim *c) {
    char text[64];
    if (isnan(c->low)) return rrl_html_number(b, "", NAN);
    snprintf(text, sizeof text, "%+.3f to %+.3f", c->low, c->high);
    return rrl_html_cell(b, text);
}

static rrl_status difference_table(rrl_buffer *b, const rrl_report_numbers *n, const char *metric, bool method) {
    char caption[128];
    size_t rows = 0;
    for (size_t i = 0; i < n->n_differences; i++) rows += strcmp(n->differences[i].metric, metric) == 0;
    if (!rows) return RRL_OK;
    snprintf(caption, sizeof caption, "%s, %s", metric, method ? "about the method" : "about these runs");
    RRL_TRY(TABLE(b, caption, 3, "arm", "level", "difference", "seeds", "questions", "mean", "95 % interval", "p",
                  "p (Holm)", "detectable at 80 %"));
    for (size_t i = 0; i < n->n_differences; i++) {
        const rrl_report_difference *d = &n->differences[i];
        const rrl_claim *c = method ? &d->about_method : &d->about_runs;
        char methods[160];
        if (strcmp(d->metric, metric) != 0) continue;
        snprintf(methods, sizeof methods, "%.70s - %.70s", d->method_a, d->method_b);
        RRL_TRY(rrl_html_row(b));
        RRL_TRY(rrl_html_cell(b, d->arm));
        RRL_TRY(rrl_html_level(b, d->level));
        RRL_TRY(rrl_html_cell(b, methods));
        RRL_TRY(rrl_html_number(b, "%.0f", (double)d->n_seeds));
        RRL_TRY(rrl_html_number(b, "%.0f", (double)d->n_questions));
        RRL_TRY(rrl_html_number(b, "%+.3f", d->mean));
        RRL_TRY(interval_cell(b, c));
        RRL_TRY(rrl_html_number(b, "%.3g", c->p));
        RRL_TRY(rrl_html_number(b, "%.3g", c->p_holm));
        RRL_TRY(rrl_html_number(b, "%.3f", c->smallest));
    }
    return rrl_html_table_end(b);
}

static rrl_status statement(rrl_buffer *b, const rrl_report_numbers *n, bool method) {
    char pass[32], text[1024];
    RRL_TRY(rrl_buffer_printf(b, "<h3>%s</h3>\n",
                              method ? "Statement 2: about the method" : "Statement 1: about these runs"));
    rrl_report_statement_note(text, sizeof text, n, method);
    RRL_TRY(paragraph(b, "", text));
    if (method && rrl_report_seeds(n->section) < RRL_FEW_SEEDS) {
        rrl_report_seed_warning(text, sizeof text, n);
        RRL_TRY(rrl_buffer_puts(b, "<div class=\"finding warning\">"));
        RRL_TRY(paragraph(b, "", text));
        RRL_TRY(rrl_buffer_puts(b, "</div>\n"));
    }
    snprintf(pass, sizeof pass, "pass@%lld", (long long)rrl_report_largest_k(n->section));
    RRL_TRY(difference_table(b, n, "independent_accuracy", method));
    RRL_TRY(difference_table(b, n, "reward_hacking_gap", method));
    return difference_table(b, n, pass, method);
}

/* --- pictures */

static rrl_status pictures(rrl_buffer *b, const rrl_pictures *p, const char *folder) {
    if (!p->n) return RRL_OK;
    RRL_TRY(rrl_buffer_puts(b, "<h3>Pictures</h3>\n"));
    if (*p->note) RRL_TRY(paragraph(b, "note", p->note));
    for (size_t i = 0; i < p->n; i++) {
        const rrl_picture *v = &p->v[i];
        RRL_TRY(rrl_buffer_printf(b, "<figure style=\"--width:%dpx\">\n", v->width + v->width / 12));
        char id[RRL_PICTURE_NAME + 32];
        snprintf(id, sizeof id, "%s-%s", *folder ? folder : "s", v->name);
        if (v->svg) RRL_TRY(rrl_html_svg(b, v->svg, id, v->title));
        RRL_TRY(rrl_buffer_puts(b, "<figcaption>"));
        if (!v->svg) RRL_TRY(rrl_html_text(b, v->title));
        if (!v->svg) RRL_TRY(rrl_buffer_puts(b, ". "));
        RRL_TRY(rrl_html_text(b, v->caption));
        static const char *const FILES[] = {"csv", "svg", "png", "pdf"};
        for (int f = 0; f < (v->svg ? 4 : 1); f++)
            RRL_TRY(rrl_buffer_printf(b, "%s<a href=\"%s%splots/%s.%s\">%s</a>", f ? ", " : " ", folder,
                                      *folder ? "/" : "", v->name, FILES[f], FILES[f]));
        RRL_TRY(rrl_buffer_puts(b, "</figcaption></figure>\n"));
    }
    return RRL_OK;
}

/* --- training */

static rrl_status training_table(rrl_buffer *b, const rrl_report_section *s) {
    size_t trained = 0;
    for (size_t i = 0; i < s->n; i++) trained += s->v[i]->trained;
    if (!trained) return RRL_OK;
    RRL_TRY(rrl_buffer_puts(b, "<h3>Training</h3>\n"));
    RRL_TRY(TABLE(b, "Totals of each trained run", 3, "arm", "level", "method", "seed", "updates", "observed reward",
                  "shaped reward", "accuracy", "flat groups", "KL (nats)", "grad norm", "B norm", "suppressed",
                  "missing", "seconds"));
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_condition *c = s->v[i];
        const rrl_report_diagnostics *d = &c->training;
        char seed[32];
        if (!c->trained) continue;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)c->seed);
        RRL_TRY(rrl_html_row(b));
        RRL_TRY(rrl_html_cell(b, c->arm));
        RRL_TRY(rrl_html_level(b, c->level));
        RRL_TRY(rrl_html_cell(b, c->method));
        RRL_TRY(rrl_html_cell(b, seed));
        RRL_TRY(rrl_html_number(b, "%.0f", d->steps));
        RRL_TRY(rrl_html_number(b, "%.3f", d->observed_reward_mean));
        RRL_TRY(rrl_html_number(b, "%.3f", d->shaped_reward_mean));
        RRL_TRY(rrl_html_number(b, "%.3f", d->independent_accuracy));
        RRL_TRY(rrl_html_number(b, "%.3f", d->zero_variance_fraction));
        RRL_TRY(rrl_html_number(b, "%.3g", d->mean_kl));
        RRL_TRY(rrl_html_number(b, "%.3g", d->mean_grad_norm));
        RRL_TRY(rrl_html_number(b, "%.3g", d->lora_b_norm));
        RRL_TRY(rrl_html_number(b, "%.0f", d->suppressed));
        RRL_TRY(rrl_html_number(b, "%.0f", d->missing));
        RRL_TRY(rrl_html_number(b, "%.1f", d->step_s));
    }
    return rrl_html_table_end(b);
}

/* --- failures */

static rrl_status failure_table(rrl_buffer *b, const rrl_report_section *s) {
    RRL_TRY(rrl_buffer_puts(b, "<h3>Failures</h3>\n"));
    RRL_TRY(TABLE(b, "Evaluation completions of all seeds (shares)", 3, "arm", "level", "method", "wrong, rewarded",
                  "right, not rewarded", "without a reward", "no answer", "cut at the limit", "members disagree"));
    for (size_t i = 0, end; i < s->n; i = end) {
        end = rrl_report_method_end(s, i);
        rrl_report_failures f = rrl_report_failures_sum(s, i, end);
        double n = (double)f.completions;
        if (!f.completions) continue;
        RRL_TRY(rrl_html_row(b));
        RRL_TRY(rrl_html_cell(b, s->v[i]->arm));
        RRL_TRY(rrl_html_level(b, s->v[i]->level));
        RRL_TRY(rrl_html_cell(b, s->v[i]->method));
        RRL_TRY(rrl_html_number(b, "%.3f", (double)f.wrong_rewarded / n));
        RRL_TRY(rrl_html_number(b, "%.3f", (double)f.right_unrewarded / n));
        RRL_TRY(rrl_html_number(b, "%.3f", (double)(f.right_missing + f.wrong_missing) / n));
        RRL_TRY(rrl_html_number(b, "%.3f", (double)f.no_answer / n));
        RRL_TRY(rrl_html_number(b, "%.3f", (double)f.truncated / n));
        RRL_TRY(rrl_html_number(b, "%.3f", (double)f.disagreed / n));
    }
    RRL_TRY(rrl_html_table_end(b));
    return paragraph(b, "note", "Rewarded: ensemble reward of at least 0.5. Questions to look at: failure_analysis.md.");
}

/* --- prediction */

static rrl_status prediction_rows(rrl_buffer *b, const rrl_report_measurements *m) {
    RRL_TRY(TABLE(b, "J = E[reward | right] - E[reward | wrong], and Corr(reward, right), of training completions", 3, "arm",
                  "level", "method", "seeds", "J predicted", "J measured", "correlation predicted", "correlation measured",
                  "accuracy - base"));
    for (size_t i = 0; i < m->n; i++) {
        const rrl_report_measured *v = &m->v[i];
        RRL_TRY(rrl_html_row(b));
        RRL_TRY(rrl_html_cell(b, v->arm));
        RRL_TRY(rrl_html_level(b, v->level));
        RRL_TRY(rrl_html_cell(b, v->method));
        RRL_TRY(rrl_html_number(b, "%.0f", (double)v->n_seeds));
        RRL_TRY(rrl_html_number(b, "%+.3f", v->predicted_j));
        RRL_TRY(rrl_html_number(b, "%+.3f", v->measured_j));
        RRL_TRY(rrl_html_number(b, "%+.3f", v->predicted_rho));
        RRL_TRY(rrl_html_number(b, "%+.3f", v->measured_rho));
        RRL_TRY(rrl_html_number(b, "%+.3f", v->accuracy ? v->accuracy->mean : NAN));
    }
    return rrl_html_table_end(b);
}

static rrl_status prediction(rrl_buffer *b, const rrl_report_page *page, const rrl_report_numbers *n) {
    rrl_report_measurements m = {0};
    char text[512];
    int signs = 0, known = 0;
    bool eligible = false;
    rrl_status rc;
    RRL_GOTO(rrl_report_measure(&m, page->study, n));
    if (!m.n) goto done;
    for (size_t i = 0; i < m.n; i++) {
        const rrl_report_measured *v = &m.v[i];
        eligible |= v->has_eligible;
        if (!v->accuracy || isnan(v->predicted_j)) continue;
        known++;
        signs += (v->predicted_j > 0) == (v->accuracy->mean > 0) && (v->predicted_j < 0) == (v->accuracy->mean < 0);
    }
    snprintf(text, sizeof text,
             "The sign of the predicted J is that of the measured change of accuracy at %d of %d trained arms, levels and "
             "methods.%s",
             signs, known,
             eligible ? " Where members are biased or exploited, the share of completions that lets them act is the "
                        "policy's doing: it is taken from the records (plots/prediction.csv)."
                      : "");
    RRL_GOTO(rrl_buffer_puts(b, "<h3>Prediction against measurement</h3>\n"));
    RRL_GOTO(paragraph(b, "", text));
    RRL_GOTO(prediction_rows(b, &m));
done:
    free(m.v);
    return rc;
}

/* --- hypotheses */

static rrl_status answers(rrl_buffer *b, const rrl_report_answers *a) {
    const rrl_hypothesis_config *last = NULL;
    for (size_t i = 0; i < a->n; i++) {
        if (a->v[i].hypothesis != last) {
            RRL_TRY(rrl_buffer_puts(b, last ? "</ul>\n<h3>" : "<h3>"));
            RRL_TRY(rrl_html_text(b, a->v[i].hypothesis->name));
            RRL_TRY(rrl_buffer_puts(b, "</h3>\n<ul>"));
        }
        last = a->v[i].hypothesis;
        rrl_buffer text = {0};
        rrl_status rc = rrl_report_answer_text(&text, &a->v[i]);
        if (rc == RRL_OK) rc = rrl_buffer_puts(b, "<li>");
        if (rc == RRL_OK) rc = rrl_html_text(b, text.data);
        if (rc == RRL_OK) rc = rrl_buffer_puts(b, "</li>\n");
        rrl_buffer_free(&text);
        RRL_TRY(rc);
    }
    return rrl_buffer_puts(b, "</ul>\n");
}

static rrl_status hypotheses(rrl_buffer *b, const rrl_report_page *page) {
    rrl_report_answers a = {0};
    rrl_status rc;
    RRL_GOTO(rrl_report_answers_make(&a, page));
    if (!a.n) goto done;
    RRL_GOTO(rrl_buffer_puts(b, "<section id=\"hypotheses\">\n<h2>Hypotheses</h2>\n"));
    RRL_GOTO(paragraph(b, "soft",
                       page->study->hypotheses_unchanged
                           ? "Written down before the first run; their digest in study.json is that of the text answered "
                             "here. Holm's correction counts all answers of one statement as one family."
                           : "Warning: these hypotheses do not have the digest that study.json recorded before the first "
                             "run, so they were changed after it."));
    RRL_GOTO(answers(b, &a));
    RRL_GOTO(rrl_buffer_puts(b, "<p class=\"note\">As a file: <a href=\"hypotheses.csv\">hypotheses.csv</a></p>\n"
                                "</section>\n"));
done:
    rrl_report_answers_free(&a);
    return rc;
}

/* --- sections */

static rrl_status section_head(rrl_buffer *b, const rrl_report_section *s) {
    const rrl_report_condition *c = s->v[0];
    for (size_t i = 0; i < s->n && !c->evaluation; i++)
        if (s->v[i]->evaluation) c = s->v[i];
    RRL_TRY(rrl_buffer_printf(b, "<p class=\"soft\">%zu records, %lld seed%s.", s->n,
                              (long long)rrl_report_seeds(s), rrl_report_seeds(s) == 1 ? "" : "s"));
    if (c->evaluation) {
        RRL_TRY(rrl_buffer_puts(b, " Evaluation &ldquo;"));
        RRL_TRY(rrl_html_text(b, c->evaluation));
        RRL_TRY(rrl_buffer_printf(b, "&rdquo;: %lld questions, %lld completions a record.",
                                  (long long)c->n_questions, (long long)c->n_completions));
    }
    RRL_TRY(rrl_buffer_puts(b, "</p>\n"));
    if (!*s->difference) return RRL_OK;
    RRL_TRY(rrl_buffer_puts(b, "<p>Differs from section 1 in:</p>\n<ul>"));
    for (const char *line = s->difference; *line;) {
        char text[512];
        size_t len = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)(len < 500 ? len : 500), line);
        RRL_TRY(rrl_buffer_puts(b, "<li>"));
        RRL_TRY(rrl_html_text(b, text));
        RRL_TRY(rrl_buffer_puts(b, "</li>"));
        line += len + (line[len] == '\n');
    }
    return rrl_buffer_puts(b, "</ul>\n");
}

static rrl_status files(rrl_buffer *b, const char *folder) {
    RRL_TRY(rrl_buffer_puts(b, "<p class=\"note\">Tables as files:"));
#define X(file, function)                                                                                    \
    RRL_TRY(rrl_buffer_printf(b, " <a href=\"%s%s%s\">%s</a>", folder, *folder ? "/" : "", file, file));
    RRL_REPORT_CSV_LIST(X)
#undef X
    return rrl_buffer_puts(b, "</p>\n");
}

static rrl_status section(rrl_buffer *b, const rrl_report_page *page, size_t i) {
    const rrl_report_numbers *n = &page->numbers[i];
    RRL_TRY(rrl_buffer_printf(b, "<section id=\"section-%zu\">\n", i + 1));
    RRL_TRY(page->n > 1 ? rrl_buffer_printf(b, "<h2>Section %zu of %zu</h2>\n", i + 1, page->n)
                        : rrl_buffer_puts(b, "<h2>Results</h2>\n"));
    RRL_TRY(section_head(b, n->section));
    if (n->n_aggregates) {
        RRL_TRY(finding(b, n));
        RRL_TRY(main_table(b, n));
    } else {
        RRL_TRY(paragraph(b, "", "No evaluation is recorded yet."));
    }
    RRL_TRY(pictures(b, &page->pictures[i], page->folders[i]));
    if (n->n_differences) {
        RRL_TRY(statement(b, n, false));
        RRL_TRY(statement(b, n, true));
    }
    RRL_TRY(prediction(b, page, n));
    if (n->n_aggregates) RRL_TRY(failure_table(b, n->section));
    RRL_TRY(training_table(b, n->section));
    RRL_TRY(files(b, page->folders[i]));
    return rrl_buffer_puts(b, "</section>\n");
}

/* --- the whole */

static rrl_status gaps(rrl_buffer *b, const rrl_report_data *d) {
    RRL_TRY(rrl_buffer_puts(b, "<section id=\"gaps\">\n<h2>Not complete</h2>\n"));
    if (!d->n_gaps) {
        RRL_TRY(paragraph(b, "", "Every planned condition has a complete record."));
        return rrl_buffer_puts(b, "</section>\n");
    }
    RRL_TRY(TABLE(b, "", 9, "condition", "status", "reason"));
    for (size_t i = 0; i < d->n_gaps; i++) {
        RRL_TRY(rrl_html_row(b));
        RRL_TRY(rrl_html_cell(b, d->gaps[i].path));
        RRL_TRY(rrl_html_cell(b, d->gaps[i].status));
        RRL_TRY(rrl_html_cell(b, d->gaps[i].reason));
    }
    RRL_TRY(rrl_html_table_end(b));
    return rrl_buffer_puts(b, "</section>\n");
}

static rrl_status provenance(rrl_buffer *b, const rrl_report_study *s) {
    RRL_TRY(rrl_buffer_puts(b, "<section id=\"provenance\">\n<h2>Provenance</h2>\n<dl>\n"));
    for (size_t i = 0; i < s->n_facts; i++) {
        RRL_TRY(rrl_buffer_puts(b, "<dt>"));
        RRL_TRY(rrl_html_text(b, s->facts[i].name));
        RRL_TRY(rrl_buffer_puts(b, "</dt><dd>"));
        RRL_TRY(rrl_html_text(b, s->facts[i].value));
        RRL_TRY(rrl_buffer_puts(b, "</dd>\n"));
    }
    return rrl_buffer_puts(b, "</dl>\n</section>\n");
}

static rrl_status head(rrl_buffer *b, const rrl_report_page *page) {
    const char *title = *page->study->label ? page->study->label : "Report";
    RRL_TRY(rrl_buffer_puts(b, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
                               "name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
                               "name=\"color-scheme\" content=\"light dark\">\n<title>"));
    RRL_TRY(rrl_html_text(b, title));
    RRL_TRY(rrl_buffer_printf(b, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<h1>", rrl_html_style()));
    RRL_TRY(rrl_html_text(b, title));
    RRL_TRY(rrl_buffer_printf(b, "</h1>\n<p class=\"soft\">%zu record%s", page->data->n, page->data->n == 1 ? "" : "s"));
    if (page->data->n_gaps)
        RRL_TRY(rrl_buffer_printf(b, ", <a href=\"#gaps\">%zu condition%s not complete</a>", page->data->n_gaps,
                                  page->data->n_gaps == 1 ? "" : "s"));
    RRL_TRY(rrl_buffer_puts(b, "</p>\n<nav><ul>"));
    if (page->study->config && page->study->config->n_hypotheses)
        RRL_TRY(rrl_buffer_puts(b, "<li><a href=\"#hypotheses\">Hypotheses</a></li>"));
    for (size_t i = 0; i < page->n; i++)
        RRL_TRY(page->n > 1
                    ? rrl_buffer_printf(b, "<li><a href=\"#section-%zu\">Section %zu</a></li>", i + 1, i + 1)
                    : rrl_buffer_puts(b, "<li><a href=\"#section-1\">Results</a></li>"));
    return rrl_buffer_puts(b, "<li><a href=\"#gaps\">Not complete</a></li><li><a "
                              "href=\"#provenance\">Provenance</a></li></ul></nav>\n</header>\n<main>\n");
}

rrl_status rrl_report_html(rrl_buffer *b, const rrl_report_page *page) {
    RRL_TRY(head(b, page));
    RRL_TRY(hypotheses(b, page));
    for (size_t i = 0; i < page->n; i++) RRL_TRY(section(b, page, i));
    RRL_TRY(gaps(b, page->data));
    RRL_TRY(provenance(b, page->study));
    RRL_TRY(rrl_buffer_puts(b, "</main>\n<footer><p>Made from the records alone. Records share a table only if they agree "
                               "in the class of execution, model, questions and every setting that changes results, "
                               "but for what a study varies on purpose.</p></footer>\n"));
    return rrl_buffer_puts(b, "</body>\n</html>\n");
}
