/* Writes evidence archives. Bytes follow from the files alone: sorted names, no owner, no time, no compression
 * (records are compressed inside). The manifest comes first, so that a reader can check while it reads. */
#include "report/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json_object.h"
#include "record/record.h"
#include "rrl/version.h"
#include "study/study.h"

enum { CHUNK = 1 << 16 };

void rrl_archive_made_free(rrl_archive_made *m) {
    free(m->path);
    *m = (rrl_archive_made){0};
}

/* --- what stands before the files */

static rrl_status put_conditions(rrl_buffer *b, const char *dir) {
    rrl_condition_state *s = NULL;
    int64_t n = 0;
    rrl_status rc;
    RRL_GOTO(rrl_study_state(&s, &n, dir));
    RRL_GOTO(rrl_json_open_list(b, "conditions"));
    for (int64_t i = 0; i < n; i++) {
        const char *below = s[i].dir + strlen(dir);
        while (*below == '/') below++;
        RRL_GOTO(rrl_json_open_item(b, i));
        RRL_GOTO(rrl_json_put_text(b, "dir", *below ? below : "."));
        RRL_GOTO(rrl_json_put_text(b, "arm", s[i].arm));
        RRL_GOTO(rrl_json_put_real(b, "level", s[i].level));
        RRL_GOTO(rrl_json_put_seed(b, "seed", s[i].seed));
        RRL_GOTO(rrl_json_put_text(b, "method", s[i].method));
        RRL_GOTO(rrl_json_put_text(b, "status", s[i].status));
        RRL_GOTO(rrl_json_put_text(b, "reason", s[i].reason));
        RRL_GOTO(rrl_buffer_puts(b, "}"));
    }
    RRL_GOTO(rrl_buffer_puts(b, "]"));
done:
    rrl_study_state_free(&s, n);
    return rc;
}

static rrl_status put_summary(rrl_buffer *b, const char *dir, const char *name, const rrl_archive_files *f,
                              bool weights) {
    char digest[65];
    int64_t bytes = 0;
    bool digested = rrl_record_digest(digest, dir) == RRL_OK; /* not while nothing is complete */
    for (size_t i = 0; i < f->n; i++) bytes += f->v[i].bytes;
    RRL_TRY(rrl_buffer_puts(b, "{"));
    RRL_TRY(rrl_json_put_text(b, "format", "rrl-evidence"));
    RRL_TRY(rrl_json_put_count(b, "format_version", 1));
    RRL_TRY(rrl_json_put_text(b, "name", name));
    RRL_TRY(rrl_json_put_text(b, "rrl_version", RRL_VERSION));
    RRL_TRY(rrl_json_put_text(b, "record_digest", digested ? digest : NULL));
    RRL_TRY(rrl_json_put_count(b, "files", (int64_t)f->n));
    RRL_TRY(rrl_json_put_count(b, "bytes", bytes));
    RRL_TRY(rrl_json_put_bool(b, "weights", weights));
    RRL_TRY(put_conditions(b, dir));
    return rrl_buffer_puts(b, "}\n");
}

static rrl_status put_line(rrl_buffer *b, const char *sha256, const char *path) {
    if (!rrl_archive_safe_path(path))
        return RRL_FAIL(RRL_ERR_DATA, "%s: a name with control characters or backslashes; rename it first", path);
    return rrl_buffer_printf(b, "%s  %s\n", sha256, path);
}

/* Digests of all files, as sha256sum -c reads them. */
static rrl_status put_manifest(rrl_buffer *b, rrl_archive_files *f, const char *dir, const rrl_buffer *summary) {
    uint8_t sum[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX], *path = NULL;
    RRL_TRY(rrl_sha256_of(sum, summary->data, summary->len));
    rrl_sha256_hex(hex, sum);
    RRL_TRY(put_line(b, hex, RRL_ARCHIVE_SUMMARY));
    for (size_t i = 0; i < f->n; i++) {
        RRL_TRY(rrl_path_join(&path, dir, f->v[i].path));
        rrl_status rc = rrl_sha256_file(sum, path);
        free(path);
        RRL_TRY(rc);
        rrl_sha256_hex(f->v[i].sha256, sum);
        RRL_TRY(put_line(b, f->v[i].sha256, f->v[i].path));
    }
    return RRL_OK;
}

