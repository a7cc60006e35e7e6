/* The one place that calls NCCL; a test replaces it. NCCL is opened at run time (libnccl.so.2), so the module needs it
 * neither to be built nor to be loaded. A communicator is non-blocking: what is begun here has ended when
 * rrl_nccl_look says so, and one operation, or one group of sends and receives, is under way at a time. */
#ifndef RRL_DEVICE_CUDA_NCCL_CALLS_H
#define RRL_DEVICE_CUDA_NCCL_CALLS_H

#include "device/cuda/cuda_common.cuh"

typedef struct rrl_nccl rrl_nccl; /* a communicator */
enum { RRL_NCCL_ID_BYTES = 128 };

/** Why NCCL cannot be used, as the end of a message; NULL = it can. */
const char *rrl_nccl_missing(void);
/** "nccl 2.28.9". */
const char *rrl_nccl_name(void);

/** Identity of a communicator to be, made by one rank for all. */
rrl_status rrl_nccl_id(char id[RRL_NCCL_ID_BYTES]);
/** Join as rank of size. shared: ranks of one GPU are told apart as if they were on different hosts (NCCL_HOSTID, which
 *  counts for the process from here on). Errors, of all calls: RRL_ERR_COMM with NCCL's words. */
rrl_status rrl_nccl_join(rrl_nccl **out, const char id[RRL_NCCL_ID_BYTES], int rank, int size, bool shared);
/** *done: what was begun, and what stood in the stream before it, has ended well. Never blocks. */
rrl_status rrl_nccl_look(bool *done, rrl_nccl *n, cudaStream_t stream);

rrl_status rrl_nccl_all_reduce(rrl_nccl *n, float *x, int64_t count, cudaStream_t stream); /* sum, in place */
rrl_status rrl_nccl_broadcast(rrl_nccl *n, void *x, size_t bytes, int root, cudaStream_t stream);
/* Sends and receives stand between these two and run together. */
rrl_status rrl_nccl_group_start(rrl_nccl *n);
rrl_status rrl_nccl_group_end(rrl_nccl *n);
rrl_status rrl_nccl_send(rrl_nccl *n, const void *x, size_t bytes, int to, cudaStream_t stream);
rrl_status rrl_nccl_receive(rrl_nccl *n, void *x, size_t bytes, int from, cudaStream_t stream);

/** Leave a communicator with nothing under way. */
void rrl_nccl_leave(rrl_nccl **n);
/** Give it up with whatever is under way; kernels that wait for other ranks end. */
void rrl_nccl_abort(rrl_nccl **n);

#endif
