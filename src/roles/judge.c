/* From completions to shaped rewards. */
#include "roles/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "learn/learner.h"
#include "rrl/shape.h"

struct rrl_judge {
    rrl_verifier *verifier;
    rrl_shaping shaping;
    rrl_ensemble_strategy ensemble;
};

rrl_status rrl_judge_open(rrl_judge **out, const rrl_config *c) {
    rrl_status rc = RRL_OK;
    rrl_judge *j = NULL;
    rrl_member_spec *members = NULL;
    const char *const *kinds = RRL_ENUM_TEXTS(RRL_MEMBER_LIST);
    const rrl_verifier_config *v = &c->training_verifier;
    RRL_GOTO(rrl_alloc(&j, 1, sizeof *j, "judge"));
    RRL_GOTO(rrl_alloc(&members, (size_t)v->n_members, sizeof *members, "verifier members"));
    for (int64_t i = 0; i < v->n_members; i++) {
        const rrl_corruption_config *k = &v->members[i].corruption;
        members[i] = (rrl_member_spec){
            .kind = kinds[v->members[i].kind],
            .corruption = {.kind = (rrl_corruption_kind)k->kind, .probability = k->probability, .seed = (uint64_t)k->seed,
                           .noise_std = k->noise_std, .confidence_scale = k->confidence_scale, .bias_key = k->bias_key,
                           .bias_value = k->bias_value, .bias_reward = k->bias_reward}};
    }
    j->ensemble = (rrl_ensemble_strategy)v->strategy;
    j->shaping = (rrl_shaping){.strategy = (rrl_shaping_strategy)c->reward.strategy, .penalty = c->reward.penalty,
                               .moderate_threshold = c->reward.moderate_threshold,
                               .severe_threshold = c->reward.severe_threshold,
                               .moderate_scale = c->reward.moderate_scale, .severe_scale = c->reward.severe_scale};
    RRL_GOTO(rrl_verifier_open(&j->verifier, j->ensemble, members, (int)v->n_members,
                               kinds[c->evaluation_verifier.members[0].kind]));
    *out = j;
    j = NULL;
done:
    free(members);
    rrl_judge_close(&j);
    return rc;
}

void rrl_judge_close(rrl_judge **j) {
    if (!*j) return;
    rrl_verifier_close(&(*j)->verifier);
    free(*j);
    *j = NULL;
}

int rrl_judge_members(const rrl_judge *j) { return rrl_verifier_members(j->verifier); }

/* The one text of each completion: its tokens decoded, special ones left out, invalid UTF-8 replaced. */
static rrl_status decode(rrl_group *g, const rrl_tokenizer *t) {
    rrl_status rc = RRL_OK;
    rrl_buffer text = {0};
    int64_t at = 0;
    for (int32_t i = 0; i < g->head.count; i++) {
        size_t before = text.len;
        RRL_GOTO(rrl_tokenizer_decode(&text, t, g->tokens + at, g->rows[i].n_tokens, true));
        g->rows[i].n_text = (int32_t)(text.len - before);
        g->rows[i].n_answer = -1;
        at += g->rows[i].n_tokens;
    }
    if (!text.data) RRL_GOTO(rrl_buffer_puts(&text, ""));
    free(g->text);
    g->text = text.data;
    g->head.n_text = (int64_t)text.len;
    text = (rrl_buffer){0};
done:
    rrl_buffer_free(&text);
    return rc;
}

rrl_status rrl_judge_group(rrl_judge *j, rrl_group *g, const rrl_question *q, const rrl_tokenizer *t) {
    rrl_judged_question question = {.id = q->id, .reference = q->reference, .metadata = q->metadata};
    if (g->head.n_tokens > 0 && t) RRL_TRY(decode(g, t));
    RRL_TRY(rrl_verifier_judge(j->verifier, g, &question));
    return rrl_shape_group(g, &j->shaping, j->ensemble);
}

/* Parts of groups that are not whole yet. */
typedef struct {
    rrl_group **part;
    int32_t n, samples;
} pile;

static void pile_free(pile *p) {
    for (int32_t i = 0; i < p->n; i++) rrl_group_free(&p->part[i]);
    free(p->part);
}