/* --- the tar file */

static rrl_status failed(struct archive *a, const char *path) {
    const char *why = archive_error_string(a);
    const int code = archive_errno(a); /* the text names no reason */
    return RRL_FAIL(RRL_ERR_IO, "%s: %s%s%s%s", path, why ? why : "the archive could not be written",
                    code > 0 ? " (" : "", code > 0 ? strerror(code) : "", code > 0 ? ")" : "");
}

static rrl_status begin_file(struct archive *a, const char *name, const char *below, int64_t bytes, const char *path) {
    rrl_status rc = RRL_OK;
    rrl_buffer full = {0};
    struct archive_entry *e = archive_entry_new();
    if (!e) return RRL_FAIL(RRL_ERR_NOMEM, "no memory for an archive's entry");
    RRL_GOTO(rrl_buffer_printf(&full, "%s/%s", name, below));
    archive_entry_set_pathname(e, full.data);
    archive_entry_set_size(e, bytes);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_mtime(e, 0, 0);
    if (archive_write_header(a, e) < ARCHIVE_WARN) rc = failed(a, path);
done:
    archive_entry_free(e);
    rrl_buffer_free(&full);
    return rc;
}

static rrl_status add_bytes(struct archive *a, const char *name, const char *below, const char *bytes, size_t n,
                            const char *path) {
    RRL_TRY(begin_file(a, name, below, (int64_t)n, path));
    return archive_write_data(a, bytes, n) == (la_ssize_t)n ? RRL_OK : failed(a, path);
}

/* Copy what the stream still has, and its digest. */
static rrl_status copy(struct archive *a, FILE *in, char hex[RRL_SHA256_HEX], const char *path) {
    rrl_status rc = RRL_OK;
    rrl_sha256 *h = NULL;
    uint8_t sum[RRL_SHA256_BYTES];
    static _Thread_local char chunk[CHUNK];
    RRL_GOTO(rrl_sha256_open(&h));
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, in)) > 0;) {
        RRL_GOTO(rrl_sha256_add(h, chunk, n));
        if (archive_write_data(a, chunk, n) < 0) RRL_GOTO(failed(a, path));
    }
    RRL_GOTO(rrl_sha256_end(h, sum));
    rrl_sha256_hex(hex, sum);
done:
    rrl_sha256_close(&h);
    return rc;
}

static rrl_status add_file(struct archive *a, const char *name, const char *dir, const rrl_archive_file *f,
                           const char *path) {
    rrl_status rc = RRL_OK;
    char *from = NULL, hex[RRL_SHA256_HEX];
    FILE *in = NULL;
    RRL_GOTO(rrl_path_join(&from, dir, f->path));
    if (!(in = fopen(from, "rb"))) RRL_GOTO(RRL_FAIL(RRL_ERR_IO, "%s: %s", from, strerror(errno)));
    RRL_GOTO(begin_file(a, name, f->path, f->bytes, path));
    RRL_GOTO(copy(a, in, hex, path));
    if (strcmp(hex, f->sha256) != 0)
        rc = RRL_FAIL(RRL_ERR_DATA, "%s changed while it was archived; export again when nothing writes there", from);
done:
    if (in) fclose(in);
    free(from);
    return rc;
}

typedef struct {
    const char *dir, *name; /* name: the folder that all entries are in */
    const rrl_archive_files *files;
    const rrl_buffer *summary, *manifest;
} content;

