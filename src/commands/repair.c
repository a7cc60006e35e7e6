/* rrl repair DIR: sets damaged files of a run or a study aside and makes run.h5 or the adapter again where all of it is
 * there. Rank 0 does it. */
#include <inttypes.h>
#include <stdio.h>

#include "commands/commands.h"
#include "study/repair.h"

static void print_summary(const rrl_repair *r, bool dry, bool clean) {
    printf("%" PRId64 " run%s looked through: %" PRId64 " file%s %sset aside, %" PRId64 " %smade again", r->runs,
           r->runs == 1 ? "" : "s", r->set_aside, r->set_aside == 1 ? "" : "s", dry ? "to be " : "", r->made_again,
           dry ? "to be " : "");
    if (r->noted) printf(", %" PRId64 " noted", r->noted);
    if (r->busy) printf(", %" PRId64 " in use and left alone", r->busy);
    if (r->left_over)
        printf(", %" PRId64 " temporar%s of killed runs %s", r->left_over, r->left_over == 1 ? "y" : "ies",
               clean && !dry ? "removed" : "left over (--clean removes them)");
    printf("%s\n", dry && (r->set_aside || r->made_again) ? "; nothing was changed (--dry-run)" : "");
}

/* Damage that was only looked at is an error, so that a script can ask whether all is whole. */
rrl_status rrl_command_repair(const rrl_options *o, rrl_command_context *ctx) {
    rrl_repair r = {0};
    const char *dir = o->arguments.v[0];
    if (ctx->rank != 0) return RRL_OK;
    rrl_status rc = rrl_repair_folder(&r, dir, o->dry_run, o->clean);
    if (r.text.len) fputs(r.text.data, stdout);
    if (rc == RRL_OK) print_summary(&r, o->dry_run, o->clean);
    if (rc == RRL_OK && o->dry_run && r.set_aside)
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: %" PRId64 " damaged; rrl repair %s sets them aside", dir, r.set_aside, dir);
    rrl_repair_free(&r);
    return rc;
}
