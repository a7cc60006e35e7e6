/* Events: one line, one write(2): ts=... level=... run=... role=... rank=... step=... event=... key=value.
 *
 * A logger is passed, not global; it may be used by several threads. On a terminal the root's lines give way to a
 * progress bar (below): open the log with RRL_LOG_WARN there; a line that is written clears the bar, which is redrawn. */
#ifndef RRL_BASE_LOG_H
#define RRL_BASE_LOG_H

#include <stdint.h>

#include "rrl/status.h"

typedef enum { RRL_LOG_ERROR, RRL_LOG_WARN, RRL_LOG_INFO, RRL_LOG_DEBUG } rrl_log_level;

typedef struct rrl_log rrl_log;
/** Logger of this rank to file descriptor fd (2 = stderr); lines above `level` are dropped. */
rrl_status rrl_log_open(rrl_log **out, int fd, rrl_log_level level, int rank);
void rrl_log_close(rrl_log **log);
/** In all that follows log may be NULL: nothing happens. Also append lines of INFO and above to this file (events.log of a run), whatever the level; NULL ends that. */
rrl_status rrl_log_file(rrl_log *log, const char *path);
/** Context of the lines that follow; strings are copied; step < 0 = none. */
void rrl_log_run(rrl_log *log, const char *run);
void rrl_log_role(rrl_log *log, const char *role);
void rrl_log_step(rrl_log *log, int64_t step);

/** One event. fmt gives "key=value key=value"; values with spaces are given through %s of rrl_log_quoted. log may be
 *  NULL (nothing happens). */
void rrl_event(rrl_log *log, rrl_log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** text JSON-quoted if it has spaces, quotes or controls, into a small ring of buffers of this thread. */
const char *rrl_log_quoted(const char *text);

/** Seconds of a monotonic clock, and UTC as 2026-01-02T03:04:05.678Z into out[32]. */
double rrl_clock(void);
void rrl_utc(char out[32]);

/** Progress of a known number of units on a terminal (stderr); without one, or with enabled 0, *out is NULL, and add and
 *  close do nothing. total 0 = unknown. note NULL = as before. One thread. */
typedef struct rrl_progress rrl_progress;
rrl_status rrl_progress_open(rrl_progress **out, const char *what, int64_t total, int enabled);
void rrl_progress_add(rrl_progress *p, int64_t n, const char *note);
void rrl_progress_close(rrl_progress **p);

#endif
