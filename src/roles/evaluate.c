/* Evaluation: generators -> verifiers -> recorder, judged by the training ensemble and by the judge. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "roles/pace.h"
#include "roles/session.h"

static const char NAME[] = "test"; /* the same for base and all methods: they share evaluation noise */

/* Evaluation of one session: its groups in question order, with the recorder. */
typedef struct {
    rrl_session *s;
    rrl_group **groups; /* [n] */
    int32_t n;
} evaluation;

static rrl_status generate(evaluation *e, int n, const int32_t *questions) {
    rrl_team *t = e[0].s->team;
    rrl_generation *g = NULL;
    rrl_status rc = rrl_alloc(&g, (size_t)n, sizeof *g, "evaluations");
    for (int i = 0; rc == RRL_OK && i < n; i++) {
        const rrl_session *s = e[i].s;
        g[i] = (rrl_generation){.run = i, .pool = &s->engine->test, .questions = questions, .n_groups = e[i].n,
                                .group_size = s->group_size, .purpose = rrl_rng_evaluation(NAME),
                                .policy_version = s->state.updates, .seed = (uint64_t)s->config->seed,
                                .sampling = rrl_sampling_of(s->config), .adapter = s->adapter, .stops = true};
    }
    if (rc == RRL_OK) rc = rrl_generate(t, e[0].s->engine, t->parts, g, n);
    if (rc != RRL_OK)
        for (int i = 0; i < t->verifiers.n; i++) rrl_mailbox_send_error(t->parts, t->verifiers.rank[i]);
    free(g);
    return rc;
}

static rrl_status judge(evaluation *e, int n) {
    rrl_team *t = e[0].s->team;
    rrl_expected *x = NULL;
    RRL_TRY(rrl_alloc(&x, (size_t)n, sizeof *x, "evaluations"));
    for (int i = 0; i < n; i++)
        x[i] = (rrl_expected){e[i].s->judge, &e[i].s->engine->test, e[i].n, e[i].s->group_size, 0};
    rrl_status rc = rrl_judge_step(t, e[0].s->engine, t->parts, t->scored, x, n, true);
    free(x);
    return rc;
}

static rrl_status collect(evaluation *e, int n) {
    int32_t all = 0;
    for (int i = 0; i < n; i++) all += e[i].n;
    for (int32_t i = 0; i < all; i++) {
        rrl_group *g = NULL;
        RRL_TRY(rrl_mailbox_receive(e[0].s->team->scored, &g));
        const rrl_group_head *h = &g->head;
        if (h->run < 0 || h->run >= n || h->slot < 0 || h->slot >= e[h->run].n || e[h->run].groups[h->slot]) {
            rrl_group_free(&g);
            return RRL_FAIL(RRL_ERR_COMM, "evaluation: a question arrived twice or is none of its run's");
        }
        e[h->run].groups[h->slot] = g;
    }
    return RRL_OK;
}

/* All sessions in one decode batch: generators -> verifiers -> recorder. */
static rrl_status make_groups(evaluation *e, int n) {
    rrl_team *t = e[0].s->team;
    int32_t *questions = NULL;
    RRL_TRY(rrl_alloc(&questions, (size_t)e[0].n, sizeof *questions, "evaluation questions"));
    for (int32_t i = 0; i < e[0].n; i++) questions[i] = i;
    t->watch.phase = "evaluation rollout";
    rrl_status rc = t->generators.index >= 0 ? generate(e, n, questions) : RRL_OK;
    t->watch.phase = "evaluation verdicts";
    if (t->verifiers.index >= 0) {
        if (rc == RRL_OK) rc = judge(e, n);
        if (rc != RRL_OK) rrl_mailbox_send_error(t->scored, t->recorder);
    }
    if (e[0].s->recorder && rc == RRL_OK) rc = collect(e, n);
    free(questions);
    return rc;
}

/* Completions of the base were made once for the seed: judge them again at this condition's corruption. */
static rrl_status stored_groups(rrl_session *s, rrl_group **groups, int32_t n) {
    rrl_status rc = RRL_OK;
    rrl_record *record = NULL;
    rrl_group **stored = NULL;
    int64_t found = 0;
    if (!s->recorder) return RRL_OK;
    RRL_GOTO(rrl_record_read(&record, s->spec->base_record, 1));
    const rrl_record_set *set = rrl_record_evaluation(record, NAME);
    if (set) RRL_GOTO(rrl_record_groups(&stored, &found, set));
    if (found != n) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s holds %lld questions, this study has %d; remove it to have it made again",
                      s->spec->base_record, (long long)found, n);
        goto done;
    }
    for (int32_t i = 0; i < n; i++) {
        groups[i] = stored[i];
        stored[i] = NULL;
        int32_t q = groups[i]->head.question;
        RRL_GOTO(rrl_judge_group(s->judge, groups[i], &s->engine->test.questions->rows[q], s->engine->tokenizer));
        s->team->work.groups_judged++;
    }
