#include "device/cpu/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

/* A claim is one compare-and-swap on (generation, next piece). It can succeed only while its generation is
 * current, and a job's fields change only after all pieces of the job before are done, so whoever claims has
 * read the right fields. A worker that the system has put aside holds nobody up: the others take its pieces.
 *
 * Threads spin for some microseconds, then sleep: ranks that share a core must not burn it. */

enum { SPINS = 4000 };

struct rrl_pool {
    _Atomic uint64_t claim;  /* generation << 32 | next piece */
    _Atomic uint32_t pieces; /* of the current job */
    _Atomic uint32_t done;
    void (*_Atomic fn)(const void *job, int64_t begin, int64_t end);
    const void *_Atomic job;
    _Atomic int64_t n, grain;

    atomic_int sleepers;       /* workers in wait on `work` */
    atomic_bool owner_waiting; /* the caller is in wait on `finished` */
    atomic_bool closing;
    pthread_mutex_t mutex;
    pthread_cond_t work, finished;
    int n_workers;
    pthread_t workers[];
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static bool has_work(rrl_pool *p) {
    uint32_t next = (uint32_t)atomic_load(&p->claim);
    return next < atomic_load(&p->pieces);
}

/* Claim and run pieces until none is left. */
static void help(rrl_pool *p) {
    for (;;) {
        uint64_t claim = atomic_load(&p->claim);
        uint32_t piece = (uint32_t)claim, pieces = atomic_load(&p->pieces);
        if (piece >= pieces) return;
        void (*fn)(const void *, int64_t, int64_t) = atomic_load(&p->fn);
        const void *job = atomic_load(&p->job);
        int64_t n = atomic_load(&p->n), grain = atomic_load(&p->grain);
        if (!atomic_compare_exchange_weak(&p->claim, &claim, claim + 1)) continue;
        int64_t begin = piece * grain, end = begin + grain < n ? begin + grain : n;
        fn(job, begin, end);
        if (atomic_fetch_add(&p->done, 1) + 1 == pieces && atomic_load(&p->owner_waiting)) {
            pthread_mutex_lock(&p->mutex);
            pthread_cond_signal(&p->finished);
            pthread_mutex_unlock(&p->mutex);
        }
    }
}

static void *worker(void *context) {
    rrl_pool *p = context;
    while (!atomic_load(&p->closing)) {
        help(p);
        for (int i = 0; i < SPINS && !has_work(p); ++i) pause_cpu();
        if (has_work(p)) continue;
        pthread_mutex_lock(&p->mutex);
        atomic_fetch_add(&p->sleepers, 1);
        while (!has_work(p) && !atomic_load(&p->closing)) pthread_cond_wait(&p->work, &p->mutex);
        atomic_fetch_sub(&p->sleepers, 1);
        pthread_mutex_unlock(&p->mutex);
    }
    return NULL;
}

static void wake_all(rrl_pool *p) {
    pthread_mutex_lock(&p->mutex);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mutex);
}

rrl_status rrl_pool_open(rrl_pool **out, int threads) {
    rrl_pool *p = NULL;
    if (threads < 1 || threads > 4096)
        return RRL_FAIL(RRL_ERR_CONFIG, "%d threads: expected 1 to 4096", threads);
    RRL_TRY(
        rrl_alloc_aligned(&p, 1, sizeof *p + (size_t)(threads - 1) * sizeof p->workers[0], "thread pool"));
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->finished, NULL);
    for (int i = 0; i < threads - 1; ++i) {
        if (pthread_create(&p->workers[i], NULL, worker, p) != 0) {
            rrl_pool_close(&p);
            return RRL_FAIL(RRL_ERR_NOMEM, "thread %d of %d could not be started; ask for fewer (--threads)",
                            i + 2, threads);
        }
        p->n_workers++;
    }
    *out = p;
    return RRL_OK;
}

void rrl_pool_close(rrl_pool **pool) {
    if (!pool || !*pool) return;
    rrl_pool *p = *pool;
    atomic_store(&p->closing, true);
    wake_all(p);
    for (int i = 0; i < p->n_workers; ++i) pthread_join(p->workers[i], NULL);
    pthread_cond_destroy(&p->finished);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->mutex);
    free(p);
    *pool = NULL;
}

void rrl_pool_run(rrl_pool *p, void (*fn)(const void *job, int64_t begin, int64_t end), const void *job,
                  int64_t n, int64_t grain) {
    int64_t pieces = (n + grain - 1) / grain;
    if (pieces < 1) return;
    if (pieces == 1 || p->n_workers == 0) {
        fn(job, 0, n);
        return;
    }
    /* no claim can succeed on the old generation: its pieces are used up; pieces = 0 until the fields are set
     */
    uint64_t generation = (atomic_load(&p->claim) >> 32) + 1;
    atomic_store(&p->pieces, 0);
    atomic_store(&p->claim, generation << 32);
    atomic_store(&p->fn, fn);
    atomic_store(&p->job, job);
    atomic_store(&p->n, n);
    atomic_store(&p->grain, grain);
    atomic_store(&p->done, 0);
    atomic_store(&p->pieces, (uint32_t)pieces);
    if (atomic_load(&p->sleepers) > 0) wake_all(p);
    help(p);
    for (int i = 0; i < SPINS && atomic_load(&p->done) < pieces; ++i) pause_cpu();
    if (atomic_load(&p->done) == pieces) return;
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->owner_waiting, true);
    while (atomic_load(&p->done) < pieces) pthread_cond_wait(&p->finished, &p->mutex);
    atomic_store(&p->owner_waiting, false);
    pthread_mutex_unlock(&p->mutex);
}
