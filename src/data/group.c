/* Making, measuring and joining groups. The wire form is in group_wire.c. */
#include "rrl/group.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

rrl_status rrl_group_create(rrl_group **out, int32_t count, int64_t n_tokens) {
    rrl_status rc = RRL_OK;
    rrl_group *g = NULL;
    if (count < 1 || n_tokens < 0) {
        rc =
            RRL_FAIL(RRL_ERR_INTERNAL, "group of %d completions and %lld tokens", count, (long long)n_tokens);
        goto done;
    }
    RRL_GOTO(rrl_alloc(&g, 1, sizeof *g, "group"));
    g->head = (rrl_group_head){
        .version = RRL_GROUP_VERSION, .group_size = count, .count = count, .n_tokens = n_tokens};
    RRL_GOTO(rrl_alloc(&g->rows, (size_t)count, sizeof *g->rows, "completions of a group"));
    RRL_GOTO(rrl_alloc(&g->tokens, (size_t)n_tokens, sizeof *g->tokens, "tokens of a group"));
    RRL_GOTO(rrl_alloc(&g->logprobs, (size_t)n_tokens, sizeof *g->logprobs, "log-probs of a group"));
    for (int32_t i = 0; i < count; i++) {
        rrl_completion *row = &g->rows[i];
        row->sample = i;
        row->n_answer = -1;
        row->correct = row->reward = row->advantage = row->kl_mean = NAN;
    }
    *out = g;
    g = NULL;
done:
    rrl_group_free(&g);
    return rc;
}

rrl_status rrl_group_set_members(rrl_group *g, int32_t members) {
    rrl_verdict *verdicts = NULL;
    if (members < 0) return RRL_FAIL(RRL_ERR_INTERNAL, "group with %d members", members);
    size_t n = (size_t)g->head.count * (size_t)members;
    RRL_TRY(rrl_alloc(&verdicts, n, sizeof *verdicts, "verdicts of a group"));
    for (size_t i = 0; i < n; i++) verdicts[i].clean = verdicts[i].reward = NAN;
    free(g->verdicts);
    g->verdicts = verdicts;
    g->head.members = members;
    return RRL_OK;
}

void rrl_group_free(rrl_group **g) {
    if (!g || !*g) return;
    free((*g)->rows);
    free((*g)->verdicts);
    free((*g)->tokens);
    free((*g)->logprobs);
    free((*g)->text);
    free(*g);
    *g = NULL;
}

int64_t rrl_group_token_at(const rrl_group *g, int32_t i) {
    int64_t at = 0;
    for (int32_t k = 0; k < i; k++) at += g->rows[k].n_tokens;
    return at;
}

int64_t rrl_group_text_at(const rrl_group *g, int32_t i) {
    int64_t at = 0;
    for (int32_t k = 0; k < i; k++)
        at += g->rows[k].n_text + (g->rows[k].n_answer > 0 ? g->rows[k].n_answer : 0);
    return at;
}

int64_t rrl_group_answer_at(const rrl_group *g, int32_t i) {
    return rrl_group_text_at(g, i) + g->rows[i].n_text;
}

static int by_first(const void *a, const void *b) {
    const rrl_group *const *x = a, *const *y = b;
    return ((*x)->head.first > (*y)->head.first) - ((*x)->head.first < (*y)->head.first);
}

static rrl_status check_same_group(const rrl_group_head *a, const rrl_group_head *b) {
#define X(name, what)                                                                                        \
    if (a->name != b->name)                                                                                  \
        return RRL_FAIL(RRL_ERR_INTERNAL, "parts of a group differ in " what ": %lld and %lld",              \
                        (long long)a->name, (long long)b->name);
    X(version, "format version")
    X(purpose, "purpose")
    X(step, "step")
    X(policy_version, "adapter version")
    X(question, "question")
    X(slot, "slot")
    X(group_size, "group size")
    X(members, "members")
#undef X
    return RRL_OK;
}

/* Sorted parts must cover samples 0 to group_size once. */
static rrl_status check_parts(rrl_group *const *parts, int32_t n) {
    int64_t next = 0;
    const rrl_group_head *head = &parts[0]->head;
    for (int32_t i = 0; i < n; i++) {
        RRL_TRY(check_same_group(head, &parts[i]->head));
        if (parts[i]->head.first != next)
            return RRL_FAIL(RRL_ERR_INTERNAL,
                            "parts of question %d, step %lld: sample %d follows, expected %lld",
                            head->question, (long long)head->step, parts[i]->head.first, (long long)next);
        next += parts[i]->head.count;
    }
    if (next != head->group_size)
        return RRL_FAIL(RRL_ERR_INTERNAL, "parts of question %d, step %lld: %lld samples of %d",
                        head->question, (long long)head->step, (long long)next, head->group_size);
    return RRL_OK;
}

static void copy(void *to, const void *from, size_t n, size_t size) {
    if (n) memcpy(to, from, n * size);
}

static rrl_status join_sorted(rrl_group **out, rrl_group *const *parts, int32_t n) {
    rrl_status rc = RRL_OK;
    rrl_group *g = NULL;
    const rrl_group_head *head = &parts[0]->head;
    int64_t n_tokens = 0, n_text = 0, tokens = 0, text = 0, row = 0;
    for (int32_t i = 0; i < n; i++) {
        n_tokens += parts[i]->head.n_tokens;
        n_text += parts[i]->head.n_text;
    }
    RRL_GOTO(rrl_group_create(&g, head->group_size, n_tokens));
    g->head = *head;
    g->head.count = head->group_size;
    g->head.n_tokens = n_tokens;
    g->head.n_text = n_text;
    if (head->members) RRL_GOTO(rrl_group_set_members(g, head->members));
    RRL_GOTO(rrl_alloc(&g->text, (size_t)n_text, 1, "text of a group"));
    for (int32_t i = 0; i < n; i++) {
        const rrl_group *p = parts[i];
        size_t members = (size_t)head->members;
        copy(g->rows + row, p->rows, (size_t)p->head.count, sizeof *p->rows);
        if (members)
            copy(g->verdicts + (size_t)row * members, p->verdicts, (size_t)p->head.count * members,
                 sizeof *p->verdicts);
        copy(g->tokens + tokens, p->tokens, (size_t)p->head.n_tokens, sizeof *p->tokens);
        copy(g->logprobs + tokens, p->logprobs, (size_t)p->head.n_tokens, sizeof *p->logprobs);
        if (p->head.n_text) copy(g->text + text, p->text, (size_t)p->head.n_text, 1);
        row += p->head.count;
        tokens += p->head.n_tokens;
        text += p->head.n_text;
    }
    *out = g;
    g = NULL;
done:
    rrl_group_free(&g);
    return rc;
}

rrl_status rrl_group_join(rrl_group **out, rrl_group *const *parts, int32_t n_parts) {
    rrl_status rc = RRL_OK;
    rrl_group **sorted = NULL;
    if (n_parts < 1) return RRL_FAIL(RRL_ERR_INTERNAL, "no parts to join");
    RRL_GOTO(rrl_alloc(&sorted, (size_t)n_parts, sizeof *sorted, "parts of a group"));
    memcpy(sorted, parts, (size_t)n_parts * sizeof *sorted);
    qsort(sorted, (size_t)n_parts, sizeof *sorted, by_first);
    RRL_GOTO(check_parts(sorted, n_parts));
    RRL_GOTO(join_sorted(out, sorted, n_parts));
done:
    free(sorted);
    return rc;
}
