/* The table of one instruction set. */
#include "device/cpu/gemm.h"

#define RRL_STRING2(a) #a
#define RRL_STRING(a)  RRL_STRING2(a)

const rrl_kernels RRL_PASTE(rrl_kernels, RRL_ISA) = {.isa = RRL_STRING(RRL_ISA),
#define X(name, job) .name = RRL_KERNEL(name),
                                                     RRL_KERNEL_LIST(X)
#undef X
};
