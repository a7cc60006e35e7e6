#define _GNU_SOURCE /* pthread_setname_np */
#include "roles/writer.h"

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
    row put, waiting, finished; /* not yet to be written; to be written; written, and not yet done() */
    double share, rest_until;   /* by rrl_clock */
    int most;
    bool busy, hurry, ending; /* pieces are being written; somebody waits for all of them; no more will come */
    rrl_status failed;        /* of the first piece that did */
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

static void wait_until(rrl_writer *w, double when) {
    const time_t seconds = (time_t)when;
    const struct timespec t = {seconds, (long)(1e9 * (when - (double)seconds))};
    pthread_cond_timedwait(&w->changed, &w->lock, &t);
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
    while (p && (p->replaces || p->of != piece->of)) p = p->next;
    return p != NULL;
}

/* All that waits now; what is put meanwhile waits for the next go. */
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
        const bool rests = !w->hurry && w->waiting.n <= w->most && rrl_clock() < w->rest_until;
        if (w->waiting.first && !rests) write_all(w);
        else if (w->waiting.first) wait_until(w, w->rest_until);
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
        wait_until(w, rrl_clock() + WAIT_S);
        pthread_mutex_unlock(&w->lock);
        rrl_watch_beat(watch);
        pthread_mutex_lock(&w->lock);
    }
    return w->failed == RRL_OK ? RRL_OK : RRL_FAIL(w->failed, "%s", w->message);
}

/* Takes what this piece replaces out of those that wait. */
static void replace(rrl_writer *w, const rrl_write *piece) {
    row left = {0};
    for (rrl_write *old; (old = pop(&w->waiting)) != NULL;)
        push(old->replaces && old->of == piece->of ? &w->finished : &left, old);
    w->waiting = left;
}

/* What was put joins what waits. */
static void admit(rrl_writer *w) {
    for (rrl_write *piece; (piece = pop(&w->put)) != NULL;) {
        if (piece->replaces && w->share < 1) replace(w, piece);
        push(&w->waiting, piece);
    }
    pthread_cond_broadcast(&w->changed);
}

void rrl_writer_put(rrl_writer *w, rrl_write *piece) { push(&w->put, piece); }

rrl_status rrl_writer_go(rrl_writer *w, rrl_watch *watch) {
    pthread_mutex_lock(&w->lock);
    admit(w);
    rrl_status rc = wait_for(w, w->most, watch);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

rrl_status rrl_writer_drain(rrl_writer *w, rrl_watch *watch) {
    pthread_mutex_lock(&w->lock);
    w->hurry = true;
    admit(w);
    rrl_status rc = wait_for(w, 0, watch);
    w->hurry = false;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

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
