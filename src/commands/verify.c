/* rrl verify ARCHIVE: an evidence archive against its own manifest. Rank 0 does it. */
#include <inttypes.h>
#include <stdio.h>

#include "commands/commands.h"
#include "report/archive.h"

rrl_status rrl_command_verify(const rrl_options *o, rrl_command_context *ctx) {
    rrl_archive_check c = {0};
    const char *path = o->arguments.v[0];
    if (ctx->rank != 0) return RRL_OK;
    RRL_TRY(rrl_archive_verify(&c, path));
    if (c.text.len) fputs(c.text.data, stdout);
    printf("%" PRId64 " files, %" PRId64 " bytes as the manifest says\n", c.files, c.bytes);
    if (c.manifest[0]) printf("manifest %s\n", c.manifest);
    rrl_status rc = c.problems == 0 ? RRL_OK
                                    : RRL_FAIL(RRL_ERR_DATA, "%s: %" PRId64 " problem%s; it is not what was exported",
                                               path, c.problems, c.problems == 1 ? "" : "s");
    rrl_archive_check_free(&c);
    return rc;
}
