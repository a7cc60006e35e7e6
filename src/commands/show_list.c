/* Lists of completions: by question, correctness, disagreement, or the wrong ones that were rewarded most. And the JSON
 * of a completion, which lists share. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_object.h"
#include "base/text.h"
#include "commands/show_parts.h"

/* --- which */

static bool is_wanted(const rrl_record_set *s, const rrl_rollout_row *row, const rrl_show_search *w) {
    if (w->right && !(row->correct >= 0.5F)) return false;
    if ((w->wrong || w->top_wrong > 0) && !(row->correct < 0.5F)) return false;
    if (w->top_wrong > 0 && isnan(row->reward)) return false;
    if (w->disagreement >= 0 && !((double)row->disagreement >= w->disagreement)) return false;
    if (!w->question) return true;
    if (row->question >= s->n_questions) return false;
    const rrl_record_question *q = &s->questions[row->question];
    return strcmp(q->id, w->question) == 0 || strstr(q->question, w->question) != NULL;
}

typedef struct {
    int64_t n;
    float reward, shaped;
} match;

/* Falling reward, then shaped reward; equal ones as recorded. */
static int by_reward(const void *a, const void *b) {
    const match *x = a, *y = b;
    if (x->reward != y->reward) return x->reward < y->reward ? 1 : -1;
    if (x->shaped != y->shaped) return x->shaped < y->shaped ? 1 : -1;
    return (x->n > y->n) - (x->n < y->n);
}

static rrl_status find(match **out, int64_t *n, const rrl_record_set *s, const rrl_show_search *w) {
    match *list = NULL;
    RRL_TRY(rrl_alloc(&list, (size_t)s->n, sizeof *list, "completions of a list"));
    *n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (is_wanted(s, &s->rollouts[i], w))
            list[(*n)++] = (match){i, s->rollouts[i].reward, s->rollouts[i].shaped};
    if (w->top_wrong > 0 && *n) qsort(list, (size_t)*n, sizeof *list, by_reward);
    *out = list;
    return RRL_OK;
}

/* --- for people */

/* At most `width` characters on one line, of the start or of the end of a text; white space is one blank, what is cut
 * is shown by two points. */
static rrl_status put_excerpt(rrl_buffer *b, const char *text, size_t len, int width, bool of_end) {
    rrl_status rc = RRL_OK;
    rrl_buffer flat = {0};
    const char *end = text + len;
    int characters = 0;
    for (const char *p = text; p < end; characters++) {
        const char *from = p;
        uint32_t cp = rrl_utf8_next(&p, end);
        bool blank = cp <= ' ' || cp == 0x7f;
        RRL_GOTO(blank ? rrl_buffer_puts(&flat, " ") : rrl_buffer_put(&flat, from, (size_t)(p - from)));
    }
    const char *at = flat.data ? flat.data : "", *stop = at + flat.len;
    bool cut = characters > width;
    if (cut && of_end) {
        for (int skip = characters - (width - 2); skip > 0; skip--) rrl_utf8_next(&at, stop);
        RRL_GOTO(rrl_buffer_puts(b, ".."));
    } else if (cut) {
        const char *to = at;
        for (int keep = width - 2; keep > 0; keep--) rrl_utf8_next(&to, stop);
        stop = to;
    }
    RRL_GOTO(rrl_buffer_put(b, at, (size_t)(stop - at)));
    if (cut && !of_end) RRL_GOTO(rrl_buffer_puts(b, ".."));
done:
    rrl_buffer_free(&flat);
    return rc;
}

static rrl_status put_number(rrl_buffer *b, float v) {
    return isnan(v) ? rrl_buffer_puts(b, "      -") : rrl_buffer_printf(b, " %6.3f", (double)v);
}

