/* The plan of NCCL calls: the same on every rank, one at a time. */
#include "device/cuda/collective_nccl.h"

#include <stdlib.h>
#include <time.h>

#include "device/cuda/cuda_ops.cuh"
#include "device/cuda/nccl_calls.h"

extern "C" {
#include "base/memory.h"
}

/* The watch of the caller, which can name a lost rank, speaks first. */
static const double DEADLINE = 1.125;

typedef struct {
    rrl_device *device;
    rrl_collective_site site;
    rrl_nccl *nccl; /* NULL = given up */
} links;

static cudaStream_t stream_of(const links *s) {
    return rrl_cuda_of(s->device)->stream;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- waiting */

/* Look until what was begun has ended. */
static rrl_status look(links *s, int rank, const char *what) {
    const double start = now(), most = s->site.timeout_s * DEADLINE;
    bool done = false;
    for (;;) {
        RRL_TRY(rrl_nccl_look(&done, s->nccl, stream_of(s)));
        if (done) return RRL_OK;
        if (now() - start > most)
            return RRL_FAIL(RRL_ERR_COMM,
                            "rank %d of the NCCL communicator waited %.0f s for %s in phase %s; a rank or the network is "
                            "lost or slower than parallel.timeout_s", rank, most, what, *s->site.phase);
        s->site.pause(s->site.context, start);
    }
}

/* What a call began has ended, or the communicator is given up. begun: what the call itself returned. */
static rrl_status finish(rrl_collective *c, rrl_status begun, const char *what) {
    links *s = (links *)c->state;
    rrl_status rc = begun == RRL_OK ? look(s, c->rank, what) : begun;
    if (rc != RRL_OK) rrl_nccl_abort(&s->nccl);
    return rc;
}

static rrl_status usable(const rrl_collective *c) {
    const links *s = (const links *)c->state;
    return s->nccl ? RRL_OK
                   : RRL_FAIL(RRL_ERR_COMM, "rank %d has given up its NCCL communicator, phase %s", c->rank,
                              *s->site.phase);
}

/* --- the plan */

static rrl_status broadcast(rrl_collective *c, void *x, size_t bytes, int root) {
    links *s = (links *)c->state;
    if (c->size == 1 || bytes == 0) return RRL_OK;
    RRL_TRY(usable(c));
    if (c->rank == root) c->bytes_sent += (int64_t)bytes;
    return finish(c, rrl_nccl_broadcast(s->nccl, x, bytes, root, stream_of(s)), "a broadcast");
}

/* A group of one send to a rank or one receive from it. */
static rrl_status exchange(links *s, void *x, size_t bytes, int with, bool send) {
    RRL_TRY(rrl_nccl_group_start(s->nccl));
    const rrl_status rc = send ? rrl_nccl_send(s->nccl, x, bytes, with, stream_of(s))
                               : rrl_nccl_receive(s->nccl, x, bytes, with, stream_of(s));
    const rrl_status end = rrl_nccl_group_end(s->nccl); /* a group that was begun is ended */
    return rc == RRL_OK ? end : rc;
}

/* As collective_mpi.c: node i + node i+1, an odd last one moves up unchanged. x + scratch is fmaf(1, scratch, x). */
static rrl_status sum_pairs(rrl_collective *c, float *x, float *scratch, int64_t n, int active) {
    links *s = (links *)c->state;
    const size_t bytes = (size_t)n * sizeof *x;
    for (int step = 1; step < active && c->rank < active; step *= 2) {
        if (c->rank % (2 * step) != 0) {
            c->bytes_sent += (int64_t)bytes;
            return finish(c, exchange(s, x, bytes, c->rank - step, true), "a gradient sum");
        }
        if (c->rank + step >= active) continue;
        RRL_TRY(finish(c, exchange(s, scratch, bytes, c->rank + step, false), "a gradient sum"));
        RRL_TRY(rrl_cuda_axpy(s->device, x, scratch, 1.0f, n));
    }
    return RRL_OK;
}

static rrl_status tree_sum(rrl_collective *c, float *x, float *scratch, int64_t n, int active) {
    links *s = (links *)c->state;
    if (c->size == 1 || n == 0) return RRL_OK;
    RRL_TRY(usable(c));
    if (rrl_cuda_of(s->device)->determinism == RRL_DETERMINISM_EXACT) {
        RRL_TRY(sum_pairs(c, x, scratch, n, active));
        return broadcast(c, x, (size_t)n * sizeof *x, 0);
    }
    if (c->rank >= active) RRL_TRY(rrl_cuda_zero(s->device, x, n));
    c->bytes_sent += n * (int64_t)sizeof *x;
    return finish(c, rrl_nccl_all_reduce(s->nccl, x, n, stream_of(s)), "a gradient sum");
}

/* Every rank sends its rows to every other, all at once. */
static rrl_status exchange_rows(rrl_collective *c, char *rows, size_t row_bytes, const int32_t *first) {
    links *s = (links *)c->state;
    rrl_status rc = RRL_OK;
    const size_t own = (size_t)(first[c->rank + 1] - first[c->rank]) * row_bytes;
    RRL_TRY(rrl_nccl_group_start(s->nccl));
    for (int r = 0; r < c->size && rc == RRL_OK; r++) {
        const size_t bytes = (size_t)(first[r + 1] - first[r]) * row_bytes;
        if (r == c->rank) continue;
        if (own > 0) rc = rrl_nccl_send(s->nccl, rows + (size_t)first[c->rank] * row_bytes, own, r, stream_of(s));
        if (rc == RRL_OK && bytes > 0)
            rc = rrl_nccl_receive(s->nccl, rows + (size_t)first[r] * row_bytes, bytes, r, stream_of(s));
        c->bytes_sent += (int64_t)own;
    }
    const rrl_status end = rrl_nccl_group_end(s->nccl);
    return rc == RRL_OK ? end : rc;
}

static rrl_status share_rows(rrl_collective *c, void *rows, size_t row_bytes, const int32_t *first) {
    if (c->size == 1) return RRL_OK;
    RRL_TRY(usable(c));
    return finish(c, exchange_rows(c, (char *)rows, row_bytes, first), "rows of other ranks");
}

static void close_links(rrl_collective **c) {
    if (!*c) return;
    links *s = (links *)(*c)->state;
    rrl_nccl_leave(&s->nccl);
    free(s);
    free(*c);
    *c = NULL;
}

static rrl_collective_ops table(void) {
    return {rrl_nccl_name(), tree_sum, broadcast, share_rows, close_links};
}

/* --- opening */

/* Rank 0 makes the id; that it could not is told by an id of zeros, so that nobody waits. */
static rrl_status share_id(char id[RRL_NCCL_ID_BYTES], rrl_collective *host) {
    static const char none[RRL_NCCL_ID_BYTES] = {0};
    memset(id, 0, RRL_NCCL_ID_BYTES);
    const rrl_status made = host->rank == 0 ? rrl_nccl_id(id) : RRL_OK;
    if (made != RRL_OK) memset(id, 0, RRL_NCCL_ID_BYTES);
    RRL_TRY(host->ops->broadcast(host, id, RRL_NCCL_ID_BYTES, 0));
    if (made != RRL_OK) return made;
    if (memcmp(id, none, RRL_NCCL_ID_BYTES) == 0)
        return RRL_FAIL(RRL_ERR_COMM,
                        "rank 0 could not make an NCCL communicator; parallel.collectives mpi does without");
    return RRL_OK;
}

static rrl_status join(rrl_collective *c) {
    links *s = (links *)c->state;
    char id[RRL_NCCL_ID_BYTES];
    RRL_TRY(share_id(id, s->site.host));
    return finish(c, rrl_nccl_join(&s->nccl, id, c->rank, c->size, s->site.shared), "the other ranks to join");
}

static rrl_status open_links(rrl_collective **out, rrl_device *d, const rrl_collective_site *site) {
    static const rrl_collective_ops OPS = table();
    rrl_status rc = RRL_OK;
    rrl_collective *c = NULL;
    links *s = NULL;
    RRL_GOTO(rrl_alloc(&c, 1, sizeof *c, "collective"));
    RRL_GOTO(rrl_alloc(&s, 1, sizeof *s, "collective"));
    s->device = d;
    s->site = *site;
    c->ops = &OPS;
    c->rank = site->host->rank;
    c->size = site->host->size;
    c->state = s;
    if (c->size > 1) RRL_GOTO(join(c));
    *out = c;
    c = NULL;
    s = NULL;
done:
    free(s);
    free(c);
    return rc;
}

static const char *identity(const rrl_device *d) {
    return rrl_cuda_of(d)->uuid;
}

static const char *missing(const rrl_device *d) {
    (void)d;
    return rrl_nccl_missing();
}

const struct rrl_device_peers rrl_cuda_peers = {identity, missing, open_links};
