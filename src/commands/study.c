/* rrl study CONFIG */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands/commands.h"
#include "commands/plan.h"
#include "commands/setup.h"
#include "config/config_check.h"
#include "report/report.h"

/* All teams are through: the table of what stands in the records. */
static rrl_status print_table(const rrl_config *c) {
    char *table = NULL;
    RRL_TRY(rrl_report_write(&table, c->output_dir));
    printf("%s\nreport: %s/report/report.md\n", table, c->output_dir);
    free(table);
    return RRL_OK;
}

/* Once, before any team begins, whatever the number of teams. Collective over the world. */
static rrl_status put_aside(rrl_setup *s, rrl_command_context *ctx) {
    int rc = ctx->rank == 0 ? (int)rrl_study_put_aside(s->config) : RRL_OK;
    MPI_Bcast(&rc, 1, MPI_INT, 0, *(MPI_Comm *)ctx->world);
    if (rc != RRL_OK && ctx->rank != 0) s->team->peer_failed = true; /* rank 0 says it */
    return (rrl_status)rc;
}

static rrl_status run(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx) {
    bool all = o->condition < 0;
    if (all && o->fresh) RRL_TRY(put_aside(s, ctx));
    RRL_TRY(rrl_qualify_gate(s, o, ctx));
    RRL_TRY(rrl_setup_engine(s, o, ctx, rrl_study_trains(s->config)));
    RRL_TRY(rrl_study_run(s->team, s->engine, s->config, all ? RRL_ALL_CONDITIONS : o->condition, !all && o->fresh));
    if (ctx->rank != 0) return RRL_OK;
    if (all) return print_table(s->config);
    printf("condition %lld of %s is complete\n", (long long)o->condition, s->config->output_dir);
    return RRL_OK;
}

rrl_status rrl_command_study(const rrl_options *o, rrl_command_context *ctx) {
    rrl_setup s = {0};
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_setup_open(&s, o, ctx, RRL_FOR_STUDY));
    if (o->dry_run) {
        if (ctx->rank == 0) rc = rrl_plan_print(&s, o, RRL_FOR_STUDY);
        goto done;
    }
    RRL_GOTO(run(&s, o, ctx));
done:
    if (s.team) ctx->speaks = !s.team->peer_failed;
    rrl_setup_close(&s);
    return rc;
}
