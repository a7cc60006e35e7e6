/* One run from set-up to run.h5; the steps between are train_loop.c and evaluate.c. */
#include "roles/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "roles/session.h"

int64_t rrl_peak_memory(void) {
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

static bool uses_adapter(const rrl_session *s) { return s->spec->train || s->config->model.adapter[0]; }

/* What the digest covers besides the config's own keys: the contents of places, and the numeric path. */
static rrl_status run_digest(rrl_session *s) {
    rrl_status rc = RRL_OK;
    rrl_buffer extra = {0};
    char *file = NULL, adapter[RRL_SHA256_HEX] = "-";
    uint8_t sum[RRL_SHA256_BYTES];
    const rrl_engine *e = s->engine;
    if (s->config->model.adapter[0]) {
        RRL_GOTO(rrl_path_join(&file, s->config->model.adapter, "adapter_model.safetensors"));
        if (!rrl_file_exists(file)) {
            rc = RRL_FAIL(RRL_ERR_DATA, "model.adapter: no file %s; name the folder of a saved adapter", file);
            goto done;
        }
        RRL_GOTO(rrl_sha256_file(sum, file));
        rrl_sha256_hex(adapter, sum);
    }
    RRL_GOTO(rrl_buffer_printf(&extra, "model=%s\ntokenizer=%s\ndata=%s\nadapter=%s\nnumeric=%s\nmethod=%s\narm=%s\n",
                               e->model_digest, e->tokenizer ? rrl_tokenizer_digest(e->tokenizer) : "-", e->data_digest,
                               adapter, e->device ? rrl_device_numeric_path(e->device) : "-", s->spec->method,
                               s->spec->arm));
    RRL_GOTO(rrl_config_digest(s->digest, s->config, extra.data));
done:
    free(file);
    rrl_buffer_free(&extra);
    return rc;
}

/* One file at a time: a fleet's events are few. That a log cannot be written stops nothing. */
void rrl_session_focus(rrl_session *s) {
    char *events = NULL;
    rrl_log_run(s->team->log, s->spec->dir);
    if (s->folder && rrl_path_join(&events, s->spec->dir, "events.log") == RRL_OK)
        (void)rrl_log_file(s->team->log, events);
    free(events);
}

/* Recorder: claim the folder. */
static rrl_status claim(rrl_session *s, rrl_run_state *state) {
    char *yaml = NULL;
    rrl_status rc = RRL_OK;
    RRL_GOTO(run_digest(s));
    RRL_GOTO(rrl_config_yaml(&yaml, s->config, s->config->base));
    RRL_GOTO(rrl_run_folder_open(&s->folder, state, s->spec->dir, s->digest, yaml, s->spec->fresh));
    if (*state != RRL_RUN_COMPLETE) rrl_session_focus(s);
done:
    free(yaml);
    return rc;
}

static void on_slot(void *team) { rrl_watch_beat(&((rrl_team *)team)->watch); }

static rrl_learner_settings learner_settings(const rrl_session *s) {
    const rrl_config *c = s->config;
    const rrl_training_config *t = &c->training;
    return (rrl_learner_settings){
        .recorded_old = c->parallel.pipeline_depth > 0,
        .grpo = {.type = (rrl_loss_type)t->loss_type, .epsilon = t->epsilon,
                 .epsilon_high = t->epsilon_high < 0 ? t->epsilon : t->epsilon_high, .beta = t->beta,
                 .mask_truncated = t->mask_truncated_completions, .kl_on_flat_groups = t->kl_on_flat_groups,
                 .micro_rows = t->batch_size, .accumulation = t->gradient_accumulation_steps,
                 .max_tokens = c->generation.max_tokens},
        .group_size = s->group_size, .slot_rows = rrl_engine_slot_limits(s->engine, c).max_seqs, .groups = s->groups,
        .temperature = (float)c->generation.temperature, .dropout = (float)t->lora.dropout,
        .dropout_in_rollout = t->lora.dropout_in_rollout, .weight_decay = t->weight_decay,
        .max_grad_norm = t->max_grad_norm, .seed = (uint64_t)c->seed, .slots = s->engine->slots,
        .beat = on_slot, .context = s->team};
}

static rrl_status open_adapter(rrl_session *s) {
    rrl_adapter_spec spec = rrl_engine_adapter_spec(s->config);
    if (!s->engine->model || !uses_adapter(s)) return RRL_OK;
    if (s->config->model.adapter[0]) return rrl_adapter_load(&s->adapter, s->engine->model, s->config->model.adapter);
    return rrl_adapter_open(&s->adapter, s->engine->model, &spec, (uint64_t)s->config->seed);
}

static rrl_status open_learner(rrl_session *s) {
    const rrl_links *links = &s->engine->links;
    if (!s->spec->train) return RRL_OK;
    s->learners = links->learners.host;
    s->gradients = links->learners.device;
    s->publishing = links->publishing.device;
    if (s->team->learners.index < 0) return RRL_OK;
    RRL_TRY(rrl_engine_slots(s->engine, &s->slots));
    rrl_learner_settings set = learner_settings(s);
    return rrl_learner_open(&s->learner, s->engine->model, s->adapter, &set);
}

/* Checkpoint of the run, read by every learner from the run folder. */
static rrl_status load_checkpoint(rrl_session *s, const char *digest) {
    bool found = false;
    int skipped = 0;
    if (!s->learner) return RRL_OK;
    RRL_TRY(rrl_checkpoint_load(&found, &skipped, s->spec->dir, s->spec->resume, s->learner, s->adapter, &s->state,
                                &s->in_flight, digest));
    if (skipped > 0)
        rrl_event(s->team->log, RRL_LOG_WARN, "checkpoint_skipped", "damaged=%d used_step=%lld", skipped,
                  found ? (long long)s->state.step : -1LL);
    return RRL_OK;
}

static rrl_status open_recorder(rrl_session *s) {
    const rrl_run_spec *p = s->spec;
    rrl_status rc = RRL_OK;
    char *yaml = NULL, *provenance = NULL, parser[16];
    snprintf(parser, sizeof parser, "%d", RRL_PARSER_VERSION);
    bool fixture = s->config->model.backend == RRL_BACKEND_FIXTURE;
    RRL_GOTO(rrl_provenance(&provenance, s, false));
    RRL_GOTO(rrl_config_yaml(&yaml, s->config, s->config->base));
    rrl_record_header h = {.execution_kind = fixture ? "fixture_audit" : p->train ? "training" : "evaluation",
                           .arm = p->arm, .method = p->method,
                           .numeric_path = s->engine->device ? rrl_device_numeric_path(s->engine->device) : "none",
                           .digest = s->digest, .config_yaml = yaml, .provenance_json = provenance,
                           .model_digest = s->engine->model_digest, .parser_version = parser,
                           .level = p->level, .seed = (uint64_t)s->config->seed,
                           .verifier = &s->config->training_verifier,
                           .train = p->train ? s->engine->train.questions : NULL};
    RRL_GOTO(rrl_recorder_open(&s->recorder, p->dir, &h, s->config->records.steps_per_segment, s->state.step));
    RRL_GOTO(rrl_run_folder_status(s->folder, "running", NULL));
done:
    free(yaml);
    free(provenance);
    return rc;
}

/* What doing steps again after a resume found: equal records are the promise, different ones are kept for a look. */
static void log_replay(const rrl_session *s) {
    int64_t kept = 0, different = 0;
    rrl_recorder_replay(s->recorder, &kept, &different);
    if (different > 0)
        rrl_event(s->team->log, RRL_LOG_WARN, "replay_mismatch", "segments=%lld quarantine=%s", (long long)different,
                  rrl_log_quoted(s->spec->dir));
    else if (kept > 0) rrl_event(s->team->log, RRL_LOG_INFO, "replay", "equal_segments=%lld", (long long)kept);
}

static rrl_status finish(rrl_session *s) {
    rrl_status rc = RRL_OK;
    char *provenance = NULL, *dir = NULL;
    RRL_TRY(rrl_team_agree(s->team, rrl_provenance(&provenance, s, true), "provenance"));
    if (!s->recorder) return RRL_OK;
    if (s->spec->train) {
        RRL_GOTO(rrl_path_join(&dir, s->spec->dir, "adapter"));
        RRL_GOTO(rrl_adapter_save(s->adapter, dir, s->config->model.name));
    }
    log_replay(s);
    RRL_GOTO(rrl_recorder_finish(s->recorder, provenance));
    RRL_GOTO(rrl_run_folder_complete(s->folder));
    rrl_event(s->team->log, RRL_LOG_INFO, "complete", "dir=%s s=%.1f", rrl_log_quoted(s->spec->dir),
              rrl_clock() - s->started);
done:
    free(provenance);
    free(dir);
    return rc;
}

/* The digest that checkpoints are checked against comes from the recorder. */
static rrl_status share_digest(rrl_session *s) {
    MPI_Request req;
    if (MPI_Ibcast(s->digest, (int)sizeof s->digest, MPI_CHAR, s->team->recorder, s->team->comm, &req) != MPI_SUCCESS)
        return RRL_FAIL(RRL_ERR_COMM, "the run's digest could not be shared");
    return rrl_watch_wait(&s->team->watch, &req);
}

/* Every rank continues where the learners' checkpoint stands. */
static rrl_status share_state(rrl_session *s) {
    int64_t x[] = {s->state.step, s->state.updates, s->state.num_tokens, s->state.nonfinite};
    RRL_TRY(rrl_team_max(s->team, x, 4));
    s->state = (rrl_train_state){x[0], x[1], x[2], x[3]};
    if (!s->publishing) return RRL_OK;
    RRL_TRY(s->publishing->ops->broadcast(s->publishing, rrl_adapter_data(s->adapter),
                                          (size_t)rrl_adapter_size(s->adapter) * sizeof(float), 0));
    return s->learner ? RRL_OK : rrl_adapter_refresh(s->adapter);
}

static rrl_status open_local(rrl_session *s) {
    RRL_TRY(rrl_judge_open(&s->judge, s->config));
    RRL_TRY(open_adapter(s));
    return open_learner(s);
}

static rrl_status set_up(rrl_session *s, rrl_run_state *state) {
    rrl_team *t = s->team;
    bool recorder = t->rank == t->recorder;
    t->watch.phase = "setup";
    RRL_TRY(rrl_team_agree(t, recorder ? claim(s, state) : RRL_OK, "run folder"));
    int64_t shared = recorder ? (int64_t)*state : -1;
    RRL_TRY(rrl_team_max(t, &shared, 1));
    *state = (rrl_run_state)shared;
    if (*state == RRL_RUN_COMPLETE) return RRL_OK;
    RRL_TRY(share_digest(s));
    RRL_TRY(rrl_team_agree(t, open_local(s), "after setup"));
    RRL_TRY(rrl_team_agree(t, *state == RRL_RUN_CONTINUES || s->spec->resume ? load_checkpoint(s, s->digest) : RRL_OK,
                           "checkpoint read"));
    RRL_TRY(rrl_team_agree(t, share_state(s), "state shared"));
    return rrl_team_agree(t, recorder ? open_recorder(s) : RRL_OK, "recorder open");
}

void rrl_session_failed(rrl_session *s) {
    char *reason = s->result->message;
    strncpy(reason, rrl_error_message(), sizeof s->result->message - 1);
    if (!s->folder) return;
    (void)rrl_run_folder_status(s->folder, s->outcome == RRL_ERR_REQUEUE ? "checkpointed" : "failed", reason);
    /* writing the status may have replaced the message that the caller prints */
    (void)rrl_fail(s->outcome, __FILE__, __LINE__, "%s", reason);
}

static void close_session(rrl_session *s) {
    rrl_recorder_close(&s->recorder);
    rrl_run_folder_close(&s->folder);
    rrl_learner_close(&s->learner);
    rrl_adapter_close(&s->adapter);
    rrl_judge_close(&s->judge);
    rrl_buffer_free(&s->in_flight);
}

/* Claim and open one run. Only what concerns all (another rank gone) is returned; the rest is its outcome. */
static void begin(rrl_session *s) {
    rrl_run_state state = RRL_RUN_NEW;
    rrl_session_focus(s);
    s->outcome = set_up(s, &state);
    if (s->outcome != RRL_OK) rrl_session_failed(s);
    s->result->complete_before = s->outcome == RRL_OK && state == RRL_RUN_COMPLETE;
    if (s->recorder)
        rrl_event(s->team->log, RRL_LOG_INFO, "run", "dir=%s digest=%.12s step=%lld", rrl_log_quoted(s->spec->dir),
                  s->digest, (long long)s->state.step);
}

/* Sessions with work left, in order: to train, or all that are to be evaluated. */
static int pick(rrl_session **list, rrl_session *s, int n, bool train) {
    int count = 0;
    for (int i = 0; i < n; i++)
        if (s[i].outcome == RRL_OK && !s[i].result->complete_before && (!train || s[i].spec->train)) list[count++] = &s[i];
    return count;
}

static rrl_status execute(rrl_session *s, int n) {
    rrl_status rc = RRL_OK;
    rrl_session **list = NULL;
    for (int i = 0; i < n; i++) {
        begin(&s[i]);
        if (s[i].outcome == RRL_ERR_COMM) return s[i].outcome;
    }
    RRL_TRY(rrl_alloc(&list, (size_t)n, sizeof *list, "fleet"));
    int count = pick(list, s, n, true);
    if (count > 0) RRL_GOTO(rrl_train_loop(list, count));
    count = pick(list, s, n, false);
    if (count > 0 && s[0].engine->test.questions) RRL_GOTO(rrl_evaluate(list, count));
    for (int i = 0; i < count; i++) RRL_GOTO(rrl_team_agree(s[0].team, finish(list[i]), "run finished"));
done:
    free(list);
    return rc;
}

static rrl_session session_of(rrl_team *team, rrl_engine *engine, const rrl_run_spec *spec, rrl_run_result *result,
                              int32_t place) {
    const rrl_config *c = spec->config;
    int64_t rows = c->training.batch_size * c->training.gradient_accumulation_steps;
    return (rrl_session){.team = team, .engine = engine, .spec = spec, .place = place, .config = c,
                         .groups = (int32_t)(rows / c->generation.num_generations),
                         .group_size = (int32_t)c->generation.num_generations, .started = rrl_clock(), .result = result};
}

/* Room for the slots of every run that trains. */
static rrl_slot_limits fleet_slots(const rrl_engine *engine, const rrl_run_spec *spec, int n) {
    rrl_slot_limits most = {0};
    for (int i = 0; i < n; i++) {
        if (!spec[i].train) continue;
        const rrl_slot_limits one = rrl_engine_slot_limits(engine, spec[i].config);
        if (one.max_rows > most.max_rows) most.max_rows = one.max_rows;
        if (one.max_seqs > most.max_seqs) most.max_seqs = one.max_seqs;
        if (one.again > most.again) most.again = one.again;
    }
    return most;
}

rrl_status rrl_run_fleet(rrl_team *team, rrl_engine *engine, const rrl_run_spec *spec, int n, rrl_run_result *result,
                         rrl_status *outcome) {
    rrl_session *s = NULL;
    RRL_TRY(rrl_alloc(&s, (size_t)n, sizeof *s, "fleet"));
    team->epoch++;
    team->peer_failed = false;
    team->work = (rrl_work){0};
    for (int i = 0; i < n; i++) {
        result[i] = (rrl_run_result){0};
        s[i] = session_of(team, engine, &spec[i], &result[i], i);
        s[i].slots = fleet_slots(engine, spec, n);
    }
    rrl_status rc = execute(s, n);
    for (int i = 0; i < n; i++) {
        if (rc != RRL_OK && s[i].outcome == RRL_OK && !s[i].result->complete_before) {
            s[i].outcome = rc;
            rrl_session_failed(&s[i]);
        }
        outcome[i] = s[i].outcome;
        result[i].seconds = rrl_clock() - s[i].started;
        close_session(&s[i]);
    }
    (void)rrl_log_file(team->log, NULL);
    free(s);
    return rc;
}

rrl_status rrl_run(rrl_team *team, rrl_engine *engine, const rrl_run_spec *spec, rrl_run_result *result) {
    rrl_status outcome = RRL_OK;
    rrl_status rc = rrl_run_fleet(team, engine, spec, 1, result, &outcome);
    return rc != RRL_OK ? rc : outcome;
}

void rrl_run_result_free(rrl_run_result *r) {
    rrl_metrics_free(&r->metrics, r->n_metrics);
    r->n_metrics = 0;
}
