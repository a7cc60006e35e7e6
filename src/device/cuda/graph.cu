/* Recorded launches: the graphs of the op table. While one is recorded the device takes ops and nothing else. */
#include "device/cuda/cuda_device.cuh"

#include <stdlib.h>

#include "device/cuda/graph_calls.h"

extern "C" {
#include "base/memory.h"
}

struct rrl_graph {
    rrl_graph_calls *calls;
};

rrl_status rrl_cuda_not_recording(const rrl_cuda *c, const char *what) {
    return c->recording ? RRL_FAIL(RRL_ERR_INTERNAL, "%s while a graph is recorded", what) : RRL_OK;
}

rrl_status rrl_cuda_graph_begin(rrl_device *d) {
    rrl_cuda *c = rrl_cuda_of(d);
    RRL_TRY(rrl_cuda_not_recording(c, "a graph begun"));
    RRL_TRY(rrl_graph_calls_begin(c->stream));
    c->recording = true;
    c->rounded.x = NULL; /* what it repeats begins without */
    return RRL_OK;
}

rrl_status rrl_cuda_graph_end(rrl_device *d, rrl_graph **out) {
    rrl_status rc = RRL_OK;
    rrl_cuda *c = rrl_cuda_of(d);
    rrl_graph *g = NULL;
    if (!c->recording) return RRL_FAIL(RRL_ERR_INTERNAL, "a graph ended that was not begun");
    c->recording = false;
    c->rounded.x = NULL; /* nothing has run */
    if (!out) return rrl_graph_calls_end(NULL, c->stream);
    RRL_GOTO(rrl_alloc(&g, 1, sizeof *g, "graph"));
    RRL_GOTO(rrl_graph_calls_end(&g->calls, c->stream));
    *out = g;
    g = NULL;
done:
    rrl_cuda_graph_free(d, &g);
    return rc;
}

rrl_status rrl_cuda_graph_launch(rrl_device *d, rrl_graph *g) {
    rrl_cuda *c = rrl_cuda_of(d);
    RRL_TRY(rrl_cuda_not_recording(c, "a graph launched"));
    c->rounded.x = NULL;
    return rrl_graph_calls_launch(g->calls, c->stream);
}

void rrl_cuda_graph_free(rrl_device *, rrl_graph **g) {
    if (!*g) return;
    rrl_graph_calls_free(&(*g)->calls);
    free(*g);
    *g = NULL;
}
