/* report.md: what was compared, the main tables, what the statistics say and what they do not, and what is
 * missing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/hypotheses.h"
#include "report/report_csv.h"
#include "report/report_page.h"
#include "report/report_text.h"

/* Text inside a table: no pipe and no line end of its own. */
static rrl_status cell_text(rrl_buffer *b, const char *text) {
    RRL_TRY(rrl_buffer_puts(b, " "));
    for (const char *p = text; *p; p++) {
        if (*p == '|')
            RRL_TRY(rrl_buffer_puts(b, "\\|"));
        else
            RRL_TRY(rrl_buffer_put(b, *p == '\n' ? " " : p, 1));
    }
    return rrl_buffer_puts(b, " |");
}

static rrl_status cell_number(rrl_buffer *b, const char *format, double v) {
    char text[64] = "";
    if (!isnan(v)) snprintf(text, sizeof text, format, v);
    return cell_text(b, text);
}

static rrl_status cell_level(rrl_buffer *b, double level) {
    char text[RRL_NUMBER_CHARS] = "fixed";
    if (!isnan(level)) rrl_format_double(text, level);
    return cell_text(b, text);
}

static rrl_status table_head(rrl_buffer *b, const char *const *names, size_t n) {
    RRL_TRY(rrl_buffer_puts(b, "|"));
    for (size_t i = 0; i < n; i++) RRL_TRY(cell_text(b, names[i]));
    RRL_TRY(rrl_buffer_puts(b, "\n|"));
    for (size_t i = 0; i < n; i++) RRL_TRY(rrl_buffer_puts(b, i < 3 ? "---|" : "---:|"));
    return rrl_buffer_puts(b, "\n");
}

