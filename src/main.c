/* The program: a table of commands. Here alone errors are printed and exit codes made. MPI starts here where a launcher has
 * started ranks, and else in the first team that works (team.h): a command that only reads runs without it. It ends here. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/text.h"
#include "commands/commands.h"
#include "roles/team.h"
#include "rrl/version.h"

static const rrl_command COMMANDS[] = {RRL_COMMAND_LIST(RRL_COMMAND_ROW)};
enum { N_COMMANDS = sizeof COMMANDS / sizeof COMMANDS[0] };

static const rrl_command *find(const char *name) {
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(COMMANDS[i].name, name) == 0) return &COMMANDS[i];
    return NULL;
}

static void print_help(void) {
    printf("rrl %s - reinforcement learning against verifiers that err\n\nusage: rrl COMMAND ARGUMENT [options]\n\n",
           RRL_VERSION);
    for (int i = 0; i < N_COMMANDS; i++)
        printf("  rrl %-8s %-9s %s\n", COMMANDS[i].name, COMMANDS[i].arguments, COMMANDS[i].summary);
    printf("\nexample: %s\n\nrrl COMMAND --help shows a command's options; docs/configuration.md lists the\n"
           "keys of CONFIG. Exit codes: 0 done, 2 usage or config, 3 data, 4 stopped with a\n"
           "checkpoint, 5 non-finite numbers, 6 communication, 1 other.\n",
           COMMANDS[2].example);
}

static rrl_status unknown_command(const char *name) {
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) names[i] = COMMANDS[i].name;
    const char *near = rrl_nearest_name(name, names, N_COMMANDS);
    if (near) return RRL_FAIL(RRL_ERR_USAGE, "unknown command \"%s\"; did you mean \"%s\"? (rrl --help lists them)", name, near);
    return RRL_FAIL(RRL_ERR_USAGE, "unknown command \"%s\"; rrl --help lists the commands", name);
}

static rrl_status run(const rrl_command *c, const rrl_options *o, rrl_command_context *ctx) {
    if (o->version) {
        if (ctx->rank == 0) printf("rrl %s (%s)\n", RRL_VERSION, RRL_GIT_COMMIT);
        return RRL_OK;
    }
    if (o->help) {
        char *text = NULL;
        if (ctx->rank != 0) return RRL_OK;
        RRL_TRY(rrl_options_help(&text, c->name, c->arguments, c->summary, c->example, c->options));
        fputs(text, stdout);
        free(text);
        return RRL_OK;
    }
    rrl_log_level level = o->quiet ? RRL_LOG_WARN : o->verbose ? RRL_LOG_DEBUG : RRL_LOG_INFO;
    if (isatty(2) && !o->verbose) level = RRL_LOG_WARN; /* a progress bar takes the place of the lines */
    RRL_TRY(rrl_log_open(&ctx->log, 2, level, ctx->rank));
    return c->run(o, ctx);
}

/* One rank says it: the one that failed, or where all fail alike (usage, config) the first. */
static void print_error(rrl_status rc, const rrl_command_context *ctx, const rrl_options *o) {
    rrl_buffer line = {0};
    if (!ctx->speaks) return;
    const char *text = rrl_error_message()[0] ? rrl_error_message() : rrl_status_text(rc);
    if (rrl_buffer_printf(&line, "rrl: error: %s\n", text) == RRL_OK && o->verbose)
        (void)rrl_buffer_printf(&line, "rrl: raised at %s on rank %d\n", rrl_error_place(), ctx->rank);
    if (line.data && write(2, line.data, line.len) < 0) { /* the exit code still tells */
    }
    rrl_buffer_free(&line);
}

/* A closed standard file must not become the number of the next file that is opened: what is printed would go there.
 * Opened the wrong way round, writing to it still fails. */
static void hold_standard_files(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) _exit(1);
}

/* Whether a launcher started this process: what mpirun of Open MPI, MPICH and its kin, or srun with a plug-in define. */
static bool launched(void) {
    static const char *const NAMES[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "MPI_LOCALRANKID"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (getenv(NAMES[i])) return true;
    return false;
}

static void join_ranks(rrl_command_context *ctx) {
    if (launched()) {
        rrl_team_start_mpi();
        MPI_Comm_rank(MPI_COMM_WORLD, &ctx->rank);
        MPI_Comm_size(MPI_COMM_WORLD, &ctx->size);
    }
    ctx->speaks = ctx->rank == 0;
    rrl_fault_rank(ctx->rank);
}

int main(int argc, char **argv) {
    rrl_status rc = RRL_OK;
    rrl_options o = {0};
    MPI_Comm world = MPI_COMM_WORLD;
    int started = 0;
    rrl_command_context ctx = {.world = &world, .size = 1};
    hold_standard_files();
    rrl_signal_install();
    join_ranks(&ctx);

    const char *name = argc > 1 ? argv[1] : "--help";
    const rrl_command *command = find(name);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        if (ctx.rank == 0) print_help();
        if (argc < 2) rc = RRL_FAIL(RRL_ERR_USAGE, "no command given");
    } else if (strcmp(name, "--version") == 0) {
        if (ctx.rank == 0) printf("rrl %s (%s)\n", RRL_VERSION, RRL_GIT_COMMIT);
    } else if (strcmp(name, "--fault-sites") == 0) {
        if (ctx.rank == 0) fputs(RRL_FAULT_SITES, stdout);
    } else if (!command) {
        rc = unknown_command(name);
    } else {
        rc = rrl_options_parse(&o, argc - 2, argv + 2, name, command->options, command->n_arguments);
        if (rc == RRL_OK) rc = run(command, &o, &ctx);
    }
    if (rc == RRL_OK && (fflush(stdout) != 0 || ferror(stdout)))
        rc = RRL_FAIL(RRL_ERR_IO, "standard output could not be written");
    if (rc != RRL_OK) print_error(rc, &ctx, &o);
    rrl_options_free(&o);
    rrl_log_close(&ctx.log);
    MPI_Initialized(&started);
    if (started) MPI_Finalize();
    return rrl_status_exit_code(rc);
}
