/* Every op of the table on the GPU against the CPU's reference: the cases of tests/ops_cases.c. */
#include <stdio.h>

#include "check.h"
#include "ops_cases.h"

static const struct {
    const char *name;
    rrl_dtype dtype;
    rrl_determinism determinism;
} DEVICES[] = {
    {"ops, f32, exact", RRL_F32, RRL_DETERMINISM_EXACT},
    {"ops, bf16, exact", RRL_BF16, RRL_DETERMINISM_EXACT},
    {"ops, f32, run", RRL_F32, RRL_DETERMINISM_RUN},
    {"ops, bf16, run", RRL_BF16, RRL_DETERMINISM_RUN},
};

static void compare(rrl_device *d, rrl_device *reference, int which, int round, const char *who, bool exact) {
    ops_written want = {0}, got = {0};
    ops_case_run(&want, which, round, reference, false);
    ops_case_run(&got, which, round, d, false);
    if (exact) ops_case_equal(&want, &got, ops_case_name(which), round, who);
    else ops_case_near(&want, &got, ops_case_name(which), round, who);
    ops_written_free(&want);
    ops_written_free(&got);
}

void rrl_gpu_check_ops(rrl_gpu_check *c) {
    const int step = c->small ? 8 : 1;
    for (size_t i = 0; i < sizeof DEVICES / sizeof *DEVICES; i++) {
        rrl_device *d = NULL, *reference = NULL;
        const int before = ops_cases_failures();
        int compared = 0;
        rrl_status rc = rrl_gpu_open(&d, c, DEVICES[i].dtype, DEVICES[i].determinism);
        if (rc == RRL_OK) rc = rrl_cpu_open_dtype(&reference, DEVICES[i].dtype, "reference", 1);
        for (int which = 0; rc == RRL_OK && which < N_OPS_CASES; which++)
            for (int round = 0; round < ops_case_rounds(which); round += step, compared++)
                compare(d, reference, which, round, DEVICES[i].name, DEVICES[i].determinism == RRL_DETERMINISM_EXACT);
        const int wrong = ops_cases_failures() - before;
        if (rc != RRL_OK) rrl_gpu_say_status(c, DEVICES[i].name, rc);
        else rrl_gpu_say(c, DEVICES[i].name, wrong ? "FAILED" : "ok", "%d of %d comparisons differ", wrong, compared);
        rrl_device_close(&reference);
        rrl_device_close(&d);
    }
}