#define TABLE_HEAD(b, ...)                                                                                   \
    table_head(b, (const char *const[]){__VA_ARGS__},                                                        \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static rrl_status row_start(rrl_buffer *b, const char *arm, double level, const char *method) {
    RRL_TRY(rrl_buffer_puts(b, "|"));
    RRL_TRY(cell_text(b, arm));
    RRL_TRY(cell_level(b, level));
    return cell_text(b, method);
}

/* --- main table */

static rrl_status metric_cell(rrl_buffer *b, const rrl_report_numbers *n, const rrl_report_condition *c,
                              const char *metric) {
    const rrl_report_aggregate *a = rrl_report_find_aggregate(n, c->arm, c->level, c->method, metric);
    char text[64] = "";
    if (a && !isnan(a->mean))
        snprintf(text, sizeof text, isnan(a->std) ? "%.3f" : "%.3f (%.3f)", a->mean, a->std);
    return cell_text(b, text);
}

static rrl_status main_table(rrl_buffer *b, const rrl_report_numbers *n) {
    static const char *const METRICS[] = {"independent_accuracy",       "observed_reward",
                                          "reward_hacking_gap",         "reward_correctness_correlation",
                                          "false_positive_reward_rate", "false_negative_rate"};
    enum { N_METRICS = sizeof METRICS / sizeof *METRICS };
    const rrl_report_section *s = n->section;
    char pass[32];
    snprintf(pass, sizeof pass, "pass@%lld", (long long)rrl_report_largest_k(s));
    RRL_TRY(TABLE_HEAD(b, "arm", "level", "method", "seeds", "accuracy", "observed reward", "gap",
                       "correlation", "false positives", "false negatives", pass));
    for (size_t i = 0, end; i < s->n; i = end) {
        const rrl_report_condition *c = s->v[i];
        int64_t seeds = 0;
        end = rrl_report_method_end(s, i);
        for (size_t j = i; j < end; j++) seeds += s->v[j]->evaluation != NULL;
        if (!seeds) continue;
        RRL_TRY(row_start(b, c->arm, c->level, c->method));
        RRL_TRY(cell_number(b, "%.0f", (double)seeds));
        for (int m = 0; m < N_METRICS; m++) RRL_TRY(metric_cell(b, n, c, METRICS[m]));
        RRL_TRY(metric_cell(b, n, c, pass));
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    return rrl_buffer_puts(
        b, "\nMean over seeds (standard deviation across seeds, n - 1). Accuracy is the independent "
           "judge's; gap = observed reward - accuracy on the completions that have a reward.\n\n");
}

/* --- differences of methods */

static rrl_status difference_table(rrl_buffer *b, const rrl_report_numbers *n, const char *metric, bool method) {
    size_t rows = 0;
    for (size_t i = 0; i < n->n_differences; i++) rows += strcmp(n->differences[i].metric, metric) == 0;
    if (!rows) return RRL_OK;
    RRL_TRY(rrl_buffer_printf(b, "%s:\n\n", metric));
    RRL_TRY(TABLE_HEAD(b, "arm", "level", "methods", "seeds", "mean", "low", "high", "p", "p (Holm)",
                       "detectable at 80 %"));
    for (size_t i = 0; i < n->n_differences; i++) {
        const rrl_report_difference *d = &n->differences[i];
        const rrl_claim *c = method ? &d->about_method : &d->about_runs;
        char methods[160];
        if (strcmp(d->metric, metric) != 0) continue;
        snprintf(methods, sizeof methods, "%.70s - %.70s", d->method_a, d->method_b);
        RRL_TRY(row_start(b, d->arm, d->level, methods));
        RRL_TRY(cell_number(b, "%.0f", (double)d->n_seeds));
        RRL_TRY(cell_number(b, "%+.3f", d->mean));
        RRL_TRY(cell_number(b, "%+.3f", c->low));
        RRL_TRY(cell_number(b, "%+.3f", c->high));
        RRL_TRY(cell_number(b, "%.3g", c->p));
        RRL_TRY(cell_number(b, "%.3g", c->p_holm));
        RRL_TRY(cell_number(b, "%.3f", c->smallest));
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    return rrl_buffer_puts(b, "\n");
}

static rrl_status differences(rrl_buffer *b, const rrl_report_numbers *n, bool method) {
    char text[1024], pass[32];
    if (!n->n_differences) return RRL_OK;
    RRL_TRY(rrl_buffer_printf(b, "### %s\n\n",
                              method ? "Statement 2: about the method" : "Statement 1: about these runs"));
    rrl_report_statement_note(text, sizeof text, n, method);
    RRL_TRY(rrl_buffer_printf(b, "%s\n\n", text));
    if (method && rrl_report_seeds(n->section) < RRL_FEW_SEEDS) {
        rrl_report_seed_warning(text, sizeof text, n);
        RRL_TRY(rrl_buffer_printf(b, "**%s**\n\n", text));
    }
    snprintf(pass, sizeof pass, "pass@%lld", (long long)rrl_report_largest_k(n->section));
    RRL_TRY(difference_table(b, n, "independent_accuracy", method));
    RRL_TRY(difference_table(b, n, "reward_hacking_gap", method));
    return difference_table(b, n, pass, method);
}

/* --- training */

static rrl_status training_table(rrl_buffer *b, const rrl_report_section *s) {
    size_t trained = 0;
    for (size_t i = 0; i < s->n; i++) trained += s->v[i]->trained;
    if (!trained) return RRL_OK;
    RRL_TRY(rrl_buffer_puts(b, "### Training\n\n"));
    RRL_TRY(TABLE_HEAD(b, "arm", "level", "method", "seed", "updates", "observed reward", "shaped reward",
                       "accuracy", "flat groups", "KL", "grad norm", "B norm", "suppressed", "missing",
                       "seconds"));
    for (size_t i = 0; i < s->n; i++) {
        const rrl_report_condition *c = s->v[i];
        const rrl_report_diagnostics *d = &c->training;
        char seed[32];
        if (!c->trained) continue;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)c->seed);
        RRL_TRY(row_start(b, c->arm, c->level, c->method));
        RRL_TRY(cell_text(b, seed));
        RRL_TRY(cell_number(b, "%.0f", d->steps));
        RRL_TRY(cell_number(b, "%.3f", d->observed_reward_mean));
        RRL_TRY(cell_number(b, "%.3f", d->shaped_reward_mean));
        RRL_TRY(cell_number(b, "%.3f", d->independent_accuracy));
        RRL_TRY(cell_number(b, "%.3f", d->zero_variance_fraction));
        RRL_TRY(cell_number(b, "%.3g", d->mean_kl));
        RRL_TRY(cell_number(b, "%.3g", d->mean_grad_norm));
        RRL_TRY(cell_number(b, "%.3g", d->lora_b_norm));
        RRL_TRY(cell_number(b, "%.0f", d->suppressed));
        RRL_TRY(cell_number(b, "%.0f", d->missing));
        RRL_TRY(cell_number(b, "%.1f", d->step_s));
        RRL_TRY(rrl_buffer_puts(b, "\n"));
    }
    return rrl_buffer_puts(b, "\nMeans over all training completions or updates; more columns in "
                              "training_diagnostics.csv.\n\n");
}

/* --- sections */

/* "a, b" of the different texts of a field. */
static rrl_status list_texts(rrl_buffer *b, const char *title, const rrl_report_section *s, size_t offset) {
    RRL_TRY(rrl_buffer_printf(b, "- %s: ", title));
    for (size_t i = 0, n = 0; i < s->n; i++) {
        const char *text = *(char *const *)((const char *)s->v[i] + offset);
        bool earlier = !*text;
        for (size_t j = 0; j < i && !earlier; j++)
            earlier = strcmp(text, *(char *const *)((const char *)s->v[j] + offset)) == 0;
        if (!earlier) RRL_TRY(rrl_buffer_printf(b, "%s%s", n++ ? ", " : "", text));
    }
    return rrl_buffer_puts(b, "\n");
}

static rrl_status section_head(rrl_buffer *b, const rrl_report_section *s) {
    const rrl_report_condition *c = s->v[0];
    for (size_t i = 0; i < s->n && !c->evaluation; i++)
        if (s->v[i]->evaluation) c = s->v[i];
    RRL_TRY(rrl_buffer_printf(b, "- records: %zu\n", s->n));
    RRL_TRY(list_texts(b, "execution", s, offsetof(rrl_report_condition, kind)));
    RRL_TRY(rrl_buffer_printf(b, "- model: SHA-256 %s\n", *c->model_digest ? c->model_digest : "unknown"));
    RRL_TRY(list_texts(b, "numeric path", s, offsetof(rrl_report_condition, numeric_path)));
    if (c->evaluation)
        RRL_TRY(rrl_buffer_printf(
            b, "- evaluation \"%s\": %lld questions (SHA-256 %.16s), %lld completions a record\n",
            c->evaluation, (long long)c->n_questions, c->questions, (long long)c->n_completions));
    if (*s->difference) {
        RRL_TRY(rrl_buffer_puts(b, "- differs from section 1 in:\n"));
        for (const char *line = s->difference; *line;) {
            size_t len = strcspn(line, "\n");
            RRL_TRY(rrl_buffer_printf(b, "  - %.*s\n", (int)len, line));
            line += len + (line[len] == '\n');
        }
    }
    return rrl_buffer_puts(b, "\n");
}

static rrl_status pictures(rrl_buffer *b, const rrl_pictures *p, const char *folder) {
    if (!p->n) return RRL_OK;
    RRL_TRY(rrl_buffer_puts(b, "### Pictures\n\n"));
    if (*p->note) RRL_TRY(rrl_buffer_printf(b, "%s. The data are there:\n\n", p->note));
    for (size_t i = 0; i < p->n; i++)
        RRL_TRY(rrl_buffer_printf(b, "- %s: %s%splots/%s%s\n", p->v[i].title, folder, *folder ? "/" : "",
                                  p->v[i].name, p->v[i].svg ? ".svg, .png, .pdf, .csv" : ".csv"));
    return rrl_buffer_puts(b, "\n");
}

static rrl_status section(rrl_buffer *b, const rrl_report_page *page, size_t i) {
    const rrl_report_numbers *n = &page->numbers[i];
    const char *folder = page->folders[i];
    RRL_TRY(page->n > 1 ? rrl_buffer_printf(b, "## Section %zu of %zu\n\n", i + 1, page->n)
                        : rrl_buffer_puts(b, "## Results\n\n"));
    RRL_TRY(section_head(b, n->section));
    if (n->n_aggregates) {
        RRL_TRY(main_table(b, n));
        RRL_TRY(rrl_report_finding(b, n, 120));
        RRL_TRY(rrl_buffer_puts(b, "\n\n"));
    }
    RRL_TRY(differences(b, n, false));
    RRL_TRY(differences(b, n, true));
    RRL_TRY(training_table(b, n->section));
    RRL_TRY(pictures(b, &page->pictures[i], folder));
    RRL_TRY(rrl_buffer_puts(b, "Files:"));
#define X(file, function) RRL_TRY(rrl_buffer_printf(b, " %s%s%s", folder, *folder ? "/" : "", file));
    RRL_REPORT_CSV_LIST(X)
#undef X
    return rrl_buffer_puts(b, "\n\n");
}

static rrl_status hypotheses(rrl_buffer *b, const rrl_report_page *page) {
    rrl_report_answers a = {0};
    rrl_status rc;
    RRL_GOTO(rrl_report_answers_make(&a, page));
    if (!a.n) goto done;
    RRL_GOTO(rrl_buffer_puts(b, "## Hypotheses\n\n"));
    RRL_GOTO(rrl_buffer_puts(
        b, page->study->hypotheses_unchanged
               ? "Written down before the first run; their digest in study.json is that of the text answered here.\n\n"
               : "Warning: these hypotheses do not have the digest that study.json recorded before the first run.\n\n"));
    for (size_t i = 0; i < a.n; i++) {
        RRL_GOTO(rrl_buffer_printf(b, "- %s: ", a.v[i].hypothesis->name));
        RRL_GOTO(rrl_report_answer_text(b, &a.v[i]));
        RRL_GOTO(rrl_buffer_puts(b, "\n"));
    }
    RRL_GOTO(rrl_buffer_puts(b, "\n"));
done:
    rrl_report_answers_free(&a);
    return rc;
}

static rrl_status provenance(rrl_buffer *b, const rrl_report_study *s) {
    RRL_TRY(rrl_buffer_puts(b, "## Provenance\n\n"));
    for (size_t i = 0; i < s->n_facts; i++)
        RRL_TRY(rrl_buffer_printf(b, "- %s: %s\n", s->facts[i].name, s->facts[i].value));
    return RRL_OK;
}

rrl_status rrl_report_markdown(rrl_buffer *b, const rrl_report_page *page) {
    const rrl_report_data *d = page->data;
    RRL_TRY(rrl_buffer_printf(b, "# %s\n\n", *page->study->label ? page->study->label : "Report"));
    RRL_TRY(rrl_buffer_printf(
        b,
        "%zu records. Records share a table only if they agree in the class of execution (fixture audits "
        "stand apart), "
        "the model's digest, the questions' digests, and every key of the recorded configuration that "
        "changes results; "
        "the conditions of a study may differ in seed, reward, experiment and the corruption of the members, "
        "and the "
        "training settings of a record that was not trained do not count. That makes %zu section%s.\n\n",
        d->n, page->n, page->n == 1 ? "" : "s"));
    RRL_TRY(hypotheses(b, page));
    for (size_t i = 0; i < page->n; i++) RRL_TRY(section(b, page, i));
    RRL_TRY(rrl_buffer_puts(b, "## Not complete\n\n"));
    if (d->n_gaps)
        RRL_TRY(rrl_report_gaps(b, d));
    else
        RRL_TRY(rrl_buffer_puts(b, "Every planned condition has a complete record.\n"));
    RRL_TRY(rrl_buffer_puts(b, "\n"));
    return provenance(b, page->study);
}
