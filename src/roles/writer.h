/* The recorder's hand: one thread of the recorder's rank that writes segments and checkpoints in the order in which they were
 * put, so that an fsync stops nobody. While it is open, HDF5 (which knows no threads) is called there and nowhere else on
 * this rank; draining and closing it give HDF5 back. */
#ifndef RRL_ROLES_WRITER_H
#define RRL_ROLES_WRITER_H

#include <stdbool.h>

#include "device/mpi_wait.h"

/* A piece of work, the first member of what it works on. */
typedef struct rrl_write {
    rrl_status (*run)(struct rrl_write *w);   /* in the thread */
    void (*done)(struct rrl_write *w);        /* by the caller of put, poll or drain, in order: says what was done, frees */
    bool ran;                                 /* with success; false = failed, or left out because one before had failed */
    struct rrl_write *next;
} rrl_write;

typedef struct rrl_writer rrl_writer;
/** At most `most` pieces wait to be written. */
rrl_status rrl_writer_open(rrl_writer **out, int most);
/** Put a piece; it is the writer's in any case. Waits, with signs of life, while too many do. Errors: that of a piece before,
 *  with its message. */
rrl_status rrl_writer_put(rrl_writer *w, rrl_write *piece, rrl_watch *watch);
/** Wait until all is written. Errors: as put. */
rrl_status rrl_writer_drain(rrl_writer *w, rrl_watch *watch);
/** Writes what is left, and ends the thread. */
void rrl_writer_close(rrl_writer **w, rrl_watch *watch);

#endif
