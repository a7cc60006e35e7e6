/* One optimiser update after the other: generate, judge, learn, publish. Every rank walks the same steps and takes part
 * with the roles it has; errors are agreed at the named points. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/signals.h"
#include "base/text.h"
#include "learn/row_report.h"
#include "learn/schedule.h"
#include "roles/pace.h"
#include "roles/session.h"
#include "rrl/shape.h"

/* The batch that the updates of one sampling step serve. */
typedef struct {
    int32_t *questions;     /* [groups] */
    rrl_group **groups;     /* [groups], learners; NULL elsewhere */
    rrl_prompt_view *prompts;
    rrl_row_stats *stats;   /* [groups * G] */
    int32_t *row_first;     /* [learners + 1]: rows of each learner */
    double rollout_s, verify_s;
} batch;

static void batch_clear(rrl_session *s, batch *b) {
    for (int32_t g = 0; b->groups && g < s->groups; g++) rrl_group_free(&b->groups[g]);
}

static void batch_free(rrl_session *s, batch *b) {
    batch_clear(s, b);
    free(b->questions);
    free(b->groups);
    free(b->prompts);
    free(b->stats);
    free(b->row_first);
}

static rrl_status batch_make(batch *b, const rrl_session *s) {
    size_t n = (size_t)s->groups;
    RRL_TRY(rrl_alloc(&b->questions, n, sizeof *b->questions, "questions of a step"));
    RRL_TRY(rrl_alloc(&b->groups, n, sizeof *b->groups, "groups of a step"));
    RRL_TRY(rrl_alloc(&b->prompts, n, sizeof *b->prompts, "prompts of a step"));
    RRL_TRY(rrl_alloc(&b->stats, n * (size_t)s->group_size, sizeof *b->stats, "row statistics"));
    return rrl_alloc(&b->row_first, (size_t)s->team->learners.n + 1, sizeof *b->row_first, "learner shares");
}

/* Sampling step of an update: the first of the num_iterations updates that share its batch. */
static int64_t sampling_step(const rrl_session *s, int64_t step) {
    return step - step % s->config->training.num_iterations;
}

