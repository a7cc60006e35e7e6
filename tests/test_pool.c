/* The thread pool: every unit runs exactly once, whatever the number of units, pieces and threads, with
 * workers awake and asleep. */
#include "check.h"

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
        rrl_pool_close(&p);
        CHECK(p == NULL);
        rrl_pool_close(&p);
    }
    return CHECK_DONE();
}
