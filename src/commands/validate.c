/* rrl validate CONFIG */
#include <string.h>

#include "base/memory.h"
#include "commands/commands.h"
#include "commands/plan.h"
#include "commands/setup.h"
#include "config/config_check.h"
#include "roles/engine_device.h"

/* What is valid to evaluate may be no training run: say so, and why. */
static rrl_status say_not_for_train(const rrl_config *c) {
    rrl_buffer note = {0};
    size_t file = strlen(c->file);
    if (rrl_config_check(c, RRL_FOR_TRAIN) == RRL_OK) return RRL_OK;
    const char *why = rrl_error_message();
    if (strncmp(why, c->file, file) == 0 && strncmp(why + file, ": ", 2) == 0) why += file + 2;
    rrl_status rc = rrl_buffer_printf(&note, "valid for eval only, not for train: %s", why);
    if (rc == RRL_OK) rc = rrl_plan_note(note.data);
    rrl_buffer_free(&note);
    return rc;
}

/* A login node without a GPU may plan for nodes that have one; that it cannot run here is said, and is no error. */
static rrl_status say_not_here(const rrl_config *c, rrl_purpose purpose) {
    char why[RRL_WHY_BYTES] = "";
    rrl_buffer note = {0};
    if (c->model.backend == RRL_BACKEND_FIXTURE || rrl_engine_device_here(why, c)) return RRL_OK;
    const char *command = purpose == RRL_FOR_STUDY ? "study" : purpose == RRL_FOR_TRAIN ? "train" : "eval";
    rrl_status rc = rrl_buffer_printf(&note, "%s will fail on this machine: model.device cuda: %s", command, why);
    if (rc == RRL_OK) rc = rrl_plan_note(note.data);
    rrl_buffer_free(&note);
    return rc;
}

rrl_status rrl_command_validate(const rrl_options *o, rrl_command_context *ctx) {
    rrl_setup s = {0};
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_config_open(&s.config, o->arguments.v[0], o->set.v, o->set.n));
    rrl_purpose purpose = rrl_config_purpose(s.config);
    rrl_config_close(&s.config);
    RRL_GOTO(rrl_setup_look(&s, o, ctx, purpose));
    if (ctx->rank != 0) goto done;
    RRL_GOTO(rrl_plan_print(&s, o, purpose));
    RRL_GOTO(say_not_here(s.config, purpose));
    if (purpose == RRL_FOR_EVAL) rc = say_not_for_train(s.config);
done:
    rrl_setup_close(&s);
    return rc;
}
