/* Choosing how ranks exchange device memory: they tell each other what they have and decide alike. */
#include "device/collective_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/collective_staged.h"

/* What a rank tells of its device; sent as it is between ranks of one program. */
typedef struct {
    char identity[64]; /* "" = its memory is the host's */
    char missing[96];  /* "" = the own way can be tried */
} facts;

static facts own_facts(const rrl_device *d) {
    facts f = {"", ""};
    const struct rrl_device_peers *p = d->ops->peers;
    const char *missing = p ? p->missing(d) : "its device has no way of its own";
    if (p) snprintf(f.identity, sizeof f.identity, "%s", p->identity(d));
    if (missing) snprintf(f.missing, sizeof f.missing, "%s", missing);
    return f;
}

static rrl_status share_facts(facts *all, const rrl_device *d, rrl_collective *host) {
    int32_t *first = NULL;
    RRL_TRY(rrl_alloc(&first, (size_t)host->size + 1, sizeof *first, "ranks"));
    for (int r = 0; r <= host->size; r++) first[r] = r;
    all[host->rank] = own_facts(d);
    rrl_status rc = host->ops->share_rows(host, all, sizeof *all, first);
    free(first);
    return rc;
}

/* The first two ranks on one processor; false = there are none. */
static bool find_shared(int *a, int *b, const facts *all, int n) {
    for (*a = 0; *a < n; (*a)++)
        for (*b = *a + 1; *b < n; (*b)++)
            if (all[*a].identity[0] && strcmp(all[*a].identity, all[*b].identity) == 0) return true;
    return false;
}

/* Whether the own way is taken; how = why not. The same on every rank. */
static rrl_status decide(bool *own, bool *shared, char *how, size_t size, const facts *all, int n,
                         rrl_collective_way way) {
    int a = 0, b = 0, lacks = 0;
    *shared = find_shared(&a, &b, all, n);
    while (lacks < n && !all[lacks].missing[0]) lacks++;
    *own = way != RRL_WAY_HOST && lacks == n && (!*shared || way == RRL_WAY_OWN);
    if (way == RRL_WAY_OWN && lacks < n)
        return RRL_FAIL(RRL_ERR_CONFIG, "parallel.collectives nccl: rank %d cannot, %s; install it there or use auto",
                        lacks, all[lacks].missing);
    if (way == RRL_WAY_HOST) snprintf(how, size, "mpi through host memory: as parallel.collectives says");
    else if (lacks < n) snprintf(how, size, "mpi through host memory: rank %d: %s", lacks, all[lacks].missing);
    else if (!*own) snprintf(how, size, "mpi through host memory: ranks %d and %d share %s", a, b, all[a].identity);
    return RRL_OK;
}

static rrl_status open_device(rrl_collective_pair *p, rrl_device *d, const rrl_collective_site *site,
                              rrl_collective_way way) {
    rrl_status rc = RRL_OK;
    facts *all = NULL;
    bool own = false;
    rrl_collective_site here = *site;
    here.host = p->host;
    RRL_GOTO(rrl_alloc(&all, (size_t)p->host->size, sizeof *all, "devices of the ranks"));
    RRL_GOTO(share_facts(all, d, p->host));
    if (!d->ops->peers) {
        p->device = p->host;
        snprintf(p->how, sizeof p->how, "%s", p->host->ops->name);
        goto done;
    }
    RRL_GOTO(decide(&own, &here.shared, p->how, sizeof p->how, all, p->host->size, way));
    if (own) {
        RRL_GOTO(d->ops->peers->open(&p->device, d, &here));
        snprintf(p->how, sizeof p->how, "%s", p->device->ops->name);
    } else {
        RRL_GOTO(rrl_collective_staged_open(&p->device, d, p->host));
    }
done:
    free(all);
    return rc;
}

rrl_status rrl_collective_pair_open(rrl_collective_pair *out, rrl_collective *host, rrl_device *d,
                                    const rrl_collective_site *site, rrl_collective_way way) {
    rrl_collective_pair p = {.host = host};
    rrl_status rc = open_device(&p, d, site, way);
    if (rc == RRL_OK) *out = p;
    else rrl_collective_pair_close(&p);
    return rc;
}

void rrl_collective_pair_close(rrl_collective_pair *p) {
    if (p->device && p->device != p->host) p->device->ops->close(&p->device);
    if (p->host) p->host->ops->close(&p->host);
    p->host = p->device = NULL;
}
