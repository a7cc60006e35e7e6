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
#include "roles/step_groups.h"
#include "roles/session.h"

/* What the loop holds beside the session: the batch learnt from and, with a pipeline, the one sampled ahead. */
typedef struct {
    rrl_step_groups now, next;
    rrl_row_stats *stats; /* [groups * G] */
    int32_t *row_first;   /* [learners + 1]: rows of each learner */
} loop;

static rrl_status loop_open(loop *l, const rrl_session *s) {
    RRL_TRY(rrl_step_groups_open(&l->now, s));
    RRL_TRY(rrl_step_groups_open(&l->next, s));
    RRL_TRY(rrl_alloc(&l->stats, (size_t)s->groups * (size_t)s->group_size, sizeof *l->stats, "row statistics"));
    RRL_TRY(rrl_alloc(&l->row_first, (size_t)s->team->learners.n + 1, sizeof *l->row_first, "learner shares"));
    /* groups in flight of the checkpoint: their step is not sampled again */
    if (s->in_flight.len > 0) return rrl_step_groups_unpack(&l->now, s, s->state.step, &s->in_flight);
    return RRL_OK;
}

static void loop_close(loop *l, const rrl_session *s) {
    rrl_step_groups_close(&l->now, s);
    rrl_step_groups_close(&l->next, s);
    free(l->stats);
    free(l->row_first);
}

static bool first_use(const rrl_session *s) { return s->state.step % s->config->training.num_iterations == 0; }

/* Sample a batch with the adapter of now; learners with work of their own collect it later. */
static rrl_status sample_now(loop *l, rrl_session *s) {
    RRL_TRY(rrl_step_groups_begin(&l->now, s, s->state.step));
    RRL_TRY(rrl_step_groups_produce(&l->now, s));
    return s->learner ? rrl_step_groups_collect(&l->now, s) : RRL_OK;
}

/* Gradient of this learner's slots; rows of every learner are shared so that each can make the step's report. */
static rrl_status gradient(loop *l, rrl_session *s, int *active) {
    int32_t first, n, active_n;
    int32_t slots = rrl_learner_slots(s->learner), rows = s->groups * s->group_size / slots;
    int iteration = (int)(s->state.step % s->config->training.num_iterations);
    for (int i = 0; i <= s->team->learners.n; i++) {
        rrl_learner_share(&first, &n, &active_n, slots, s->team->learners.n, i);
        l->row_first[i] = first * rows;
    }
    rrl_learner_share(&first, &n, &active_n, slots, s->team->learners.n, s->team->learners.index);
    *active = active_n;
    s->team->work.slots_learned += n;
    return rrl_learner_gradient(s->learner, l->stats + first * rows, l->now.groups, l->now.prompts, first, n, iteration);
}