static rrl_status put_row(rrl_buffer *b, const rrl_record_set *s, int64_t n) {
    enum { ID = 20, ANSWER = 19, TEXT = 71 };
    const rrl_rollout_row *row = &s->rollouts[n];
    const char *id = row->question < s->n_questions ? s->questions[row->question].id : "?";
    size_t before;
    RRL_TRY(rrl_buffer_printf(b, "%7" PRId64 " %6" PRId64 " ", n, row->step));
    before = b->len;
    RRL_TRY(put_excerpt(b, id, strlen(id), ID, true));
    RRL_TRY(rrl_buffer_printf(b, "%*s", b->len - before < ID ? (int)(ID - (b->len - before)) : 0, ""));
    RRL_TRY(rrl_buffer_printf(b, " %3u %s", row->sample, isnan(row->correct)    ? "?    "
                                                         : row->correct >= 0.5F ? "right"
                                                                                : "wrong"));
    RRL_TRY(put_number(b, row->reward));
    RRL_TRY(put_number(b, row->disagreement));
    RRL_TRY(rrl_buffer_puts(b, " "));
    RRL_TRY(row->answer_bytes < 0 ? rrl_buffer_puts(b, "(none)")
                                  : put_excerpt(b, s->answer[n], (size_t)row->answer_bytes, ANSWER, false));
    RRL_TRY(rrl_buffer_puts(b, "\n        "));
    RRL_TRY(put_excerpt(b, s->text[n], row->text_bytes, TEXT, true));
    return rrl_buffer_puts(b, "\n");
}

static rrl_status put_list(rrl_buffer *b, const rrl_record *r, const rrl_record_set *s, const match *list, int64_t n,
                           int64_t shown, bool by_rank) {
    RRL_TRY(rrl_buffer_printf(b, "%s\n%s%s: %" PRId64 " of %" PRId64 " completions match", r->path,
                              *s->name ? "evaluation " : "training", s->name, n, s->n));
    if (shown < n)
        RRL_TRY(rrl_buffer_printf(b, ", %" PRId64 " are shown (%s)", shown, by_rank ? "--top-wrong" : "--limit"));
    RRL_TRY(rrl_buffer_puts(b, "\n"));
    if (shown == 0) return RRL_OK;
    RRL_TRY(rrl_buffer_printf(b, "%7s %6s %-20s %3s %s %6s %6s %s\n", "n", "step", "question", "s", "judge", "reward",
                              "U", "answer, text"));
    for (int64_t i = 0; i < shown; i++) RRL_TRY(put_row(b, s, list[i].n));
    return rrl_buffer_printf(b, "the first with all that is recorded of it:%s%s --completion %" PRId64 "\n",
                             *s->name ? " --evaluation " : "", s->name, list[0].n);
}

/* --- for programs */

static rrl_status put_verdicts(rrl_buffer *b, const rrl_record *r, const rrl_record_set *s, int64_t n) {
    RRL_TRY(rrl_json_open_list(b, "verdicts"));
    int64_t first = rrl_show_verdicts_of(s, n);
    for (int64_t i = first; i < s->n_verdicts && s->verdicts[i].rollout == (uint64_t)n; i++) {
        const rrl_verdict_row *v = &s->verdicts[i];
        RRL_TRY(rrl_json_open_item(b, i - first));
        RRL_TRY(rrl_json_put_count(b, "member", v->member));
        RRL_TRY(rrl_json_put_text(b, "kind", r->members[v->member].kind));
        RRL_TRY(rrl_json_put_text(b, "corruption", r->members[v->member].corruption));
        RRL_TRY(rrl_json_put_float(b, "clean", v->clean));
        RRL_TRY(rrl_json_put_float(b, "reward", v->reward));
        RRL_TRY(rrl_json_put_float(b, "confidence", v->confidence));
        RRL_TRY(rrl_json_put_bool(b, "corrupted", v->corrupted != 0));
        RRL_TRY(rrl_buffer_puts(b, "}"));
    }
    return rrl_buffer_puts(b, "]");
}

static rrl_status put_question(rrl_buffer *b, const rrl_record *r, const rrl_record_question *q) {
    char *prompt = NULL;
    bool chat = false;
    rrl_status rc;
    RRL_GOTO(rrl_show_prompt(&prompt, &chat, r, q->question));
    RRL_GOTO(rrl_json_put_text(b, "id", q->id));
    RRL_GOTO(rrl_json_put_text(b, "question", q->question));
    RRL_GOTO(rrl_json_put_text(b, "prompt", prompt));
    RRL_GOTO(rrl_json_put_bool(b, "prompt_is_chat_message", chat));
    RRL_GOTO(rrl_json_put_text(b, "reference", q->reference));
done:
    free(prompt);
    return rc;
}

