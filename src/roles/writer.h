/* The recorder's hand: one thread of the recorder's rank that writes segments and checkpoints, so that an fsync stops
 * nobody. While it is open, HDF5 (which knows no threads) is called there and nowhere else on this rank; draining and
 * closing it give HDF5 back.
 *
 * Pieces are collected and handed over in one go, in their order, when the writer is ready: when it has written what it
 * had, and has rested until that took no more than a share of the time, counted in its own processor time. So where steps
 * are short, many of them are one segment and one checkpoint, and where they are long each is written when it is there. */
#ifndef RRL_ROLES_WRITER_H
#define RRL_ROLES_WRITER_H

#include <stdbool.h>

#include "device/mpi_wait.h"

/* A piece of work, the first member of what it works on. */
typedef struct rrl_write {
    rrl_status (*run)(struct rrl_write *w); /* in the thread */
    void (*done)(struct rrl_write *w);      /* by the caller of go, drain or close: says what was done, frees */
    const void *of; /* pieces of the same may be joined; NULL = with none */
    bool more;      /* set for run(): another one of the same comes later in this go */
    bool ran;       /* with success; false = failed, or left out because one before had failed */
    struct rrl_write *next;
} rrl_write;

typedef struct rrl_writer rrl_writer;
/** share: of a core's time, in (0, 1]; 1 = always ready, and nothing is joined. At most `most` pieces wait. */
rrl_status rrl_writer_open(rrl_writer **out, double share, int most);
/** Put a piece, which is the writer's from now on. It waits until the next go. */
void rrl_writer_put(rrl_writer *w, rrl_write *piece);
/** Whether now is the time for a go: the writer has nothing to do and has rested, or as many pieces were put as may
 *  wait. */
bool rrl_writer_ready(rrl_writer *w);
/** Hand over what was put. Waits, with signs of life, while more than `most` pieces wait. Errors: that of a piece before,
 *  with its message. */
rrl_status rrl_writer_go(rrl_writer *w, rrl_watch *watch);
/** Wait until all that was put is written. Errors: as go. */
rrl_status rrl_writer_drain(rrl_writer *w, rrl_watch *watch);
/** Writes what is left, and ends the thread. */
void rrl_writer_close(rrl_writer **w, rrl_watch *watch);

#endif
