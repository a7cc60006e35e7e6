/* rrl_fail inside the module: the text goes to the program's rrl_fail, whose message it must become. The one variable of
 * the module, set once when it is loaded. */
#include <stdarg.h>
#include <stdio.h>

#include "base/files.h"
#include "device/cuda_module.h"

/* Fault points are the program's; inside the module nothing is made to fail. */
bool rrl_fault(const char *site) {
    return false;
}

static rrl_status (*program_fail)(rrl_status rc, const char *file, int line, const char *fmt, ...);

void rrl_cuda_bind(rrl_status (*fail)(rrl_status rc, const char *file, int line, const char *fmt, ...));

void rrl_cuda_bind(rrl_status (*fail)(rrl_status rc, const char *file, int line, const char *fmt, ...)) {
    program_fail = fail;
}

rrl_status rrl_fail(rrl_status rc, const char *file, int line, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return program_fail ? program_fail(rc, file, line, "%s", text) : rc;
}
