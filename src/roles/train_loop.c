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
#include "roles/recording.h"

/* How far the writing may stay behind, in pieces of a session: a step and a checkpoint where each is written, else steps
 * that are joined. */
enum { EACH_WAITING = 2, JOINED_WAITING = 64 };

/* What the loop holds of a session: the batch learnt from and, with a pipeline, the one sampled ahead. */
typedef struct {
    rrl_session *s;
    rrl_writer *writer; /* recorder */
    rrl_step_groups now, next;
    rrl_training_row row; /* of this step */
    int active;           /* learners with slots */
    bool finite;
    bool due; /* a checkpoint, as soon as the writer is ready */
    double learn_s;
    rrl_pace pace;
    rrl_row_stats *stats; /* [groups * G] */
    int32_t *row_first;   /* [learners + 1]: rows of each learner */
} loop;

static rrl_status loop_open(loop *l) {
    const rrl_session *s = l->s;
    RRL_TRY(rrl_step_groups_open(&l->now, s));
    RRL_TRY(rrl_step_groups_open(&l->next, s));
    RRL_TRY(rrl_alloc(&l->stats, (size_t)s->groups * (size_t)s->group_size, sizeof *l->stats, "row statistics"));
    RRL_TRY(rrl_alloc(&l->row_first, (size_t)s->team->learners.n + 1, sizeof *l->row_first, "learner shares"));
    /* groups in flight of the checkpoint: their step is not sampled again */
    if (s->in_flight.len > 0) return rrl_step_groups_unpack(&l->now, s, s->state.step, &s->in_flight);
    return RRL_OK;
}

static void loop_close(loop *l) {
    const rrl_session *s = l->s;
    rrl_step_groups_close(&l->now, s);
    rrl_step_groups_close(&l->next, s);
    free(l->stats);
    free(l->row_first);
}

static bool first_use(const rrl_session *s) { return s->state.step % s->config->training.num_iterations == 0; }

/* The sessions of a fleet that take part in a step, and their batches: what step_groups.h asks for. */
typedef struct {
    rrl_team *team;
    loop **l;            /* [n] */
    rrl_session **s;     /* [n] */
    rrl_step_groups **b; /* [n] */
    int n;
} crew;

static rrl_status crew_open(crew *c, rrl_team *team, int most) {
    c->team = team;
    RRL_TRY(rrl_alloc(&c->l, (size_t)most, sizeof *c->l, "fleet"));
    RRL_TRY(rrl_alloc(&c->s, (size_t)most, sizeof *c->s, "fleet"));
    return rrl_alloc(&c->b, (size_t)most, sizeof *c->b, "fleet");
}

static void crew_close(crew *c) {
    free(c->l);
    free(c->s);
    free(c->b);
}

static void crew_add(crew *c, loop *l, rrl_step_groups *b) {
    c->l[c->n] = l;
    c->s[c->n] = l->s;
    c->b[c->n++] = b;
}

/* Begin a step of the crew's batches and do this rank's share of generating and judging. */
static rrl_status crew_produce(crew *c, bool ahead) {
    for (int i = 0; i < c->n; i++) {
        int64_t step = c->s[i]->state.step + (ahead ? c->s[i]->config->training.num_iterations : 0);
        RRL_TRY(rrl_step_groups_begin(c->b[i], c->s[i], step));
    }
    return rrl_step_groups_produce(c->b, c->s, c->n);
}

static bool learns(const crew *c) { return c->team->learners.index >= 0; }

/* Sessions whose batch is not there yet: all of them without a pipeline. */
static rrl_status sample_now(crew *c) {
    if (c->n == 0) return RRL_OK;
    RRL_TRY(crew_produce(c, false));
    return learns(c) ? rrl_step_groups_collect(c->b, c->s, c->n) : RRL_OK;
}

