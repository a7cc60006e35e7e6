/* From scheduled questions to judged groups with advantages. */
#include "roles/step_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "learn/schedule.h"
#include "rrl/shape.h"

static void drop_groups(rrl_step_groups *b, const rrl_session *s) {
    for (int32_t g = 0; b->groups && g < s->groups; g++) rrl_group_free(&b->groups[g]);
    b->step = -1;
}

rrl_status rrl_step_groups_open(rrl_step_groups *b, const rrl_session *s) {
    size_t n = (size_t)s->groups;
    b->step = -1;
    RRL_TRY(rrl_alloc(&b->questions, n, sizeof *b->questions, "questions of a step"));
    RRL_TRY(rrl_alloc(&b->groups, n, sizeof *b->groups, "groups of a step"));
    return rrl_alloc(&b->prompts, n, sizeof *b->prompts, "prompts of a step");
}

void rrl_step_groups_close(rrl_step_groups *b, const rrl_session *s) {
    drop_groups(b, s);
    free(b->questions);
    free(b->groups);
    free(b->prompts);
    *b = (rrl_step_groups){0};
}

rrl_status rrl_step_groups_begin(rrl_step_groups *b, const rrl_session *s, int64_t step) {
    const rrl_pool *pool = &s->engine->train;
    drop_groups(b, s);
    RRL_TRY(rrl_schedule_questions(b->questions, step / s->config->training.num_iterations, s->groups,
                                   pool->questions->n, (uint64_t)s->config->seed));
    for (int32_t g = 0; g < s->groups; g++) {
        int32_t q = b->questions[g];
        b->prompts[g] = (rrl_prompt_view){pool->ids[q], pool->n_ids[q], pool->keys[q]};
    }
    b->step = step;
    return RRL_OK;
}

static rrl_generation generation_of(const rrl_step_groups *b, const rrl_session *s) {
    const rrl_config *c = s->config;
    return (rrl_generation){.run = s->place, .pool = &s->engine->train, .questions = b->questions, .n_groups = s->groups,
                            .group_size = s->group_size, .purpose = RRL_RNG_TRAIN, .step = b->step,
                            .policy_version = s->state.updates, .seed = (uint64_t)c->seed,
                            .sampling = rrl_sampling_of(c),
                            .dropout = c->training.lora.dropout_in_rollout ? (float)c->training.lora.dropout : 0,
                            .adapter = s->adapter};
}

static rrl_status generate(rrl_step_groups *const *b, rrl_session *const *s, int n) {
    rrl_generation *g = NULL;
    rrl_team *t = s[0]->team;
    rrl_status rc = rrl_alloc(&g, (size_t)n, sizeof *g, "work of a step");
    for (int i = 0; rc == RRL_OK && i < n; i++) g[i] = generation_of(b[i], s[i]);
    if (rc == RRL_OK) rc = rrl_generate(t, s[0]->engine, t->parts, g, n);
    if (rc != RRL_OK)
        for (int i = 0; i < t->verifiers.n; i++) rrl_mailbox_send_error(t->parts, t->verifiers.rank[i]);
    free(g);
    return rc;
}

/* Sessions are told apart by their place; those not in this step expect nothing. */
static rrl_status judge(rrl_session *const *s, int n) {
    rrl_expected *e = NULL;
    rrl_team *t = s[0]->team;
    int32_t places = s[n - 1]->place + 1; /* places ascend */
    RRL_TRY(rrl_alloc(&e, (size_t)places, sizeof *e, "groups expected"));
    for (int i = 0; i < n; i++) {
        const int32_t rows = (int32_t)s[i]->config->training.slot_rows;
        e[s[i]->place] = (rrl_expected){s[i]->judge, &s[i]->engine->train, s[i]->groups, s[i]->group_size,
                                        rows > 0 ? s[i]->group_size / rows : 1};
    }
    rrl_status rc = rrl_judge_step(t, s[0]->engine, t->parts, t->scored, e, places, false);
    free(e);
    return rc;
}

static void tell_learners(rrl_team *t) {
    for (int i = 0; i < t->learners.n; i++) rrl_mailbox_send_error(t->scored, t->learners.rank[i]);
}

