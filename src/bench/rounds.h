/* Rounds: the cases of a work and what they are measured against, in turn, and the medians of that. */
#ifndef RRL_BENCH_ROUNDS_H
#define RRL_BENCH_ROUNDS_H

#include "bench/bench.h"
#include "bench/meter.h"

typedef struct {
    const char *name;
    rrl_status (*run)(void *context);
    int sign; /* of its seconds in those of the work: 1, -1 (the work is what remains without it), 0 (stated only) */
} rrl_bench_case;

/* Traffic and arithmetic of a stretch of a work that must take at least the longer of the two. */
typedef struct {
    double bytes, flops;
} rrl_bench_need;

enum { RRL_BENCH_NEEDS = 3, RRL_BENCH_NO_CASE = -1 };

/* A work to measure. Cases and amount may be set while the rounds run. */
typedef struct {
    const char *name, *unit;
    double amount; /* of a round, in units */
    rrl_bench_case cases[RRL_BENCH_CASES];
    int n_cases;
    int against; /* case that gain compares with, or RRL_BENCH_NO_CASE */
    rrl_bench_need need[RRL_BENCH_NEEDS];
    int n_needs;       /* 0 = no bound */
    double pass_bytes; /* read in one pass, again and again */
    void *context;     /* handed to the cases */
} rrl_bench_measure;

/** Measure m into *row: one round when quick, else up to nine in half a minute, up to three in two minutes, at
 *  least one. Errors: those of the cases, RRL_ERR_NOMEM, RRL_ERR_STOPPED. */
rrl_status rrl_bench_rounds(rrl_bench_row *row, const rrl_bench_measure *m, rrl_bench_meter *meter, bool quick);

#endif