/* Gradient of this learner's slots; rows of every learner are shared so that each can make the step's report. */
static rrl_status gradient(loop *l) {
    rrl_session *s = l->s;
    int32_t first, n, active_n;
    int32_t slots = rrl_learner_slots(s->learner), rows = s->groups * s->group_size / slots;
    int iteration = (int)(s->state.step % s->config->training.num_iterations);
    for (int i = 0; i <= s->team->learners.n; i++) {
        rrl_learner_share(&first, &n, &active_n, slots, s->team->learners.n, i);
        l->row_first[i] = first * rows;
    }
    rrl_learner_share(&first, &n, &active_n, slots, s->team->learners.n, s->team->learners.index);
    l->active = active_n;
    s->team->work.slots_learned += n;
    return rrl_learner_gradient(s->learner, l->stats + first * rows, l->now.groups, l->now.prompts, first, n, iteration);
}

/* Sum over learners and update; every learner computes the same update, bit for bit. */
static rrl_status update(loop *l) {
    rrl_session *s = l->s;
    const rrl_config *c = s->config;
    rrl_training_row *row = &l->row;
    rrl_group **groups = l->now.groups;
    RRL_TRY(s->learners->ops->share_rows(s->learners, l->stats, sizeof *l->stats, l->row_first));
    RRL_TRY(s->gradients->ops->tree_sum(s->gradients, rrl_learner_gradient_data(s->learner),
                                        rrl_learner_scratch(s->learner), rrl_adapter_size(s->adapter), l->active));
    rrl_report_rewards(row, groups, s->groups);
    rrl_report_loss(row, rrl_learner_loss(s->learner), groups, s->groups, l->stats);
    row->step = s->state.step;
    row->policy_version = groups[0]->head.policy_version;
    row->learning_rate = rrl_learning_rate((rrl_lr_scheduler)c->training.lr_scheduler, c->training.learning_rate,
                                           s->state.step, c->training.max_steps, c->training.warmup_steps);
    RRL_TRY(rrl_learner_update(s->learner, &row->grad_norm, &l->finite, row->learning_rate, row->loss));
    row->nonfinite = l->finite ? 0 : 1;
    for (int32_t g = 0; g < s->groups; g++) s->state.num_tokens += groups[g]->head.n_tokens;
    row->num_tokens = s->state.num_tokens;
    return rrl_learner_b_norm(&row->lora_b_norm, s->learner);
}

/* New adapter to the ranks that generate but do not learn; all ranks learn whether the update was applied. */
static rrl_status publish(loop *l) {
    rrl_session *s = l->s;
    int64_t applied = s->learner && l->finite;
    RRL_TRY(rrl_team_max(s->team, &applied, 1));
    l->finite = applied != 0;
    if (!s->publishing) return RRL_OK;
    RRL_TRY(s->publishing->ops->broadcast(s->publishing, rrl_adapter_data(s->adapter),
                                          (size_t)rrl_adapter_size(s->adapter) * sizeof(float), 0));
    return s->learner ? RRL_OK : rrl_adapter_refresh(s->adapter);
}

/* Ids of the questions that made a step which is left out, as many as make a line. */
static rrl_status bad_questions(rrl_buffer *ids, const loop *l) {
    enum { MOST = 16 };
    rrl_status rc = RRL_OK;
    const rrl_session *s = l->s;
    bool *bad = NULL;
    int n = 0;
    RRL_GOTO(rrl_alloc(&bad, (size_t)s->groups, sizeof *bad, "groups"));
    rrl_report_nonfinite(bad, l->now.groups, s->groups, l->stats);
    for (int32_t g = 0; g < s->groups; g++) {
        if (!bad[g] || n++ >= MOST) continue;
        const rrl_question *q = &s->engine->train.questions->rows[l->now.groups[g]->head.question];
        RRL_GOTO(rrl_buffer_printf(ids, "%s%s", ids->len ? " " : "", q->id));
    }
    if (n > MOST) RRL_GOTO(rrl_buffer_printf(ids, " and %d more", n - MOST));
done:
    free(bad);
    return rc;
}

static void log_nonfinite(const loop *l) {
    rrl_buffer ids = {0};
    const bool known = bad_questions(&ids, l) == RRL_OK;
    rrl_event(l->s->team->log, RRL_LOG_WARN, "nonfinite", "loss=%g grad_norm=%g update=left_out count=%lld questions=%s",
              l->row.loss, l->row.grad_norm, (long long)l->s->state.nonfinite, rrl_log_quoted(known ? ids.data : ""));
    rrl_buffer_free(&ids);
}

