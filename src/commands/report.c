/* rrl report DIR: writes DIR/report/ and prints the main table. Rank 0 does it. */
#include <stdio.h>
#include <stdlib.h>

#include "commands/commands.h"
#include "report/report.h"

rrl_status rrl_command_report(const rrl_options *o, rrl_command_context *ctx) {
    const char *dir = o->arguments.v[0];
    char *table = NULL;
    if (ctx->rank != 0) return RRL_OK;
    RRL_TRY(rrl_report_write(&table, dir));
    int written = printf("%s\nwritten: %s/report/report.html, and beside it report.md, tables and plots\n", table, dir);
    free(table);
    if (written < 0 || fflush(stdout) != 0)
        return RRL_FAIL(RRL_ERR_IO, "standard output could not be written");
    return RRL_OK;
}
