/* A small pool of threads: the caller and threads - 1 workers share the units of one job at a time. */
#ifndef RRL_DEVICE_CPU_POOL_H
#define RRL_DEVICE_CPU_POOL_H

#include <stdint.h>

#include "rrl/status.h"

typedef struct rrl_pool rrl_pool;

rrl_status rrl_pool_open(rrl_pool **out, int threads);
void rrl_pool_close(rrl_pool **p);
/** fn(job, begin, end) for [0, n) in pieces of `grain` units (all at once if there is one thread); returns when all are
 *  done. Thread t of T begins with the t-th T-th of the pieces, in ascending order, and goes on with what others have not
 *  begun. One caller at a time. n and grain below 2^31. */
void rrl_pool_run(rrl_pool *p, void (*fn)(const void *job, int64_t begin, int64_t end), const void *job,
                  int64_t n, int64_t grain);

#endif