static void log_step(const loop *l) {
    rrl_session *s = l->s;
    const rrl_training_row *row = &l->row;
    if (l->finite && row->step % s->config->training.logging_steps != 0) return;
    rrl_session_focus(s);
    rrl_log_step(s->team->log, row->step);
    if (!l->finite) log_nonfinite(l);
    if (row->step % s->config->training.logging_steps == 0)
        rrl_event(s->team->log, RRL_LOG_INFO, "step", "reward=%.4f correct=%.4f kl=%.5f grad_norm=%.4f lr=%.3g s=%.3f",
                  row->reward, row->correct, row->kl, row->grad_norm, row->learning_rate, row->step_time);
}

/* With a pipeline the batch after this one is sampled while this one is learnt from, with the adapter from before the
 * update: step s has version s - 1 exactly. Pure generators and verifiers work beside pure learners; a rank with all
 * roles does one after the other, and the bits are the same. */
static rrl_status work(const crew *all, crew *ahead) {
    if (ahead->n > 0) RRL_TRY(crew_produce(ahead, true));
    all->team->watch.phase = "learning";
    if (!learns(all)) return RRL_OK;
    for (int i = 0; i < all->n; i++) RRL_TRY(gradient(all->l[i]));
    return ahead->n > 0 ? rrl_step_groups_collect(ahead->b, ahead->s, ahead->n) : RRL_OK;
}

static bool samples_ahead(const rrl_session *s) {
    const rrl_config *c = s->config;
    return c->parallel.pipeline_depth > 0 && first_use(s) &&
           s->state.step + c->training.num_iterations < c->training.max_steps;
}

static rrl_status update_all(const crew *all) {
    for (int i = 0; learns(all) && i < all->n; i++) RRL_TRY(update(all->l[i]));
    return RRL_OK;
}

static rrl_status publish_all(const crew *all) {
    for (int i = 0; i < all->n; i++) RRL_TRY(publish(all->l[i]));
    return RRL_OK;
}

/* The batch sampled ahead becomes the one to learn from once this one has served its updates. */
static void advance(loop *l) {
    const rrl_session *s = l->s;
    if (!first_use(s) || l->next.step != s->state.step) return;
    rrl_step_groups swap = l->now;
    l->now = l->next;
    l->next = swap;
}

/* What a step leaves behind in one session: counters on every rank, row and groups with the recorder. */
static rrl_status end_step(loop *l, const double idle[3], double step_s, double learn_s) {
    rrl_session *s = l->s;
    rrl_training_row *row = &l->row;
    rrl_status rc = RRL_OK;
    bool sampled = first_use(s);
    s->state.step++;
    if (l->finite) s->state.updates++;
    else s->state.nonfinite++;
    if (s->recorder) {
        row->rollout_time = sampled ? l->now.rollout_s : 0;
        row->verify_time = sampled ? l->now.verify_s : 0;
        row->learn_time = learn_s;
        row->step_time = step_s;
        row->idle_generators = idle[0];
        row->idle_verifiers = idle[1];
        row->idle_learners = idle[2];
        row->peak_memory = rrl_peak_memory();
        log_step(l);
        rc = rrl_record_step(l->writer, s, &l->now, row, s->config->training.num_iterations == 1);
    }
    advance(l);
    return rc;
}

