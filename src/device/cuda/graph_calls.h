/* The one place that calls CUDA's graphs; a test replaces it by a list of launches. */
#ifndef RRL_DEVICE_CUDA_GRAPH_CALLS_H
#define RRL_DEVICE_CUDA_GRAPH_CALLS_H

#include "device/cuda/cuda_common.cuh"

typedef struct rrl_graph_calls rrl_graph_calls;
/** What this thread sends to the stream from now on is recorded. Errors: RRL_ERR_DEVICE, of all of these. */
rrl_status rrl_graph_calls_begin(cudaStream_t stream);
/** Ends it in every case; out NULL = what was recorded is dropped. */
rrl_status rrl_graph_calls_end(rrl_graph_calls **out, cudaStream_t stream);
rrl_status rrl_graph_calls_launch(rrl_graph_calls *g, cudaStream_t stream);
void rrl_graph_calls_free(rrl_graph_calls **g);

#endif
