/* Waiting without spinning, with a watchdog. */
#include "device/mpi_wait.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_NAP_NS = 20000, LONGEST_NAP_NS = 500000, BEATS_PER_TIMEOUT = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A dead peer cannot be agreed with: one line, then the job ends. */
static void give_up(const rrl_watch *w, int peer, double silence) {
    char line[256];
    int n = snprintf(line, sizeof line,
                     "rrl: error: rank %d (%s) waited %.0f s in phase %s for rank %d and heard nothing; the peer is lost "
                     "or slower than parallel.timeout_s\n",
                     w->rank, w->role, silence, w->phase, peer);
    if (n > 0 && write(2, line, (size_t)n) < 0) { /* the exit code still tells */
    }
    MPI_Abort(w->control, 6);
}

static void hear_beats(rrl_watch *w) {
    int flag = 0;
    MPI_Status st;
    while (MPI_Iprobe(MPI_ANY_SOURCE, RRL_TAG_HEARTBEAT, w->control, &flag, &st) == MPI_SUCCESS && flag) {
        MPI_Recv(NULL, 0, MPI_BYTE, st.MPI_SOURCE, RRL_TAG_HEARTBEAT, w->control, MPI_STATUS_IGNORE);
        w->heard = now();
    }
}

static void nap(rrl_watch *w, long *ns, double *start, int peer) {
    struct timespec t = {0, *ns};
    nanosleep(&t, NULL);
    if (*ns < LONGEST_NAP_NS) *ns *= 2;
    hear_beats(w);
    rrl_watch_beat(w); /* who waits is alive too: its own peers may be waiting for it in turn */
    double since = w->heard > *start ? w->heard : *start;
    if (now() - since > w->timeout_s) give_up(w, peer, now() - since);
}

rrl_status rrl_watch_wait(rrl_watch *w, MPI_Request *request, int peer) {
    long ns = FIRST_NAP_NS;
    double start = now();
    for (;;) {
        int done = 0;
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return RRL_FAIL(RRL_ERR_COMM, "MPI_Test failed in phase %s on rank %d", w->phase, w->rank);
        if (done) break;
        nap(w, &ns, &start, peer);
    }
    w->waited += now() - start;
    return RRL_OK;
}

rrl_status rrl_watch_probe(rrl_watch *w, MPI_Comm comm, int source, int tag, MPI_Status *status) {
    long ns = FIRST_NAP_NS;
    double start = now();
    for (;;) {
        int flag = 0;
        if (MPI_Iprobe(source, tag, comm, &flag, status) != MPI_SUCCESS)
            return RRL_FAIL(RRL_ERR_COMM, "MPI_Iprobe failed in phase %s on rank %d", w->phase, w->rank);
        if (flag) break;
        nap(w, &ns, &start, source);
    }
    w->waited += now() - start;
    return RRL_OK;
}

void rrl_watch_beat(rrl_watch *w) {
    if (w->size < 2) return;
    double t = now();
    if (t - w->beaten < w->timeout_s / BEATS_PER_TIMEOUT) return;
    w->beaten = t;
    for (int r = 0; r < w->size; r++) {
        MPI_Request req;
        if (r == w->rank) continue;
        /* empty and eager: complete at once, so the request can be let go */
        if (MPI_Isend(NULL, 0, MPI_BYTE, r, RRL_TAG_HEARTBEAT, w->control, &req) == MPI_SUCCESS)
            MPI_Request_free(&req);
    }
}
