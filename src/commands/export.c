/* rrl export DIR: the evidence archive of a run or study; with --jsonl its completions as lines of JSON, with --tensorboard
 * its numbers as event files. Rank 0 does it. */
#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "commands/commands.h"
#include "report/archive.h"

static rrl_status export_archive(const rrl_options *o) {
    rrl_archive_made m = {0};
    uint8_t sum[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX];
    rrl_status rc;
    RRL_GOTO(rrl_archive_write(&m, o->arguments.v[0], o->out, o->weights));
    RRL_GOTO(rrl_sha256_file(sum, m.path));
    rrl_sha256_hex(hex, sum);
    printf("written: %s\n%" PRId64 " files, %" PRId64 " bytes%s\nmanifest %s\narchive  %s\n", m.path, m.files, m.bytes,
           o->weights ? "" : ", no weights", m.manifest, hex);
done:
    rrl_archive_made_free(&m);
    return rc;
}

static rrl_status export_lines(const rrl_options *o) {
    rrl_generations_made m = {0};
    rrl_status rc;
    RRL_GOTO((o->jsonl ? rrl_generations_write : rrl_events_write)(&m, o->arguments.v[0], o->out));
    if (m.left_out.len) printf("without a record:\n%s", m.left_out.data);
    printf("written: %s\n%" PRId64 " %s of %" PRId64 " runs\n", m.path, m.lines, o->jsonl ? "completions" : "scalars", m.records);
done:
    rrl_generations_made_free(&m);
    return rc;
}

rrl_status rrl_command_export(const rrl_options *o, rrl_command_context *ctx) {
    if (ctx->rank != 0) return RRL_OK;
    if (o->jsonl + o->tensorboard + o->weights > 1)
        return RRL_FAIL(RRL_ERR_USAGE, "rrl export: --jsonl writes completions, --tensorboard event files, --weights an archive "
                        "with adapters; take one");
    return o->jsonl || o->tensorboard ? export_lines(o) : export_archive(o);
}