/* One update of each session; between the agreements nothing returns early that another rank waits for. */
static rrl_status one_step(const crew *all, crew *now, crew *ahead) {
    rrl_team *t = all->team;
    double start = rrl_clock(), waited = t->watch.waited, idle[3];
    now->n = ahead->n = 0;
    for (int i = 0; i < all->n; i++) {
        loop *l = all->l[i];
        l->row = (rrl_training_row){0};
        l->finite = true;
        if (first_use(l->s) && l->now.step != l->s->state.step) crew_add(now, l, &l->now);
        if (samples_ahead(l->s)) crew_add(ahead, l, &l->next);
    }
    RRL_TRY(rrl_team_agree(t, sample_now(now), "verdicts"));
    double learn_start = rrl_clock();
    RRL_TRY(rrl_team_agree(t, work(all, ahead), "before update"));
    RRL_TRY(rrl_team_agree(t, update_all(all), "before publish"));
    RRL_TRY(rrl_team_agree(t, publish_all(all), "publish"));
    RRL_TRY(rrl_team_role_means(t, idle, (t->watch.waited - waited) / (rrl_clock() - start)));
    double end = rrl_clock();
    for (int i = 0; i < all->n; i++) RRL_TRY(end_step(all->l[i], idle, end - start, end - learn_start));
    return RRL_OK;
}

/* The bar names the condition of a study: its line stays on the terminal when the next one begins. */
static rrl_status open_bar(rrl_progress **bar, const loop *l, int n) {
    char what[80] = "train", level[RRL_NUMBER_CHARS] = "";
    int64_t updates = 0;
    const rrl_run_spec *p = l->s->spec;
    for (int i = 0; i < n; i++) updates += l[i].s->config->training.max_steps - l[i].s->state.step;
    if (!isnan(p->level)) rrl_format_g(level, p->level);
    if (n > 1) snprintf(what, sizeof what, "fleet of %d", n);
    else if (p->arm[0])
        snprintf(what, sizeof what, "%s%s%s %s %llu", p->arm, level[0] ? " " : "", level, p->method,
                 (unsigned long long)l->s->config->seed);
    return rrl_progress_open(bar, what, updates, 1);
}

/* Why all ranks are to stop now; NULL = go on. Collective. */
static rrl_status stop_asked(const char **why, rrl_team *team, const rrl_pace *pace) {
    int64_t asked[2] = {rrl_signal_stop(), rrl_pace_time_is_up(pace)};
    RRL_TRY(rrl_team_max(team, asked, 2));
    *why = asked[0] ? "by a signal" : asked[1] ? "before the job's time limit" : NULL;
    return RRL_OK;
}

static void say(loop *l, bool now) {
    const rrl_session *s = l->s;
    if (s->recorder) rrl_pace_say(&l->pace, s->spec->dir, "train", s->state.step, s->config->training.max_steps, now);
}

static bool done_training(const rrl_session *s) {
    return s->outcome != RRL_OK || s->state.step >= s->config->training.max_steps;
}

/* Too many steps without finite numbers: this session leaves the fleet, the others go on. */
static void leave_if_nonfinite(rrl_session *s, bool alone) {
    if (s->state.nonfinite < s->config->training.max_nonfinite) return;
    if (alone) s->team->peer_failed = s->team->rank != s->team->recorder; /* all fail alike: one of them says it */
    s->outcome = RRL_FAIL(RRL_ERR_NONFINITE, "%lld steps had a loss or gradient that is not finite (training.max_nonfinite "
                          "%lld); the last at step %lld; lower training.learning_rate or look at the data",
                          (long long)s->state.nonfinite, (long long)s->config->training.max_nonfinite,
                          (long long)s->state.step - 1);
    rrl_session_failed(s);
}

/* Checkpoint of a session where one is due and the writer ready for it, or at a stop and the end. */
static rrl_status save_if_due(loop *l, bool stop, bool ready) {
    rrl_session *s = l->s;
    const rrl_training_config *c = &s->config->training;
    if (c->save_steps > 0 && s->state.step % c->save_steps == 0) l->due = true;
    if (s->outcome != RRL_OK || !first_use(s)) return RRL_OK;
    if (!stop && !(l->due && ready) && s->state.step < c->max_steps) return RRL_OK;
    l->due = false;
    return rrl_record_checkpoint(l->writer, s, l->now.step == s->state.step ? &l->now : NULL, &l->pace);
}

/* The recorder's rank: hand over what steps left, where it is time, and a checkpoint with it. A stop waits for all. */
static rrl_status save(const crew *all, bool stop) {
    rrl_writer *w = all->l[0]->writer;
    if (!w) return RRL_OK;
    const bool ready = rrl_writer_ready(w);
    for (int i = 0; i < all->n; i++) RRL_TRY(save_if_due(all->l[i], stop, ready));
    if (stop) return rrl_writer_drain(w, &all->team->watch);
    return ready ? rrl_writer_go(w, &all->team->watch) : RRL_OK;
}

