/* CUDA graphs by capturing the stream. Thread-local: what other threads of the process do with CUDA does not matter. */
#include "device/cuda/graph_calls.h"

#include <stdlib.h>

extern "C" {
#include "base/memory.h"
}

struct rrl_graph_calls {
    cudaGraphExec_t executable;
};

rrl_status rrl_graph_calls_begin(cudaStream_t stream) {
    rrl_status rc = RRL_OK;
    RRL_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
done:
    return rc;
}

rrl_status rrl_graph_calls_end(rrl_graph_calls **out, cudaStream_t stream) {
    rrl_status rc = RRL_OK;
    rrl_graph_calls *g = NULL;
    cudaGraph_t graph = NULL;
    RRL_CUDA(cudaStreamEndCapture(stream, &graph));
    if (!out) goto done;
    RRL_GOTO(rrl_alloc(&g, 1, sizeof *g, "graph"));
    RRL_CUDA(cudaGraphInstantiate(&g->executable, graph, 0));
    *out = g;
    g = NULL;
done:
    rrl_graph_calls_free(&g);
    if (graph) cudaGraphDestroy(graph);
    return rc;
}

rrl_status rrl_graph_calls_launch(rrl_graph_calls *g, cudaStream_t stream) {
    rrl_status rc = RRL_OK;
    RRL_CUDA(cudaGraphLaunch(g->executable, stream));
done:
    return rc;
}

void rrl_graph_calls_free(rrl_graph_calls **g) {
    if (!*g) return;
    if ((*g)->executable) cudaGraphExecDestroy((*g)->executable);
    free(*g);
    *g = NULL;
}
