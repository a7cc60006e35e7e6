/* The CUDA back end's ops on the emulated GPU (cuda_host/): the cases of ops_cases.c against the CPU's reference, bit
 * for bit under `exact`, within bounds under `run`, in both orders of threads. LoRA of few rows and of many; scores of
 * many ids. And the list of cases against the op table. */
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

/* --- LoRA of few rows is one launch, of many two: a row's bits are the same, however many rows are with it */

enum { ROWS = 75, FEW = 11, FIRST = 28, K = 3000, RANK = 40, R16 = 48, SEQS = 5, ADAPTERS = 2, MOST_HELD = 64 };
static const int32_t OUTPUTS[RRL_MOST_PRODUCTS] = {1100, 40, 1030}; /* one and two parts of columns */

typedef struct {
    rrl_device *d;
    void *held[MOST_HELD];
    int n_held;
    uint32_t last; /* random number */
} bench;

static void *sent(bench *t, const void *host, size_t bytes) {
    void *p = NULL;
    if (!CHECK(t->n_held < MOST_HELD) || !CHECK_OK(t->d->ops->alloc(t->d, &p, bytes, "numbers"))) exit(1);
    CHECK_OK(t->d->ops->upload(t->d, p, host, bytes));
    return t->held[t->n_held++] = p;
}

static rrl_tensor some(bench *t, int64_t rows, int64_t cols) {
    float *host = malloc((size_t)(rows * cols) * sizeof *host);
    if (!CHECK(host != NULL)) exit(1);
    for (int64_t i = 0; i < rows * cols; ++i) {
        t->last = t->last * 1664525u + 1013904223u;
        host[i] = (float)(t->last >> 8) * 0x1p-23f - 1.0f;
    }
    const rrl_tensor x = {sent(t, host, (size_t)(rows * cols) * sizeof *host), rows, cols};
    free(host);
    return x;
}

static rrl_lora some_module(bench *t, int32_t n) {
    const rrl_lora m = {some(t, RANK, K).data, some(t, n, RANK).data, some(t, K, R16).data, some(t, RANK, n).data,
                        RANK,                  K,                     n,                    0.5f};
    CHECK_OK(t->d->ops->lora_pack(t->d, &m));
    return m;
}

static rrl_tensor rows_of(rrl_tensor x, int64_t first, int64_t rows) {
    return (rrl_tensor){x.data + first * x.cols, rows, x.cols};
}

static void check_equal_rows(bench *t, rrl_tensor all, rrl_tensor few) {
    const size_t bytes = (size_t)(few.rows * few.cols) * sizeof(float);
    float *want = malloc(bytes), *got = malloc(bytes);
    if (!CHECK(want && got)) exit(1);
    CHECK_OK(t->d->ops->download(t->d, want, all.data + FIRST * all.cols, bytes));
    CHECK_OK(t->d->ops->download(t->d, got, few.data, bytes));
    CHECK(memcmp(want, got, bytes) == 0);
    free(want);
    free(got);
}

/* Rows of five sequences with two adapters, and without; the second lacks a module. */
static rrl_batch mixed_rows(bench *t) {
    static const int32_t ADAPTER[SEQS] = {0, 1, -1, 0, 1};
    int32_t position[ROWS], row_seq[ROWS];
    for (int i = 0; i < ROWS; ++i) {
        row_seq[i] = i * SEQS / ROWS;
        position[i] = i;
    }
    return (rrl_batch){.n_rows = ROWS,
                       .n_seqs = SEQS,
                       .position = sent(t, position, sizeof position),
                       .row_seq = sent(t, row_seq, sizeof row_seq),
                       .adapter = sent(t, ADAPTER, sizeof ADAPTER)};
}

