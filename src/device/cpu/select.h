/* Exact top-k and top-p over integer masses without a sort, and the draw. Plain C, one copy for all
 * instruction sets. */
#ifndef RRL_DEVICE_CPU_SELECT_H
#define RRL_DEVICE_CPU_SELECT_H

#include "device/cpu/kernels.h"

/** Keep of c [n] (ids ascending, masses > 0) the first in (mass descending, id ascending) order until `limit`
 * are kept or their sum reaches `target`. c is compacted in place, ids still ascending; work [n]. Returns how
 * many, *sum their mass. */
int64_t rrl_select_keep(rrl_candidate *c, int64_t n, int64_t limit, uint64_t target, rrl_candidate *work,
                        uint64_t *sum);
/** The first id whose running sum exceeds threshold < the sum of c. */
int32_t rrl_select_draw(const rrl_candidate *c, int64_t n, uint64_t threshold);

#endif
