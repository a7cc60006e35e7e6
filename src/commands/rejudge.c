/* rrl rejudge FILE...: stored texts judged by the present parser and verifiers. Rank 0 does it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "commands/commands.h"
#include "report/rejudge.h"

static rrl_status put_parser(rrl_buffer *b, const char *path) {
    rrl_record *r = NULL;
    RRL_TRY(rrl_record_read(&r, path, 0));
    rrl_status rc = rrl_buffer_printf(b, "%s: answer parser %s, now %d\n", path, r->parser_version, RRL_PARSER_VERSION);
    rrl_record_free(&r);
    return rc;
}

static rrl_status rejudge(const char *path, bool dry) {
    rrl_status rc;
    rrl_rejudge r = {0};
    rrl_buffer b = {0};
    RRL_GOTO(rrl_rejudge_record(&r, path, dry));
    RRL_GOTO(put_parser(&b, path));
    RRL_GOTO(rrl_rejudge_table(&b, &r));
    RRL_GOTO(rrl_buffer_printf(&b, "written: %s\n", r.written ? r.written : "nothing (--dry-run)"));
    fputs(b.data, stdout);
done:
    rrl_rejudge_free(&r);
    rrl_buffer_free(&b);
    return rc;
}

rrl_status rrl_command_rejudge(const rrl_options *o, rrl_command_context *ctx) {
    rrl_status rc = RRL_OK;
    if (ctx->rank != 0) return RRL_OK;
    rrl_c_locale locale = rrl_c_locale_enter();
    for (int i = 0; i < o->arguments.n && rc == RRL_OK; i++) rc = rejudge(o->arguments.v[i], o->dry_run);
    rrl_c_locale_leave(locale);
    return rc;
}
