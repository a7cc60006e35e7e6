/* From scheduled questions to completions. */
#include "roles/generator.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "roles/fixture.h"

/* What a finished part needs to know. */
typedef struct {
    rrl_team *team;
    rrl_mailbox *parts;
    const rrl_generation *g;
} context;

rrl_sampling rrl_sampling_of(const rrl_config *c) {
    return (rrl_sampling){.temperature = c->generation.temperature, .top_p = c->generation.top_p,
                          .repetition_penalty = c->generation.repetition_penalty, .top_k = (int32_t)c->generation.top_k,
                          .max_tokens = (int32_t)c->generation.max_tokens};
}

static void fill_head(rrl_group *group, const rrl_generation *g, const rrl_part *part) {
    group->head.purpose = g->purpose;
    group->head.step = g->step;
    group->head.policy_version = g->policy_version;
    group->head.question = g->questions[part->group];
    group->head.slot = part->group;
    group->head.group_size = g->group_size;
    group->head.first = part->first;
}

static rrl_status send_part(rrl_team *team, rrl_mailbox *parts, rrl_group **group) {
    int to = rrl_team_verifier_of(team, (*group)->head.slot);
    team->work.groups_generated++;
    rrl_watch_beat(&team->watch);
    return rrl_mailbox_send(parts, team->verifiers.rank[to], group);
}

/* A request is done: make the group part and let it go. */
static rrl_status on_done(void *user, const rrl_request *request, const rrl_completions *c) {
    context *x = user;
    const rrl_part *part = request->user;
    rrl_group *group = NULL;
    int64_t n_tokens = 0;
    for (int32_t i = 0; i < request->count; i++) n_tokens += c->n_tokens[i];
    RRL_TRY(rrl_group_create(&group, request->count, n_tokens));
    fill_head(group, x->g, part);
    memcpy(group->tokens, c->tokens, (size_t)n_tokens * sizeof *group->tokens);
    memcpy(group->logprobs, c->logprobs, (size_t)n_tokens * sizeof *group->logprobs);
    for (int32_t i = 0, t = 0; i < request->count; i++) {
        rrl_completion *r = &group->rows[i];
        float sum = 0;
        for (int32_t j = 0; j < c->n_tokens[i]; j++) sum += c->logprobs[t++];
        r->sample = part->first + i;
        r->n_tokens = c->n_tokens[i];
        r->finish = c->finish[i];
        r->logprob_sum = sum;
    }
    rrl_status rc = send_part(x->team, x->parts, &group);
    rrl_group_free(&group);
    return rc;
}

static void on_beat(void *user) { rrl_watch_beat(&((context *)user)->team->watch); }

static rrl_status fixture_parts(rrl_team *team, rrl_mailbox *parts, const rrl_generation *g, const rrl_part *mine,
                                int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        rrl_group *group = NULL;
        const rrl_question *q = &g->pool->questions->rows[g->questions[mine[i].group]];
        RRL_TRY(rrl_fixture_group(&group, q, g->seed, g->purpose, mine[i].first, mine[i].count));
        fill_head(group, g, &mine[i]);
        rrl_status rc = send_part(team, parts, &group);
        rrl_group_free(&group);
        RRL_TRY(rc);
    }
    return RRL_OK;
}

static rrl_status decode_parts(rrl_team *team, rrl_engine *engine, rrl_mailbox *parts, const rrl_generation *g,
                               rrl_part *mine, int32_t n) {
    rrl_request *requests = NULL;
    context x = {team, parts, g};
    const rrl_rollout_counters *count = rrl_rollout_counts(engine->rollout);
    int64_t prefill = count->prefill_tokens, rows = count->decode_rows;
    RRL_TRY(rrl_alloc(&requests, (size_t)n, sizeof *requests, "requests"));
    for (int32_t i = 0; i < n; i++) {
        int32_t q = g->questions[mine[i].group];
        requests[i] = (rrl_request){.prompt = g->pool->ids[q], .n_prompt = g->pool->n_ids[q], .first = mine[i].first,
                                    .count = mine[i].count, .adapter = g->adapter ? 0 : -1, .sampling = g->sampling,
                                    .key = {.seed = g->seed, .purpose = g->purpose, .step = (uint32_t)g->step,
                                            .question = g->pool->keys[q]},
                                    .dropout = g->dropout, .user = &mine[i]};
    }
    rrl_status rc = rrl_rollout_run(engine->rollout, &g->adapter, g->adapter ? 1 : 0, requests, n, on_done, &x, on_beat);
    team->work.prefill_tokens += count->prefill_tokens - prefill;
    team->work.decode_rows += count->decode_rows - rows;
    free(requests);
    return rc;
}

rrl_status rrl_generate(rrl_team *team, rrl_engine *engine, rrl_mailbox *parts, const rrl_generation *g) {
    rrl_status rc = RRL_OK;
    rrl_part *mine = NULL;
    int32_t n = 0, all = rrl_team_parts(team, g->n_groups, g->group_size);
    RRL_TRY(rrl_alloc(&mine, (size_t)all, sizeof *mine, "parts"));
    for (int32_t p = 0; p < all; p++) {
        rrl_part part = rrl_team_part(team, g->n_groups, g->group_size, p);
        if (part.generator == team->generators.index) mine[n++] = part;
    }
    if (n > 0)
        rc = engine->rollout ? decode_parts(team, engine, parts, g, mine, n) : fixture_parts(team, parts, g, mine, n);
    free(mine);
    return rc;
}
