#define _GNU_SOURCE /* pthread_setname_np */
#include "roles/writer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"

enum { WAIT_NS = 20000000 };

/* Pieces in order: those to be written, and those that are and wait for their done(). */
typedef struct {
    rrl_write *first, *last;
    int n;
} row;

struct rrl_writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    row waiting, finished;
    int most;
    bool busy, ending; /* a piece is being written; no more will come */
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

/* Messages belong to a thread: this one's goes to whoever asks next. */
static void work(rrl_writer *w, rrl_write *piece) {
    const bool left_out = w->failed != RRL_OK;
    w->busy = true;
    pthread_mutex_unlock(&w->lock);
    rrl_status rc = left_out ? RRL_OK : piece->run(piece);
    pthread_mutex_lock(&w->lock);
    piece->ran = !left_out && rc == RRL_OK;
    if (rc != RRL_OK) {
        w->failed = rc;
        snprintf(w->message, sizeof w->message, "%s", rrl_error_message());
    }
    w->busy = false;
    push(&w->finished, piece);
    pthread_cond_broadcast(&w->changed);
}

static void *thread(void *writer) {
    rrl_writer *w = writer;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        rrl_write *piece = pop(&w->waiting);
        if (piece) work(w, piece);
        else if (w->ending) break;
        else pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

rrl_status rrl_writer_open(rrl_writer **out, int most) {
    rrl_writer *w = NULL;
    sigset_t all, before;
    RRL_TRY(rrl_alloc(&w, 1, sizeof *w, "writer"));
    w->most = most;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
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
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WAIT_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&w->changed, &w->lock, &until);
        pthread_mutex_unlock(&w->lock);
        rrl_watch_beat(watch);
        pthread_mutex_lock(&w->lock);
    }
    return w->failed == RRL_OK ? RRL_OK : RRL_FAIL(w->failed, "%s", w->message);
}

rrl_status rrl_writer_put(rrl_writer *w, rrl_write *piece, rrl_watch *watch) {
    pthread_mutex_lock(&w->lock);
    push(&w->waiting, piece);
    pthread_cond_broadcast(&w->changed);
    rrl_status rc = wait_for(w, w->most, watch);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

rrl_status rrl_writer_drain(rrl_writer *w, rrl_watch *watch) {
    pthread_mutex_lock(&w->lock);
    rrl_status rc = wait_for(w, 0, watch);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

void rrl_writer_close(rrl_writer **wp, rrl_watch *watch) {
    rrl_writer *w = *wp;
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    (void)wait_for(w, 0, watch);
    w->ending = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    *wp = NULL;
}
