/* rrl qualify CONFIG: pass@1 of the untrained model on validation questions, against what the config demands. */
#include <mpi.h>
#include <stdio.h>

#include "commands/commands.h"
#include "commands/setup.h"
#include "study/qualify.h"

static void print_result(const rrl_qualification *q, const rrl_config *c) {
    double least = c->experiment.qualification_min_pass1;
    printf("pass@1 %.4f on %lld validation questions, ", q->pass1, (long long)q->questions);
    if (q->greedy) printf("greedy");
    else printf("%lld samples each at temperature %g", (long long)q->samples, c->generation.temperature);
    printf("%s\n", q->before ? " (measured before)" : "");
    if (least > 0) printf("demanded: %.4f, %s\n", least, q->pass1 >= least ? "qualified" : "not qualified");
    printf("recorded: %s/qualification\n", c->output_dir);
}

rrl_status rrl_qualify_gate(rrl_setup *s, const rrl_options *o, rrl_command_context *ctx) {
    rrl_qualification q = {0};
    if (!(s->config->experiment.qualification_min_pass1 > 0)) return RRL_OK;
    RRL_TRY(rrl_qualification_measure(&q, s->team, s->config, o->isa, (int)o->threads, false));
    if (ctx->rank == 0)
        rrl_event(ctx->log, RRL_LOG_INFO, "qualification", "pass1=%.4f demanded=%.4f questions=%lld", q.pass1,
                  s->config->experiment.qualification_min_pass1, (long long)q.questions);
    rrl_status rc = rrl_qualification_demand(&q, s->config);
    if (rc != RRL_OK && ctx->rank != 0) s->team->peer_failed = true; /* all teams find the same; rank 0 says it */
    return rc;
}

rrl_status rrl_command_qualify(const rrl_options *o, rrl_command_context *ctx) {
    rrl_setup s = {0};
    rrl_status rc;
    rrl_qualification q = {0};
    RRL_GOTO(rrl_setup_open(&s, o, ctx, RRL_FOR_QUALIFY));
    RRL_GOTO(rrl_qualification_measure(&q, s.team, s.config, o->isa, (int)o->threads, o->fresh));
    if (ctx->rank == 0) print_result(&q, s.config);
    rc = rrl_qualification_demand(&q, s.config);
    if (rc != RRL_OK && ctx->rank != 0) s.team->peer_failed = true;
done:
    if (s.team) ctx->speaks = !s.team->peer_failed;
    rrl_setup_close(&s);
    return rc;
}
