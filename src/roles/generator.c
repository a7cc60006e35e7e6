/* From scheduled questions to completions. */
#include "roles/generator.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/signals.h"
#include "roles/fixture.h"

/* A part of one of the runs. */
typedef struct {
    rrl_part part;
    const rrl_generation *g;
} task;

/* What a finished part needs to know besides its task. */
typedef struct {
    rrl_team *team;
    rrl_mailbox *parts;
} context;

rrl_sampling rrl_sampling_of(const rrl_config *c) {
    return (rrl_sampling){.temperature = c->generation.temperature, .top_p = c->generation.top_p,
                          .repetition_penalty = c->generation.repetition_penalty, .top_k = (int32_t)c->generation.top_k,
                          .max_tokens = (int32_t)c->generation.max_tokens};
}

static void fill_head(rrl_group *group, const task *t) {
    const rrl_generation *g = t->g;
    const rrl_part *part = &t->part;
    group->head.run = g->run;
    group->head.purpose = g->purpose;
    group->head.step = g->step;
    group->head.policy_version = g->policy_version;
    group->head.question = g->questions[part->group];
    group->head.slot = part->group;
    group->head.group_size = g->group_size;
    group->head.first = part->first;
}

static rrl_status send_part(rrl_team *team, rrl_mailbox *parts, rrl_group **group, const rrl_generation *g) {
    if (g->stops && rrl_signal_stop()) return RRL_FAIL(RRL_ERR_REQUEUE, "stopped by a signal while generating");
    int to = rrl_team_verifier_of(team, (*group)->head.slot);
    team->work.groups_generated++;
    rrl_watch_beat(&team->watch);
    return rrl_mailbox_send(parts, team->verifiers.rank[to], group);
}

/* A request is done: make the group part and let it go. */
static rrl_status on_done(void *user, const rrl_request *request, const rrl_completions *c) {
    context *x = user;
    const task *t = request->user;
    rrl_group *group = NULL;
    int64_t n_tokens = 0;
    for (int32_t i = 0; i < request->count; i++) n_tokens += c->n_tokens[i];
    RRL_TRY(rrl_group_create(&group, request->count, n_tokens));
    fill_head(group, t);
    memcpy(group->tokens, c->tokens, (size_t)n_tokens * sizeof *group->tokens);
    memcpy(group->logprobs, c->logprobs, (size_t)n_tokens * sizeof *group->logprobs);
    for (int32_t i = 0, at = 0; i < request->count; i++) {
        rrl_completion *r = &group->rows[i];
        float sum = 0;
        for (int32_t j = 0; j < c->n_tokens[i]; j++) sum += c->logprobs[at++];
        r->sample = t->part.first + i;
        r->n_tokens = c->n_tokens[i];
        r->finish = c->finish[i];
        r->logprob_sum = sum;
    }
    rrl_status rc = send_part(x->team, x->parts, &group, t->g);
    rrl_group_free(&group);
    return rc;
}

static void on_beat(void *user) { rrl_watch_beat(&((context *)user)->team->watch); }

static rrl_status fixture_parts(rrl_team *team, rrl_mailbox *parts, const task *mine, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        rrl_group *group = NULL;
        const rrl_generation *g = mine[i].g;
        const rrl_part *part = &mine[i].part;
        const rrl_question *q = &g->pool->questions->rows[g->questions[part->group]];
        RRL_TRY(rrl_fixture_group(&group, q, g->seed, g->purpose, part->first, part->count));
        fill_head(group, &mine[i]);
        rrl_status rc = send_part(team, parts, &group, g);
        rrl_group_free(&group);
        RRL_TRY(rc);
    }
    return RRL_OK;
}

/* Adapters of the runs, in order; a run on the base has none. */
static int32_t request_adapter(const rrl_generation *g, const rrl_generation *of) {
    int32_t at = 0;
    if (!of->adapter) return -1;
    for (; g != of; g++) at += g->adapter != NULL;
    return at;
}

static rrl_request request_of(const task *t, const rrl_generation *g) {
    int32_t q = t->g->questions[t->part.group];
    return (rrl_request){.prompt = t->g->pool->ids[q], .n_prompt = t->g->pool->n_ids[q], .first = t->part.first,
                         .count = t->part.count, .adapter = request_adapter(g, t->g), .sampling = t->g->sampling,
                         .key = {.seed = t->g->seed, .purpose = t->g->purpose, .step = (uint32_t)t->g->step,
                                 .question = t->g->pool->keys[q]},
                         .dropout = t->g->dropout, .user = (void *)t};
}

static rrl_status decode_parts(rrl_team *team, rrl_engine *engine, rrl_mailbox *parts, const rrl_generation *g,
                               int32_t n_runs, const task *mine, int32_t n) {
    rrl_status rc = RRL_OK;
    rrl_request *requests = NULL;
    rrl_adapter **adapters = NULL;
    context x = {team, parts};
    int32_t n_adapters = 0;
    const rrl_rollout_counters *count = rrl_rollout_counts(engine->rollout);
    int64_t prefill = count->prefill_tokens, rows = count->decode_rows;
    RRL_GOTO(rrl_alloc(&requests, (size_t)n, sizeof *requests, "requests"));
    RRL_GOTO(rrl_alloc(&adapters, (size_t)n_runs, sizeof *adapters, "adapters"));
    for (int32_t i = 0; i < n_runs; i++)
        if (g[i].adapter) adapters[n_adapters++] = g[i].adapter;
    for (int32_t i = 0; i < n; i++) requests[i] = request_of(&mine[i], g);
    rc = rrl_rollout_run(engine->rollout, adapters, n_adapters, requests, n, on_done, &x, on_beat);
    team->work.prefill_tokens += count->prefill_tokens - prefill;
    team->work.decode_rows += count->decode_rows - rows;
done:
    free(requests);
    free(adapters);
    return rc;
}

rrl_status rrl_generate(rrl_team *team, rrl_engine *engine, rrl_mailbox *parts, const rrl_generation *g, int32_t n) {
    rrl_status rc = RRL_OK;
    task *mine = NULL;
    int32_t n_mine = 0, all = 0;
    for (int32_t i = 0; i < n; i++) all += rrl_team_parts(team, g[i].n_groups, g[i].group_size);
    RRL_TRY(rrl_alloc(&mine, (size_t)all, sizeof *mine, "parts"));
    for (int32_t i = 0; i < n; i++)
        for (int32_t p = 0; p < rrl_team_parts(team, g[i].n_groups, g[i].group_size); p++) {
            rrl_part part = rrl_team_part(team, g[i].n_groups, g[i].group_size, p);
            if (part.generator == team->generators.index) mine[n_mine++] = (task){part, &g[i]};
        }
    if (n_mine > 0)
        rc = engine->rollout ? decode_parts(team, engine, parts, g, n, mine, n_mine)
                             : fixture_parts(team, parts, mine, n_mine);
    free(mine);
    return rc;
}
