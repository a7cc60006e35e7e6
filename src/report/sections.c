/* Which records may be compared in one table, and what tells the others apart. */
#include "report/sections.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* --- configurations */

static bool starts(const char *line, const char *prefix) {
    return strncmp(line, prefix, strlen(prefix)) == 0;
}

/* Whether a line "key: old -> new" is a difference that the conditions of one study may have. */
static bool allowed(const char *line, size_t len, bool trained) {
    if (starts(line, "seed:") || starts(line, "reward.") || starts(line, "experiment.")) return true;
    if (!trained && starts(line, "training.")) return true;
    const char *corruption = strstr(line, "].corruption.");
    return starts(line, "training_verifier.members[") && corruption && corruption < line + len;
}

/* Append to *text the differences between two configurations that keep them apart. */
static rrl_status config_difference(rrl_buffer *text, const rrl_report_condition *a,
                                    const rrl_report_condition *b) {
    char *all = NULL;
    if (strcmp(a->config_yaml, b->config_yaml) == 0) return RRL_OK;
    rrl_status rc = rrl_config_difference(&all, a->config_yaml, b->config_yaml);
    if (rc == RRL_ERR_NOMEM) return rc;
    if (rc != RRL_OK)
        return rrl_buffer_printf(text, "a configuration that cannot be read (%s)\n", rrl_error_message());
    for (const char *line = all; line && *line;) {
        size_t len = strcspn(line, "\n");
        if (!allowed(line, len, a->trained && b->trained)) {
            RRL_GOTO(rrl_buffer_put(text, line, len));
            RRL_GOTO(rrl_buffer_puts(text, "\n"));
        }
        line += len + (line[len] == '\n');
    }
done:
    free(all);
    return rc;
}

/* --- records */

static bool is_audit(const rrl_report_condition *c) {
    return strcmp(c->kind, "fixture_audit") == 0;
}

/* One line where two texts differ; an empty one is unknown and differs from nothing. */
static rrl_status text_difference(rrl_buffer *text, const char *what, const char *a, const char *b) {
    if (strcmp(a, b) == 0 || !*a || !*b) return RRL_OK;
    return rrl_buffer_printf(text, "%s: %.12s -> %.12s\n", what, a, b);
}

/* What keeps b out of a's table, a line each; nothing if they may share one. */
static rrl_status difference(rrl_buffer *text, const rrl_report_condition *a, const rrl_report_condition *b) {
    if (is_audit(a) != is_audit(b))
        RRL_TRY(rrl_buffer_printf(text, "execution kind: %s -> %s\n", a->kind, b->kind));
    if (strcmp(a->model_digest, b->model_digest) != 0)
        RRL_TRY(rrl_buffer_printf(text, "model: %.12s -> %.12s\n", a->model_digest, b->model_digest));
    RRL_TRY(text_difference(text, "answer parser", a->parser_version, b->parser_version));
    RRL_TRY(text_difference(text, "evaluation questions", a->questions, b->questions));
    if (a->trained && b->trained)
        RRL_TRY(text_difference(text, "training questions", a->train_questions, b->train_questions));
    return config_difference(text, a, b);
}

static bool same_condition(const rrl_report_condition *a, const rrl_report_condition *b) {
    return strcmp(a->arm, b->arm) == 0 && rrl_report_order_levels(a->level, b->level) == 0 &&
           strcmp(a->method, b->method) == 0 && a->seed == b->seed;
}

/* --- sections */

/* A record is compared with one trained and one evaluated record of a section: those know what the others
 * leave open. */
static const rrl_report_condition *member(const rrl_report_section *s, bool trained) {
    for (size_t i = 0; i < s->n; i++)
        if (trained ? s->v[i]->trained : s->v[i]->evaluation != NULL) return s->v[i];
    return s->v[0];
}

static rrl_status fits(bool *out, const rrl_report_section *s, const rrl_report_condition *c) {
    rrl_buffer text = {0};
    rrl_status rc = RRL_OK;
    *out = false;
    for (size_t i = 0; i < s->n; i++)
        if (same_condition(s->v[i], c)) return RRL_OK;
    RRL_GOTO(difference(&text, member(s, true), c));
    RRL_GOTO(difference(&text, member(s, false), c));
    *out = text.len == 0;
done:
    rrl_buffer_free(&text);
    return rc;
}

static rrl_status add(rrl_report_section *s, const rrl_report_condition *c) {
    RRL_TRY(rrl_grow(&s->v, &s->capacity, s->n + 1, sizeof *s->v, "records of a section"));
    s->v[s->n++] = c;
    return RRL_OK;
}

static rrl_status new_section(rrl_report_sections *s, const rrl_report_condition *c) {
    RRL_TRY(rrl_grow(&s->v, &s->capacity, s->n + 1, sizeof *s->v, "sections of a report"));
    s->v[s->n] = (rrl_report_section){0};
    return add(&s->v[s->n++], c);
}

/* A trained record goes to the first section it fits, an untrained one to every such section: each needs its
 * base. */
static rrl_status place(rrl_report_sections *s, const rrl_report_condition *c) {
    bool placed = false;
    for (size_t i = 0; i < s->n && !(placed && c->trained); i++) {
        bool fit;
        RRL_TRY(fits(&fit, &s->v[i], c));
        if (fit) RRL_TRY(add(&s->v[i], c));
        placed = placed || fit;
    }
    return placed ? RRL_OK : new_section(s, c);
}

static int by_order(const void *a, const void *b) {
    return rrl_report_order(*(const rrl_report_condition *const *)a, *(const rrl_report_condition *const *)b);
}

static rrl_status describe(rrl_report_section *s, const rrl_report_section *first) {
    rrl_buffer text = {0};
    rrl_status rc = RRL_OK;
    if (s != first) RRL_GOTO(difference(&text, member(first, true), member(s, true)));
    if (s != first && !text.len) RRL_GOTO(rrl_buffer_puts(&text, "a second record of a condition\n"));
    if (!text.len) RRL_GOTO(rrl_buffer_puts(&text, ""));
    s->difference = text.data;
    text = (rrl_buffer){0};
done:
    rrl_buffer_free(&text);
    return rc;
}

rrl_status rrl_report_sections_make(rrl_report_sections *out, const rrl_report_data *d) {
    rrl_report_sections s = {0};
    rrl_status rc = RRL_OK;
    for (size_t i = 0; i < d->n; i++)
        if (d->conditions[i].trained) RRL_GOTO(place(&s, &d->conditions[i]));
    for (size_t i = 0; i < d->n; i++)
        if (!d->conditions[i].trained) RRL_GOTO(place(&s, &d->conditions[i]));
    for (size_t i = 0; i < s.n; i++) {
        qsort(s.v[i].v, s.v[i].n, sizeof *s.v[i].v, by_order);
        RRL_GOTO(describe(&s.v[i], &s.v[0]));
    }
    *out = s;
    s = (rrl_report_sections){0};
done:
    rrl_report_sections_free(&s);
    return rc;
}

void rrl_report_sections_free(rrl_report_sections *s) {
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].v);
        free(s->v[i].difference);
    }
    free(s->v);
    *s = (rrl_report_sections){0};
}