static void compare_rows(bench *t) {
    static const uint32_t KEY[2 * SEQS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, SAMPLE[SEQS] = {0, 1, 2, 3, 4};
    const rrl_dropout dropout = {0.3f, 1, sent(t, KEY, sizeof KEY), sent(t, SAMPLE, sizeof SAMPLE)};
    const rrl_batch b = mixed_rows(t);
    rrl_batch few_rows = b;
    rrl_lora module[RRL_MOST_PRODUCTS][ADAPTERS];
    const rrl_lora *of[RRL_MOST_PRODUCTS][ADAPTERS];
    rrl_lora_product all[RRL_MOST_PRODUCTS], few[RRL_MOST_PRODUCTS];
    const rrl_tensor x = some(t, ROWS, K);
    few_rows.n_rows = FEW;
    few_rows.position += FIRST;
    few_rows.row_seq += FIRST;
    for (int i = 0; i < RRL_MOST_PRODUCTS; ++i) {
        for (int a = 0; a < ADAPTERS; ++a) {
            module[i][a] = some_module(t, OUTPUTS[i]);
            of[i][a] = i == 2 && a == 1 ? NULL : &module[i][a];
        }
        const rrl_lora_args args = {of[i], &dropout, (uint32_t)i, ADAPTERS};
        const uint32_t before = t->last; /* the same y to begin with */
        all[i] = (rrl_lora_product){some(t, ROWS, OUTPUTS[i]), some(t, ROWS, R16), args};
        t->last = before;
        few[i] = (rrl_lora_product){some(t, ROWS, OUTPUTS[i]), some(t, ROWS, R16), args};
        few[i].y = rows_of(few[i].y, FIRST, FEW);
        few[i].u = rows_of(few[i].u, FIRST, FEW);
    }
    const int64_t before = emulator_launches();
    CHECK_OK(t->d->ops->lora(t->d, x, &b, all, RRL_MOST_PRODUCTS));
    const int64_t between = emulator_launches();
    CHECK_OK(t->d->ops->lora(t->d, rows_of(x, FIRST, FEW), &few_rows, few, RRL_MOST_PRODUCTS));
    CHECK_EQ_INT(between - before, 2);
    CHECK_EQ_INT(emulator_launches() - between, 1);
    for (int i = 0; i < RRL_MOST_PRODUCTS; ++i) {
        check_equal_rows(t, all[i].y, few[i].y);
        check_equal_rows(t, all[i].u, few[i].u);
    }
}

static void lora_rows(rrl_determinism determinism, int reversed) {
    bench t = {.last = 7};
    const rrl_cuda_options o = {.dtype = RRL_F32, .determinism = determinism};
    if (!CHECK_OK(rrl_cuda_module_table.open(&t.d, &o))) return;
    emulator_reverse(reversed);
    compare_rows(&t);
    while (t.n_held > 0) t.d->ops->free(t.d, t.held[--t.n_held]);
    rrl_device_close(&t.d);
}

/* --- a vocabulary of more blocks than a warp joins at a time */

enum { BLOCKS = 71, IDS = BLOCKS * RRL_VOCAB_BLOCK - 200, HIDDEN = 3, DRAWS = 3 };

/* Of each row: log-prob, log-sum-exp and entropy of a target, from a block of logits at a time and from all of them;
 * log-prob and id of what is drawn. */
enum { SCORES = 8 };

static void score_many_ids(float out[SCORES][DRAWS], rrl_device *d) {
    static const int32_t TARGET[DRAWS] = {0, IDS / 2, IDS - 1};
    static const float TEMPERATURE[DRAWS] = {1.0f, 0.7f, 1.3f};
    bench t = {.d = d, .last = 3};
    rrl_weight *w = NULL;
    const rrl_tensor x = some(&t, DRAWS, HIDDEN), logits = some(&t, DRAWS, IDS), scores = some(&t, SCORES, DRAWS);
    float *host = malloc(sizeof(float) * IDS * HIDDEN);
    if (!CHECK(host != NULL)) exit(1);
    for (int i = 0; i < IDS * HIDDEN; ++i) host[i] = (float)(i * 7 % 101 - 50) * 0.1f + (float)i * 1e-4f;
    CHECK_OK(d->ops->weight_pack(d, &w, host, RRL_F32, IDS, HIDDEN));
    free(host);
    rrl_sample_row row[DRAWS];
    for (int i = 0; i < DRAWS; ++i)
        row[i] = (rrl_sample_row){.temperature = TEMPERATURE[i], .top_p = 0.95f, .repetition_penalty = 1,
                                  .sample = (uint32_t)i};
    const int32_t *target = sent(&t, TARGET, sizeof TARGET);
    const float *temperature = sent(&t, TEMPERATURE, sizeof TEMPERATURE);
    const rrl_sample_row *rows = sent(&t, row, sizeof row);
    float *const score = scores.data;
    for (int all = 0; all < 2; ++all) {
        float *const to = score + 3 * all * DRAWS;
        const int64_t cols = all ? BLOCKS * RRL_VOCAB_BLOCK : RRL_VOCAB_BLOCK;
        CHECK_OK(d->ops->lm_score(d, to, to + DRAWS, to + 2 * DRAWS, x, w, target, temperature, some(&t, DRAWS, cols)));
    }
    CHECK_OK(d->ops->linear(d, x, &(rrl_product){logits, w, NULL}, 1, NULL));
    CHECK_OK(d->ops->sample(d, (int32_t *)(score + 7 * DRAWS), score + 6 * DRAWS, logits, rows));
    CHECK_OK(d->ops->download(d, out, score, sizeof(float) * SCORES * DRAWS));
    d->ops->weight_free(d, &w);
    while (t.n_held > 0) d->ops->free(d, t.held[--t.n_held]);
}

static void many_ids(rrl_device *reference) {
    float want[SCORES][DRAWS], got[SCORES][DRAWS];
    rrl_device *d = NULL;
    const rrl_cuda_options o = {.dtype = RRL_F32, .determinism = RRL_DETERMINISM_EXACT};
    if (!CHECK_OK(rrl_cuda_module_table.open(&d, &o))) return;
    score_many_ids(want, reference);
    score_many_ids(got, d);
    CHECK(memcmp(want, got, sizeof want) == 0);
    CHECK(memcmp(got[0], got[3], sizeof got[0] * 3) == 0);
    for (int i = 0; i < DRAWS; ++i) CHECK(got[0][i] < 0 && got[1][i] > 0 && got[2][i] > 0 && got[6][i] < 0);
    rrl_device_close(&d);
}

/* Arguments, if any: names of cases to run. */
static int wanted(const char *name, int argc, char **argv) {
    for (int i = 1; i < argc; ++i)
        if (strcmp(argv[i], name) == 0) return 1;
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
                 concerns(device, which) && wanted(ops_case_name(which), argc, argv) && round < ops_case_rounds(which);
                 round += ROUNDS_DIVISOR)
                if (argc < 2 || ops_cases_failures() == 0) /* of cases named, the first failure is enough */
                    compare_device(device, which, round, reference[DEVICES[device].dtype == RRL_BF16]);
    if (wanted("lora_rows", argc, argv)) {
        lora_rows(RRL_DETERMINISM_EXACT, 0);
        lora_rows(RRL_DETERMINISM_RUN, 1);
    }
    if (wanted("many_ids", argc, argv)) many_ids(reference[0]);
    rrl_device_close(&reference[0]);
    rrl_device_close(&reference[1]);
    CHECK(emulator_launches() > 0);
    CHECK_EQ_INT(ops_cases_failures(), 0);
    return CHECK_DONE();
}
