/* Fibers: stacks that take turns on one thread. */
#ifndef RRL_TESTS_CUDA_HOST_FIBER_H
#define RRL_TESTS_CUDA_HOST_FIBER_H

#include <stddef.h>

struct fiber; /* a stack, or the thread's own */

/** The thread that calls. */
fiber *fiber_of_thread(void);
fiber *fiber_new(void);
/** Begin `body` on its stack when it is next switched to; what ran there before must have ended. The body never
 *  returns: its last act is fiber_switch with `ends`. */
void fiber_begin(fiber *f, void (*body)(void));
/** From `from`, which runs, to `to`. */
void fiber_switch(fiber *from, fiber *to, bool ends);

#endif