static rrl_status write_tar(const char *tmp, const content *c) {
    rrl_status rc = RRL_OK;
    struct archive *a = archive_write_new();
    if (!a) return RRL_FAIL(RRL_ERR_NOMEM, "no memory for an archive");
    if (archive_write_set_format_pax_restricted(a) != ARCHIVE_OK || archive_write_add_filter_none(a) != ARCHIVE_OK ||
        archive_write_open_filename(a, tmp) != ARCHIVE_OK)
        RRL_GOTO(failed(a, tmp));
    RRL_GOTO(add_bytes(a, c->name, RRL_ARCHIVE_MANIFEST, c->manifest->data, c->manifest->len, tmp));
    RRL_GOTO(add_bytes(a, c->name, RRL_ARCHIVE_SUMMARY, c->summary->data, c->summary->len, tmp));
    for (size_t i = 0; i < c->files->n; i++) RRL_GOTO(add_file(a, c->name, c->dir, &c->files->v[i], tmp));
    if (archive_write_close(a) != ARCHIVE_OK) rc = failed(a, tmp);
done:
    archive_write_free(a);
    return rc;
}

static rrl_status publish(const char *path, const content *c) {
    rrl_status rc;
    rrl_buffer tmp = {0};
    RRL_TRY(rrl_buffer_printf(&tmp, "%s.%ld.tmp", path, (long)getpid()));
    rc = write_tar(tmp.data, c);
    if (rc == RRL_OK) rc = rrl_file_publish_tmp(tmp.data, path);
    if (rc != RRL_OK) unlink(tmp.data);
    rrl_buffer_free(&tmp);
    return rc;
}

static rrl_status check_folder(const char *dir) {
    static const char *const SIGNS[] = {"study.json", "run.json", "run.h5"};
    for (size_t i = 0; i < sizeof SIGNS / sizeof *SIGNS; i++) {
        char *path = NULL;
        RRL_TRY(rrl_path_join(&path, dir, SIGNS[i]));
        bool there = rrl_file_exists(path);
        free(path);
        if (there) return RRL_OK;
    }
    return RRL_FAIL(RRL_ERR_DATA, "%s: neither a study (study.json) nor a run (run.json)", dir);
}

static rrl_status count(rrl_archive_made *out, const content *c) {
    uint8_t sum[RRL_SHA256_BYTES];
    RRL_TRY(rrl_sha256_of(sum, c->manifest->data, c->manifest->len));
    rrl_sha256_hex(out->manifest, sum);
    out->files = (int64_t)c->files->n + 1;
    out->bytes = (int64_t)c->summary->len;
    for (size_t i = 0; i < c->files->n; i++) out->bytes += c->files->v[i].bytes;
    return RRL_OK;
}

rrl_status rrl_archive_write(rrl_archive_made *out, const char *dir, const char *path, bool weights) {
    rrl_status rc;
    rrl_archive_files files = {0};
    rrl_buffer summary = {0}, manifest = {0}, to = {0};
    char *real = realpath(dir, NULL);
    if (!real) return RRL_FAIL(RRL_ERR_DATA, "%s: %s", dir, strerror(errno));
    content c = {real, strrchr(real, '/') + 1, &files, &summary, &manifest};
    RRL_GOTO(check_folder(real));
    if (path) RRL_GOTO(rrl_buffer_puts(&to, path));
    else RRL_GOTO(rrl_buffer_printf(&to, "%s.evidence.tar", real));
    RRL_GOTO(rrl_archive_list(&files, real, weights));
    RRL_GOTO(put_summary(&summary, real, c.name, &files, weights));
    RRL_GOTO(put_manifest(&manifest, &files, real, &summary));
    RRL_GOTO(publish(to.data, &c));
    RRL_GOTO(count(out, &c));
    out->path = to.data;
    to = (rrl_buffer){0};
done:
    rrl_archive_files_free(&files);
    rrl_buffer_free(&summary);
    rrl_buffer_free(&manifest);
    rrl_buffer_free(&to);
    free(real);
    return rc;
}
