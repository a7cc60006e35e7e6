/* Collectives as point-to-point messages in a fixed order, waited for without spinning. */
#include "device/collective_mpi.h"

#include <stdlib.h>

#include "base/memory.h"

enum { TAG_TREE = 1, TAG_BROADCAST = 3, TAG_ROWS = 4, CHUNK_BYTES = 1 << 28 };

typedef struct {
    MPI_Comm comm;
    rrl_watch *watch;
} mpi_state;

/* Large buffers go in chunks: counts are ints, and large-count calls are not to be trusted everywhere. */
static rrl_status put(rrl_collective *c, const void *x, size_t bytes, int to, int tag) {
    mpi_state *s = c->state;
    for (size_t at = 0; at < bytes; at += CHUNK_BYTES) {
        MPI_Request req;
        size_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        if (MPI_Isend((const char *)x + at, (int)n, MPI_BYTE, to, tag, s->comm, &req) != MPI_SUCCESS)
            return RRL_FAIL(RRL_ERR_COMM, "send of %zu bytes to learner %d failed", n, to);
        RRL_TRY(rrl_watch_wait(s->watch, &req));
    }
    c->bytes_sent += (int64_t)bytes;
    return RRL_OK;
}

static rrl_status get(rrl_collective *c, void *x, size_t bytes, int from, int tag) {
    mpi_state *s = c->state;
    for (size_t at = 0; at < bytes; at += CHUNK_BYTES) {
        MPI_Status st;
        int found = 0;
        size_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        RRL_TRY(rrl_watch_probe(s->watch, s->comm, from, tag, &st));
        MPI_Get_count(&st, MPI_BYTE, &found);
        if ((size_t)found != n)
            return RRL_FAIL(RRL_ERR_COMM, "learner %d sent %d bytes where %zu were expected", from, found, n);
        MPI_Request req;
        if (MPI_Irecv((char *)x + at, (int)n, MPI_BYTE, from, tag, s->comm, &req) != MPI_SUCCESS)
            return RRL_FAIL(RRL_ERR_COMM, "receive of %zu bytes from learner %d failed", n, from);
        RRL_TRY(rrl_watch_wait(s->watch, &req));
    }
    return RRL_OK;
}

static rrl_status broadcast(rrl_collective *c, void *x, size_t bytes, int root) {
    if (c->rank != root) return get(c, x, bytes, root, TAG_BROADCAST);
    for (int r = 0; r < c->size; r++)
        if (r != root) RRL_TRY(put(c, x, bytes, r, TAG_BROADCAST));
    return RRL_OK;
}

static rrl_status tree_sum(rrl_collective *c, float *x, float *scratch, int64_t n, int active) {
    size_t bytes = (size_t)n * sizeof *x;
    if (c->rank < active)
        for (int step = 1; step < active; step *= 2) {
            if (c->rank % (2 * step) == 0) {
                if (c->rank + step >= active) continue; /* odd last node: moves up unchanged */
                RRL_TRY(get(c, scratch, bytes, c->rank + step, TAG_TREE));
                for (int64_t i = 0; i < n; i++) x[i] = x[i] + scratch[i];
            } else {
                RRL_TRY(put(c, x, bytes, c->rank - step, TAG_TREE));
                break;
            }
        }
    return broadcast(c, x, bytes, 0);
}

static rrl_status share_rows(rrl_collective *c, void *rows, size_t row_bytes, const int32_t *first) {
    char *base = rows;
    size_t all = (size_t)first[c->size] * row_bytes;
    if (c->rank == 0) {
        for (int r = 1; r < c->size; r++)
            if (first[r + 1] > first[r])
                RRL_TRY(get(c, base + (size_t)first[r] * row_bytes, (size_t)(first[r + 1] - first[r]) * row_bytes, r,
                            TAG_ROWS));
    } else if (first[c->rank + 1] > first[c->rank]) {
        RRL_TRY(put(c, base + (size_t)first[c->rank] * row_bytes,
                    (size_t)(first[c->rank + 1] - first[c->rank]) * row_bytes, 0, TAG_ROWS));
    }
    return broadcast(c, rows, all, 0);
}

static void close_collective(rrl_collective **c) {
    if (!*c) return;
    free((*c)->state);
    free(*c);
    *c = NULL;
}

static const rrl_collective_ops MPI_OPS = {"mpi", tree_sum, broadcast, share_rows, close_collective};

rrl_status rrl_collective_mpi_open(rrl_collective **out, MPI_Comm comm, rrl_watch *watch) {
    rrl_collective *c = NULL;
    mpi_state *s = NULL;
    RRL_TRY(rrl_alloc(&c, 1, sizeof *c, "collective"));
    rrl_status rc = rrl_alloc(&s, 1, sizeof *s, "collective");
    if (rc != RRL_OK) {
        free(c);
        return rc;
    }
    s->comm = comm;
    s->watch = watch;
    c->ops = &MPI_OPS;
    c->state = s;
    MPI_Comm_rank(comm, &c->rank);
    MPI_Comm_size(comm, &c->size);
    *out = c;
    return RRL_OK;
}
