/* rrl study CONFIG */
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
    RRL_TRY(rrl_report_write(c->output_dir));
    RRL_TRY(rrl_report_table(&table, c->output_dir));
    printf("%s\nreport: %s/report/report.md\n", table, c->output_dir);
    free(table);
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
    RRL_GOTO(rrl_setup_engine(&s, o, ctx, rrl_study_trains(s.config)));
    RRL_GOTO(rrl_study_run(s.team, s.engine, s.config, o->fresh));
    if (ctx->rank == 0) RRL_GOTO(print_table(s.config));
done:
    if (s.team) ctx->speaks = !s.team->peer_failed;
    rrl_setup_close(&s);
    return rc;
}
