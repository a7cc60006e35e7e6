#define _GNU_SOURCE
#include "report/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"

enum { NOT_FOUND = 127, NO_FOLDER = 126, MAX_LOG = 1 << 20 };

static const char LOG[] = "gnuplot.log";

/* In the child: nothing but system calls until the other program begins. -d: no start-up files of the user. */
static void become_gnuplot(const char *dir, const char *script) {
    if (chdir(dir) != 0) _exit(NO_FOLDER);
    int in = open("/dev/null", O_RDONLY), out = open(LOG, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0) _exit(NO_FOLDER);
    execlp("gnuplot", "gnuplot", "-d", script, (char *)NULL);
    _exit(errno == ENOENT ? NOT_FOUND : NO_FOLDER);
}

static rrl_status wait_for(int *status, pid_t child) {
    while (waitpid(child, status, 0) < 0)
        if (errno != EINTR) return RRL_FAIL(RRL_ERR_IO, "waiting for gnuplot: %s", strerror(errno));
    return RRL_OK;
}

/* The last line that gnuplot wrote, which names the error. */
static void quote_log(char note[RRL_GNUPLOT_NOTE], const char *dir) {
    char *path = NULL, *text = NULL;
    size_t len = 0;
    snprintf(note, RRL_GNUPLOT_NOTE, "gnuplot failed");
    if (rrl_path_join(&path, dir, LOG) == RRL_OK && rrl_file_read(&text, &len, path, MAX_LOG) == RRL_OK) {
        while (len && (text[len - 1] == '\n' || text[len - 1] == ' ')) text[--len] = '\0';
        const char *line = strrchr(text, '\n');
        line = line ? line + 1 : text;
        if (*line) snprintf(note, RRL_GNUPLOT_NOTE, "gnuplot failed: %.200s", line);
    }
    free(text);
    free(path);
}

rrl_status rrl_gnuplot_run(bool *done, char note[RRL_GNUPLOT_NOTE], const char *dir, const char *script) {
    int status = 0;
    pid_t child = fork();
    if (child < 0) return RRL_FAIL(RRL_ERR_IO, "gnuplot could not be started: %s", strerror(errno));
    if (child == 0) become_gnuplot(dir, script);
    RRL_TRY(wait_for(&status, child));
    *done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    note[0] = '\0';
    if (*done) return RRL_OK;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
        snprintf(note, RRL_GNUPLOT_NOTE, "gnuplot is not installed, so there are no plots (Debian: gnuplot-nox)");
    else
        quote_log(note, dir);
    return RRL_OK;
}
