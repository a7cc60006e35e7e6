/* One completion with everything that is recorded of it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "commands/show_parts.h"
#include "data/prompt.h"

enum { WIDTH = 80, INDENT = 2 };

/* Names the evaluations that are there; a run has a handful at most. */
static rrl_status no_evaluation(const rrl_record *r, const char *name) {
    rrl_buffer names = {0};
    rrl_status rc = RRL_OK;
    for (int64_t i = 0; i < r->n_evaluations; i++)
        RRL_GOTO(rrl_buffer_printf(&names, "%s\"%s\"", i ? ", " : "", r->evaluations[i].name));
    if (!names.len) rc = RRL_FAIL(RRL_ERR_USAGE, "%s: no evaluation \"%s\"; none is recorded", r->path, name);
    else rc = RRL_FAIL(RRL_ERR_USAGE, "%s: no evaluation \"%s\"; there %s %s", r->path, name,
                       r->n_evaluations == 1 ? "is" : "are", names.data);
done:
    rrl_buffer_free(&names);
    return rc;
}

rrl_status rrl_show_set(const rrl_record_set **out, const rrl_record *r, const char *evaluation) {
    const rrl_record_set *s = &r->training;
    if (evaluation)
        s = rrl_record_evaluation(r, evaluation);
    else if (s->n == 0 && r->n_evaluations)
        s = &r->evaluations[r->n_evaluations - 1];
    if (!s) return no_evaluation(r, evaluation);
    *out = s;
    return RRL_OK;
}

static rrl_status choose(const rrl_record_set **out, const rrl_record *r, const char *evaluation, int64_t n) {
    const rrl_record_set *s = NULL;
    RRL_TRY(rrl_show_set(&s, r, evaluation));
    if (n < 0 || n >= s->n)
        return RRL_FAIL(RRL_ERR_USAGE, "%s: no completion %" PRId64 "; %s%s has %" PRId64 ", counted from 0",
                        r->path, n, *s->name ? "evaluation " : "training", s->name, s->n);
    *out = s;
    return RRL_OK;
}

int64_t rrl_show_verdicts_of(const rrl_record_set *s, int64_t n) {
    int64_t low = 0, high = s->n_verdicts; /* they stand in the order of the completions */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->verdicts[middle].rollout < (uint64_t)n) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* {question} in the template, every time it stands there. */
static rrl_status fill(rrl_buffer *b, const char *text, const char *question) {
    static const char PLACE[] = "{question}";
    for (const char *at; (at = strstr(text, PLACE)); text = at + sizeof PLACE - 1) {
        RRL_TRY(rrl_buffer_put(b, text, (size_t)(at - text)));
        RRL_TRY(rrl_buffer_puts(b, question));
    }
    return rrl_buffer_puts(b, text);
}

rrl_status rrl_show_prompt(char **out, bool *chat, const rrl_record *r, const char *question) {
    rrl_config *c = NULL;
    rrl_buffer b = {0};
    rrl_status rc;
    RRL_GOTO(rrl_config_parse(&c, r->config_yaml, strlen(r->config_yaml), r->path, NULL, NULL, 0));
    bool fixture = c->model.backend == RRL_BACKEND_FIXTURE;
    RRL_GOTO(fill(&b, fixture ? "{question}" : c->model.prompt_template[0] ? c->model.prompt_template
                                                                           : RRL_PROMPT_TEMPLATE, question));
    *chat = !fixture && c->model.prompt_format == RRL_PROMPT_CHAT;
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_config_close(&c);
    rrl_buffer_free(&b);
    return rc;
}

/* Bytes of the part of a line that fits: to the last blank within `width` characters, else all of them. */
static size_t part_of_line(const char *line, size_t len, int width) {
    const char *at = line, *blank = NULL, *end = line + len;
    for (int n = 0; at < end && n < width; n++) {
        if (*at == ' ' && at > line) blank = at + 1;
        rrl_utf8_next(&at, end);
    }
    if (at >= end) return len;
    return *at == ' ' ? (size_t)(at - line) + 1 : blank ? (size_t)(blank - line) : (size_t)(at - line);
}

/* One line, broken at blanks; control characters must not reach the terminal. */
static rrl_status put_line(rrl_buffer *b, const char *line, size_t len) {
    do {
        size_t part = part_of_line(line, len, WIDTH - INDENT);
        size_t shown = part;
        while (part < len && shown > 0 && line[shown - 1] == ' ') shown--; /* the blank at which it is broken */
        RRL_TRY(rrl_buffer_printf(b, "%*s", INDENT, ""));
        for (size_t i = 0; i < shown; i++) {
            unsigned char c = (unsigned char)line[i];
            if ((c < ' ' && c != '\t') || c == 0x7f) RRL_TRY(rrl_buffer_puts(b, "\xef\xbf\xbd"));
            else RRL_TRY(rrl_buffer_put(b, line + i, 1));
        }
        RRL_TRY(rrl_buffer_puts(b, "\n"));
        line += part;
        len -= part;
    } while (len > 0);
    return RRL_OK;
}

static rrl_status put_text(rrl_buffer *b, const char *text, size_t len) {
    const char *end = text + len;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t line = (size_t)((newline ? newline : end) - text);
        RRL_TRY(put_line(b, text, line));
        text += line + (newline != NULL);
    }
    return RRL_OK;
}

static rrl_status put_titled(rrl_buffer *b, const char *title, const char *text) {
    RRL_TRY(rrl_buffer_printf(b, "%s\n", title));
    return put_text(b, text, strlen(text));
}

static rrl_status put_value(rrl_buffer *b, const char *name, double v) {
    return isnan(v) ? rrl_buffer_printf(b, "%s missing", name) : rrl_buffer_printf(b, "%s %.6g", name, v);
}

