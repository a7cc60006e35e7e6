/* The members that compare the extracted answer with the reference: "exact" (equal normal forms) and "rule"
 * (equal exact values). They answer while the batch is handed in; collect hands the verdicts out. */
#include "verify/member.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct {
    const char *kind; /* of the table that opened this */
    rrl_member_verdict *verdicts;
    size_t capacity;
    int64_t n;
} comparer;

static rrl_status compare_open(void **state, const char *kind) {
    comparer *c = NULL;
    RRL_TRY(rrl_alloc(&c, 1, sizeof *c, "verifier member"));
    c->kind = kind;
    *state = c;
    return RRL_OK;
}

static rrl_status exact_open(void **state, const rrl_member_spec *spec) {
    return compare_open(state, "exact");
}

static rrl_status rule_open(void **state, const rrl_member_spec *spec) {
    return compare_open(state, "rule");
}

static rrl_status compare_submit(void *state, const rrl_member_item *items, int64_t n) {
    comparer *c = state;
    RRL_TRY(rrl_grow(&c->verdicts, &c->capacity, (size_t)n, sizeof *c->verdicts, "verdicts of a member"));
    for (int64_t i = 0; i < n; i++) {
        const char *reference = items[i].question->reference;
        bool equal;
        RRL_TRY(rrl_answer_equal(&equal, c->kind, items[i].answer, items[i].n_answer, reference,
                                 strlen(reference)));
        c->verdicts[i] = (rrl_member_verdict){.reward = equal ? 1.0 : 0.0, .confidence = 1.0};
    }
    c->n = n;
    return RRL_OK;
}

static rrl_status compare_collect(void *state, rrl_member_verdict *verdicts, int64_t n) {
    comparer *c = state;
    if (n != c->n)
        return RRL_FAIL(RRL_ERR_INTERNAL,
                        "member \"%s\" judged %lld completions, %lld verdicts are asked for", c->kind,
                        (long long)c->n, (long long)n);
    if (n) memcpy(verdicts, c->verdicts, (size_t)n * sizeof *verdicts);
    c->n = 0;
    return RRL_OK;
}

static void compare_close(void **state) {
    comparer *c = *state;
    if (!c) return;
    free(c->verdicts);
    free(c);
    *state = NULL;
}

static const rrl_member_ops MEMBERS[] = {
    {"exact", exact_open, compare_submit, compare_collect, compare_close},
    {"rule", rule_open, compare_submit, compare_collect, compare_close},
};

rrl_status rrl_member_find(const rrl_member_ops **out, const char *kind) {
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++)
        if (strcmp(MEMBERS[i].kind, kind) == 0) {
            *out = &MEMBERS[i];
            return RRL_OK;
        }
    return RRL_FAIL(RRL_ERR_CONFIG, "verifier kind \"%s\" is unknown; use \"exact\" or \"rule\"", kind);
}
