/* The one way to wait for another rank: probe, sleep, watch the clock. Waiting ranks must not spin (they share cores),
 * and nobody may block for ever. */
#ifndef RRL_DEVICE_MPI_WAIT_H
#define RRL_DEVICE_MPI_WAIT_H

#include <mpi.h>

#include "rrl/status.h"

/* What is known of another rank. */
typedef struct {
    const char *role; /* static */
    double heard;     /* clock of its last sign of life */
} rrl_watched;

typedef struct {
    MPI_Comm control; /* heartbeats travel here */
    int rank, size;
    const char *phase;    /* for the watchdog's message; static */
    rrl_watched *ranks;   /* [size], this one too; borrowed */
    double timeout_s;
    double beaten; /* clock of the last sign of life given */
    double waited; /* seconds spent waiting so far */
    double woke;   /* clock when this rank last found that it had been stopped */
    double passed; /* clock of its last look at the others */
} rrl_watch;

enum { RRL_TAG_HEARTBEAT = 7 };

/** Complete *request. While this waits, a silence of timeout_s of any rank of control ends the job, whomever the request
 *  is for (who waits for a lost rank is alive itself): one line with rank, role and phase of both, MPI_Abort(6). */
rrl_status rrl_watch_wait(rrl_watch *w, MPI_Request *request);
/** Wait for a message on comm from source (or MPI_ANY_SOURCE) with tag. */
rrl_status rrl_watch_probe(rrl_watch *w, MPI_Comm comm, int source, int tag, MPI_Status *status);
/** One short sleep of another kind of waiting that began at start (CLOCK_MONOTONIC, s): beats are heard and given, and
 *  silence ends the job as above. */
void rrl_watch_pause(rrl_watch *w, double start);
/** Sign of life from inside a long computation; cheap, sends at most every timeout_s / 8. */
void rrl_watch_beat(rrl_watch *w);

#endif
