/* What a test may ask of the emulated GPU. */
#ifndef RRL_TESTS_CUDA_HOST_EMULATOR_H
#define RRL_TESTS_CUDA_HOST_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Threads of a block run in descending order from now on. */
void emulator_reverse(int reversed);
/** Bytes of device memory in use; 0 when all is given back. */
size_t emulator_bytes_in_use(void);
/** Kernels and products of cuBLASLt started, those of graphs too. */
int64_t emulator_launches(void);
/** Times that the host waited for the stream. */
int64_t emulator_waits(void);
/** Graphs recorded, and launched. */
int64_t emulator_graphs(void);
int64_t emulator_graph_launches(void);
/** The next `n` recordings fail when they end. */
void emulator_fail_graphs(int n);

#ifdef __cplusplus
}
#endif

#endif
