/* Measuring memory and arithmetic: each measurement lasts some hundredths of a second. */
#include "bench/meter.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/loops.h"
#include "device/cpu/pool.h"

enum { LINE = 64, STRETCH = 8 * LINE };                  /* a read takes stretches of eight lines */
static const double LASTS = 0.03;                        /* seconds of a measurement, at least */
static const size_t LEAST = 1 << 14, MOST = (size_t)1 << 30; /* bytes of the region */

struct rrl_bench_meter {
    const rrl_bench_loops *loops;
    rrl_pool *pool;
    int threads;
    uint64_t *region;
    size_t bytes;
    _Atomic uint64_t sink; /* what was computed goes here */
};

rrl_bench_pair rrl_bench_now(void) {
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (rrl_bench_pair){rrl_clock(), (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec};
}

rrl_bench_pair rrl_bench_since(rrl_bench_pair since) {
    rrl_bench_pair now = rrl_bench_now();
    return (rrl_bench_pair){now.wall - since.wall, now.cpu - since.cpu};
}

rrl_status rrl_bench_meter_open(rrl_bench_meter **out, const char *isa, int threads) {
    rrl_status rc = RRL_OK;
    rrl_bench_meter *m = NULL;
    RRL_GOTO(rrl_alloc(&m, 1, sizeof *m, "meter"));
    m->loops = rrl_bench_loops_of(isa);
    m->threads = threads;
    RRL_GOTO(rrl_pool_open(&m->pool, threads));
    *out = m;
    m = NULL;
done:
    rrl_bench_meter_close(&m);
    return rc;
}

void rrl_bench_meter_close(rrl_bench_meter **mp) {
    rrl_bench_meter *m = *mp;
    if (!m) return;
    rrl_pool_close(&m->pool);
    free(m->region);
    free(m);
    *mp = NULL;
}

size_t rrl_bench_meter_bytes(const rrl_bench_meter *m) { return m->bytes; }

/* A job of `threads` pieces, each done `times` times. */
typedef struct {
    rrl_bench_meter *m;
    size_t share; /* bytes of a piece */
    int64_t times;
} job;

static void read_piece(const void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < j->times; k++)
            j->m->sink = j->m->loops->read(j->m->region + (size_t)i * j->share / sizeof(uint64_t),
                                           (int64_t)(j->share / sizeof(uint64_t)));
}

static void arithmetic_piece(const void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t i = begin; i < end; i++) j->m->sink = (uint64_t)j->m->loops->arithmetic(j->times);
}

/* Amount a second; `amount` is that of one time on all threads. Times are doubled until they last. */
static rrl_bench_pair measure(rrl_bench_meter *m, job j, void (*piece)(const void *, int64_t, int64_t), double amount) {
    for (j.times = 1;; j.times *= 2) {
        rrl_bench_pair start = rrl_bench_now();
        rrl_pool_run(m->pool, piece, &j, m->threads, 1);
        rrl_bench_pair took = rrl_bench_since(start);
        if (took.wall < LASTS) continue;
        double done = amount * (double)j.times;
        return (rrl_bench_pair){done / took.wall, done / took.cpu};
    }
}

static rrl_status hold(rrl_bench_meter *m, size_t bytes) {
    if (bytes <= m->bytes) return RRL_OK;
    free(m->region);
    m->region = NULL;
    m->bytes = 0;
    RRL_TRY(rrl_alloc_aligned(&m->region, bytes, 1, "memory to read"));
    memset(m->region, 1, bytes); /* pages of their own: untouched ones are all the same page of zeros */
    m->bytes = bytes;
    return RRL_OK;
}

rrl_status rrl_bench_meter_read(rrl_bench_pair *rate, rrl_bench_meter *m, double bytes) {
    size_t all = bytes > (double)MOST ? MOST : bytes < (double)LEAST ? LEAST : (size_t)bytes;
    job j = {.m = m, .share = (all / (size_t)m->threads + STRETCH - 1) / STRETCH * STRETCH};
    all = j.share * (size_t)m->threads;
    RRL_TRY(hold(m, all));
    *rate = measure(m, j, read_piece, (double)all);
    return RRL_OK;
}

rrl_bench_pair rrl_bench_meter_peak(rrl_bench_meter *m) {
    return measure(m, (job){.m = m}, arithmetic_piece, m->loops->flops * m->threads);
}
