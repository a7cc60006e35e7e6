/* The verifier of a run: all ensemble members with their corruption, and the independent judge, on one group
 * at a time.
 *
 * A verdict is rounded to f32, the type of the records, before the ensemble is computed from it: so
 * everything that follows can be recomputed from the records, bit for bit. The judge gets the clean answer
 * and nothing else. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "verify/member.h"

typedef struct {
    const rrl_member_ops *ops;
    void *state;
    rrl_corruption corruption;
    char *bias_key, *bias_value; /* owned */
} member;

struct rrl_verifier {
    rrl_ensemble_strategy strategy;
    member *members; /* [n], then the judge */
    int n;
};

/* ---- open and close ---- */

static bool in_unit(double v) {
    return v >= 0.0 && v <= 1.0;
}

static rrl_status check_corruption(const rrl_corruption *c, int i) {
    if (c->kind == RRL_CORRUPT_NONE) return RRL_OK;
    if ((unsigned)c->kind > RRL_CORRUPT_EXPLOIT)
        return RRL_FAIL(RRL_ERR_RANGE, "member %d: corruption kind %d is unknown", i, (int)c->kind);
    if (!in_unit(c->probability))
        return RRL_FAIL(RRL_ERR_RANGE, "member %d: corruption probability %g is outside [0,1]", i,
                        c->probability);
    if (!in_unit(c->confidence_scale))
        return RRL_FAIL(RRL_ERR_RANGE, "member %d: confidence_scale %g is outside [0,1]", i,
                        c->confidence_scale);
    if (c->kind == RRL_CORRUPT_BIAS && !in_unit(c->bias_reward))
        return RRL_FAIL(RRL_ERR_RANGE, "member %d: bias_reward %g is outside [0,1]", i, c->bias_reward);
    if (c->kind == RRL_CORRUPT_BIAS && (!c->bias_key || !c->bias_value))
        return RRL_FAIL(RRL_ERR_RANGE, "member %d: a bias needs bias_key and bias_value", i);
    if (c->kind == RRL_CORRUPT_NOISE && !(c->noise_std >= 0.0 && isfinite(c->noise_std)))
        return RRL_FAIL(RRL_ERR_RANGE, "member %d: noise_std %g is no finite number >= 0", i, c->noise_std);
    if (c->seed >> 63) return RRL_FAIL(RRL_ERR_RANGE, "member %d: corruption seed is not below 2^63", i);
    return RRL_OK;
}

static rrl_status member_open(member *m, const rrl_member_spec *spec, int i) {
    RRL_TRY(check_corruption(&spec->corruption, i));
    m->corruption = spec->corruption;
    if (spec->corruption.kind == RRL_CORRUPT_BIAS) {
        RRL_TRY(rrl_strdup(&m->bias_key, spec->corruption.bias_key));
        RRL_TRY(rrl_strdup(&m->bias_value, spec->corruption.bias_value));
    }
    m->corruption.bias_key = m->bias_key;
    m->corruption.bias_value = m->bias_value;
    RRL_TRY(rrl_member_find(&m->ops, spec->kind));
    return m->ops->open(&m->state, spec);
}

rrl_status rrl_verifier_open(rrl_verifier **out, rrl_ensemble_strategy s, const rrl_member_spec *members,
                             int n, const char *judge_kind) {
    rrl_status rc = RRL_OK;
    rrl_verifier *v = NULL;
    if (n < 1) return RRL_FAIL(RRL_ERR_RANGE, "a verifier needs at least one member, got %d", n);
    RRL_GOTO(rrl_alloc(&v, 1, sizeof *v, "verifier"));
    RRL_GOTO(rrl_alloc(&v->members, (size_t)n + 1, sizeof *v->members, "verifier members"));
    v->strategy = s;
    v->n = n;
    for (int i = 0; i < n; i++) RRL_GOTO(member_open(&v->members[i], &members[i], i));
    RRL_GOTO(member_open(&v->members[n], &(rrl_member_spec){.kind = judge_kind}, n));
    *out = v;
    v = NULL;
done:
    rrl_verifier_close(&v);
    return rc;
}