/* Add a part; *whole is set once all samples are there. */
static rrl_status pile_put(rrl_group **whole, pile *p, rrl_group **part) {
    int32_t size = (*part)->head.group_size;
    size_t room = (size_t)p->n;
    RRL_TRY(rrl_grow(&p->part, &room, (size_t)p->n + 1, sizeof *p->part, "group parts"));
    p->samples += (*part)->head.count;
    p->part[p->n++] = *part;
    *part = NULL;
    if (p->samples < size) return RRL_OK;
    if (p->n == 1) {
        *whole = p->part[0];
        p->n = 0;
        return RRL_OK;
    }
    return rrl_group_join(whole, p->part, p->n);
}

/* The recorder writes all of a group and a learner with slots of it trains on its tokens; for advantages and the training
 * row the others need rewards and lengths. */
static rrl_status pass_on(rrl_team *team, rrl_mailbox *scored, rrl_group **g, const rrl_expected *x) {
    const rrl_role *to = &team->learners;
    bool *whole = NULL;
    RRL_TRY(rrl_alloc(&whole, (size_t)to->n, sizeof *whole, "learners"));
    for (int i = 0; i < to->n; i++) {
        int32_t first, n, active, slot = (*g)->head.slot * x->slots_a_group;
        rrl_learner_share(&first, &n, &active, x->n_groups * x->slots_a_group, to->n, i);
        whole[i] = to->rank[i] == team->recorder || (first < slot + x->slots_a_group && slot < first + n);
    }
    rrl_status rc = rrl_mailbox_send_all(scored, to, whole, g);
    free(whole);
    return rc;
}

/* Piles of the runs, one after the other; open counts this rank's groups. */
static rrl_status piles_make(pile **piles, int32_t *n_piles, int32_t *open, const rrl_team *team, const rrl_expected *e,
                             int32_t n) {
    *n_piles = *open = 0;
    for (int32_t i = 0; i < n; i++) {
        *n_piles += e[i].n_groups;
        for (int32_t g = 0; g < e[i].n_groups; g++) *open += rrl_team_verifier_of(team, g) == team->verifiers.index;
    }
    return rrl_alloc(piles, (size_t)*n_piles, sizeof **piles, "group parts");
}

/* The pile a part belongs to; NULL if the step has no such group. */
static pile *pile_of(pile *piles, const rrl_group_head *h, const rrl_expected *e, int32_t n) {
    int32_t at = 0;
    if (h->run < 0 || h->run >= n) return NULL;
    const rrl_expected *x = &e[h->run];
    if (h->slot < 0 || h->slot >= x->n_groups || h->group_size != x->group_size || h->question < 0 ||
        h->question >= x->pool->questions->n)
        return NULL;
    for (int32_t i = 0; i < h->run; i++) at += e[i].n_groups;
    return &piles[at + h->slot];
}

rrl_status rrl_judge_step(rrl_team *team, rrl_engine *engine, rrl_mailbox *parts, rrl_mailbox *scored,
                          const rrl_expected *expected, int32_t n, bool to_recorder) {
    rrl_status rc = RRL_OK;
    pile *piles = NULL;
    rrl_group *part = NULL, *whole = NULL;
    int32_t open = 0, n_piles = 0;
    RRL_TRY(piles_make(&piles, &n_piles, &open, team, expected, n));
    while (open > 0) {
        RRL_GOTO(rrl_mailbox_receive(parts, &part));
        pile *p = pile_of(piles, &part->head, expected, n);
        if (!p) {
            rc = RRL_FAIL(RRL_ERR_COMM, "a part of run %lld, group %d, question %d does not belong to this step",
                          (long long)part->head.run, part->head.slot, part->head.question);
            goto done;
        }
        RRL_GOTO(pile_put(&whole, p, &part));
        if (!whole) continue;
        const rrl_expected *x = &expected[whole->head.run];
        RRL_GOTO(rrl_judge_group(x->judge, whole, &x->pool->questions->rows[whole->head.question], engine->tokenizer));
        RRL_GOTO(to_recorder ? rrl_mailbox_send(scored, team->recorder, &whole) : pass_on(team, scored, &whole, x));
        team->work.groups_judged++;
        rrl_watch_beat(&team->watch);
        open--;
    }
done:
    for (int32_t g = 0; piles && g < n_piles; g++) pile_free(&piles[g]);
    free(piles);
    rrl_group_free(&part);
    rrl_group_free(&whole);
    return rc;
}
