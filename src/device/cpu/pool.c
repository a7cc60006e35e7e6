#include "device/cpu/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

/* Each thread has a share of the pieces, begins there and then takes what others have not begun: a worker that the system
 * has put aside holds nobody up, and without one the same rows stay with the same thread, in its caches, from job to job.
 *
 * A claim is one compare-and-swap on (generation, next piece) of a share. It can succeed only while its generation is
 * current, and a job's fields change only after all pieces of the job before are done, so whoever claims has read the
 * right fields.
 *
 * Threads spin for some microseconds, then sleep: ranks that share a core must not burn it. */

enum { SPINS = 4000 };

typedef struct {
    _Alignas(64) _Atomic uint64_t claim; /* generation << 32 | next piece */
    _Atomic uint32_t end;
    rrl_pool *pool;
    pthread_t thread; /* of a worker; member 0 is the caller */
} member;

struct rrl_pool {
    _Atomic uint32_t generation; /* of the current job */
    _Atomic uint32_t pieces, done;
    void (*_Atomic fn)(const void *job, int64_t begin, int64_t end);
    const void *_Atomic job;
    _Atomic int64_t n, grain;

    atomic_int sleepers;       /* workers in wait on `work` */
    atomic_bool owner_waiting; /* the caller is in wait on `finished` */
    atomic_bool closing;
    pthread_mutex_t mutex;
    pthread_cond_t work, finished;
    int n_members; /* the caller and the workers that were started */
    member members[];
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Claim and run pieces of a share until none is left; returns how many. */
static uint32_t take(rrl_pool *p, member *from) {
    for (uint32_t taken = 0;;) {
        uint64_t claim = atomic_load(&from->claim);
        const uint32_t piece = (uint32_t)claim;
        if (piece >= atomic_load(&from->end)) return taken;
        void (*fn)(const void *, int64_t, int64_t) = atomic_load(&p->fn);
        const void *job = atomic_load(&p->job);
        const int64_t n = atomic_load(&p->n), grain = atomic_load(&p->grain);
        if (!atomic_compare_exchange_weak(&from->claim, &claim, claim + 1)) continue;
        const int64_t begin = piece * grain, end = begin + grain < n ? begin + grain : n;
        fn(job, begin, end);
        ++taken;
    }
}

/* The member's own share, then those of the others. */
static void help(rrl_pool *p, int own) {
    uint32_t taken = 0;
    for (int i = 0; i < p->n_members; ++i) taken += take(p, &p->members[(own + i) % p->n_members]);
    if (taken == 0) return;
    const uint32_t pieces = atomic_load(&p->pieces); /* this job's: it is not done without those taken */
    if (atomic_fetch_add(&p->done, taken) + taken == pieces && atomic_load(&p->owner_waiting)) {
        pthread_mutex_lock(&p->mutex);
        pthread_cond_signal(&p->finished);
        pthread_mutex_unlock(&p->mutex);
    }
}

static bool is_called(rrl_pool *p, uint32_t seen) {
    return atomic_load(&p->generation) != seen || atomic_load(&p->closing);
}

static void *worker(void *context) {
    const member *me = context;
    rrl_pool *p = me->pool;
    for (uint32_t seen = 0; !atomic_load(&p->closing);) {
        for (int i = 0; i < SPINS && !is_called(p, seen); ++i) pause_cpu();
        if (!is_called(p, seen)) {
            pthread_mutex_lock(&p->mutex);
            atomic_fetch_add(&p->sleepers, 1);
            while (!is_called(p, seen)) pthread_cond_wait(&p->work, &p->mutex);
            atomic_fetch_sub(&p->sleepers, 1);
            pthread_mutex_unlock(&p->mutex);
        }
        seen = atomic_load(&p->generation);
        help(p, (int)(me - p->members));
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
    RRL_TRY(rrl_alloc_aligned(&p, 1, sizeof *p + (size_t)threads * sizeof p->members[0], "thread pool"));
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->finished, NULL);
    for (p->n_members = 1; p->n_members < threads; p->n_members++) {
        member *m = &p->members[p->n_members];
        m->pool = p;
        if (pthread_create(&m->thread, NULL, worker, m) != 0) {
            const int at = p->n_members + 1;
            rrl_pool_close(&p);
            return RRL_FAIL(RRL_ERR_NOMEM, "thread %d of %d could not be started; ask for fewer (--threads)", at, threads);
        }
    }
    *out = p;
    return RRL_OK;
}

void rrl_pool_close(rrl_pool **pool) {
    if (!pool || !*pool) return;
    rrl_pool *p = *pool;
    atomic_store(&p->closing, true);
    wake_all(p);
    for (int i = 1; i < p->n_members; ++i) pthread_join(p->members[i].thread, NULL);
    pthread_cond_destroy(&p->finished);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->mutex);
    free(p);
    *pool = NULL;
}

/* No claim can succeed on the old generation, whose pieces are used up, nor on the new one before a share has an end. */
static void post(rrl_pool *p, void (*fn)(const void *job, int64_t begin, int64_t end), const void *job, int64_t n,
                 int64_t grain, uint32_t pieces) {
    const uint64_t members = (uint64_t)p->n_members;
    const uint32_t generation = atomic_load(&p->generation) + 1;
    for (uint64_t i = 0; i < members; ++i) {
        atomic_store(&p->members[i].end, 0);
        atomic_store(&p->members[i].claim, (uint64_t)generation << 32 | pieces * i / members);
    }
    atomic_store(&p->fn, fn);
    atomic_store(&p->job, job);
    atomic_store(&p->n, n);
    atomic_store(&p->grain, grain);
    atomic_store(&p->pieces, pieces);
    atomic_store(&p->done, 0);
    for (uint64_t i = 0; i < members; ++i)
        atomic_store(&p->members[i].end, (uint32_t)(pieces * (i + 1) / members));
    atomic_store(&p->generation, generation);
    if (atomic_load(&p->sleepers) > 0) wake_all(p);
}

void rrl_pool_run(rrl_pool *p, void (*fn)(const void *job, int64_t begin, int64_t end), const void *job,
                  int64_t n, int64_t grain) {
    const int64_t pieces = (n + grain - 1) / grain;
    if (pieces < 1) return;
    if (pieces == 1 || p->n_members == 1) {
        fn(job, 0, n);
        return;
    }
    post(p, fn, job, n, grain, (uint32_t)pieces);
    help(p, 0);
    for (int i = 0; i < SPINS && atomic_load(&p->done) < pieces; ++i) pause_cpu();
    if (atomic_load(&p->done) == pieces) return;
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->owner_waiting, true);
    while (atomic_load(&p->done) < pieces) pthread_cond_wait(&p->finished, &p->mutex);
    atomic_store(&p->owner_waiting, false);
    pthread_mutex_unlock(&p->mutex);
}
