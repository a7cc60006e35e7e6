#include "roles/engine_device.h"

#include <stdio.h>

#include "device/cuda_module.h"

/* The module and the number of GPUs it sees; 0 and `why` where there is none to use. */
static int find_gpus(const rrl_cuda_module **module, char *why, bool asked) {
    const char *reason = "";
    if (!asked && !rrl_cuda_driver_found()) {
        snprintf(why, RRL_WHY_BYTES, "no GPU: NVIDIA's driver (libcuda.so.1) is not here");
        return 0;
    }
    if (rrl_cuda_module_load(module) != RRL_OK) {
        snprintf(why, RRL_WHY_BYTES, "%s", rrl_error_message());
        return 0;
    }
    int n = (*module)->count(&reason);
    if (n == 0) snprintf(why, RRL_WHY_BYTES, "no GPU: %s", reason);
    return n;
}

bool rrl_engine_device_here(char *why, const rrl_config *c) {
    const rrl_cuda_module *module = NULL;
    return c->model.device != RRL_DEVICE_CUDA || find_gpus(&module, why, true) > 0;
}

bool rrl_engine_device_is_gpu(const rrl_config *c) {
    const rrl_cuda_module *module = NULL;
    char why[RRL_WHY_BYTES];
    if (c->model.device != RRL_DEVICE_AUTO) return c->model.device == RRL_DEVICE_CUDA;
    return find_gpus(&module, why, false) > 0;
}

static rrl_status open_gpu(rrl_device **out, char *why, const rrl_cuda_module *module, int gpus, const rrl_config *c,
                           const rrl_team *team, rrl_dtype dtype) {
    const rrl_cuda_options o = {.gpu = rrl_team_gpu(team, gpus, (int)c->parallel.ranks_per_gpu),
                                .dtype = dtype,
                                .determinism = c->model.deterministic};
    RRL_TRY(module->open(out, &o));
    snprintf(why, RRL_WHY_BYTES, "GPU %d of %d", o.gpu, gpus);
    return RRL_OK;
}

rrl_status rrl_engine_device_open(rrl_device **out, char *why, const rrl_config *c, const rrl_team *team,
                                  rrl_dtype dtype, const char *isa, int threads) {
    const rrl_cuda_module *module = NULL;
    if (c->model.device != RRL_DEVICE_CPU) {
        int gpus = find_gpus(&module, why, c->model.device == RRL_DEVICE_CUDA);
        if (gpus > 0) return open_gpu(out, why, module, gpus, c, team, dtype);
        if (c->model.device == RRL_DEVICE_CUDA)
            return RRL_FAIL(RRL_ERR_CONFIG, "model.device cuda: %s; use auto or cpu, or build with the CUDA toolkit",
                            why);
    } else {
        snprintf(why, RRL_WHY_BYTES, "model.device cpu");
    }
    return rrl_cpu_open_dtype(out, dtype, isa ? isa : "auto", threads);
}
