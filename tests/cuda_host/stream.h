/* What the files that stand in for NVIDIA's libraries ask of the emulator. */
#ifndef RRL_TESTS_CUDA_HOST_STREAM_H
#define RRL_TESTS_CUDA_HOST_STREAM_H

#include <functional>
#include <vector>

/* Device memory is accessible to the caller, or not. */
void emulated_memory_open(bool open);
/* A product of cuBLASLt begins: it counts as a launch. */
void emulated_product(void);
/* Work that is submitted goes into this list and is not done; NULL: it is done again. */
void emulated_record(std::vector<std::function<void()>> *to);

#endif
