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

static rrl_status generate(rrl_session *s, const rrl_step_groups *b) {
    const rrl_config *c = s->config;
    rrl_generation g = {.pool = &s->engine->train, .questions = b->questions, .n_groups = s->groups,
                        .group_size = s->group_size, .purpose = RRL_RNG_TRAIN,
                        .step = b->step, .policy_version = s->state.updates,
                        .seed = (uint64_t)c->seed, .sampling = rrl_sampling_of(c),
                        .dropout = c->training.lora.dropout_in_rollout ? (float)c->training.lora.dropout : 0,
                        .adapter = s->adapter};
    rrl_status rc = rrl_generate(s->team, s->engine, s->parts, &g);
    if (rc != RRL_OK)
        for (int i = 0; i < s->team->verifiers.n; i++) rrl_mailbox_send_error(s->parts, s->team->verifiers.rank[i]);
    return rc;
}

static rrl_status judge(rrl_session *s) {
    rrl_status rc = rrl_judge_step(s->judge, s->team, s->engine, s->parts, s->scored, &s->engine->train, s->groups,
                                   s->group_size, false);
    if (rc != RRL_OK)
        for (int i = 0; i < s->team->learners.n; i++) rrl_mailbox_send_error(s->scored, s->team->learners.rank[i]);
    return rc;
}

static void tell_learners(rrl_session *s) {
    for (int i = 0; i < s->team->learners.n; i++) rrl_mailbox_send_error(s->scored, s->team->learners.rank[i]);
}

rrl_status rrl_step_groups_produce(rrl_step_groups *b, rrl_session *s) {
    rrl_team *t = s->team;
    double t0 = rrl_clock();
    t->watch.phase = "rollout";
    rrl_status rc = t->generators.index >= 0 ? generate(s, b) : RRL_OK;
    double t1 = rrl_clock();
    t->watch.phase = "verdicts";
    if (t->verifiers.index >= 0) {
        if (rc == RRL_OK) rc = judge(s);
        if (rc != RRL_OK) tell_learners(s); /* failed as generator or as verifier: they wait for this rank */
    }
    b->rollout_s = t1 - t0;
    b->verify_s = rrl_clock() - t1;
    return rc;
}

rrl_status rrl_step_groups_collect(rrl_step_groups *b, rrl_session *s) {
    s->team->watch.phase = "collecting";
    for (int32_t i = 0; i < s->groups; i++) {
        rrl_group *g = NULL;
        RRL_TRY(rrl_mailbox_receive(s->scored, &g));
        int32_t slot = g->head.slot;
        if (slot < 0 || slot >= s->groups || b->groups[slot] || g->head.step != b->step ||
            g->head.question != b->questions[slot]) {
            rrl_group_free(&g);
            return RRL_FAIL(RRL_ERR_COMM, "step %lld: group %d arrived twice or does not belong to the step",
                            (long long)b->step, slot);
        }
        b->groups[slot] = g;
    }
    return rrl_advantages_step(b->groups, s->groups, (rrl_scale_rewards)s->config->training.scale_rewards,
                               s->config->reward.missing == RRL_MISSING_EXCLUDE);
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
