/* Evaluation: generators -> verifiers -> recorder, judged by the training ensemble and by the judge. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "roles/pace.h"
#include "roles/session.h"

static const char NAME[] = "test"; /* the same for base and all methods: they share evaluation noise */

static rrl_status generate(rrl_session *s, const int32_t *questions, int32_t n) {
    const rrl_config *c = s->config;
    rrl_generation g = {.pool = &s->engine->test, .questions = questions, .n_groups = n, .group_size = s->group_size,
                        .purpose = rrl_rng_evaluation(NAME), .policy_version = s->state.updates,
                        .seed = (uint64_t)c->seed, .sampling = rrl_sampling_of(c), .adapter = s->adapter};
    rrl_status rc = rrl_generate(s->team, s->engine, s->parts, &g);
    if (rc != RRL_OK)
        for (int i = 0; i < s->team->verifiers.n; i++) rrl_mailbox_send_error(s->parts, s->team->verifiers.rank[i]);
    return rc;
}

static rrl_status collect(rrl_session *s, rrl_group **groups, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        rrl_group *g = NULL;
        RRL_TRY(rrl_mailbox_receive(s->scored, &g));
        int32_t slot = g->head.slot;
        if (slot < 0 || slot >= n || groups[slot]) {
            rrl_group_free(&g);
            return RRL_FAIL(RRL_ERR_COMM, "evaluation: question %d of %d arrived twice or is none", slot, n);
        }
        groups[slot] = g;
    }
    return RRL_OK;
}

static rrl_status make_groups(rrl_session *s, rrl_group **groups, int32_t n) {
    rrl_team *t = s->team;
    int32_t *questions = NULL;
    RRL_TRY(rrl_alloc(&questions, (size_t)n, sizeof *questions, "evaluation questions"));
    for (int32_t i = 0; i < n; i++) questions[i] = i;
    t->watch.phase = "evaluation rollout";
    rrl_status rc = t->generators.index >= 0 ? generate(s, questions, n) : RRL_OK;
    t->watch.phase = "evaluation verdicts";
    if (t->verifiers.index >= 0) {
        if (rc == RRL_OK)
            rc = rrl_judge_step(s->judge, t, s->engine, s->parts, s->scored, &s->engine->test, n, s->group_size, true);
        if (rc != RRL_OK) rrl_mailbox_send_error(s->scored, t->recorder);
    }
    if (s->recorder && rc == RRL_OK) rc = collect(s, groups, n);
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

/* Metrics into the record, and to the caller. Takes the groups. */
static rrl_status record(rrl_session *s, rrl_group **groups, int32_t n) {
    rrl_metric *metrics = NULL;
    int n_metrics = 0;
    const rrl_ints *k = &s->config->evaluation.k;
    RRL_TRY(rrl_metrics_of_groups(&metrics, &n_metrics, groups, n, k->v, k->n));
    rrl_status rc = rrl_recorder_evaluation(s->recorder, NAME, s->engine->test.questions, groups, n, metrics, n_metrics);
    rrl_event(s->team->log, RRL_LOG_INFO, "evaluation", "questions=%d samples=%d accuracy=%.4f", n, s->group_size,
              n_metrics > 0 ? metrics[0].value : NAN);
    s->result->metrics = metrics;
    s->result->n_metrics = n_metrics;
    return rc;
}

rrl_status rrl_evaluate(rrl_session *s) {
    rrl_status rc = RRL_OK;
    rrl_group **groups = NULL;
    int32_t n = (int32_t)s->engine->test.questions->n;
    rrl_pace pace = {0};
    if (s->recorder)
        rrl_pace_say(&pace, s->spec->dir, "evaluate", s->state.step, s->spec->train ? s->config->training.max_steps : 0, true);
    rrl_log_step(s->team->log, -1);
    RRL_TRY(rrl_alloc(&groups, (size_t)n, sizeof *groups, "evaluation groups"));
    RRL_GOTO(rrl_team_agree(s->team, s->spec->base_record ? stored_groups(s, groups, n) : make_groups(s, groups, n),
                            "end of evaluation"));
    RRL_GOTO(rrl_team_agree(s->team, s->recorder ? record(s, groups, n) : RRL_OK, "evaluation recorded"));
done:
    for (int32_t i = 0; i < n; i++) rrl_group_free(&groups[i]);
    free(groups);
    return rc;
}