/* After a step: pace, sessions that leave, checkpoints, and the wish to stop. */
static rrl_status after_step(const crew *all, double seconds) {
    const char *why = NULL;
    bool at_boundary = true;
    for (int i = 0; i < all->n; i++) {
        rrl_pace_step(&all->l[i]->pace, seconds);
        say(all->l[i], false);
        leave_if_nonfinite(all->s[i], all->n == 1);
    }
    RRL_TRY(stop_asked(&why, all->team, &all->l[0]->pace));
    RRL_TRY(rrl_team_agree(all->team, save(all, why != NULL), "checkpoint"));
    bool last = true;
    for (int i = 0; i < all->n; i++) {
        at_boundary = at_boundary && first_use(all->s[i]);
        last = last && done_training(all->s[i]);
    }
    if (!why || last || !at_boundary) return RRL_OK;
    for (int i = 0; i < all->n; i++) say(all->l[i], true);
    return rrl_team_agree(all->team,
                          RRL_FAIL(RRL_ERR_REQUEUE, "stopped %s after step %lld with a checkpoint; the same command "
                                   "continues", why, (long long)all->s[0]->state.step - 1), "stop");
}

static rrl_status open_writer(rrl_writer **out, const rrl_session *s, int n) {
    const double share = s->config->records.writer_share;
    return rrl_writer_open(out, share, n * (share < 1 ? JOINED_WAITING : EACH_WAITING));
}

static rrl_status open_loops(loop *l, rrl_session *const *s, int n, crew *crews) {
    for (int i = 0; i < n; i++) {
        l[i].s = s[i];
        RRL_TRY(loop_open(&l[i]));
    }
    for (int i = 0; i < 3; i++) RRL_TRY(crew_open(&crews[i], s[0]->team, n));
    return RRL_OK;
}

rrl_status rrl_train_loop(rrl_session *const *s, int n) {
    rrl_status rc = RRL_OK;
    rrl_progress *bar = NULL;
    rrl_writer *writer = NULL;
    loop *l = NULL;
    crew crews[3] = {{0}}, *all = &crews[0];
    rrl_team *t = s[0]->team;
    RRL_TRY(rrl_alloc(&l, (size_t)n, sizeof *l, "fleet"));
    if (s[0]->recorder) rc = open_writer(&writer, s[0], n);
    if (rc == RRL_OK) rc = open_loops(l, s, n, crews);
    RRL_GOTO(rrl_team_agree(t, rc, "before training"));
    for (int i = 0; i < n; i++) l[i].writer = writer;
    /* learners alone hold groups in flight; all leave them out */
    for (int i = 0; i < n; i++) RRL_GOTO(rrl_team_max(t, &l[i].now.step, 1));
    if (s[0]->recorder) RRL_GOTO(open_bar(&bar, l, n));
    for (int i = 0; i < n; i++) say(&l[i], true);
    for (;;) {
        double began = rrl_clock();
        all->n = 0;
        for (int i = 0; i < n; i++)
            if (!done_training(s[i])) crew_add(all, &l[i], &l[i].now);
        if (all->n == 0) {
            RRL_GOTO(rrl_team_agree(t, writer ? rrl_writer_drain(writer, &t->watch) : RRL_OK, "training recorded"));
            break;
        }
        RRL_GOTO(rrl_team_agree(t, one_step(all, &crews[1], &crews[2]), "end of step"));
        rrl_progress_add(bar, all->n, "");
        RRL_GOTO(after_step(all, rrl_clock() - began));
    }
done:
    rrl_progress_close(&bar);
    rrl_writer_close(&writer, &t->watch); /* also after a failure: what was put before is written */
    for (int i = 0; i < 3; i++) crew_close(&crews[i]);
    for (int i = 0; i < n; i++)
        if (l[i].s) loop_close(&l[i]);
    free(l);
    return rc;
}
