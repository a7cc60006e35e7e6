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
/** Kernels started. */
int64_t emulator_launches(void);

#ifdef __cplusplus
}
#endif

#endif
