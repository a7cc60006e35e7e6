/* One collective a communicator, over MPI; where the device has memory of its own, a second over that. */
#include "roles/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/collective_mpi.h"

static void pause_watch(void *watch, double since) { rrl_watch_pause(watch, since); }

static rrl_collective_way way_of(const rrl_parallel_config *p) {
    return p->collectives == RRL_COLLECTIVES_MPI    ? RRL_WAY_HOST
           : p->collectives == RRL_COLLECTIVES_NCCL ? RRL_WAY_OWN
                                                    : RRL_WAY_BEST;
}

static rrl_status open_pair(rrl_collective_pair *out, rrl_team *t, MPI_Comm comm, rrl_device *d,
                            const rrl_parallel_config *p) {
    rrl_collective *host = NULL;
    rrl_collective_site site = {.pause = pause_watch, .context = &t->watch, .phase = &t->watch.phase,
                                .timeout_s = p->timeout_s};
    RRL_TRY(rrl_collective_mpi_open(&host, comm, &t->watch));
    return rrl_collective_pair_open(out, host, d, &site, way_of(p));
}

rrl_status rrl_links_check(const rrl_device *d, const rrl_parallel_config *p, int rank) {
    if (p->collectives != RRL_COLLECTIVES_NCCL) return RRL_OK;
    if (!d->ops->peers)
        return RRL_FAIL(RRL_ERR_CONFIG, "parallel.collectives nccl: rank %d works on the %s device, NCCL is for GPUs; "
                        "use auto", rank, d->ops->name);
    const char *missing = d->ops->peers->missing(d);
    if (missing)
        return RRL_FAIL(RRL_ERR_CONFIG, "parallel.collectives nccl: rank %d cannot, %s; install it there or use auto",
                        rank, missing);
    return RRL_OK;
}

rrl_status rrl_links_open(rrl_links *out, rrl_team *t, rrl_device *d, const rrl_parallel_config *p) {
    rrl_links l = {0};
    rrl_status rc = RRL_OK;
    if (!d) return RRL_OK;
    if (t->learning != MPI_COMM_NULL) RRL_GOTO(open_pair(&l.learners, t, t->learning, d, p));
    if (!t->colocated && t->adapter != MPI_COMM_NULL) RRL_GOTO(open_pair(&l.publishing, t, t->adapter, d, p));
    *out = l;
done:
    if (rc != RRL_OK) rrl_links_close(&l);
    return rc;
}

void rrl_links_close(rrl_links *l) {
    rrl_collective_pair_close(&l->publishing);
    rrl_collective_pair_close(&l->learners);
}

static const char *how_of(const rrl_collective_pair *p) {
    return p->host && p->host->size > 1 ? p->how : NULL;
}

const char *rrl_links_how(const rrl_links *l) {
    const char *gradients = how_of(&l->learners), *adapters = how_of(&l->publishing);
    return gradients ? gradients : adapters ? adapters : "none";
}

/* --- what is said of GPUs */

void rrl_gpu_name(char out[RRL_GPU_CHARS], const rrl_device *d) {
    snprintf(out, RRL_GPU_CHARS, "%s", d && d->ops->peers ? d->ops->peers->identity(d) : "");
}

/* "0=GPU-... 1=GPU-...": ranks that have one; *most = ranks of the GPU that has most of them. */
static rrl_status list_gpus(rrl_buffer *b, int *most, char (*all)[RRL_GPU_CHARS], int n) {
    *most = 0;
    for (int r = 0; r < n; r++) {
        int same = 0;
        if (!all[r][0]) continue;
        RRL_TRY(rrl_buffer_printf(b, "%s%d=%s", b->len ? " " : "", r, all[r]));
        for (int k = 0; k < n; k++) same += strcmp(all[r], all[k]) == 0;
        if (same > *most) *most = same;
    }
    return RRL_OK;
}

static rrl_status say_gpus(const rrl_links *l, rrl_log *log, char (*all)[RRL_GPU_CHARS], int n, int ranks_per_gpu) {
    rrl_status rc = RRL_OK;
    rrl_buffer b = {0};
    int most = 0;
    RRL_GOTO(list_gpus(&b, &most, all, n));
    if (most == 0) goto done;
    rrl_event(log, RRL_LOG_INFO, "gpus", "ranks=%s", rrl_log_quoted(b.data));
    rrl_event(log, RRL_LOG_INFO, "collectives", "way=%s", rrl_log_quoted(rrl_links_how(l)));
    if (most > ranks_per_gpu)
        rrl_event(log, RRL_LOG_WARN, "gpu_shared", "ranks=%d advice=%s", most,
                  rrl_log_quoted("one rank a GPU, or set parallel.ranks_per_gpu"));
done:
    rrl_buffer_free(&b);
    return rc;
}

rrl_status rrl_links_say(const rrl_links *l, rrl_team *t, const rrl_device *d, const rrl_parallel_config *p,
                         bool speaks) {
    rrl_status rc = RRL_OK;
    MPI_Request req;
    char mine[RRL_GPU_CHARS], (*all)[RRL_GPU_CHARS] = NULL;
    rrl_gpu_name(mine, d);
    RRL_GOTO(rrl_alloc(&all, (size_t)t->size, sizeof *all, "names of GPUs"));
    if (MPI_Igather(mine, RRL_GPU_CHARS, MPI_CHAR, all, RRL_GPU_CHARS, MPI_CHAR, 0, t->comm, &req) != MPI_SUCCESS) {
        rc = RRL_FAIL(RRL_ERR_COMM, "the names of the ranks' GPUs could not be gathered");
        goto done;
    }
    RRL_GOTO(rrl_watch_wait(&t->watch, &req));
    if (speaks) RRL_GOTO(say_gpus(l, t->log, all, t->size, (int)p->ranks_per_gpu));
done:
    free(all);
    return rc;
}
