/* Part of rrl in sanitizer builds alone: plug-ins of Open MPI stay loaded, so that a leak report at exit has their names
 * and tests/lsan.supp can tell them from leaks of ours. */
#include <dlfcn.h>

__attribute__((visibility("default"))) int dlclose(void *handle) {
    (void)handle;
    return 0;
}
