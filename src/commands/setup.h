/* What train, eval, study and validate share: config, team and engine of a command line. */
#ifndef RRL_COMMANDS_SETUP_H
#define RRL_COMMANDS_SETUP_H

#include "commands/command.h"
#include "study/study.h"

typedef struct {
    rrl_config *config;
    rrl_team *team;
    rrl_engine *engine;
} rrl_setup;

/** Read and check the config, split the ranks; collective. With --dry-run as rrl_setup_look. */
rrl_status rrl_setup_open(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx, rrl_purpose purpose);
/** The same to look at, not to run: without ranks of a launcher MPI is not started, and the team does nothing collective. */
rrl_status rrl_setup_look(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx, rrl_purpose purpose);
/** Say which keys have no effect, open the engine, print the banner; collective over the team. */
rrl_status rrl_setup_engine(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx, bool train);
void rrl_setup_close(rrl_setup *s);
/** The gate before a study: where experiment.qualification_min_pass1 > 0, measure pass@1 (or read what was measured) and
 *  refuse below it; collective over the team. In qualify.c. */
rrl_status rrl_qualify_gate(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx);
/** One run and its result on stdout: train and eval. */
rrl_status rrl_setup_run(const rrl_options *o, rrl_command_context *ctx, rrl_purpose purpose);

#endif
