/* What a subcommand is: a row of the table in commands.h and one function. Commands parse nothing and print
 * no errors: options.h has read the line, main.c prints the error of the rank that has it. */
#ifndef RRL_COMMANDS_COMMAND_H
#define RRL_COMMANDS_COMMAND_H

#include "base/log.h"
#include "commands/options.h"
#include "rrl/status.h"

/* What main.c made before the command; borrowed. */
typedef struct {
    void *world; /* MPI_Comm * of all ranks; MPI may not have started (roles/team.h) */
    int rank, size; /* 0 and 1 then */
    rrl_log *log;     /* may be NULL */
    bool speaks;      /* this rank prints the error; rank 0, until a team has agreed who failed */
} rrl_command_context;

/** Run a command. Called by every rank of the world; results go to stdout of rank 0. A command that only
 * reads (report, show, validate) works on rank 0 alone and is RRL_OK at once on the others; the rest return
 * one status on all ranks. */
typedef rrl_status rrl_command_function(const rrl_options *o, rrl_command_context *ctx);

typedef struct {
    const char *name;
    const char *arguments; /* "CONFIG", for the usage line */
    int n_arguments;       /* that many, no more and no less; -n = n or more */
    unsigned options;      /* RRL_TAKES_* of options.h */
    const char *summary;   /* one line */
    const char *example;   /* a whole command line */
    rrl_command_function *run;
} rrl_command;

#endif
