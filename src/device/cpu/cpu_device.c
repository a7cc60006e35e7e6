/* Opening and closing the CPU back end, and the choice of the instruction set. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/cpu.h"

#if defined(__x86_64__)
/* The compiler's run-time check also asks whether the system saves the registers. */
static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool has_avx512(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && has_avx2();
}
#endif
static bool always(void) {
    return true;
}

/* Best first; "reference" is never chosen by itself. */
static const struct {
    const rrl_kernels *kernels;
    bool (*available)(void);
} ISAS[] = {
#if defined(__x86_64__)
    {&rrl_kernels_avx512, has_avx512},
    {&rrl_kernels_avx2, has_avx2},
#endif
    {&rrl_kernels_portable, always},
    {&rrl_kernels_reference, always},
};
enum { N_ISAS = sizeof ISAS / sizeof ISAS[0] };

static rrl_status choose(const rrl_kernels **out, const char *isa) {
    char names[128] = "auto";
    for (int i = 0; i < N_ISAS; ++i) {
        if (!ISAS[i].available()) continue;
        if (strcmp(isa, "auto") == 0 || strcmp(isa, ISAS[i].kernels->isa) == 0) {
            *out = ISAS[i].kernels;
            return RRL_OK;
        }
        strcat(strcat(names, ", "), ISAS[i].kernels->isa);
    }
    return RRL_FAIL(RRL_ERR_CONFIG, "instruction set \"%s\" is not available on this machine; it has: %s",
                    isa, names);
}

rrl_status rrl_cpu_open(rrl_device **out, const char *isa, int threads) {
    rrl_status rc = RRL_OK;
    rrl_device *d = NULL;
    rrl_cpu *cpu = NULL;
    RRL_GOTO(rrl_alloc(&d, 1, sizeof *d, "device"));
    RRL_GOTO(rrl_alloc(&cpu, 1, sizeof *cpu, "CPU back end"));
    RRL_GOTO(choose(&cpu->kernels, isa));
    RRL_GOTO(rrl_pool_open(&cpu->pool, threads));
    cpu->threads = threads;
    d->ops = &rrl_cpu_ops;
    d->state = cpu;
    *out = d;
    d = NULL;
    cpu = NULL;
done:
    free(cpu);
    free(d);
    return rc;
}

void rrl_device_close(rrl_device **d) {
    if (!d || !*d) return;
    rrl_cpu *cpu = (*d)->state;
    rrl_pool_close(&cpu->pool);
    rrl_cpu_scratch_free(cpu);
    free(cpu);
    free(*d);
    *d = NULL;
}

const char *rrl_device_numeric_path(const rrl_device *d) {
    return "f32-asc";
}

const char *rrl_device_isa(const rrl_device *d) {
    return ((const rrl_cpu *)d->state)->kernels->isa;
}
