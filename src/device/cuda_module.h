/* The CUDA back end as a module, librrl_cuda.so, opened at run time: the same program runs where no CUDA library is
 * installed. The module exports one symbol, a table; nothing here needs a CUDA header. */
#ifndef RRL_DEVICE_CUDA_MODULE_H
#define RRL_DEVICE_CUDA_MODULE_H

#include <stdarg.h>

#include "device/device.h"
#include "rrl/determinism.h"

/* Working memory of the ops where the options do not say; and cuBLASLt's, which products by it take on top. */
enum { RRL_CUDA_ROOM_BYTES = 96 << 20, RRL_CUDA_BLASLT_BYTES = 32 << 20 };

typedef struct {
    int gpu;         /* 0, 1, ...: as the CUDA runtime counts them */
    rrl_dtype dtype; /* of the products: RRL_F32 or RRL_BF16 */
    rrl_determinism determinism;
    size_t room_bytes; /* working memory of the ops; 0 = RRL_CUDA_ROOM_BYTES */
} rrl_cuda_options;

/* The module's table. Its first field is compared before anything else is called. */
typedef struct {
    uint64_t layout; /* RRL_CUDA_MODULE_LAYOUT of the program it was built for */
    /* Where its failures are kept (rrl_fail of the program); called once, before anything else. */
    void (*bind)(rrl_status (*fail)(rrl_status rc, const char *file, int line, const char *fmt, ...));
    /* GPUs of this process; when 0, *why says why, as the end of a message. */
    int (*count)(const char **why);
    rrl_status (*open)(rrl_device **out, const rrl_cuda_options *o);
} rrl_cuda_module;
#define RRL_CUDA_MODULE_LAYOUT                                                                                         \
    (1u + 256u * (uint64_t)sizeof(rrl_device_ops) + ((uint64_t)sizeof(rrl_cuda_module) << 48))
#define RRL_CUDA_MODULE_SYMBOL "rrl_cuda_module_table"

/** Whether this machine has NVIDIA's driver. Asked before the module is loaded where nobody insists on a GPU: CUDA's
 *  libraries take half a second and 170 MB of memory. */
bool rrl_cuda_driver_found(void);

/** Find and bind the module: beside the program, then as the dynamic linker searches. The handle stays for the life of
 *  the process. Errors: RRL_ERR_CONFIG: not found, or built for another version; the message says where it looked. */
rrl_status rrl_cuda_module_load(const rrl_cuda_module **out);
/** The same with the file named. */
rrl_status rrl_cuda_module_load_file(const rrl_cuda_module **out, const char *path);

#endif
