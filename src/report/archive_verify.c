/* Checks an evidence archive. It may come from anyone: no path in it is opened, nothing is written, lengths are
 * bounded. */
#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "report/archive.h"

enum { CHUNK = 1 << 16, MAX_MANIFEST = 64 << 20, HEX = 64 };

typedef struct {
    char *path;
    char sha256[RRL_SHA256_HEX];
    bool seen;
} promise;

typedef struct {
    rrl_archive_check *out;
    char *name; /* the archive's folder */
    promise *v; /* [n] sorted by path */
    size_t n, room;
} check;

void rrl_archive_check_free(rrl_archive_check *c) {
    rrl_buffer_free(&c->text);
    *c = (rrl_archive_check){0};
}

static void check_free(check *c) {
    for (size_t i = 0; i < c->n; i++) free(c->v[i].path);
    free(c->v);
    free(c->name);
}

/* "what: path" and a newline; control characters of a hostile name do not reach the terminal. */
static rrl_status problem(check *c, const char *what, const char *path) {
    c->out->problems++;
    RRL_TRY(rrl_buffer_printf(&c->out->text, "%s: ", what));
    for (const char *p = path; *p; p++) {
        char shown = (unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p;
        RRL_TRY(rrl_buffer_put(&c->out->text, &shown, 1));
    }
    return rrl_buffer_puts(&c->out->text, "\n");
}

/* --- manifest */

static int by_path(const void *a, const void *b) {
    return strcmp(((const promise *)a)->path, ((const promise *)b)->path);
}

/* "HEX  PATH" */
static bool is_line(const char *line) {
    for (int i = 0; i < HEX; i++)
        if (!isxdigit((unsigned char)line[i]) || isupper((unsigned char)line[i])) return false;
    return line[HEX] == ' ' && line[HEX + 1] == ' ' && rrl_archive_safe_path(line + HEX + 2);
}

static rrl_status parse_manifest(check *c, char *text, size_t len) {
    bool whole = len > 0 && text[len - 1] == '\n' && strlen(text) == len;
    if (!whole) return problem(c, "the manifest is cut", RRL_ARCHIVE_MANIFEST);
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        if (!is_line(line)) {
            RRL_TRY(problem(c, "the manifest has a line that is no digest and path", line));
            continue;
        }
        RRL_TRY(rrl_grow(&c->v, &c->room, c->n + 1, sizeof *c->v, "lines of a manifest"));
        promise p = {0};
        memcpy(p.sha256, line, HEX);
        RRL_TRY(rrl_strdup(&p.path, line + HEX + 2));
        c->v[c->n++] = p;
    }
    if (c->n) qsort(c->v, c->n, sizeof *c->v, by_path);
    for (size_t i = 1; i < c->n; i++)
        if (strcmp(c->v[i - 1].path, c->v[i].path) == 0) RRL_TRY(problem(c, "twice in the manifest", c->v[i].path));
    return RRL_OK;
}

/* --- entries */

static const char *entry_path(struct archive_entry *e) {
    const char *path = archive_entry_pathname(e);
    if (!path) path = archive_entry_pathname_utf8(e);
    return path ? path : "";
}

static bool is_plain_file(struct archive_entry *e) {
    return archive_entry_filetype(e) == AE_IFREG && !archive_entry_hardlink(e) && !archive_entry_symlink(e);
}

static rrl_status read_failed(check *c, struct archive *a, const char *path) {
    const char *why = archive_error_string(a);
    RRL_TRY(rrl_buffer_printf(&c->out->text, "the archive is damaged (%s): ", why ? why : "no reason given"));
    RRL_TRY(rrl_buffer_printf(&c->out->text, "%s\n", path));
    c->out->problems++;
    return RRL_OK;
}

/* Content of the present entry, into `into` where that is not NULL. whole: it could be read to its end. */
static rrl_status read_content(check *c, struct archive *a, const char *path, char hex[RRL_SHA256_HEX], int64_t *bytes,
                               rrl_buffer *into, bool *whole) {
    rrl_status rc = RRL_OK;
    rrl_sha256 *h = NULL;
    uint8_t sum[RRL_SHA256_BYTES];
    static _Thread_local char chunk[CHUNK];
    la_ssize_t n;
    RRL_GOTO(rrl_sha256_open(&h));
    *bytes = 0;
    while ((n = archive_read_data(a, chunk, sizeof chunk)) > 0) {
        RRL_GOTO(rrl_sha256_add(h, chunk, (size_t)n));
        if (into && into->len <= MAX_MANIFEST) RRL_GOTO(rrl_buffer_put(into, chunk, (size_t)n));
        *bytes += n;
    }
    *whole = n == 0;
    if (!*whole) RRL_GOTO(read_failed(c, a, path));
    RRL_GOTO(rrl_sha256_end(h, sum));
    rrl_sha256_hex(hex, sum);
done:
    rrl_sha256_close(&h);
    return rc;
}

