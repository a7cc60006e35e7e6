/* rrl validate CONFIG */
#include "commands/commands.h"
#include "commands/plan.h"
#include "commands/setup.h"

/* A config with an experiment that names seeds and levels is a study; else a training run, else an evaluation. */
static rrl_purpose purpose_of(const rrl_config *c) {
    if (c->experiment.n_arms > 0 || c->experiment.levels.n > 1 || c->experiment.seeds.n > 1 ||
        c->experiment.corruption.kind != RRL_CORRUPT_NONE || c->experiment.mode == RRL_MODE_FIXTURE)
        return RRL_FOR_STUDY;
    if (c->generation.temperature == 0 || c->generation.num_generations == 1 ||
        c->model.backend == RRL_BACKEND_FIXTURE)
        return RRL_FOR_EVAL;
    return RRL_FOR_TRAIN;
}

rrl_status rrl_command_validate(const rrl_options *o, rrl_command_context *ctx) {
    rrl_setup s = {0};
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_config_open(&s.config, o->arguments.v[0], o->set.v, o->set.n));
    rrl_purpose purpose = purpose_of(s.config);
    rrl_config_close(&s.config);
    RRL_GOTO(rrl_setup_open(&s, o, ctx, purpose));
    if (ctx->rank == 0) RRL_GOTO(rrl_plan_print(&s, o, purpose));
done:
    rrl_setup_close(&s);
    return rc;
}
