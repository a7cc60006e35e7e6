/* The thread pool: every unit runs exactly once, whatever the number of units, pieces and threads, with
 * workers awake and asleep; and each thread begins with its own share. */
#include "check.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "device/cpu/pool.h"

enum { MOST = 5000 };
typedef struct {
    atomic_int visits[MOST];
    int64_t n, grain;
    atomic_int bad_pieces;
} job;

static void visit(const void *context, int64_t begin, int64_t end) {
    job *j = (job *)context;
    if (begin < 0 || end > j->n || end <= begin) atomic_fetch_add(&j->bad_pieces, 1);
    for (int64_t i = begin; i < end; ++i) atomic_fetch_add(&j->visits[i], 1);
}

static void run(rrl_pool *p, int64_t n, int64_t grain) {
    static job j;
    j.n = n;
    j.grain = grain;
    for (int64_t i = 0; i < MOST; ++i) atomic_store(&j.visits[i], 0);
    rrl_pool_run(p, visit, &j, n, grain);
    int wrong = 0;
    for (int64_t i = 0; i < MOST; ++i) wrong += atomic_load(&j.visits[i]) != (i < n);
    CHECK_EQ_INT(wrong, 0);
    CHECK_EQ_INT(atomic_load(&j.bad_pieces), 0);
}

/* What each thread runs first: nobody goes on before everybody has begun, so nobody finds a share used up. */
typedef struct {
    int run, threads;
    atomic_int begun;
    _Atomic uint64_t first; /* bit p: some thread ran piece p first */
} beginnings;

static void begin_there(const void *context, int64_t begin, int64_t end) {
    static _Thread_local int last_run;
    beginnings *b = (beginnings *)context;
    if (last_run == b->run) return;
    last_run = b->run;
    atomic_fetch_or(&b->first, UINT64_C(1) << begin);
    atomic_fetch_add(&b->begun, 1);
    while (atomic_load(&b->begun) < b->threads) sched_yield();
}

static void check_shares(rrl_pool *p, int threads) {
    enum { PIECES = 3 }; /* a thread */
    static int run_number;
    uint64_t expected = 0;
    for (int t = 0; t < threads; ++t) expected |= UINT64_C(1) << t * PIECES;
    for (int i = 0; threads > 1 && i < 50; ++i) {
        beginnings b = {.run = ++run_number, .threads = threads};
        rrl_pool_run(p, begin_there, &b, (int64_t)threads * PIECES, 1);
        CHECK_EQ_INT(atomic_load(&b.first), expected);
    }
}

int main(void) {
    rrl_pool *p = NULL;
    CHECK_STATUS(rrl_pool_open(&p, 0), RRL_ERR_CONFIG);
    CHECK(p == NULL);
    for (int threads = 1; threads <= 4; ++threads) {
        CHECK_OK(rrl_pool_open(&p, threads));
        run(p, 0, 1);
        for (int i = 0; i < 500; ++i) run(p, i * 37 % MOST, 1 + i % 13);
        for (int i = 0; i < 20; ++i) { /* longer than workers stay awake */
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
            run(p, 100 + i, 1);
        }
        check_shares(p, threads);
        rrl_pool_close(&p);
        CHECK(p == NULL);
        rrl_pool_close(&p);
    }
    return CHECK_DONE();
}
