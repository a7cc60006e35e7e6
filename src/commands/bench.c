/* rrl bench: what this machine does with a model. Rank 0 does it, the others leave at once. */
#include <stdio.h>

#include "base/signals.h"
#include "bench/bench.h"
#include "commands/commands.h"

static void list_works(void) {
    const char *what = NULL, *name = NULL;
    for (int i = 0; (name = rrl_bench_work_name(i, &what)) != NULL; i++) printf("%-12s %s\n", name, what);
}

rrl_status rrl_command_bench(const rrl_options *o, rrl_command_context *ctx) {
    rrl_status rc = RRL_OK;
    rrl_bench_report report = {0};
    rrl_buffer text = {0};
    const rrl_bench_spec spec = {.model_dir = o->model,
                                 .dtype = o->dtype ? o->dtype : "auto",
                                 .isa = o->isa,
                                 .threads = (int)o->threads,
                                 .only = o->only,
                                 .quick = o->quick,
                                 .log = ctx->log};
    if (ctx->rank != 0) return RRL_OK;
    if (o->dry_run) {
        list_works();
        return RRL_OK;
    }
    rrl_signal_take_interrupts(); /* its folder is to go */
    RRL_GOTO(rrl_bench_run(&report, &spec));
    RRL_GOTO(o->json ? rrl_bench_json(&text, &report) : rrl_bench_text(&text, &report));
    fputs(text.data, stdout);
done:
    rrl_buffer_free(&text);
    rrl_bench_report_free(&report);
    return rc;
}