/* Sum over learners and update; every learner computes the same update, bit for bit. */
static rrl_status update(loop *l, rrl_session *s, int active, rrl_training_row *row, bool *finite) {
    const rrl_config *c = s->config;
    rrl_group **groups = l->now.groups;
    RRL_TRY(s->learners->ops->share_rows(s->learners, l->stats, sizeof *l->stats, l->row_first));
    RRL_TRY(s->learners->ops->tree_sum(s->learners, rrl_learner_gradient_data(s->learner), rrl_learner_scratch(s->learner),
                                       rrl_adapter_size(s->adapter), active));
    rrl_report_rewards(row, groups, s->groups);
    rrl_report_loss(row, rrl_learner_loss(s->learner), groups, s->groups, l->stats);
    row->step = s->state.step;
    row->policy_version = groups[0]->head.policy_version;
    row->learning_rate = rrl_learning_rate((rrl_lr_scheduler)c->training.lr_scheduler, c->training.learning_rate,
                                           s->state.step, c->training.max_steps, c->training.warmup_steps);
    RRL_TRY(rrl_learner_update(s->learner, &row->grad_norm, finite, row->learning_rate, row->loss));
    row->nonfinite = *finite ? 0 : 1;
    for (int32_t g = 0; g < s->groups; g++) s->state.num_tokens += groups[g]->head.n_tokens;
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
static rrl_status record(rrl_session *s, rrl_step_groups *b, rrl_training_row *row, bool last_use) {
    rrl_group **out = NULL;
    rrl_status rc = RRL_OK;
    bool first = row->step % s->config->training.num_iterations == 0;
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

static rrl_status save(const loop *l, rrl_session *s, rrl_pace *pace) {
    double began = rrl_clock();
    rrl_buffer in_flight = {0};
    rrl_status rc = RRL_OK;
    if (!s->recorder) return RRL_OK;
    if (l->now.step == s->state.step) RRL_GOTO(rrl_step_groups_pack(&in_flight, &l->now, s));
    RRL_GOTO(rrl_recorder_flush(s->recorder));
    RRL_GOTO(rrl_checkpoint_save(s->spec->dir, s->learner, s->adapter, &s->state, &in_flight, s->digest,
                                 s->config->records.keep_checkpoints));
    rrl_event(s->team->log, RRL_LOG_INFO, "checkpoint", "next_step=%lld", (long long)s->state.step);
    rrl_pace_save(pace, rrl_clock() - began);
done:
    rrl_buffer_free(&in_flight);
    return rc;
}

/* With a pipeline the batch after this one is sampled while this one is learnt from, with the adapter from before the
 * update: step s has version s - 1 exactly. Pure generators and verifiers work beside pure learners; a rank with all
 * roles does one after the other, and the bits are the same. */
static rrl_status work(loop *l, rrl_session *s, int *active) {
    int64_t ahead = s->state.step + s->config->training.num_iterations;
    bool sample = s->config->parallel.pipeline_depth > 0 && first_use(s) && ahead < s->config->training.max_steps;
    if (sample) {
        RRL_TRY(rrl_step_groups_begin(&l->next, s, ahead));
        RRL_TRY(rrl_step_groups_produce(&l->next, s));
    }
    s->team->watch.phase = "learning";
    if (!s->learner) return RRL_OK;
    RRL_TRY(gradient(l, s, active));
    return sample ? rrl_step_groups_collect(&l->next, s) : RRL_OK;
}

/* The batch sampled ahead becomes the one to learn from once this one has served its updates. */
static void advance(loop *l, rrl_session *s) {
    if (!first_use(s) || l->next.step != s->state.step) return;
    rrl_step_groups swap = l->now;
    l->now = l->next;
    l->next = swap;
}

/* One update; between the agreements nothing returns early that another rank waits for. */
static rrl_status one_step(loop *l, rrl_session *s) {
    rrl_team *t = s->team;
    rrl_training_row row = {0};
    bool finite = true, learns = s->learner != NULL, sampled = first_use(s);
    int active = 0;
    double start = rrl_clock(), waited = t->watch.waited, idle[3];
    if (sampled && l->now.step != s->state.step) RRL_TRY(rrl_team_agree(t, sample_now(l, s), "verdicts"));
    double learn_start = rrl_clock();
    RRL_TRY(rrl_team_agree(t, work(l, s, &active), "before update"));
    RRL_TRY(rrl_team_agree(t, learns ? update(l, s, active, &row, &finite) : RRL_OK, "before publish"));
    RRL_TRY(rrl_team_agree(t, publish(s, &finite), "publish"));
    RRL_TRY(rrl_team_role_means(t, idle, (t->watch.waited - waited) / (rrl_clock() - start)));
    s->state.step++;
    if (finite) s->state.updates++;
    else s->state.nonfinite++;
    rrl_status rc = RRL_OK;
    if (s->recorder) {
        row.rollout_time = sampled ? l->now.rollout_s : 0;
        row.verify_time = sampled ? l->now.verify_s : 0;
        row.learn_time = rrl_clock() - learn_start;
        row.step_time = rrl_clock() - start;
        row.idle_generators = idle[0];
        row.idle_verifiers = idle[1];
        row.idle_learners = idle[2];
        row.peak_memory = rrl_peak_memory();
        log_step(s, &row, finite);
        rc = record(s, &l->now, &row, s->config->training.num_iterations == 1);
    }
    advance(l, s);
    return rc;
}

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
    loop l = {0};
    rrl_pace pace = {0};
    const char *stop = NULL;
    RRL_GOTO(rrl_team_agree(s->team, loop_open(&l, s), "before training"));
    RRL_GOTO(rrl_team_max(s->team, &l.now.step, 1)); /* learners alone hold groups in flight; all leave them out */
    if (s->recorder) RRL_GOTO(open_bar(&bar, s));
    say(s, &pace, true);
    while (s->state.step < c->max_steps) {
        double began = rrl_clock();
        RRL_GOTO(rrl_team_agree(s->team, one_step(&l, s), "end of step"));
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
        if (first_use(s) && (stop || due || last)) RRL_GOTO(rrl_team_agree(s->team, save(&l, s, &pace), "checkpoint"));
        if (stop && !last && first_use(s)) {
            say(s, &pace, true);
            rc = RRL_FAIL(RRL_ERR_REQUEUE, "stopped %s after step %lld with a checkpoint; the same command continues",
                          stop, (long long)s->state.step - 1);
            RRL_GOTO(rrl_team_agree(s->team, rc, "stop"));
        }
    }
done:
    rrl_progress_close(&bar);
    loop_close(&l, s);
    return rc;
}
