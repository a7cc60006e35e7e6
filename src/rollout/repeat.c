/* A few shapes at a time are remembered, the one unused for longest makes place for a new one: in steady decoding there
 * is one, and towards the end of a rollout each that stays for a few steps. */
#include "rollout/repeat.h"

#include <stdlib.h>

#include "base/memory.h"

enum { MOST_SHAPES = 16 };

typedef struct {
    rrl_repeat_shape shape;
    rrl_graph *graph; /* NULL = seen once */
    int64_t used;     /* number of the step that used it last; 0 = free place */
} remembered;

struct rrl_repeat {
    rrl_device *device;
    remembered shapes[MOST_SHAPES];
    int64_t steps, recorded, repeated;
    bool cannot; /* a recording failed, or the device has none */
};

rrl_status rrl_repeat_open(rrl_repeat **out, rrl_device *d) {
    rrl_repeat *r = NULL;
    RRL_TRY(rrl_alloc(&r, 1, sizeof *r, "decode steps to repeat"));
    r->device = d;
    r->cannot = !d->ops->graph_begin;
    *out = r;
    return RRL_OK;
}

static void free_place(rrl_repeat *r, remembered *x) {
    if (x->graph) r->device->ops->graph_free(r->device, &x->graph);
    *x = (remembered){0};
}

void rrl_repeat_forget(rrl_repeat *r) {
    for (int i = 0; i < MOST_SHAPES; i++) free_place(r, &r->shapes[i]);
}

void rrl_repeat_close(rrl_repeat **r) {
    if (!*r) return;
    rrl_repeat_forget(*r);
    free(*r);
    *r = NULL;
}

static bool same(const rrl_repeat_shape *a, const rrl_repeat_shape *b) {
    return a->n_rows == b->n_rows && a->n_draws == b->n_draws && a->dropout == b->dropout;
}

static remembered *find(rrl_repeat *r, const rrl_repeat_shape *shape) {
    for (int i = 0; i < MOST_SHAPES; i++)
        if (r->shapes[i].used && same(&r->shapes[i].shape, shape)) return &r->shapes[i];
    return NULL;
}

static void remember(rrl_repeat *r, const rrl_repeat_shape *shape) {
    remembered *oldest = &r->shapes[0];
    for (int i = 1; i < MOST_SHAPES; i++)
        if (r->shapes[i].used < oldest->used) oldest = &r->shapes[i];
    free_place(r, oldest);
    *oldest = (remembered){.shape = *shape, .used = r->steps};
}

static rrl_status record(rrl_repeat *r, remembered *x, rrl_status (*enqueue)(void *context), void *context) {
    rrl_device *d = r->device;
    RRL_TRY(d->ops->graph_begin(d));
    rrl_status rc = enqueue(context);
    if (rc != RRL_OK) {
        (void)d->ops->graph_end(d, NULL);
        return rc;
    }
    RRL_TRY(d->ops->graph_end(d, &x->graph));
    r->recorded++;
    return RRL_OK;
}

rrl_status rrl_repeat_step(rrl_repeat *r, rrl_repeat_shape shape, rrl_status (*enqueue)(void *context), void *context) {
    if (r->cannot) return enqueue(context);
    r->steps++;
    remembered *x = find(r, &shape);
    if (!x) { /* the first of its shape, which also chooses algorithms and loads kernels */
        remember(r, &shape);
        return enqueue(context);
    }
    x->used = r->steps;
    if (x->graph)
        r->repeated++;
    else if (record(r, x, enqueue, context) != RRL_OK) {
        r->cannot = true;
        rrl_repeat_forget(r);
        return enqueue(context);
    }
    return r->device->ops->graph_launch(r->device, x->graph);
}

int64_t rrl_repeat_recorded(const rrl_repeat *r) {
    return r->recorded;
}

int64_t rrl_repeat_repeated(const rrl_repeat *r) {
    return r->repeated;
}
