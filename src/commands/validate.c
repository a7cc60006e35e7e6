/* rrl validate CONFIG */
#include "commands/commands.h"
#include "commands/plan.h"
#include "commands/setup.h"

/* A config whose experiment names more than one clean condition is a study; else a training run, else an evaluation. */
static rrl_purpose purpose_of(const rrl_config *c) {
    const rrl_experiment_config *x = &c->experiment;
    bool one = x->n_arms == 1 && x->arms[0].n_members == 0 && x->arms[0].corruption.kind == RRL_CORRUPT_NONE &&
               x->arms[0].levels.n == 1 && x->seeds.n == 1;
    if (!one || x->mode == RRL_MODE_FIXTURE) return RRL_FOR_STUDY;
    bool samples = c->generation.temperature > 0 && c->generation.num_generations > 1;
    return samples && c->model.backend != RRL_BACKEND_FIXTURE ? RRL_FOR_TRAIN : RRL_FOR_EVAL;
}

rrl_status rrl_command_validate(const rrl_options *o, rrl_command_context *ctx) {
    rrl_setup s = {0};
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_config_open(&s.config, o->arguments.v[0], o->set.v, o->set.n));
    rrl_purpose purpose = purpose_of(s.config);
    rrl_config_close(&s.config);
    RRL_GOTO(rrl_setup_look(&s, o, ctx, purpose));
    if (ctx->rank == 0) RRL_GOTO(rrl_plan_print(&s, o, purpose));
done:
    rrl_setup_close(&s);
    return rc;
}
