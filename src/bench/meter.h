/* What the machine can do right now: bytes read and multiply-adds a second, with all threads at once. */
#ifndef RRL_BENCH_METER_H
#define RRL_BENCH_METER_H

#include "bench/bench.h"

typedef struct rrl_bench_meter rrl_bench_meter;
/** Loops of instruction set `isa` (rrl_device_isa), on `threads` threads. */
rrl_status rrl_bench_meter_open(rrl_bench_meter **out, const char *isa, int threads);
void rrl_bench_meter_close(rrl_bench_meter **m);
/** Bytes a second of reading a region of about `bytes` again and again, as a work reads its weights: if they fit into
 *  a cache, that cache's. Above 1 GiB that of 1 GiB. Errors: RRL_ERR_NOMEM. */
rrl_status rrl_bench_meter_read(rrl_bench_pair *rate, rrl_bench_meter *m, double bytes);
/** Floating-point operations a second, a multiply-add being two. */
rrl_bench_pair rrl_bench_meter_peak(rrl_bench_meter *m);
/** Bytes the meter itself keeps resident. */
size_t rrl_bench_meter_bytes(const rrl_bench_meter *m);

/** Clock and processor time of this process (all threads), seconds. */
rrl_bench_pair rrl_bench_now(void);
/** Seconds from `since` until now. */
rrl_bench_pair rrl_bench_since(rrl_bench_pair since);

#endif