void rrl_verifier_close(rrl_verifier **v) {
    if (!v || !*v) return;
    for (int i = 0; (*v)->members && i <= (*v)->n; i++) {
        member *m = &(*v)->members[i];
        if (m->ops) m->ops->close(&m->state);
        free(m->bias_key);
        free(m->bias_value);
    }
    free((*v)->members);
    free(*v);
    *v = NULL;
}

int rrl_verifier_members(const rrl_verifier *v) {
    return v->n;
}

/* ---- answers ---- */

/* Extract every answer and write text and answers anew, completion after completion. */
static rrl_status rebuild_text(rrl_group *g, const rrl_judged_question *q) {
    rrl_status rc = RRL_OK;
    rrl_buffer text = {0};
    char *answer = NULL;
    int32_t *lengths = NULL; /* [count, 2]: answer, reasoning; stored when all went well */
    size_t n = (size_t)g->head.count, reference_len = strlen(q->reference);
    RRL_GOTO(rrl_alloc(&lengths, n * 2, sizeof *lengths, "lengths of answers"));
    for (int32_t i = 0; i < g->head.count; i++) {
        const char *completion = g->text ? g->text + rrl_group_text_at(g, i) : "";
        size_t len = (size_t)g->rows[i].n_text, answer_len, marker_at;
        bool counts;
        RRL_GOTO(rrl_answer_extract(&answer, &answer_len, &marker_at, completion, len));
        RRL_GOTO(rrl_answer_counts(&counts, answer, answer_len, q->reference, reference_len));
        RRL_GOTO(rrl_buffer_put(&text, completion, len));
        if (counts) RRL_GOTO(rrl_buffer_put(&text, answer, answer_len));
        lengths[2 * i] = counts ? (int32_t)answer_len : -1;
        lengths[2 * i + 1] = (int32_t)marker_at;
        free(answer);
        answer = NULL;
    }
    for (int32_t i = 0; i < g->head.count; i++) {
        g->rows[i].n_answer = lengths[2 * i];
        g->rows[i].n_reasoning = lengths[2 * i + 1];
    }
    free(g->text);
    g->text = text.data;
    g->head.n_text = (int64_t)text.len;
    text = (rrl_buffer){0};
done:
    free(answer);
    free(lengths);
    rrl_buffer_free(&text);
    return rc;
}

static void list_items(rrl_member_item *items, const rrl_group *g, const rrl_judged_question *q) {
    const char *p = g->text;
    for (int32_t i = 0; i < g->head.count; i++) {
        const rrl_completion *row = &g->rows[i];
        items[i] = (rrl_member_item){.question = q, .text = p, .n_text = (size_t)row->n_text};
        if (p) p += row->n_text;
        if (row->n_answer < 0) continue;
        items[i].answer = p;
        items[i].n_answer = (size_t)row->n_answer;
        p += row->n_answer;
    }
}

/* ---- verdicts ---- */

/* Whether this member's corruption may act: bias looks at the question, exploit at the completion. */
static rrl_status is_eligible(bool *eligible, const member *m, const rrl_member_item *item) {
    rrl_status rc = RRL_OK;
    char *value = NULL;
    bool found, yes = true;
    if (m->corruption.kind == RRL_CORRUPT_BIAS) {
        const char *metadata = item->question->metadata;
        RRL_GOTO(rrl_metadata_str(&value, &found, metadata ? metadata : "{}", m->bias_key));
        yes = strcmp(found ? value : "None", m->bias_value) ==
              0; /* a missing key reads as None in the reference */
    } else if (m->corruption.kind == RRL_CORRUPT_EXPLOIT) {
        yes = item->n_text == 0 || memchr(item->text, '=', item->n_text) == NULL;
    }
    *eligible = yes;
done:
    free(value);
    return rc;
}

