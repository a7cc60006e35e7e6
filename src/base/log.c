/* Events as one line and one write each, so that lines of many ranks on one descriptor never mix. A log line
 * that cannot be written is dropped: logging stops no run. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json_write.h"
#include "base/memory.h"

struct rrl_log {
    pthread_mutex_t lock; /* the recorder's thread logs too */
    int fd, file_fd;      /* file_fd -1 = none */
    bool terminal;
    rrl_log_level level;
    int rank;
    char *run, *role; /* quoted where needed; NULL = none */
    int64_t step;
};

/* --- clock */

double rrl_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void rrl_utc(char out[32]) {
    struct timespec t;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &utc);
    size_t n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + n, 32 - n, ".%03dZ", (int)(t.tv_nsec / 1000000));
}

/* --- quoting */

static bool needs_quotes(const char *text) {
    if (!*text) return true;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p <= ' ' || *p == '"') return true;
    return false;
}

const char *rrl_log_quoted(const char *text) {
    enum { RING = 8, CHARS = 2304 }; /* an error message of 2048 fits */
    static _Thread_local char ring[RING][CHARS];
    static _Thread_local unsigned next;
    if (!needs_quotes(text)) return text;
    char *out = ring[next++ % RING];
    rrl_buffer b = {0};
    size_t len = strnlen(text, CHARS);
    out[0] = 0;
    if (rrl_json_quote(&b, text, len) == RRL_OK) {
        snprintf(out, CHARS, "%s", b.data);
        if (b.len >= CHARS) strcpy(out + CHARS - 5, "...\""); /* cut, but still closed */
    }
    rrl_buffer_free(&b);
    return out;
}

/* --- logger */

rrl_status rrl_log_open(rrl_log **out, int fd, rrl_log_level level, int rank) {
    rrl_log *log = NULL;
    RRL_TRY(rrl_alloc(&log, 1, sizeof *log, "log"));
    pthread_mutex_init(&log->lock, NULL);
    log->fd = fd;
    log->file_fd = -1;
    log->terminal = isatty(fd);
    log->level = level;
    log->rank = rank;
    log->step = -1;
    *out = log;
    return RRL_OK;
}

void rrl_log_close(rrl_log **log) {
    if (!log || !*log) return;
    rrl_log *l = *log;
    if (l->file_fd >= 0) close(l->file_fd);
    free(l->run);
    free(l->role);
    pthread_mutex_destroy(&l->lock);
    free(l);
    *log = NULL;
}

rrl_status rrl_log_file(rrl_log *log, const char *path) {
    int fd = -1;
    if (!log) return RRL_OK;
    if (path) {
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) return RRL_FAIL(RRL_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    pthread_mutex_lock(&log->lock);
    if (log->file_fd >= 0) close(log->file_fd);
    log->file_fd = fd;
    pthread_mutex_unlock(&log->lock);
    return RRL_OK;
}

/* Without memory the old value stays: a log line with an old name is better than no run. */
static void set_text(rrl_log *log, char **field, const char *text) {
    char *copy = NULL;
    if (text && rrl_strdup(&copy, rrl_log_quoted(text)) != RRL_OK) return;
    pthread_mutex_lock(&log->lock);
    free(*field);
    *field = copy;
    pthread_mutex_unlock(&log->lock);
}

void rrl_log_run(rrl_log *log, const char *run) {
    if (log) set_text(log, &log->run, run);
}

void rrl_log_role(rrl_log *log, const char *role) {
    if (log) set_text(log, &log->role, role);
}

void rrl_log_step(rrl_log *log, int64_t step) {
    if (!log) return;
    pthread_mutex_lock(&log->lock);
    log->step = step;
    pthread_mutex_unlock(&log->lock);
}

/* --- events */

static const char *level_name(rrl_log_level level) {
    static const char *const NAMES[] = {"error", "warn", "info", "debug"};
    return NAMES[level];
}

/* The line up to the event's own values; the lock is held. */
static rrl_status put_head(rrl_buffer *b, const rrl_log *log, rrl_log_level level, const char *event) {
    char ts[32];
    rrl_utc(ts);
    RRL_TRY(rrl_buffer_printf(b, "ts=%s level=%s", ts, level_name(level)));
    if (log->run) RRL_TRY(rrl_buffer_printf(b, " run=%s", log->run));
    if (log->role) RRL_TRY(rrl_buffer_printf(b, " role=%s", log->role));
    RRL_TRY(rrl_buffer_printf(b, " rank=%d", log->rank));
    if (log->step >= 0) RRL_TRY(rrl_buffer_printf(b, " step=%" PRId64, log->step));
    return rrl_buffer_printf(b, " event=%s", event);
}

static rrl_status put_values(rrl_buffer *b, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n <= 0) return RRL_OK;
    size_t start = b->len;
    RRL_TRY(rrl_buffer_printf(b, " %*s", n, "")); /* room */
    vsnprintf(b->data + start + 1, (size_t)n + 1, fmt, args);
    for (char *p = b->data + start; *p; p++)
        if ((unsigned char)*p < ' ') *p = ' '; /* a line stays a line */
    return RRL_OK;
}

static void write_line(int fd, const char *line, size_t n) {
    ssize_t done;
    do done = write(fd, line, n);
    while (done < 0 && errno == EINTR);
}

void rrl_event(rrl_log *log, rrl_log_level level, const char *event, const char *fmt, ...) {
    static const char CLEAR[] = "\r\033[K"; /* a progress bar may stand on the terminal's line */
    if (!log) return;
    bool to_fd = level <= log->level;
    rrl_buffer b = {0};
    pthread_mutex_lock(&log->lock);
    bool to_file = log->file_fd >= 0 && level <= RRL_LOG_INFO;
    if (to_fd || to_file) {
        va_list args;
        va_start(args, fmt);
        bool ok = rrl_buffer_puts(&b, CLEAR) == RRL_OK && put_head(&b, log, level, event) == RRL_OK &&
                  put_values(&b, fmt, args) == RRL_OK && rrl_buffer_puts(&b, "\n") == RRL_OK;
        va_end(args);
        size_t skip = sizeof CLEAR - 1;
        size_t skip_fd = log->terminal ? 0 : skip;
        if (ok && to_fd) write_line(log->fd, b.data + skip_fd, b.len - skip_fd);
        if (ok && to_file) write_line(log->file_fd, b.data + skip, b.len - skip);
    }
    pthread_mutex_unlock(&log->lock);
    rrl_buffer_free(&b);
}
