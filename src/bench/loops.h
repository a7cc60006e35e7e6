/* The inner loops that show what a core can do: reading memory, and multiply-adds in the widest registers. */
#ifndef RRL_BENCH_LOOPS_H
#define RRL_BENCH_LOOPS_H

#include <stdint.h>

typedef struct {
    const char *isa;
    double flops;                              /* of one iteration of arithmetic */
    float (*arithmetic)(int64_t iterations);   /* independent chains, enough to hide the latency */
    uint64_t (*read)(const uint64_t *p, int64_t n); /* every word once; n a multiple of 64, p on a cache line */
} rrl_bench_loops;

/** Loops of an instruction set by the device's name for it; the portable ones where there are none of its own. */
const rrl_bench_loops *rrl_bench_loops_of(const char *isa);

#endif