done:
    for (int64_t i = 0; stored && i < found; i++) rrl_group_free(&stored[i]);
    free(stored);
    rrl_record_free(&record);
    return rc;
}

/* Where no completion ended by itself the length limit, not the policy, makes what is measured. */
static void warn_if_all_cut(const rrl_session *s, const rrl_metric *metrics, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(metrics[i].name, "truncation_rate") == 0 && metrics[i].value == 1)
            rrl_event(s->team->log, RRL_LOG_WARN, "all_truncated", "max_tokens=%lld advice=%s",
                      (long long)s->config->generation.max_tokens, rrl_log_quoted("raise generation.max_tokens"));
}

/* Groups and metrics into the record, metrics to the caller too. */
static rrl_status record(evaluation *e) {
    rrl_session *s = e->s;
    rrl_metric *metrics = NULL;
    int n_metrics = 0;
    const rrl_ints *k = &s->config->evaluation.k;
    RRL_TRY(rrl_metrics_of_groups(&metrics, &n_metrics, e->groups, e->n, k->v, k->n));
    rrl_status rc = rrl_recorder_evaluation(s->recorder, NAME, s->engine->test.questions, e->groups, e->n, metrics, n_metrics);
    rrl_session_focus(s);
    rrl_log_step(s->team->log, -1);
    rrl_event(s->team->log, RRL_LOG_INFO, "evaluation", "questions=%d samples=%d accuracy=%.4f", e->n, s->group_size,
              n_metrics > 0 ? metrics[0].value : NAN);
    warn_if_all_cut(s, metrics, n_metrics);
    s->result->metrics = metrics;
    s->result->n_metrics = n_metrics;
    return rc;
}

static void say(const rrl_session *s) {
    rrl_pace pace = {0};
    if (s->recorder)
        rrl_pace_say(&pace, s->spec->dir, "evaluate", s->state.step, s->spec->train ? s->config->training.max_steps : 0, true);
}

/* Stored ones are judged first; then those that generate do so together. */
static rrl_status fill(evaluation *e, int n, evaluation *fresh, int *n_fresh) {
    *n_fresh = 0;
    for (int i = 0; i < n; i++) {
        say(e[i].s);
        if (e[i].s->spec->base_record) RRL_TRY(stored_groups(e[i].s, e[i].groups, e[i].n));
        else fresh[(*n_fresh)++] = e[i]; /* shares the group array */
    }
    return *n_fresh > 0 ? make_groups(fresh, *n_fresh) : RRL_OK;
}

/* A signal ends an evaluation where it stands: with a large model it takes longer than a cluster waits. What was generated is
 * given up; the same command makes it again, with the same bits. The rank that stopped told those that wait for its parts, so
 * they failed too, and all return RRL_ERR_REQUEUE. */
static rrl_status agree_filled(rrl_team *t, rrl_status mine) {
    bool stop = false;
    RRL_TRY(rrl_team_stop(t, &stop));
    if (stop && mine == RRL_ERR_COMM && t->peer_failed) mine = RRL_ERR_REQUEUE;
    if (mine == RRL_ERR_REQUEUE) t->peer_failed = false;
    rrl_status rc = rrl_team_agree(t, mine, "end of evaluation");
    if (rc == RRL_ERR_REQUEUE)
        rc = RRL_FAIL(rc, "stopped by a signal in the evaluation, which begins again when the same command continues");
    return rc;
}

rrl_status rrl_evaluate(rrl_session *const *s, int n) {
    rrl_status rc = RRL_OK;
    evaluation *e = NULL;
    int n_fresh = 0;
    rrl_team *t = s[0]->team;
    RRL_TRY(rrl_alloc(&e, 2 * (size_t)n, sizeof *e, "evaluations"));
    for (int i = 0; i < n; i++) {
        e[i] = (evaluation){s[i], NULL, (int32_t)s[i]->engine->test.questions->n};
        RRL_GOTO(rrl_alloc(&e[i].groups, (size_t)e[i].n, sizeof *e[i].groups, "evaluation groups"));
    }
    RRL_GOTO(agree_filled(t, fill(e, n, e + n, &n_fresh)));
    for (int i = 0; i < n; i++)
        RRL_GOTO(rrl_team_agree(t, s[i]->recorder ? record(&e[i]) : RRL_OK, "evaluation recorded"));
done:
    for (int i = 0; i < n; i++) {
        for (int32_t g = 0; e[i].groups && g < e[i].n; g++) rrl_group_free(&e[i].groups[g]);
        free(e[i].groups);
    }
    free(e);
    return rc;
}
