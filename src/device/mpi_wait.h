/* The one way to wait for another rank: probe, sleep, watch the clock. Waiting ranks must not spin (they share cores),
 * and nobody may block for ever. */
#ifndef RRL_DEVICE_MPI_WAIT_H
#define RRL_DEVICE_MPI_WAIT_H

#include <mpi.h>

#include "rrl/status.h"

typedef struct {
    MPI_Comm control;  /* heartbeats travel here */
    int rank, size;
    const char *role, *phase; /* for the watchdog's message; static strings */
    double timeout_s;
    double heard, beaten; /* clock of the last sign of life heard, and given */
    double waited;        /* seconds spent waiting so far */
} rrl_watch;

enum { RRL_TAG_HEARTBEAT = 7 };

/** Complete *request; a silence of timeout_s ends the job: one line with rank, role, phase and peer, MPI_Abort(6). */
rrl_status rrl_watch_wait(rrl_watch *w, MPI_Request *request, int peer);
/** Wait for a message on comm from source (or MPI_ANY_SOURCE) with tag. */
rrl_status rrl_watch_probe(rrl_watch *w, MPI_Comm comm, int source, int tag, MPI_Status *status);
/** Sign of life from inside a long computation; cheap, sends at most every timeout_s / 8. */
void rrl_watch_beat(rrl_watch *w);

#endif
