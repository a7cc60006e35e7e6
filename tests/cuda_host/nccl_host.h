/* What a test may ask of NCCL's stand-in (nccl_host.cpp) in this process; found in the module by dlsym. */
#ifndef RRL_TESTS_CUDA_HOST_NCCL_HOST_H
#define RRL_TESTS_CUDA_HOST_NCCL_HOST_H

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** The calls since the last nccl_host_forget, a line each: "all_reduce 12", "broadcast 48 from 0", "send 48 to 2", ...
 *  with "{" and "}" around a group. */
const char *nccl_host_calls(void);
void nccl_host_forget(void);
/** Calls that NCCL would not have taken: a send outside a group, an operation while another is under way. */
int nccl_host_wrong(void);
/** Communicators given up. */
int nccl_host_aborted(void);
/** From now on there is no NCCL here. */
void nccl_host_take_away(int gone);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
