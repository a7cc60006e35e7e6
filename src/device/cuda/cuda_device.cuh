/* The device's own functions of the op table, and the table. */
#ifndef RRL_DEVICE_CUDA_DEVICE_CUH
#define RRL_DEVICE_CUDA_DEVICE_CUH

#include "device/cuda/cuda_common.cuh"

rrl_status rrl_cuda_alloc(rrl_device *d, void **out, size_t bytes, const char *what);
void rrl_cuda_free(rrl_device *d, void *p);
rrl_status rrl_cuda_upload(rrl_device *d, void *to, const void *host, size_t bytes);
rrl_status rrl_cuda_download(rrl_device *d, void *host, const void *from, size_t bytes);
rrl_status rrl_cuda_sync(rrl_device *d);
rrl_status rrl_cuda_weight_pack(rrl_device *d, rrl_weight **out, const void *src, rrl_dtype dtype, int64_t n,
                                int64_t k);
void rrl_cuda_weight_free(rrl_device *d, rrl_weight **w);
rrl_status rrl_cuda_graph_begin(rrl_device *d);
rrl_status rrl_cuda_graph_end(rrl_device *d, rrl_graph **out);
rrl_status rrl_cuda_graph_launch(rrl_device *d, rrl_graph *g);
void rrl_cuda_graph_free(rrl_device *d, rrl_graph **g);
/** Errors: RRL_ERR_INTERNAL while a graph is recorded. */
rrl_status rrl_cuda_not_recording(const rrl_cuda *c, const char *what);
const char *rrl_cuda_numeric_path(const rrl_device *d);
const char *rrl_cuda_isa(const rrl_device *d);
void rrl_cuda_close(rrl_device *d);

extern const rrl_device_ops rrl_cuda_op_table;

/* Failures of the module go to the program's rrl_fail (cuda_status.cu). */
extern "C" void rrl_cuda_bind(rrl_status (*fail)(rrl_status rc, const char *file, int line, const char *fmt, ...));

/* What the program links and a test names. */
extern "C" const rrl_cuda_module rrl_cuda_module_table;

#endif
