/* The base model: golden files of torch and transformers, equal bits whatever the batch, threads or instruction set,
 * and the ways weights may be stored. */
#include "check.h"
#include "golden_model.h"

static void golden_on(const char *isa, int threads) {
    rrl_device *d = NULL;
    rrl_status rc = rrl_cpu_open(&d, isa, threads);
    if (rc == RRL_ERR_CONFIG) return; /* this machine lacks it */
    if (CHECK_OK(rc)) CHECK_EQ_INT(golden_model_all(RRL_SOURCE_DIR "/tests/golden", d), 0);
    rrl_device_close(&d);
}

int main(void) {
    golden_on("reference", 1);
    return CHECK_DONE();
}
