/* rrl bench: all works are there, their figures fit together, and what they must read and compute is that of the
 * model. How long anything takes decides nothing here. */
#define _GNU_SOURCE
#include <cjson/cJSON.h>
#include <unistd.h>

#include "bench/loops.h"
#include "bench/rounds.h"
#include "check.h"
#include "program.h"

/* --- rounds: cases in turn, medians, bounds, gain */

typedef struct {
    char order[64];
} trace;

static rrl_status note(trace *t, char c) {
    const size_t n = strlen(t->order);
    if (n + 1 < sizeof t->order) t->order[n] = c;
    return RRL_OK;
}
static rrl_status first(void *context) { return note(context, 'a'); }
static rrl_status second(void *context) { return note(context, 'b'); }
static rrl_status failing(void *context) { return RRL_FAIL(RRL_ERR_DEVICE, "made to fail"); }

static void test_rounds(rrl_bench_meter *meter) {
    trace t = {{0}};
    rrl_bench_row row = {0};
    rrl_bench_measure m = {.name = "fake", .unit = "x/s", .amount = 3, .n_cases = 2, .against = 1, .n_needs = 2,
                           .pass_bytes = 1e5, .context = &t};
    m.cases[0] = (rrl_bench_case){"a", first, 1};
    m.cases[1] = (rrl_bench_case){"b", second, 0};
    m.need[0] = (rrl_bench_need){1e12, 1};
    m.need[1] = (rrl_bench_need){1, 1e15};
    if (!CHECK_OK(rrl_bench_rounds(&row, &m, meter, true))) return;
    CHECK_EQ_STR(t.order, "ab");
    CHECK_EQ_INT(row.rounds, 1);
    /* one need is all reading, the other all arithmetic */
    CHECK(row.read.wall > 0 && row.peak.wall > 0 && row.read.cpu > 0 && row.peak.cpu > 0);
    CHECK_NEAR(row.bound.wall / (1e12 / row.read.wall + 1e15 / row.peak.wall), 1, 1e-9);
    CHECK_NEAR(row.bound.cpu / (1e12 / row.read.cpu + 1e15 / row.peak.cpu), 1, 1e-9);
    CHECK_EQ_STR(row.against, "b");
    CHECK_NEAR(row.gain.wall, row.part[1].seconds.wall / row.part[0].seconds.wall, 1e-9);
    t = (trace){{0}};
    if (CHECK_OK(rrl_bench_rounds(&row, &m, meter, false))) {
        CHECK_EQ_INT(strlen(t.order), 2 * row.rounds);
        CHECK_EQ_INT(strncmp(t.order, "ababab", 6 < 2 * row.rounds ? 6 : 2), 0);
    }
    m.cases[1].run = failing;
    CHECK_EQ_INT(rrl_bench_rounds(&row, &m, meter, true), RRL_ERR_DEVICE);
}

/* --- loops: every word is read, once; arithmetic stays finite */

static void test_loops(void) {
    static const char *const ISAS[] = {"portable", "avx2", "avx512"};
    enum { WORDS = 4096 };
    static _Alignas(64) uint64_t words[WORDS];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < WORDS; i++) sum += words[i] = i * i * 2654435761u + 1;
    for (size_t i = 0; i < sizeof ISAS / sizeof ISAS[0]; i++) {
        rrl_device *d = NULL;
        if (rrl_cpu_open(&d, ISAS[i], 1) != RRL_OK) continue; /* not on this machine */
        rrl_device_close(&d);
        const rrl_bench_loops *l = rrl_bench_loops_of(ISAS[i]);
        CHECK_EQ_STR(l->isa, ISAS[i]);
        CHECK(l->read(words, WORDS) == sum);
        const float x = l->arithmetic(1000);
        CHECK(x > 0 && x < 1e6f);
    }
    CHECK_EQ_STR(rrl_bench_loops_of("reference")->isa, "portable");
}

/* --- the program */

static double member(const cJSON *o, const char *key) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const cJSON *work_of(const cJSON *works, const char *name) {
    const cJSON *w;
    cJSON_ArrayForEach(w, works) {
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(w, "work"));
        if (text && strncmp(text, name, strlen(name)) == 0) return w;
    }
    return NULL;
}

static void check_work(const cJSON *w) {
    const cJSON *parts = cJSON_GetObjectItemCaseSensitive(w, "parts");
    const cJSON *last = cJSON_GetArrayItem(parts, cJSON_GetArraySize(parts) - 1);
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(w, "work"));
    const char *part = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(last, "name"));
    const double seconds = member(w, "seconds"), bound = member(w, "bound_seconds"), ratio = member(w, "ratio");
    const double reading = member(w, "bytes") / member(w, "read_bytes_per_s");
    const double computing = member(w, "flops") / member(w, "peak_flops_per_s");
    int ok = CHECK(member(w, "amount") > 0 && member(w, "peak_memory") > 1e6 && member(w, "rounds") == 1);
    if (part && strcmp(part, "prompts") != 0) /* there seconds are a difference, which one short round may turn round */
        ok &= CHECK(seconds > 0 && member(w, "rate") > 0);
    if (strcmp(name, "durable") == 0) {
        ok &= CHECK(isnan(bound) && isnan(ratio) && member(w, "gain") > 0);
    } else {
        const double most = reading > computing ? reading : computing;
        ok &= CHECK(bound > 0 && bound >= most * (1 - 1e-9) && bound <= (reading + computing) * (1 + 1e-9));
        ok &= CHECK_NEAR(ratio, bound / seconds, 1e-9 * fabs(ratio));
    }
    if (!ok) fprintf(stderr, "  in work %s\n", name);
}

