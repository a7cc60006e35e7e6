/* From a command line to a team with an open engine. */
#include "commands/setup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"
#include "commands/plan.h"
#include "config/config_check.h"
#include "learn/checkpoint.h"
#include "rrl/version.h"
#include "verify/references.h"

static void say_notes(const rrl_config *c, rrl_command_context *ctx) {
    char *notes = NULL, *save = NULL;
    if (ctx->rank != 0 || rrl_config_notes(&notes, c) != RRL_OK) return;
    for (char *line = strtok_r(notes, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        rrl_event(ctx->log, RRL_LOG_WARN, "config_note", "text=%s", rrl_log_quoted(line));
    free(notes);
}

/* What would fail only once a run has its folder. */
static rrl_status check_early(const rrl_config *c, const rrl_options *o, rrl_purpose purpose) {
    int64_t step = 0;
    bool trains = purpose == RRL_FOR_TRAIN || (purpose == RRL_FOR_STUDY && rrl_study_trains(c));
    rrl_adapter_spec spec = rrl_engine_adapter_spec(c);
    if (trains) RRL_TRY(rrl_context(rrl_adapter_check(&spec), "%s: training.lora", c->file));
    return o->resume ? rrl_checkpoint_check(&step, o->resume, NULL) : RRL_OK;
}

static rrl_status open_setup(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx, rrl_purpose purpose,
                             MPI_Comm world) {
    RRL_TRY(rrl_config_open(&s->config, o->arguments.v[0], o->set.v, o->set.n));
    RRL_TRY(rrl_config_check(s->config, purpose));
    RRL_TRY(check_early(s->config, o, purpose));
    /* teams of one rank share a study; a single condition is work for all of them together */
    bool shared = purpose == RRL_FOR_STUDY && o->condition < 0;
    return rrl_team_open(&s->team, world, &s->config->parallel, shared, ctx->log);
}

rrl_status rrl_setup_open(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx, rrl_purpose purpose) {
    return o->dry_run ? rrl_setup_look(s, o, ctx, purpose) : open_setup(s, o, ctx, purpose, *(MPI_Comm *)ctx->world);
}

rrl_status rrl_setup_look(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx, rrl_purpose purpose) {
    int started = 0;
    MPI_Initialized(&started);
    return open_setup(s, o, ctx, purpose, started ? *(MPI_Comm *)ctx->world : MPI_COMM_NULL);
}

static void banner(const rrl_setup *s, rrl_command_context *ctx, int threads) {
    const rrl_team *t = s->team;
    if (ctx->rank != 0) return;
    rrl_event(ctx->log, RRL_LOG_INFO, "start", "rrl=%s teams=%d ranks=%d threads=%d generators=%d verifiers=%d "
              "learners=%d device=%s isa=%s numeric=%s why=%s", RRL_VERSION, t->count, t->size, threads, t->generators.n,
              t->verifiers.n, t->learners.n, s->engine->device ? s->engine->device->ops->name : "none",
              s->engine->device ? rrl_log_quoted(rrl_device_isa(s->engine->device)) : "none",
              s->engine->device ? rrl_device_numeric_path(s->engine->device) : "none",
              rrl_log_quoted(s->engine->device_why));
    const char *advice = threads > 1 ? "fewer ranks or --threads 1" : "fewer ranks";
    if (threads * t->ranks_on_node > t->cores_on_node)
        rrl_event(ctx->log, RRL_LOG_WARN, "oversubscribed", "ranks_on_node=%d threads=%d cores=%d advice=%s",
                  t->ranks_on_node, threads, t->cores_on_node, rrl_log_quoted(advice));
}

/* One rank says it; that it cannot be said stops nothing. */
static void say_references(const rrl_engine *e, rrl_command_context *ctx) {
    const rrl_questions *sets[] = {e->train.questions, e->test.questions};
    for (int i = 0; i < 2 && ctx->rank == 0; i++) {
        rrl_buffer note = {0};
        if (sets[i] && rrl_references_note(&note, sets[i], i ? "evaluation set" : "training set") == RRL_OK && note.len)
            rrl_event(ctx->log, RRL_LOG_WARN, "references", "text=%s", rrl_log_quoted(note.data));
        rrl_buffer_free(&note);
    }
}

rrl_status rrl_setup_engine(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx, bool train) {
    say_notes(s->config, ctx);
    rrl_signal_take_interrupts();
    RRL_TRY(rrl_engine_open(&s->engine, s->team, s->config, train, o->isa, (int)o->threads));
    banner(s, ctx, rrl_engine_threads(s->config, (int)o->threads, s->team));
    say_references(s->engine, ctx);
    return rrl_links_say(&s->engine->links, s->team, s->engine->device, &s->config->parallel, ctx->rank == 0);
}

void rrl_setup_close(rrl_setup *s) {
    rrl_engine_close(&s->engine);
    rrl_team_close(&s->team);
    rrl_config_close(&s->config);
}

static void print_result(const rrl_setup *s, const rrl_run_result *r) {
    if (r->complete_before) {
        printf("%s is complete; nothing was done (--fresh starts it again)\n", s->config->output_dir);
        return;
    }
    printf("%s complete in %.1f s\n", s->config->output_dir, r->seconds);
    for (int i = 0; i < r->n_metrics; i++)
        if (r->metrics[i].defined) printf("  %-32s %10.4f\n", r->metrics[i].name, r->metrics[i].value);
        else printf("  %-32s %10s\n", r->metrics[i].name, "undefined");
}

rrl_status rrl_setup_run(const rrl_options *o, rrl_command_context *ctx, rrl_purpose purpose) {
    rrl_setup s = {0};
    rrl_status rc = RRL_OK;
    rrl_run_result result = {0};
    bool train = purpose == RRL_FOR_TRAIN;
    RRL_GOTO(rrl_setup_open(&s, o, ctx, purpose));
    if (o->dry_run) {
        if (ctx->rank == 0) rc = rrl_plan_print(&s, o, purpose);
        goto done;
    }
    RRL_GOTO(rrl_setup_engine(&s, o, ctx, train));
    rrl_run_spec spec = {.config = s.config, .dir = s.config->output_dir, .arm = "", .method = train ? "train" : "eval",
                         .level = NAN, .train = train, .resume = o->resume, .fresh = o->fresh};
    RRL_GOTO(rrl_run(s.team, s.engine, &spec, &result));
    if (s.team->rank == s.team->recorder) print_result(&s, &result);
done:
    if (s.team) ctx->speaks = !s.team->peer_failed;
    rrl_run_result_free(&result);
    rrl_setup_close(&s);
    return rc;
}
