/* An adapter_config.json beside real weights of a small model. */
#include "device/device.h"
#include "fuzz_target.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static rrl_device *device; /* opened once: the target would be slow otherwise */
    static rrl_model *model;
    if (!model) {
        fuzz_want(rrl_cpu_open(&device, "auto", 1) == RRL_OK, "a device");
        fuzz_want(rrl_model_open(&model, device, RRL_SOURCE_DIR "/tests/golden/llama/model") == RRL_OK, "a model");
        fuzz_link("adapter_model.safetensors", RRL_SOURCE_DIR "/tests/golden/llama/adapter/adapter_model.safetensors");
    }
    rrl_adapter *a = NULL;
    if (rrl_adapter_load(&a, model, fuzz_folder("adapter_config.json", data, size)) == RRL_OK)
        fuzz_want(rrl_adapter_rank(a) > 0 && rrl_adapter_size(a) > 0, "an adapter has a rank");
    rrl_adapter_close(&a);
    return 0;
}
