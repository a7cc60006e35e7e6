/* One line on the terminal, drawn over itself: what, bar, count, rate, time left (in the end the time taken), note. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

enum { BAR_CHARS = 20, LINE_CHARS = 512 };
static const double REDRAW_SECONDS = 0.1;

struct rrl_progress {
    char *what, *note;
    int64_t done, total;
    double start, drawn;
};

static int terminal_width(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* Seconds as m:ss or h:mm:ss. */
static void format_duration(char out[32], double seconds) {
    int64_t s = (int64_t)(seconds + 0.5);
    if (s < 3600)
        snprintf(out, 32, "%d:%02d", (int)(s / 60), (int)(s % 60));
    else
        snprintf(out, 32, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60), (int)(s % 60));
}

/* The line without its control sequences. */
static void format_line(char line[LINE_CHARS], const rrl_progress *p, double now) {
    double elapsed = now - p->start;
    double rate = elapsed > 0 ? (double)p->done / elapsed : 0;
    char time[32];
    const char *note = p->note ? p->note : "";
    if (p->total <= 0) {
        format_duration(time, elapsed);
        snprintf(line, LINE_CHARS, "%s %" PRId64 " %.3g/s %s %s", p->what, p->done, rate, time, note);
        return;
    }
    int64_t shown = p->done < p->total ? p->done : p->total;
    int filled = (int)((double)shown / (double)p->total * BAR_CHARS);
    char bar[BAR_CHARS + 1];
    memset(bar, '#', (size_t)filled);
    memset(bar + filled, '.', (size_t)(BAR_CHARS - filled));
    bar[BAR_CHARS] = 0;
    bool over = shown == p->total;
    if (over)
        format_duration(time, elapsed);
    else if (rate > 0)
        format_duration(time, (double)(p->total - shown) / rate);
    else
        strcpy(time, "?");
    snprintf(line, LINE_CHARS, "%s [%s] %" PRId64 "/%" PRId64 " %.3g/s %s%s %s", p->what, bar, p->done, p->total, rate,
             time, over ? "" : " left", note);
}

static void draw(rrl_progress *p, const char *end) {
    char line[LINE_CHARS], out[LINE_CHARS + 16];
    double now = rrl_clock();
    p->drawn = now;
    format_line(line, p, now);
    int width = terminal_width() - 1; /* a full line would scroll */
    int n = snprintf(out, sizeof out, "\r%.*s\033[K%s", width, line, end);
    ssize_t written;
    do written = write(STDERR_FILENO, out, (size_t)n);
    while (written < 0 && errno == EINTR);
}

rrl_status rrl_progress_open(rrl_progress **out, const char *what, int64_t total, int enabled) {
    rrl_status rc = RRL_OK;
    rrl_progress *p = NULL;
    *out = NULL;
    if (!enabled || !isatty(STDERR_FILENO)) return RRL_OK;
    RRL_GOTO(rrl_alloc(&p, 1, sizeof *p, "progress"));
    RRL_GOTO(rrl_strdup(&p->what, what));
    p->total = total;
    p->start = rrl_clock();
    draw(p, "");
    *out = p;
    p = NULL;
done:
    free(p);
    return rc;
}

void rrl_progress_add(rrl_progress *p, int64_t n, const char *note) {
    if (!p) return;
    p->done += n;
    if (note) {
        char *copy = NULL;
        if (rrl_strdup(&copy, note) == RRL_OK) {
            free(p->note);
            p->note = copy;
        }
    }
    if (rrl_clock() - p->drawn >= REDRAW_SECONDS) draw(p, "");
}

void rrl_progress_close(rrl_progress **p) {
    if (!p || !*p) return;
    draw(*p, "\n");
    free((*p)->what);
    free((*p)->note);
    free(*p);
    *p = NULL;
}
