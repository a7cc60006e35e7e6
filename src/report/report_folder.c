#define _GNU_SOURCE /* renameat2 */
#include "report/report_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "record/lock.h"
#include "report/report_csv.h"

static const char PREFIX[] = "report.", SUFFIX[] = ".tmp";

/* --- names */

bool rrl_report_folder_is_fresh(const char *name) {
    size_t n = strlen(name);
    return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 && n > sizeof SUFFIX &&
           strcmp(name + n - (sizeof SUFFIX - 1), SUFFIX) == 0;
}

/* Where the report stands or will stand: the folder itself, should dir/report be a link to one. */
static rrl_status place_of(char **out, const char *dir) {
    char *place = NULL, *real;
    RRL_TRY(rrl_path_join(&place, dir, "report"));
    if (rrl_dir_exists(place) && (real = realpath(place, NULL)) != NULL) {
        free(place);
        place = real;
    }
    *out = place;
    return RRL_OK;
}

/* mkdir makes the name ours among threads, processes and hosts; what a killed process left only costs a k. */
static rrl_status make_beside(char **out, const char *place) {
    enum { TRIES = 1000 };
    rrl_process self;
    rrl_buffer name = {0};
    char *parent = NULL;
    rrl_status rc;
    rrl_process_self(&self);
    RRL_GOTO(rrl_path_parent(&parent, place));
    for (int k = 0; k < TRIES; k++) {
        name.len = 0;
        RRL_GOTO(rrl_buffer_printf(&name, "%s/%s%s.%ld-%d%s", parent, PREFIX, self.host, self.pid, k, SUFFIX));
        if (mkdir(name.data, 0777) == 0) {
            *out = name.data;
            name = (rrl_buffer){0};
            goto done;
        }
        if (errno != EEXIST) break;
    }
    rc = RRL_FAIL(RRL_ERR_IO, "%s: folder cannot be made: %s", name.data, strerror(errno));
done:
    rrl_buffer_free(&name);
    free(parent);
    return rc;
}

rrl_status rrl_report_folder_make(char **out, const char *dir) {
    char *place = NULL;
    RRL_TRY(place_of(&place, dir));
    rrl_status rc = make_beside(out, place);
    free(place);
    return rc;
}

/* --- removing */

static bool is_of_report(const char *name) {
#define X(file, function) file,
    static const char *const FILES[] = {RRL_REPORT_CSV_LIST(X) "report.md", "report.html", "hypotheses.csv"};
#undef X
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
        if (strcmp(name, FILES[i]) == 0) return true;
    return false;
}

static rrl_status clear(const char *from, const char *to, bool plots);

static rrl_status clear_entry(const char *from, const char *to, const char *name, bool plots) {
    char *path = NULL, *target = NULL;
    struct stat st;
    rrl_status rc;
    RRL_GOTO(rrl_path_join(&path, from, name));
    RRL_GOTO(rrl_path_join(&target, to, name));
    if (lstat(path, &st) != 0) goto done;
    bool folder = S_ISDIR(st.st_mode), drawn = strcmp(name, "plots") == 0;
    if (folder && !plots && (drawn || strncmp(name, "section-", 8) == 0)) {
        rc = clear(path, target, drawn);
    } else if (!folder && (plots || is_of_report(name))) {
        (void)unlink(path);
    } else {
        RRL_GOTO(rrl_dir_make(to));
        if (rename(path, target) != 0)
            rc = RRL_FAIL(RRL_ERR_IO, "%s: cannot be moved to %s: %s", path, target, strerror(errno));
    }
done:
    free(path);
    free(target);
    return rc;
}

/* Remove folder `from` of an earlier report: all files of plots, elsewhere those of a report; what else lies in it moves to
 * `to`. Another writer may be moving something in at the moment, as it met this folder in its place: then once more. */
static rrl_status clear(const char *from, const char *to, bool plots) {
    enum { TRIES = 10 };
    rrl_status rc = RRL_OK;
    for (int i = 0; i < TRIES && rc == RRL_OK; i++) {
        char **names = NULL;
        size_t n = 0;
        RRL_TRY(rrl_dir_list(&names, &n, from));
        for (size_t j = 0; j < n && rc == RRL_OK; j++) rc = clear_entry(from, to, names[j], plots);
        rrl_names_free(&names, n);
        if (rc == RRL_OK && rmdir(from) == 0) return RRL_OK;
    }
    return rc == RRL_OK ? RRL_FAIL(RRL_ERR_IO, "%s: folder cannot be removed: %s", from, strerror(errno)) : rc;
}

/* --- publishing */

static rrl_status refused(const char *fresh, const char *place) {
    return RRL_FAIL(RRL_ERR_IO, "%s: cannot be renamed to %s: %s", fresh, place, strerror(errno));
}

static bool is_taken(void) {
    return errno == ENOTEMPTY || errno == EEXIST;
}

static bool exchange(const char *fresh, const char *place) {
    if (!rrl_fault("report.exchange")) return renameat2(AT_FDCWD, fresh, AT_FDCWD, place, RENAME_EXCHANGE) == 0;
    errno = EINVAL; /* what a network file system says */
    return false;
}

/* Without an exchange: the old one aside, the new one in its place. */
static rrl_status exchange_in_steps(const char *fresh, const char *place) {
    char *aside = NULL;
    rrl_status rc;
    RRL_TRY(make_beside(&aside, place));
    if (rename(place, aside) != 0 && errno != ENOENT) {
        rc = refused(place, aside);
        (void)rmdir(aside);
        goto done;
    }
    if (rename(fresh, place) == 0) {
        rc = clear(aside, place, false);
    } else if (is_taken()) { /* another writer was faster; its report is as new */
        rc = clear(aside, place, false);
        (void)rrl_dir_remove(fresh);
    } else {
        rc = refused(fresh, place);
        (void)rename(aside, place);
    }
done:
    free(aside);
    return rc;
}

rrl_status rrl_report_folder_publish(const char *fresh, const char *dir) {
    enum { TRIES = 100 };
    char *place = NULL;
    rrl_status rc;
    RRL_GOTO(place_of(&place, dir));
    for (int i = 0; i < TRIES; i++) {
        if (rename(fresh, place) == 0) goto done;
        if (!is_taken()) break;
        if (exchange(fresh, place)) {
            rc = clear(fresh, place, false);
            goto done;
        }
        if (errno == ENOENT) continue; /* it was just moved aside */
        if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) break;
        rc = exchange_in_steps(fresh, place);
        goto done;
    }
    rc = refused(fresh, place);
done:
    free(place);
    return rc;
}