static rrl_status generate(rrl_session *s, batch *b) {
    const rrl_config *c = s->config;
    rrl_generation g = {.pool = &s->engine->train, .questions = b->questions, .n_groups = s->groups,
                        .group_size = s->group_size, .purpose = RRL_RNG_TRAIN,
                        .step = sampling_step(s, s->state.step), .policy_version = s->state.updates,
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

/* Receive every group of the step and put it in its place of the schedule. */
static rrl_status collect(rrl_session *s, batch *b) {
    for (int32_t i = 0; i < s->groups; i++) {
        rrl_group *g = NULL;
        RRL_TRY(rrl_mailbox_receive(s->scored, &g));
        int32_t slot = g->head.slot;
        if (slot < 0 || slot >= s->groups || b->groups[slot] || g->head.question != b->questions[slot]) {
            rrl_group_free(&g);
            return RRL_FAIL(RRL_ERR_COMM, "step %lld: group %d arrived twice or does not belong to the step",
                            (long long)s->state.step, slot);
        }
        b->groups[slot] = g;
    }
    return rrl_advantages_step(b->groups, s->groups, (rrl_scale_rewards)s->config->training.scale_rewards,
                               s->config->reward.missing == RRL_MISSING_EXCLUDE);
}

/* Roles in the order of the flow. A rank whose part failed leaves out the rest: its receivers got an error head. */
static rrl_status sample_batch(rrl_session *s, batch *b) {
    rrl_team *t = s->team;
    int64_t index = s->state.step / s->config->training.num_iterations;
    batch_clear(s, b);
    RRL_TRY(rrl_schedule_questions(b->questions, index, s->groups, s->engine->train.questions->n,
                                   (uint64_t)s->config->seed));
    for (int32_t g = 0; g < s->groups; g++)
        b->prompts[g] = (rrl_prompt_view){s->engine->train.ids[b->questions[g]], s->engine->train.n_ids[b->questions[g]],
                                          s->engine->train.keys[b->questions[g]]};
    double t0 = rrl_clock();
    t->watch.phase = "rollout";
    rrl_status rc = t->generators.index >= 0 ? generate(s, b) : RRL_OK;
    double t1 = rrl_clock();
    t->watch.phase = "verdicts";
    if (t->verifiers.index >= 0) {
        rrl_status judged = rc == RRL_OK ? judge(s) : rc;
        if (judged != RRL_OK && rc != RRL_OK) /* failed as a generator: the learners wait for it too */
            for (int i = 0; i < t->learners.n; i++) rrl_mailbox_send_error(s->scored, t->learners.rank[i]);
        rc = judged;
    }
    if (t->learners.index >= 0 && rc == RRL_OK) rc = collect(s, b);
    b->rollout_s = t1 - t0;
    b->verify_s = rrl_clock() - t1;
    return rc;
}

/* Gradient of this learner's slots; rows of every learner are shared so that each can make the step's report. */
static rrl_status gradient(rrl_session *s, batch *b, int *active) {
    int32_t first, n, active_n;
    int32_t slots = rrl_learner_slots(s->learner), rows = s->groups * s->group_size / slots;
    int iteration = (int)(s->state.step % s->config->training.num_iterations);
    for (int i = 0; i <= s->team->learners.n; i++) {
        rrl_learner_share(&first, &n, &active_n, slots, s->team->learners.n, i);
        b->row_first[i] = first * rows;
    }
    rrl_learner_share(&first, &n, &active_n, slots, s->team->learners.n, s->team->learners.index);
    *active = active_n;
    s->team->work.slots_learned += n;
    return rrl_learner_gradient(s->learner, b->stats + first * rows, b->groups, b->prompts, first, n, iteration);
}

/* Sum over learners and update; every learner computes the same update, bit for bit. */
static rrl_status update(rrl_session *s, batch *b, int active, rrl_training_row *row, bool *finite) {
    const rrl_config *c = s->config;
    RRL_TRY(s->learners->ops->share_rows(s->learners, b->stats, sizeof *b->stats, b->row_first));
    RRL_TRY(s->learners->ops->tree_sum(s->learners, rrl_learner_gradient_data(s->learner), rrl_learner_scratch(s->learner),
                                       rrl_adapter_size(s->adapter), active));
    rrl_report_rewards(row, b->groups, s->groups);
    rrl_report_loss(row, rrl_learner_loss(s->learner), b->groups, s->groups, b->stats);
    row->step = s->state.step;
    row->policy_version = b->groups[0]->head.policy_version;
    row->learning_rate = rrl_learning_rate((rrl_lr_scheduler)c->training.lr_scheduler, c->training.learning_rate,
                                           s->state.step, c->training.max_steps, c->training.warmup_steps);
    RRL_TRY(rrl_learner_update(s->learner, &row->grad_norm, finite, row->learning_rate, row->loss));
    row->nonfinite = *finite ? 0 : 1;
    for (int32_t g = 0; g < s->groups; g++) s->state.num_tokens += b->groups[g]->head.n_tokens;
    row->num_tokens = s->state.num_tokens;
    return rrl_learner_b_norm(&row->lora_b_norm, s->learner);
}

/* New adapter to the ranks that generate but do not learn; all ranks learn whether the update was applied. */
static rrl_status publish(rrl_session *s, bool *finite) {
    int64_t applied = s->team->learners.index >= 0 ? (*finite ? 1 : 0) : 0;
    RRL_TRY(rrl_team_max(s->team, &applied, 1));
    *finite = applied != 0;
    if (!s->publishing) return RRL_OK;
    RRL_TRY(s->publishing->ops->broadcast(s->publishing, rrl_adapter_data(s->adapter),
                                          (size_t)rrl_adapter_size(s->adapter) * sizeof(float), 0));
    return s->learner ? RRL_OK : rrl_adapter_refresh(s->adapter);
}

static void log_step(rrl_session *s, const rrl_training_row *row, bool finite) {
    rrl_log_step(s->team->log, row->step);
    if (!finite)
        rrl_event(s->team->log, RRL_LOG_WARN, "nonfinite", "loss=%g grad_norm=%g update=left_out count=%lld", row->loss,
                  row->grad_norm, (long long)s->state.nonfinite);
    if (row->step % s->config->training.logging_steps == 0)
        rrl_event(s->team->log, RRL_LOG_INFO, "step", "reward=%.4f correct=%.4f kl=%.5f grad_norm=%.4f lr=%.3g s=%.3f",
                  row->reward, row->correct, row->kl, row->grad_norm, row->learning_rate, row->step_time);
}

/* Recorder: hand groups and row over. A later iteration of a batch has a row only. */
static rrl_status record(rrl_session *s, batch *b, rrl_training_row *row, bool last_use) {
    rrl_group **out = NULL;
    rrl_status rc = RRL_OK;
    bool first = s->state.step % s->config->training.num_iterations == 0;
    RRL_TRY(rrl_alloc(&out, (size_t)s->groups, sizeof *out, "groups to record"));
    for (int32_t g = 0; first && g < s->groups; g++) {
        if (last_use) {
            out[g] = b->groups[g];
            b->groups[g] = NULL;
            continue;
        }
        char *bytes = NULL;
        size_t n = 0;
        RRL_GOTO(rrl_group_pack(&bytes, &n, b->groups[g]));
        rc = rrl_group_unpack(&out[g], bytes, n);
        free(bytes);
        if (rc != RRL_OK) goto done;
    }
    RRL_GOTO(rrl_recorder_step(s->recorder, out, first ? s->groups : 0, row));
done:
    for (int32_t g = 0; rc != RRL_OK && g < s->groups; g++) rrl_group_free(&out[g]);
    free(out);
    return rc;
}

static rrl_status save(rrl_session *s, rrl_pace *pace) {
    double began = rrl_clock();
    if (!s->recorder) return RRL_OK;
    RRL_TRY(rrl_recorder_flush(s->recorder));
    RRL_TRY(rrl_checkpoint_save(s->spec->dir, s->learner, s->adapter, &s->state, s->digest,
                                s->config->records.keep_checkpoints));
    rrl_event(s->team->log, RRL_LOG_INFO, "checkpoint", "next_step=%lld", (long long)s->state.step);
    rrl_pace_save(pace, rrl_clock() - began);
    return RRL_OK;
}

/* One update; between the agreements nothing returns early that another rank waits for. */
static rrl_status one_step(rrl_session *s, batch *b) {
    rrl_team *t = s->team;
    rrl_training_row row = {0};
    bool finite = true, learns = s->learner != NULL;
    int active = 0;
    double start = rrl_clock();
    int64_t iterations = s->config->training.num_iterations, iteration = s->state.step % iterations;
    if (iteration == 0) RRL_TRY(rrl_team_agree(t, sample_batch(s, b), "verdicts"));
    double learn_start = rrl_clock();
    t->watch.phase = "learning";
    RRL_TRY(rrl_team_agree(t, learns ? gradient(s, b, &active) : RRL_OK, "before update"));
    RRL_TRY(rrl_team_agree(t, learns ? update(s, b, active, &row, &finite) : RRL_OK, "before publish"));
    RRL_TRY(rrl_team_agree(t, publish(s, &finite), "publish"));
    s->state.step++;
    if (finite) s->state.updates++;
    else s->state.nonfinite++;
    if (!s->recorder) return RRL_OK;
    row.rollout_time = iteration == 0 ? b->rollout_s : 0;
    row.verify_time = iteration == 0 ? b->verify_s : 0;
    row.learn_time = rrl_clock() - learn_start;
    row.step_time = rrl_clock() - start;
    row.peak_memory = rrl_peak_memory();
    log_step(s, &row, finite);
    return record(s, b, &row, iterations == 1);
}

static bool at_boundary(const rrl_session *s) { return s->state.step % s->config->training.num_iterations == 0; }

/* The bar names the condition of a study: its line stays on the terminal when the next one begins. */
static rrl_status open_bar(rrl_progress **bar, const rrl_session *s) {
    char what[80] = "train", level[RRL_NUMBER_CHARS] = "";
    const rrl_run_spec *p = s->spec;
    if (!isnan(p->level)) rrl_format_g(level, p->level);
    if (p->arm[0])
        snprintf(what, sizeof what, "%s%s%s %s %llu", p->arm, level[0] ? " " : "", level, p->method,
                 (unsigned long long)s->config->seed);
    return rrl_progress_open(bar, what, s->config->training.max_steps - s->state.step, 1);
}

/* Why all ranks are to stop now; NULL = go on. Collective. */
static rrl_status stop_asked(const char **why, const rrl_session *s, const rrl_pace *pace) {
    int64_t asked[2] = {rrl_signal_stop(), rrl_pace_time_is_up(pace)};
    RRL_TRY(rrl_team_max(s->team, asked, 2));
    *why = asked[0] ? "by a signal" : asked[1] ? "before the job's time limit" : NULL;
    return RRL_OK;
}

static void say(const rrl_session *s, rrl_pace *pace, bool now) {
    if (s->recorder) rrl_pace_say(pace, s->spec->dir, "train", s->state.step, s->config->training.max_steps, now);
}

rrl_status rrl_train_loop(rrl_session *s) {
    const rrl_training_config *c = &s->config->training;
    rrl_status rc = RRL_OK;
    rrl_progress *bar = NULL;
    batch b = {0};
    rrl_pace pace = {0};
    const char *stop = NULL;
    RRL_GOTO(rrl_team_agree(s->team, batch_make(&b, s), "before training"));
    if (s->recorder) RRL_GOTO(open_bar(&bar, s));
    say(s, &pace, true);
    while (s->state.step < c->max_steps) {
        double began = rrl_clock();
        RRL_GOTO(rrl_team_agree(s->team, one_step(s, &b), "end of step"));
        rrl_pace_step(&pace, rrl_clock() - began);
        say(s, &pace, false);
        rrl_progress_add(bar, 1, "");
        if (s->state.nonfinite >= c->max_nonfinite) {
            rc = RRL_FAIL(RRL_ERR_NONFINITE, "%lld steps had a loss or gradient that is not finite (training.max_nonfinite "
                          "%lld); the last at step %lld; lower training.learning_rate or look at the data",
                          (long long)s->state.nonfinite, (long long)c->max_nonfinite, (long long)s->state.step - 1);
            RRL_GOTO(rrl_team_agree(s->team, rc, "numbers")); /* all failed alike: one of them says it */
        }
        bool last = s->state.step == c->max_steps;
        RRL_GOTO(stop_asked(&stop, s, &pace));
        bool due = c->save_steps > 0 && s->state.step % c->save_steps == 0;
        if (at_boundary(s) && (stop || due || last)) RRL_GOTO(rrl_team_agree(s->team, save(s, &pace), "checkpoint"));
        if (stop && !last && at_boundary(s)) {
            say(s, &pace, true);
            rc = RRL_FAIL(RRL_ERR_REQUEUE, "stopped %s after step %lld with a checkpoint; the same command continues",
                          stop, (long long)s->state.step - 1);
            RRL_GOTO(rrl_team_agree(s->team, rc, "stop"));
        }
    }
done:
    rrl_progress_close(&bar);
    batch_free(s, &b);
    return rc;
}
