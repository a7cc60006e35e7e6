/* The CUDA back end's ops on the emulated GPU (cuda_host/): the cases of ops_cases.c against the CPU's reference, bit
 * for bit under `exact`, within bounds under `run`, in both orders of threads. And the list of cases against the op
 * table. */
#include "check.h"
#include "cuda_host/emulator.h"
#include "device/cuda_module.h"
#include "ops_cases.h"

extern const rrl_cuda_module rrl_cuda_module_table;

/* One in how many rounds of a case: the emulator is slow, more so under the sanitizers. */
#ifdef __SANITIZE_ADDRESS__
enum { ROUNDS_DIVISOR = 12 };
#else
enum { ROUNDS_DIVISOR = 4 };
#endif

static const struct {
    rrl_dtype dtype;
    rrl_determinism determinism;
    int reversed;
    size_t room_bytes; /* little, so that ops cut their rows into chunks */
    bool all;          /* cases, or those alone that type and determinism matter to */
    const char *who;
} DEVICES[] = {
    {RRL_F32, RRL_DETERMINISM_EXACT, 0, 64 << 10, true, "f32, exact"},
    {RRL_F32, RRL_DETERMINISM_EXACT, 1, 0, true, "f32, exact, threads in descending order"},
    {RRL_BF16, RRL_DETERMINISM_EXACT, 0, 0, false, "bf16, exact"},
    {RRL_F32, RRL_DETERMINISM_RUN, 0, 0, false, "f32, run"},
    {RRL_BF16, RRL_DETERMINISM_RUN, 1, 2 << 10, false, "bf16, run, threads in descending order"},
};
enum { N = sizeof DEVICES / sizeof DEVICES[0] };
static const char *const WITH_PRODUCTS[] = {"embed", "linear", "lora", "vocabulary"};

static bool concerns(int device, int which) {
    bool products = false;
    for (size_t i = 0; i < sizeof WITH_PRODUCTS / sizeof WITH_PRODUCTS[0]; ++i)
        products = products || strcmp(WITH_PRODUCTS[i], ops_case_name(which)) == 0;
    return DEVICES[device].all || products;
}

static void compare_device(int device, int which, int round, rrl_device *reference) {
    rrl_device *d = NULL;
    ops_written want = {0}, got = {0};
    const rrl_cuda_options o = {.dtype = DEVICES[device].dtype,
                                .determinism = DEVICES[device].determinism,
                                .room_bytes = DEVICES[device].room_bytes};
    if (!CHECK_OK(rrl_cuda_module_table.open(&d, &o))) return;
    emulator_reverse(DEVICES[device].reversed);
    ops_case_run(&want, which, round, reference, false);
    ops_case_run(&got, which, round, d, false);
    if (o.determinism == RRL_DETERMINISM_EXACT)
        ops_case_equal(&want, &got, ops_case_name(which), round, DEVICES[device].who);
    else
        ops_case_near(&want, &got, ops_case_name(which), round, DEVICES[device].who);
    ops_written_free(&want);
    ops_written_free(&got);
    rrl_device_close(&d);
    CHECK_EQ_INT(emulator_bytes_in_use(), 0);
}

static char *read_text(const char *path) {
    char *text = calloc(1, 1 << 20);
    FILE *f = fopen(path, "r");
    if (!CHECK(f != NULL)) exit(1);
    CHECK(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

/* Every op that device.h declares behind "forward" is called by a case, and stands in the CUDA table. */
static void check_list(void) {
    char *header = read_text(RRL_SOURCE_DIR "/src/device/device.h");
    char *cases = read_text(RRL_SOURCE_DIR "/tests/ops_cases.c");
    char *table = read_text(RRL_SOURCE_DIR "/src/device/cuda/cuda_ops.cu");
    char *at = strstr(header, "/* forward ---"), *end = strstr(header, "} rrl_device_ops;");
    int n = 0;
    if (!CHECK(at && end)) exit(1);
    *end = 0;
    while ((at = strstr(at, "rrl_status (*")) != NULL) {
        char name[64], call[80], entry[160];
        at += strlen("rrl_status (*");
        if (!CHECK(sscanf(at, "%63[a-z_0-9]", name) == 1)) break;
        snprintf(call, sizeof call, "->ops->%s(", name);
        snprintf(entry, sizeof entry, ".%s = rrl_cuda_%s,", name, name);
        if (!CHECK(strstr(cases, call) != NULL)) fprintf(stderr, "  no case of ops_cases.c calls %s\n", name);
        if (!CHECK(strstr(table, entry) != NULL)) fprintf(stderr, "  cuda_ops.cu lacks %s\n", name);
        n++;
    }
    CHECK(n >= 20); /* the header was understood */
    free(header);
    free(cases);
    free(table);
}

/* Arguments, if any: names of cases to run. */
static int wanted(int which, int argc, char **argv) {
    for (int i = 1; i < argc; ++i)
        if (strcmp(argv[i], ops_case_name(which)) == 0) return 1;
    return argc < 2;
}

int main(int argc, char **argv) {
    rrl_device *reference[2] = {NULL};
    if (argc < 2) check_list();
    CHECK_OK(rrl_cpu_open_dtype(&reference[0], RRL_F32, "reference", 1));
    CHECK_OK(rrl_cpu_open_dtype(&reference[1], RRL_BF16, "reference", 1));
    for (int device = 0; device < N; ++device)
        for (int which = 0; which < N_OPS_CASES; ++which)
            for (int round = device;
                 concerns(device, which) && wanted(which, argc, argv) && round < ops_case_rounds(which);
                 round += ROUNDS_DIVISOR)
                if (argc < 2 || ops_cases_failures() == 0) /* of cases named, the first failure is enough */
                    compare_device(device, which, round, reference[DEVICES[device].dtype == RRL_BF16]);
    rrl_device_close(&reference[0]);
    rrl_device_close(&reference[1]);
    CHECK(emulator_launches() > 0);
    CHECK_EQ_INT(ops_cases_failures(), 0);
    return CHECK_DONE();
}
