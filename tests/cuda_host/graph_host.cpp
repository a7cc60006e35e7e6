/* The place of CUDA's graphs in the tests: a recording is the list of launches with their arguments, as the stream got
 * them; launching a graph runs them again. */
#include "device/cuda/graph_calls.h"

#include "emulator.h"
#include "stream.h"

struct rrl_graph_calls {
    std::vector<std::function<void()>> work;
};

static rrl_graph_calls *recording;
static int64_t graphs, launched;
static int to_fail;

int64_t emulator_graphs(void) {
    return graphs;
}
int64_t emulator_graph_launches(void) {
    return launched;
}
void emulator_fail_graphs(int n) {
    to_fail = n;
}

rrl_status rrl_graph_calls_begin(cudaStream_t) {
    if (recording) return RRL_FAIL(RRL_ERR_DEVICE, "the stream is recording already");
    recording = new rrl_graph_calls;
    emulated_record(&recording->work);
    return RRL_OK;
}

rrl_status rrl_graph_calls_end(rrl_graph_calls **out, cudaStream_t) {
    rrl_graph_calls *g = recording;
    recording = NULL;
    emulated_record(NULL);
    const bool fails = to_fail > 0 && to_fail--;
    if (!out || fails) delete g;
    if (fails) return RRL_FAIL(RRL_ERR_DEVICE, "this graph was to fail");
    if (!out) return RRL_OK;
    graphs++;
    *out = g;
    return RRL_OK;
}

rrl_status rrl_graph_calls_launch(rrl_graph_calls *g, cudaStream_t) {
    launched++;
    for (const auto &work : g->work) emulated_submit(work);
    return RRL_OK;
}

void rrl_graph_calls_free(rrl_graph_calls **g) {
    delete *g;
    *g = NULL;
}
