#define _GNU_SOURCE /* pthread_setname_np */
#include "roles/writer.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/memory.h"

static const double WAIT_S = 0.02; /* between two signs of life */

/* Pieces in order. */
typedef struct {
    rrl_write *first, *last;
    int n;
} row;

struct rrl_writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    row put, waiting, finished; /* the owner's; handed over; written, and not yet done() */
    double share, rest_until;   /* by rrl_clock */
    int most;
    bool busy, ending; /* pieces are being written; no more will come */
    rrl_status failed; /* of the first piece that did */
    char message[1024];
};

static void push(row *r, rrl_write *w) {
    w->next = NULL;
    if (r->last) r->last->next = w;
    else r->first = w;
    r->last = w;
    r->n++;
}

static rrl_write *pop(row *r) {
    rrl_write *w = r->first;
    if (!w) return NULL;
    r->first = w->next;
    if (!r->first) r->last = NULL;
    r->n--;
    return w;
}

/* --- the thread */

static double processor_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Messages belong to a thread: this one's goes to whoever asks next. */
static void write_piece(rrl_writer *w, rrl_write *piece) {
    const bool left_out = w->failed != RRL_OK;
    pthread_mutex_unlock(&w->lock);
    rrl_status rc = left_out ? RRL_OK : piece->run(piece);
    pthread_mutex_lock(&w->lock);
    piece->ran = !left_out && rc == RRL_OK;
    if (rc != RRL_OK) {
        w->failed = rc;
        snprintf(w->message, sizeof w->message, "%s", rrl_error_message());
    }
}

static bool followed(const rrl_write *piece) {
    const rrl_write *p = piece->next;
    while (p && p->of != piece->of) p = p->next;
    return p && piece->of;
}

/* All that waits now. */
static void write_all(rrl_writer *w) {
    const double began = rrl_clock(), used = processor_time();
    row now = w->waiting;
    w->waiting = (row){0};
    w->busy = true;
    for (rrl_write *piece = now.first; piece; piece = piece->next) piece->more = w->share < 1 && followed(piece);
    for (rrl_write *piece; (piece = pop(&now)) != NULL;) {
        write_piece(w, piece);
        push(&w->finished, piece);
    }
    w->busy = false;
    w->rest_until = began + (w->share < 1 ? (processor_time() - used) / w->share : 0);
    pthread_cond_broadcast(&w->changed);
}

static void *thread(void *writer) {
    rrl_writer *w = writer;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        if (w->waiting.first) write_all(w);
        else if (w->ending) break;
        else pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* --- its owner */

/* By the clock that nobody sets. */
static void make_condition(pthread_cond_t *c) {
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(c, &how);
    pthread_condattr_destroy(&how);
}

rrl_status rrl_writer_open(rrl_writer **out, double share, int most) {
    rrl_writer *w = NULL;
    sigset_t all, before;
    RRL_TRY(rrl_alloc(&w, 1, sizeof *w, "writer"));
    w->share = share;
    w->most = most;
    pthread_mutex_init(&w->lock, NULL);
    make_condition(&w->changed);
    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&w->thread, NULL, thread, w);
    if (error == 0) (void)pthread_setname_np(w->thread, "rrl-writer");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        *out = w;
        return RRL_OK;
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return RRL_FAIL(RRL_ERR_NOMEM, "a thread for writing records could not be started");
}

/* Under the lock, which is let go meanwhile. */
static void say_done(rrl_writer *w) {
    for (rrl_write *piece; (piece = pop(&w->finished)) != NULL;) {
        pthread_mutex_unlock(&w->lock);
        piece->done(piece);
        pthread_mutex_lock(&w->lock);
    }
}

/* Until at most `most` pieces wait; with 0 none is being written either. */
static rrl_status wait_for(rrl_writer *w, int most, rrl_watch *watch) {
    for (;;) {
        say_done(w);
        if (w->waiting.n <= most && (most > 0 || !w->busy) && !w->finished.first) break;
        const double when = rrl_clock() + WAIT_S;
        const struct timespec until = {(time_t)when, (long)(1e9 * (when - floor(when)))};
        pthread_cond_timedwait(&w->changed, &w->lock, &until);
        pthread_mutex_unlock(&w->lock);
        rrl_watch_beat(watch);
        pthread_mutex_lock(&w->lock);
    }
    return w->failed == RRL_OK ? RRL_OK : RRL_FAIL(w->failed, "%s", w->message);
}

void rrl_writer_put(rrl_writer *w, rrl_write *piece) { push(&w->put, piece); }

bool rrl_writer_ready(rrl_writer *w) {
    pthread_mutex_lock(&w->lock);
    const bool idle = !w->busy && !w->waiting.first && rrl_clock() >= w->rest_until;
    pthread_mutex_unlock(&w->lock);
    return idle || w->share == 1 || w->put.n >= w->most;
}

/* Hand over, and wait as wait_for says. */
static rrl_status hand_over(rrl_writer *w, int most, rrl_watch *watch) {
    pthread_mutex_lock(&w->lock);
    for (rrl_write *piece; (piece = pop(&w->put)) != NULL;) push(&w->waiting, piece);
    pthread_cond_broadcast(&w->changed);
    rrl_status rc = wait_for(w, most, watch);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

rrl_status rrl_writer_go(rrl_writer *w, rrl_watch *watch) { return hand_over(w, w->most, watch); }
rrl_status rrl_writer_drain(rrl_writer *w, rrl_watch *watch) { return hand_over(w, 0, watch); }

void rrl_writer_close(rrl_writer **wp, rrl_watch *watch) {
    rrl_writer *w = *wp;
    if (!w) return;
    (void)rrl_writer_drain(w, watch);
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    *wp = NULL;
}
