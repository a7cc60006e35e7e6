/* rrl eval CONFIG */
#include "commands/commands.h"
#include "commands/setup.h"

rrl_status rrl_command_eval(const rrl_options *o, rrl_command_context *ctx) {
    return rrl_setup_run(o, ctx, RRL_FOR_EVAL);
}
