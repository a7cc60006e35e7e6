/* Finding and binding the CUDA module. The dynamic linker's words go into the message: a missing CUDA library is the
 * usual reason. */
#define _GNU_SOURCE
#include "device/cuda_module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MODULE_FILE "librrl_cuda.so"

bool rrl_cuda_driver_found(void) {
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (handle) dlclose(handle);
    return handle != NULL;
}

/* The folder of this program with the module's name. */
static void beside_program(char *path, size_t size) {
    ssize_t n = readlink("/proc/self/exe", path, size - sizeof MODULE_FILE - 1);
    if (n < 0) n = 0;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    strcpy(slash ? slash + 1 : path, MODULE_FILE);
}

rrl_status rrl_cuda_module_load_file(const rrl_cuda_module **out, const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return RRL_FAIL(RRL_ERR_CONFIG, "the CUDA module cannot be loaded: %s", dlerror());
    const rrl_cuda_module *m = dlsym(handle, RRL_CUDA_MODULE_SYMBOL);
    if (!m || m->layout != RRL_CUDA_MODULE_LAYOUT) {
        dlclose(handle);
        return RRL_FAIL(RRL_ERR_CONFIG, "%s is of another version of this program; build and install both together",
                        path);
    }
    m->bind(rrl_fail);
    *out = m;
    return RRL_OK;
}

rrl_status rrl_cuda_module_load(const rrl_cuda_module **out) {
    char path[4096];
    beside_program(path, sizeof path);
    if (access(path, R_OK) == 0) return rrl_cuda_module_load_file(out, path);
    if (rrl_cuda_module_load_file(out, MODULE_FILE) == RRL_OK) return RRL_OK;
    return RRL_FAIL(RRL_ERR_CONFIG, "no CUDA module: %s is neither beside the program nor in the library path",
                    MODULE_FILE);
}