/* data/tiny, by hand: matrices of 4 layers and the head, times 4 bytes; keys and values of 4 layers, 2 heads of 32. */
enum {
    LAYER = 128 * 128 * 2 + 64 * 128 * 2 + 256 * 128 * 3,
    MATRICES = 4 * LAYER + 562 * 128,
    KV = 4 * 2 * 2 * 32 * 4,
    KEY_FLOPS = 4 * 4 * 4 * 32,
    PROMPT = 16,
    FED = 7 /* of 8 new tokens */
};

static void check_costs(const cJSON *works) {
    const double keys = FED * PROMPT + FED * (FED + 1) / 2;
    const cJSON *one = work_of(works, "decode-1"), *many = work_of(works, "decode-64");
    const cJSON *groups = work_of(works, "groups-64");
    CHECK_EQ_INT(member(one, "bytes"), 4.0 * FED * MATRICES + keys * KV);
    CHECK_EQ_INT(member(one, "flops"), 2.0 * FED * MATRICES + keys * KEY_FLOPS);
    CHECK_EQ_INT(member(many, "bytes"), 4.0 * FED * MATRICES + 64 * keys * KV);
    CHECK_EQ_INT(member(many, "flops"), 64 * (2.0 * FED * MATRICES + keys * KEY_FLOPS));
    /* eight of 64 prompts are read; an adapter of rank 8 on 128 + 128, ... a layer */
    const double lora = 2.0 * 8 * 4 * (2 * (128 + 128) + 2 * (64 + 128) + 3 * (256 + 128));
    CHECK_EQ_INT(member(groups, "bytes"), 4.0 * FED * MATRICES + (64 * keys - 56 * FED * PROMPT) * KV);
    CHECK_EQ_INT(member(groups, "flops"), member(many, "flops") + 64 * FED * lora);
    CHECK_EQ_INT(member(many, "amount"), 64 * FED); /* no completion ended early */
}

static void test_json(const char *folder) {
    static const double PATIENCE_S = 200; /* under sanitizers, beside other work */
    program_end e;
    const char *what = NULL, *name = NULL;
    const pid_t process =
        program_start("json", "bench --quiet --quick --json --threads 2 --model " RRL_SOURCE_DIR "/data/tiny");
    program_wait(&e, process, "json", PATIENCE_S);
    CHECK_EQ_INT(e.code, 0);
    cJSON *all = cJSON_Parse(e.out);
    const cJSON *works = cJSON_GetObjectItemCaseSensitive(all, "works");
    if (CHECK(cJSON_IsArray(works))) {
        const cJSON *w;
        for (int i = 0; (name = rrl_bench_work_name(i, &what)) != NULL; i++)
            if (!CHECK(work_of(works, name))) fprintf(stderr, "  work %s\n", name);
        cJSON_ArrayForEach(w, works) check_work(w);
        check_costs(works);
    }
    CHECK_EQ_INT(member(all, "threads"), 2);
    CHECK_EQ_INT(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(all, "load_before")), 3);
    CHECK(!program_has_below(folder, ".yaml") && program_count(e.err, "warn") == 0);
    cJSON_Delete(all);
    program_end_free(&e);
}

static void test_table(void) {
    program_end e;
    program_run(&e, "table", "bench --quiet --quick --only train,decode,durable --dtype bfloat16 --model %s",
                RRL_SOURCE_DIR "/data/tiny");
    CHECK_EQ_INT(e.code, 0);
    CHECK_EQ_INT(program_lines(e.out, "decode-"), 4);
    CHECK_EQ_INT(program_lines(e.out, "train "), 1);
    CHECK_EQ_INT(program_lines(e.out, "step "), 0);
    CHECK_EQ_INT(program_count(e.out, ": bf16-tile"), 1);
    const char *line = strchr(e.out, '\n'); /* the first one holds the model's path */
    for (; line; line = strchr(line + 1, '\n'))
        if (!CHECK(strcspn(line + 1, "\n") <= 80)) fprintf(stderr, "  %.*s\n", (int)strcspn(line + 1, "\n"), line + 1);
    program_end_free(&e);
}

static void test_refused(void) {
    static const struct {
        const char *words;
        int code;
        const char *message;
    } CASES[] = {
        {"bench --only decode,stap", 2, "--only: there is no work \"stap\"; did you mean \"step\"?"},
        {"bench --only decode,", 2, "--only: there is no work \"\""},
        {"bench --dtype half --model " RRL_SOURCE_DIR "/data/tiny", 2, "--dtype half: expected auto"},
        {"bench --model nowhere", 3, "nowhere"},
        {"bench --isa mips --model " RRL_SOURCE_DIR "/data/tiny", 2, "mips"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        program_end e;
        program_run(&e, "refused", "%s", CASES[i].words);
        int ok = CHECK_EQ_INT(e.code, CASES[i].code);
        ok &= CHECK_EQ_INT(program_count(e.err, CASES[i].message), 1);
        if (!ok) fprintf(stderr, "  %s: %s", CASES[i].words, e.err);
        program_end_free(&e);
    }
}

int main(void) {
    char folder[PROGRAM_PATH];
    rrl_bench_meter *meter = NULL;
    program_folder(folder, "test_bench");
    if (chdir(folder) != 0) return 1;
    test_loops();
    if (CHECK_OK(rrl_bench_meter_open(&meter, "portable", 2))) test_rounds(meter);
    rrl_bench_meter_close(&meter);
    test_json(folder);
    test_table();
    test_refused();
    CHECK(!program_has_below(folder, "model"));
    if (chdir("/") == 0) program_remove(folder);
    return CHECK_DONE();
}