rrl_status rrl_step_groups_produce(rrl_step_groups *const *b, rrl_session *const *s, int n) {
    rrl_team *t = s[0]->team;
    double t0 = rrl_clock();
    t->watch.phase = "rollout";
    rrl_status rc = t->generators.index >= 0 ? generate(b, s, n) : RRL_OK;
    double t1 = rrl_clock();
    t->watch.phase = "verdicts";
    if (t->verifiers.index >= 0) {
        if (rc == RRL_OK) rc = judge(s, n);
        if (rc != RRL_OK) tell_learners(t); /* failed as generator or as verifier: they wait for this rank */
    }
    for (int i = 0; i < n; i++) {
        b[i]->rollout_s = t1 - t0;
        b[i]->verify_s = rrl_clock() - t1;
    }
    return rc;
}

/* Put a group in its place of the schedule; its session is found by its place in the fleet. */
static rrl_status place_group(rrl_group **g, rrl_step_groups *const *b, rrl_session *const *s, int n) {
    const rrl_group_head *h = &(*g)->head;
    for (int i = 0; i < n; i++) {
        if (s[i]->place != h->run) continue;
        if (h->slot < 0 || h->slot >= s[i]->groups || b[i]->groups[h->slot] || h->step != b[i]->step ||
            h->question != b[i]->questions[h->slot])
            break;
        b[i]->groups[h->slot] = *g;
        *g = NULL;
        return RRL_OK;
    }
    return RRL_FAIL(RRL_ERR_COMM, "step %lld: group %d of run %lld arrived twice or does not belong to the step",
                    (long long)h->step, h->slot, (long long)h->run);
}

rrl_status rrl_step_groups_collect(rrl_step_groups *const *b, rrl_session *const *s, int n) {
    rrl_team *t = s[0]->team;
    int32_t all = 0;
    t->watch.phase = "collecting";
    for (int i = 0; i < n; i++) all += s[i]->groups;
    for (int32_t i = 0; i < all; i++) {
        rrl_group *g = NULL;
        RRL_TRY(rrl_mailbox_receive(t->scored, &g));
        rrl_status rc = place_group(&g, b, s, n);
        rrl_group_free(&g);
        RRL_TRY(rc);
    }
    for (int i = 0; i < n; i++)
        RRL_TRY(rrl_advantages_step(b[i]->groups, s[i]->groups, (rrl_scale_rewards)s[i]->config->training.scale_rewards,
                                    s[i]->config->reward.missing == RRL_MISSING_EXCLUDE));
    return RRL_OK;
}

/* --- groups in flight: u64 length and packed bytes of each group */

rrl_status rrl_step_groups_pack(rrl_buffer *out, const rrl_step_groups *b, const rrl_session *s) {
    for (int32_t g = 0; g < s->groups; g++) {
        char *bytes = NULL;
        size_t n = 0;
        RRL_TRY(rrl_group_pack(&bytes, &n, b->groups[g]));
        uint64_t length = n;
        rrl_status rc = rrl_buffer_put(out, &length, sizeof length);
        if (rc == RRL_OK) rc = rrl_buffer_put(out, bytes, n);
        free(bytes);
        RRL_TRY(rc);
    }
    return RRL_OK;
}

rrl_status rrl_step_groups_unpack(rrl_step_groups *b, const rrl_session *s, int64_t step, const rrl_buffer *bytes) {
    size_t at = 0;
    RRL_TRY(rrl_step_groups_begin(b, s, step));
    for (int32_t g = 0; g < s->groups; g++) {
        uint64_t n = 0;
        if (bytes->len - at >= sizeof n) memcpy(&n, bytes->data + at, sizeof n);
        if (n == 0 || n > bytes->len - at - sizeof n)
            return RRL_FAIL(RRL_ERR_DATA, "checkpoint of step %lld: group %d of %d in flight is missing; use --fresh to "
                            "start again", (long long)step, g, s->groups);
        RRL_TRY(rrl_group_unpack(&b->groups[g], bytes->data + at + sizeof n, (size_t)n));
        at += sizeof n + (size_t)n;
    }
    return RRL_OK;
}