static const char *judged(const rrl_rollout_row *row) {
    return isnan(row->correct) ? "not judged" : row->correct >= 0.5F ? "right" : "wrong";
}

static rrl_status put_answer(rrl_buffer *b, const rrl_record_set *s, int64_t n) {
    const rrl_rollout_row *row = &s->rollouts[n];
    RRL_TRY(rrl_buffer_printf(b, "text (%u tokens, %s, %u bytes, reasoning %u)\n", row->tokens,
                              row->finish == RRL_FINISH_LENGTH ? "cut at the length limit" : "end token",
                              row->text_bytes, row->reasoning_bytes));
    RRL_TRY(put_text(b, s->text[n], row->text_bytes));
    if (row->answer_bytes < 0) return rrl_buffer_printf(b, "answer: none extracted, %s\n", judged(row));
    RRL_TRY(rrl_buffer_printf(b, "answer: %s by the independent judge\n", judged(row)));
    return put_text(b, s->answer[n], (size_t)row->answer_bytes);
}

static rrl_status put_verdict(rrl_buffer *b, const rrl_record *r, const rrl_verdict_row *v) {
    const rrl_record_member *m = &r->members[v->member];
    rrl_buffer line = {0};
    rrl_status rc;
    RRL_GOTO(rrl_buffer_printf(&line, "member %d: %s, %s", v->member, m->kind, m->corruption));
    if (strcmp(m->corruption, "none") != 0) RRL_GOTO(rrl_buffer_printf(&line, " %.6g", m->probability));
    RRL_GOTO(put_value(&line, ": clean", v->clean));
    RRL_GOTO(put_value(&line, ", reward", v->reward));
    RRL_GOTO(put_value(&line, ", confidence", v->confidence));
    if (v->corrupted) RRL_GOTO(rrl_buffer_puts(&line, ", corrupted"));
    RRL_GOTO(rrl_buffer_printf(b, "%*s", INDENT, ""));
    RRL_GOTO(rrl_buffer_wrap(b, line.data, INDENT, WIDTH));
done:
    rrl_buffer_free(&line);
    return rc;
}

static rrl_status put_numbers(rrl_buffer *b, const rrl_rollout_row *row) {
    RRL_TRY(put_value(b, "ensemble: reward", row->reward));
    RRL_TRY(put_value(b, ", U", row->disagreement));
    RRL_TRY(put_value(b, ", C", row->confidence));
    RRL_TRY(put_value(b, "\n  vote entropy", row->vote_entropy));
    RRL_TRY(put_value(b, " bits, confidence dispersion", row->confidence_dispersion));
    RRL_TRY(put_value(b, "\nshaping: shaped reward", row->shaped));
    RRL_TRY(put_value(b, ", attenuation", row->scale));
    RRL_TRY(rrl_buffer_puts(b, row->scale == 0 ? " (suppressed)" : row->scale < 1 ? " (downweighted)" : ""));
    RRL_TRY(put_value(b, "\nadvantage:", row->advantage));
    RRL_TRY(put_value(b, "\nlog-prob sum:", row->logprob_sum));
    RRL_TRY(put_value(b, " nats, mean KL", row->kl_mean));
    return rrl_buffer_puts(b, "\n");
}

static rrl_status put_prompt(rrl_buffer *b, const rrl_record *r, const rrl_record_question *q) {
    char *prompt = NULL;
    bool chat = false;
    rrl_status rc;
    RRL_GOTO(rrl_show_prompt(&prompt, &chat, r, q->question));
    RRL_GOTO(put_titled(b, chat ? "prompt (a user message of the model's chat template)" : "prompt", prompt));
    RRL_GOTO(put_titled(b, "reference", q->reference));
done:
    free(prompt);
    return rc;
}

static rrl_status put_which(rrl_buffer *b, const rrl_record_set *s, int64_t n) {
    const rrl_rollout_row *row = &s->rollouts[n];
    rrl_buffer line = {0};
    rrl_status rc;
    RRL_GOTO(rrl_buffer_printf(&line, "completion %" PRId64 " of %" PRId64 ", %s%s: ", n, s->n,
                               *s->name ? "evaluation " : "training", s->name));
    if (!*s->name) RRL_GOTO(rrl_buffer_printf(&line, "step %" PRId64 ", ", row->step));
    RRL_GOTO(rrl_buffer_printf(&line, "question %u, sample %u, policy version %" PRId64, row->question, row->sample,
                               row->policy_version));
    RRL_GOTO(rrl_buffer_wrap(b, line.data, 0, WIDTH));
done:
    rrl_buffer_free(&line);
    return rc;
}

rrl_status rrl_show_completion(rrl_buffer *b, const rrl_record *r, const char *evaluation, int64_t n) {
    const rrl_record_set *s = NULL;
    RRL_TRY(choose(&s, r, evaluation, n));
    const rrl_rollout_row *row = &s->rollouts[n];
    RRL_TRY(put_which(b, s, n));
    if (row->question < s->n_questions) {
        const rrl_record_question *q = &s->questions[row->question];
        RRL_TRY(rrl_buffer_printf(b, "id %s\n", q->id));
        RRL_TRY(put_prompt(b, r, q));
    }
    RRL_TRY(put_answer(b, s, n));
    RRL_TRY(rrl_buffer_puts(b, "verdicts\n"));
    for (int64_t i = rrl_show_verdicts_of(s, n); i < s->n_verdicts && s->verdicts[i].rollout == (uint64_t)n; i++)
        RRL_TRY(put_verdict(b, r, &s->verdicts[i]));
    return put_numbers(b, row);
}