rrl_status rrl_show_put_completion(rrl_buffer *b, const rrl_record *r, const rrl_record_set *s, int64_t n) {
    const rrl_rollout_row *row = &s->rollouts[n];
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_count(b, "completion", n));
    RRL_TRY(rrl_json_put_text(b, "evaluation", *s->name ? s->name : NULL));
    RRL_TRY(rrl_json_put_count(b, "step", row->step));
    RRL_TRY(rrl_json_put_count(b, "sample", row->sample));
    RRL_TRY(rrl_json_put_count(b, "policy_version", row->policy_version));
    if (row->question < s->n_questions) RRL_TRY(put_question(b, r, &s->questions[row->question]));
    RRL_TRY(rrl_json_put_bytes(b, "text", s->text[n], row->text_bytes));
    if (row->answer_bytes < 0) RRL_TRY(rrl_json_put_text(b, "answer", NULL));
    else RRL_TRY(rrl_json_put_bytes(b, "answer", s->answer[n], (size_t)row->answer_bytes));
    RRL_TRY(rrl_json_put_count(b, "tokens", row->tokens));
    RRL_TRY(rrl_json_put_bool(b, "truncated", row->finish == RRL_FINISH_LENGTH));
#define PUT(field) RRL_TRY(rrl_json_put_float(b, #field, row->field))
    PUT(correct);
    PUT(reward);
    PUT(disagreement);
    PUT(confidence);
    PUT(vote_entropy);
    PUT(confidence_dispersion);
    PUT(shaped);
    PUT(scale);
    PUT(advantage);
    PUT(logprob_sum);
    PUT(kl_mean);
#undef PUT
    RRL_TRY(put_verdicts(b, r, s, n));
    return rrl_buffer_puts(b, "}");
}

rrl_status rrl_show_completion_json(rrl_buffer *b, const rrl_record *r, const char *evaluation, int64_t n) {
    const rrl_record_set *s = NULL;
    RRL_TRY(rrl_show_set(&s, r, evaluation));
    if (n >= s->n)
        return RRL_FAIL(RRL_ERR_USAGE, "%s: no completion %" PRId64 "; there are %" PRId64 ", counted from 0", r->path,
                        n, s->n);
    RRL_TRY(rrl_show_put_completion(b, r, s, n));
    return rrl_buffer_puts(b, "\n");
}

static rrl_status put_list_json(rrl_buffer *b, const rrl_record *r, const rrl_record_set *s, const match *list,
                                int64_t n, int64_t shown, bool by_rank) {
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_text(b, "path", r->path));
    RRL_TRY(rrl_json_put_text(b, "evaluation", *s->name ? s->name : NULL));
    RRL_TRY(rrl_json_put_count(b, "matches", n));
    RRL_TRY(rrl_json_put_text(b, "order", by_rank ? "reward" : "record"));
    RRL_TRY(rrl_json_open_list(b, "completions"));
    for (int64_t i = 0; i < shown; i++) {
        if (i) RRL_TRY(rrl_buffer_puts(b, ", "));
        RRL_TRY(rrl_show_put_completion(b, r, s, list[i].n));
    }
    return rrl_buffer_puts(b, "]}\n");
}

rrl_status rrl_show_list(rrl_buffer *b, const rrl_record *r, const rrl_show_search *w, bool json) {
    const rrl_record_set *s = NULL;
    match *list = NULL;
    int64_t n = 0;
    rrl_status rc;
    RRL_GOTO(rrl_show_set(&s, r, w->evaluation));
    RRL_GOTO(find(&list, &n, s, w));
    int64_t limit = w->top_wrong > 0 ? w->top_wrong : w->limit, shown = n < limit ? n : limit;
    RRL_GOTO((json ? put_list_json : put_list)(b, r, s, list, n, shown, w->top_wrong > 0));
done:
    free(list);
    return rc;
}