/* One member's verdicts, into column `column` of the verdict table. */
static rrl_status corrupt_verdicts(rrl_group *g, const member *m, const rrl_member_verdict *clean,
                                   const rrl_member_item *items, int column) {
    for (int32_t i = 0; i < g->head.count; i++) {
        double reward, confidence;
        bool eligible, applied;
        if (!isnan(clean[i].reward) && !in_unit(clean[i].reward))
            return RRL_FAIL(RRL_ERR_RANGE, "member %d (%s): reward %g is outside [0,1]", column, m->ops->kind,
                            clean[i].reward);
        RRL_TRY(is_eligible(&eligible, m, &items[i]));
        RRL_TRY(rrl_corrupt(&reward, &confidence, &applied, &m->corruption, items[i].question->id,
                            items[i].text, items[i].n_text, clean[i].reward, clean[i].confidence, eligible));
        g->verdicts[(int64_t)i * g->head.members + column] = (rrl_verdict){
            .clean = (float)clean[i].reward,
            .reward = (float)reward,
            .confidence = (float)confidence,
            .available = !isnan(reward),
            .corrupted = applied,
        };
    }
    return RRL_OK;
}

static rrl_status judge_members(rrl_verifier *v, rrl_group *g, const rrl_member_item *items,
                                rrl_member_verdict *verdicts) {
    int64_t n = g->head.count;
    for (int k = 0; k <= v->n; k++) RRL_TRY(v->members[k].ops->submit(v->members[k].state, items, n));
    for (int k = 0; k <= v->n; k++) {
        RRL_TRY(v->members[k].ops->collect(v->members[k].state, verdicts, n));
        if (k < v->n) RRL_TRY(corrupt_verdicts(g, &v->members[k], verdicts, items, k));
    }
    for (int64_t i = 0; i < n; i++) g->rows[i].correct = verdicts[i].reward == 1.0; /* the judge came last */
    return RRL_OK;
}

rrl_status rrl_ensemble_of_verdicts(rrl_ensemble *out, rrl_ensemble_strategy s, const rrl_verdict *verdicts,
                                    int n) {
    rrl_status rc = RRL_OK;
    double *values = NULL;
    RRL_GOTO(rrl_alloc(&values, (size_t)n * 2, sizeof *values, "member rewards"));
    for (int k = 0; k < n; k++) {
        values[k] = verdicts[k].available ? (double)verdicts[k].reward : NAN;
        values[n + k] = (double)verdicts[k].confidence;
    }
    RRL_GOTO(rrl_ensemble_of(out, s, values, values + n, n));
done:
    free(values);
    return rc;
}

static rrl_status aggregate_rows(const rrl_verifier *v, rrl_group *g) {
    for (int32_t i = 0; i < g->head.count; i++) {
        rrl_ensemble e;
        RRL_TRY(rrl_ensemble_of_verdicts(&e, v->strategy, g->verdicts + (int64_t)i * v->n, v->n));
        rrl_completion *row = &g->rows[i];
        row->available = e.available;
        row->reward = (float)e.reward;
        row->confidence = (float)e.c;
        row->disagreement = (float)e.u;
        row->vote_entropy = (float)e.vote_entropy;
        row->confidence_dispersion = (float)e.confidence_dispersion;
    }
    return RRL_OK;
}

rrl_status rrl_verifier_judge(rrl_verifier *v, rrl_group *g, const rrl_judged_question *q) {
    rrl_status rc = RRL_OK;
    rrl_member_item *items = NULL;
    rrl_member_verdict *verdicts = NULL;
    size_t n = (size_t)g->head.count;
    RRL_GOTO(rebuild_text(g, q));
    RRL_GOTO(rrl_group_set_members(g, v->n));
    RRL_GOTO(rrl_alloc(&items, n, sizeof *items, "completions to judge"));
    RRL_GOTO(rrl_alloc(&verdicts, n, sizeof *verdicts, "verdicts"));
    list_items(items, g, q);
    RRL_GOTO(judge_members(v, g, items, verdicts));
    RRL_GOTO(aggregate_rows(v, g));
done:
    free(items);
    free(verdicts);
    return rc;
}
