/* In a test the back end is linked to the program, so its failures are the program's without being bound. */
#include "device/cuda_module.h"

void rrl_cuda_bind(rrl_status (*fail)(rrl_status rc, const char *file, int line, const char *fmt, ...));

void rrl_cuda_bind(rrl_status (*fail)(rrl_status rc, const char *file, int line, const char *fmt, ...)) {
    (void)fail;
}