/* The first entry: NAME/MANIFEST.sha256. */
static rrl_status take_manifest(check *c, struct archive *a, struct archive_entry *e, bool *ok) {
    rrl_status rc = RRL_OK;
    rrl_buffer text = {0};
    const char *path = entry_path(e), *slash = strchr(path, '/');
    int64_t bytes;
    *ok = false;
    if (!rrl_archive_safe_path(path) || !slash || strcmp(slash + 1, RRL_ARCHIVE_MANIFEST) != 0 || !is_plain_file(e))
        return problem(c, "no evidence archive: its first entry is not NAME/" RRL_ARCHIVE_MANIFEST, path);
    RRL_GOTO(rrl_strdup(&c->name, path));
    c->name[slash - path] = 0;
    RRL_GOTO(read_content(c, a, c->name, c->out->manifest, &bytes, &text, ok));
    if (*ok && bytes > MAX_MANIFEST) {
        *ok = false;
        RRL_GOTO(problem(c, "the manifest is larger than any that rrl writes", c->name));
    }
    if (*ok) RRL_GOTO(parse_manifest(c, text.data ? text.data : (char[]){""}, text.len));
done:
    rrl_buffer_free(&text);
    return rc;
}

/* One further entry against its line. */
static rrl_status take_file(check *c, struct archive *a, struct archive_entry *e) {
    const char *path = entry_path(e);
    size_t n = strlen(c->name);
    char hex[RRL_SHA256_HEX];
    int64_t bytes = 0;
    bool whole = false;
    if (!rrl_archive_safe_path(path)) return problem(c, "leads out of the archive's folder", path);
    if (strncmp(path, c->name, n) != 0 || path[n] != '/') return problem(c, "outside the archive's folder", path);
    if (!is_plain_file(e)) return problem(c, "is no plain file", path);
    promise key = {.path = (char *)path + n + 1};
    promise *p = c->n ? bsearch(&key, c->v, c->n, sizeof *c->v, by_path) : NULL;
    if (!p) return problem(c, "extra, not in the manifest", path + n + 1);
    if (p->seen) return problem(c, "twice in the archive", p->path);
    p->seen = true;
    RRL_TRY(read_content(c, a, p->path, hex, &bytes, NULL, &whole));
    if (!whole) return RRL_OK;
    if (strcmp(hex, p->sha256) != 0) return problem(c, "changed", p->path);
    c->out->files++;
    c->out->bytes += bytes;
    return RRL_OK;
}

static rrl_status take_entries(check *c, struct archive *a) {
    struct archive_entry *e;
    bool ok = true;
    int st = archive_read_next_header(a, &e);
    if (st != ARCHIVE_OK && st != ARCHIVE_WARN) return read_failed(c, a, "no entry could be read");
    RRL_TRY(take_manifest(c, a, e, &ok));
    if (!ok) return RRL_OK;
    while ((st = archive_read_next_header(a, &e)) == ARCHIVE_OK || st == ARCHIVE_WARN) RRL_TRY(take_file(c, a, e));
    if (st != ARCHIVE_EOF) RRL_TRY(read_failed(c, a, "what follows could not be read"));
    for (size_t i = 0; i < c->n; i++)
        if (!c->v[i].seen) RRL_TRY(problem(c, "missing", c->v[i].path));
    return RRL_OK;
}

rrl_status rrl_archive_verify(rrl_archive_check *out, const char *path) {
    rrl_status rc = RRL_OK;
    check c = {.out = out};
    struct archive *a = NULL;
    *out = (rrl_archive_check){0};
    if (!rrl_file_exists(path)) return RRL_FAIL(RRL_ERR_DATA, "%s: no such file", path);
    if (!(a = archive_read_new())) return RRL_FAIL(RRL_ERR_NOMEM, "no memory for an archive");
    archive_read_support_format_tar(a);
    archive_read_support_filter_gzip(a);
    archive_read_support_filter_xz(a);
    archive_read_support_filter_zstd(a);
    if (archive_read_open_filename(a, path, CHUNK) != ARCHIVE_OK) rc = read_failed(&c, a, path);
    else rc = take_entries(&c, a);
    archive_read_free(a);
    check_free(&c);
    if (rc != RRL_OK) rrl_archive_check_free(out);
    return rc;
}
