/* Waiting without spinning, with a watchdog. */
#include "device/mpi_wait.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_NAP_NS = 20000, LONGEST_NAP_NS = 500000, BEATS_PER_TIMEOUT = 8, STAGGERED = 8 };
static const double STAGGER_S = 0.25;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A dead peer cannot be agreed with: one line, then the job ends. */
static void give_up(const rrl_watch *w, int lost, double silence) {
    char line[256];
    int n = snprintf(line, sizeof line,
                     "rrl: error: rank %d (%s) waited in phase %s and heard nothing from rank %d (%s) for %.0f s; it is lost "
                     "or slower than parallel.timeout_s\n",
                     w->rank, w->ranks[w->rank].role, w->phase, lost, w->ranks[lost].role, silence);
    if (n > 0 && write(2, line, (size_t)n) < 0) { /* the exit code still tells */
    }
    MPI_Abort(w->control, 6);
}

static void hear_beats(rrl_watch *w) {
    int flag = 0;
    MPI_Status st;
    while (MPI_Iprobe(MPI_ANY_SOURCE, RRL_TAG_HEARTBEAT, w->control, &flag, &st) == MPI_SUCCESS && flag) {
        MPI_Recv(NULL, 0, MPI_BYTE, st.MPI_SOURCE, RRL_TAG_HEARTBEAT, w->control, MPI_STATUS_IGNORE);
        w->ranks[st.MPI_SOURCE].heard = now();
    }
}

/* Ends the job if another rank has been silent for too long at time t. Silence counts from the start of this wait at the
 * earliest: before, nobody listened; and from when this rank itself came back from being stopped. Those who wait give up
 * one after another, so that one of them says so. */
static void check_silence(const rrl_watch *w, double start, double t) {
    double allowed = w->timeout_s + STAGGER_S * (w->rank % STAGGERED);
    for (int r = 0; r < w->size; r++) {
        double since = w->woke > start ? w->woke : start, heard = w->ranks[r].heard > since ? w->ranks[r].heard : since;
        if (r != w->rank && t - heard > allowed) give_up(w, r, t - heard);
    }
}

/* The longer it has lasted the longer it may sleep: as long again, within bounds. */
void rrl_watch_pause(rrl_watch *w, double start) {
    double lasted = 1e9 * (now() - start);
    long ns = lasted < FIRST_NAP_NS ? FIRST_NAP_NS : lasted < LONGEST_NAP_NS ? (long)lasted : LONGEST_NAP_NS;
    struct timespec nap = {0, ns};
    double before = w->passed > start ? w->passed : start;
    nanosleep(&nap, NULL);
    hear_beats(w);
    rrl_watch_beat(w); /* who waits is alive too: its own peers may be waiting for it in turn */
    double t = now();
    if (t - before > w->timeout_s / BEATS_PER_TIMEOUT) w->woke = t; /* stopped meanwhile: others' signs of life lie unread */
    check_silence(w, start, t);
    w->passed = t;
}

rrl_status rrl_watch_wait(rrl_watch *w, MPI_Request *request) {
    double start = now();
    for (;;) {
        int done = 0;
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return RRL_FAIL(RRL_ERR_COMM, "MPI_Test failed in phase %s on rank %d", w->phase, w->rank);
        if (done) break;
        rrl_watch_pause(w, start);
    }
    w->waited += now() - start;
    return RRL_OK;
}

rrl_status rrl_watch_probe(rrl_watch *w, MPI_Comm comm, int source, int tag, MPI_Status *status) {
    double start = now();
    for (;;) {
        int flag = 0;
        if (MPI_Iprobe(source, tag, comm, &flag, status) != MPI_SUCCESS)
            return RRL_FAIL(RRL_ERR_COMM, "MPI_Iprobe failed in phase %s on rank %d", w->phase, w->rank);
        if (flag) break;
        rrl_watch_pause(w, start);
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
