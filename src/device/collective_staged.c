/* Every operand has a copy in host memory, where the host's collective works on it. Only what a rank gives is
 * downloaded, only what it gets is uploaded; a rank alone keeps what it has. */
#include "device/collective_staged.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct {
    rrl_device *device;
    rrl_collective *host;
    char *room; /* [room_bytes] grown when first needed */
    size_t room_bytes;
} staged;

static rrl_status make_room(staged *s, size_t bytes) {
    if (bytes <= s->room_bytes) return RRL_OK;
    free(s->room);
    s->room = NULL;
    s->room_bytes = 0;
    RRL_TRY(rrl_alloc_aligned(&s->room, bytes, 1, "copies of device memory for other ranks"));
    s->room_bytes = bytes;
    return RRL_OK;
}

static rrl_status give(staged *s, void *host, const void *x, size_t bytes) {
    return bytes ? s->device->ops->download(s->device, host, x, bytes) : RRL_OK;
}

/* The host's copy is free to change when this returns. */
static rrl_status take(staged *s, void *x, const void *host, size_t bytes) {
    if (bytes == 0) return RRL_OK;
    RRL_TRY(s->device->ops->upload(s->device, x, host, bytes));
    return s->device->ops->sync(s->device);
}

static rrl_status tree_sum(rrl_collective *c, float *x, float *scratch, int64_t n, int active) {
    staged *s = c->state;
    if (c->size == 1) return RRL_OK;
    const size_t bytes = (size_t)n * sizeof *x, apart = (bytes + 63) / 64 * 64;
    int64_t sent = s->host->bytes_sent;
    RRL_TRY(make_room(s, apart + bytes));
    if (c->rank < active) RRL_TRY(give(s, s->room, x, bytes));
    RRL_TRY(s->host->ops->tree_sum(s->host, (float *)s->room, (float *)(s->room + apart), n, active));
    c->bytes_sent += s->host->bytes_sent - sent;
    return take(s, x, s->room, bytes);
}

static rrl_status broadcast(rrl_collective *c, void *x, size_t bytes, int root) {
    staged *s = c->state;
    if (c->size == 1) return RRL_OK;
    int64_t sent = s->host->bytes_sent;
    RRL_TRY(make_room(s, bytes));
    if (c->rank == root) RRL_TRY(give(s, s->room, x, bytes));
    RRL_TRY(s->host->ops->broadcast(s->host, s->room, bytes, root));
    c->bytes_sent += s->host->bytes_sent - sent;
    return c->rank == root ? RRL_OK : take(s, x, s->room, bytes);
}

static rrl_status share_rows(rrl_collective *c, void *rows, size_t row_bytes, const int32_t *first) {
    staged *s = c->state;
    if (c->size == 1) return RRL_OK;
    const size_t all = (size_t)first[c->size] * row_bytes, from = (size_t)first[c->rank] * row_bytes,
                 to = (size_t)first[c->rank + 1] * row_bytes;
    char *device = rows;
    int64_t sent = s->host->bytes_sent;
    RRL_TRY(make_room(s, all));
    RRL_TRY(give(s, s->room + from, device + from, to - from));
    RRL_TRY(s->host->ops->share_rows(s->host, s->room, row_bytes, first));
    c->bytes_sent += s->host->bytes_sent - sent;
    RRL_TRY(take(s, device, s->room, from));
    return take(s, device + to, s->room + to, all - to);
}

static void close_staged(rrl_collective **c) {
    if (!*c) return;
    staged *s = (*c)->state;
    free(s->room);
    free(s);
    free(*c);
    *c = NULL;
}

static const rrl_collective_ops STAGED_OPS = {"staged", tree_sum, broadcast, share_rows, close_staged};

rrl_status rrl_collective_staged_open(rrl_collective **out, rrl_device *d, rrl_collective *host) {
    rrl_collective *c = NULL;
    staged *s = NULL;
    RRL_TRY(rrl_alloc(&c, 1, sizeof *c, "collective"));
    rrl_status rc = rrl_alloc(&s, 1, sizeof *s, "collective");
    if (rc != RRL_OK) {
        free(c);
        return rc;
    }
    s->device = d;
    s->host = host;
    *c = (rrl_collective){.ops = &STAGED_OPS, .rank = host->rank, .size = host->size, .state = s};
    *out = c;
    return RRL_OK;
}
