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
static const char *why_no_amx(void) {
    const char *why = "; this processor has no AVX-512";
    return has_avx512() && rrl_bf16_amx_works(&why) ? "" : why;
}
static bool has_amx(void) {
    return why_no_amx()[0] == 0;
}
static const rrl_bf16_kernels *const TILES = &rrl_bf16_amx;
#else
static const char *why_no_amx(void) {
    return "";
}
static const rrl_bf16_kernels *const TILES = NULL;
#endif
static bool always(void) {
    return true;
}

/* Best first; "reference" is never chosen by itself. Tiles are for bf16 products only. */
static const struct {
    const char *isa;
    const rrl_kernels *kernels;
    const rrl_bf16_kernels *products;
    bool (*available)(void);
} ISAS[] = {
#if defined(__x86_64__)
    {"amx", &rrl_kernels_avx512, &rrl_bf16_amx, has_amx},
    {"avx512", &rrl_kernels_avx512, &rrl_bf16_avx512, has_avx512},
    {"avx2", &rrl_kernels_avx2, &rrl_bf16_avx2, has_avx2},
#endif
    {"portable", &rrl_kernels_portable, &rrl_bf16_portable, always},
    {"reference", &rrl_kernels_reference, &rrl_bf16_reference, always},
};
enum { N_ISAS = sizeof ISAS / sizeof ISAS[0] };

static rrl_status choose(rrl_cpu *cpu, rrl_dtype dtype, const char *isa) {
    char names[128] = "auto";
    const char *amx = "";
    if (strcmp(isa, "amx") == 0) amx = dtype == RRL_F32 ? "; amx computes model.dtype bfloat16 only" : why_no_amx();
    for (int i = 0; i < N_ISAS; ++i) {
        if (dtype == RRL_F32 && ISAS[i].products == TILES) continue;
        if (!ISAS[i].available()) continue;
        if (strcmp(isa, "auto") == 0 || strcmp(isa, ISAS[i].isa) == 0) {
            cpu->kernels = ISAS[i].kernels;
            if (dtype == RRL_BF16) cpu->bf16.engine.kernels = ISAS[i].products;
            return RRL_OK;
        }
        strcat(strcat(names, ", "), ISAS[i].isa);
    }
    return RRL_FAIL(RRL_ERR_CONFIG, "instruction set \"%s\" is not available on this machine; it has: %s%s", isa, names,
                    amx);
}

rrl_status rrl_cpu_open(rrl_device **out, const char *isa, int threads) {
    return rrl_cpu_open_dtype(out, RRL_F32, isa, threads);
}

rrl_status rrl_cpu_open_dtype(rrl_device **out, rrl_dtype dtype, const char *isa, int threads) {
    rrl_status rc = RRL_OK;
    rrl_device *d = NULL;
    rrl_cpu *cpu = NULL;
    RRL_GOTO(rrl_alloc(&d, 1, sizeof *d, "device"));
    RRL_GOTO(rrl_alloc(&cpu, 1, sizeof *cpu, "CPU back end"));
    RRL_GOTO(choose(cpu, dtype, isa)); /* asks for the tiles, which must come before threads */
    RRL_GOTO(rrl_pool_open(&cpu->pool, threads));
    cpu->threads = threads;
    cpu->ops = rrl_cpu_ops;
    if (dtype == RRL_BF16) {
        RRL_GOTO(rrl_bf16_open(&cpu->bf16, cpu->pool, threads));
        rrl_bf16_install(&cpu->ops);
    }
    d->ops = &cpu->ops;
    d->state = cpu;
    *out = d;
    d = NULL;
    cpu = NULL;
done:
    if (cpu) rrl_pool_close(&cpu->pool);
    free(cpu);
    free(d);
    return rc;
}

void rrl_cpu_close(rrl_device *d) {
    rrl_cpu *cpu = d->state;
    rrl_pool_close(&cpu->pool);
    rrl_cpu_scratch_free(cpu);
    rrl_bf16_close(&cpu->bf16);
    free(cpu);
    free(d);
}

const char *rrl_cpu_numeric_path(const rrl_device *d) {
    static const char *const names[2][2] = {{"f32-asc", "f32-asc/kv-bf16"}, {"bf16-tile", "bf16-tile/kv-bf16"}};
    return names[((const rrl_cpu *)d->state)->bf16.engine.kernels != NULL][d->kv_dtype == RRL_BF16];
}

const char *rrl_cpu_isa(const rrl_device *d) {
    const rrl_cpu *cpu = d->state;
    return cpu->bf16.engine.kernels ? cpu->bf16.engine.kernels->isa : cpu->kernels->isa;
}
