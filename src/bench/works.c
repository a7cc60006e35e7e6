/* The list of works, and running those that were asked for on one model. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "bench/bench.h"

#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bench/scratch.h"
#include "bench/works.h"
#include "roles/engine.h"

static const rrl_bench_work WORKS[] = {
    {"gemm", rrl_bench_gemm, 0, "products of the model's matrices, K x N, with 1 to 256 rows"},
    {"prefill", rrl_bench_prefill, 16, "16 prompts of 200 tokens, to their first token"},
    {"decode-1", rrl_bench_decode, 1, "128 new tokens behind a prompt of 100, without an adapter"},
    {"decode-16", rrl_bench_decode, 16, "the same, 16 different prompts at once"},
    {"decode-64", rrl_bench_decode, 64, "the same, 64 different prompts at once"},
    {"decode-256", rrl_bench_decode, 256, "the same, 256 different prompts at once"},
    {"groups-64", rrl_bench_groups, 64, "64 at once as training does: 8 prompts of 8, LoRA r 8"},
    {"train", rrl_bench_train, 8, "LoRA r 8, all linear: forward and backward of 8 x 256 tokens"},
    {"step", rrl_bench_step, 16, "GRPO step: 16 completions of 128 tokens, KL to the base"},
    {"fleet-1", rrl_bench_fleet, 1, "9 conditions of 1 completion in one batch, and in turn"},
    {"fleet-4", rrl_bench_fleet, 4, "9 conditions of 4 completions"},
    {"fleet-16", rrl_bench_fleet, 16, "9 conditions of 16 completions"},
    {"durable", rrl_bench_durable, 0, "a segment and a checkpoint each step, and at the end"},
};
enum { N_WORKS = sizeof WORKS / sizeof WORKS[0] };

const char *rrl_bench_work_name(int i, const char **what) {
    if (i < 0 || i >= N_WORKS) return NULL;
    *what = WORKS[i].what;
    return WORKS[i].name;
}

/* --- choosing */

/* Whether name[0..len) stands for this work: its name, or what is before its "-". */
static bool stands_for(const char *name, size_t len, const rrl_bench_work *w) {
    return strncmp(name, w->name, len) == 0 && (w->name[len] == '\0' || w->name[len] == '-');
}

static rrl_status unknown_work(const char *name, size_t len) {
    const char *names[N_WORKS];
    char text[RRL_BENCH_NAME];
    snprintf(text, sizeof text, "%.*s", (int)len, name);
    for (int i = 0; i < N_WORKS; i++) names[i] = WORKS[i].name;
    const char *near = rrl_nearest_name(text, names, N_WORKS);
    return RRL_FAIL(RRL_ERR_USAGE, "--only: there is no work \"%s\"%s%s%s; rrl bench --dry-run lists them", text,
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* chosen [N_WORKS] of "a,b"; NULL = all. */
static rrl_status choose(bool *chosen, const char *only) {
    for (int i = 0; i < N_WORKS; i++) chosen[i] = only == NULL;
    for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t len = strcspn(at, ",");
        bool found = false;
        for (int i = 0; i < N_WORKS; i++)
            if (len > 0 && stands_for(at, len, &WORKS[i])) chosen[i] = found = true;
        if (!found) return unknown_work(at, len);
    }
    return RRL_OK;
}

/* The device as the engine of a run would open it. */
static rrl_status open_device(rrl_bench *b) {
    const rrl_bench_spec *spec = b->spec;
    rrl_dtype products = RRL_F32;
    const int dtype = rrl_enum_value(RRL_ENUM_TEXTS(RRL_DTYPE_LIST), spec->dtype);
    if (dtype < 0)
        return RRL_FAIL(RRL_ERR_USAGE, "--dtype %s: expected auto, float32 or bfloat16", spec->dtype);
    const rrl_config config = {.model = {.dtype = dtype}, .generation = {.kv_dtype = RRL_KV_AUTO}};
    RRL_TRY(rrl_engine_dtype(&products, &config, spec->model_dir));
    RRL_TRY(rrl_cpu_open_dtype(&b->device, products, spec->isa ? spec->isa : "auto", b->threads));
    b->device->kv_dtype = rrl_engine_kv_dtype(&config, products);
    return RRL_OK;
}

/* --- memory */

/* From now on the peak counts anew; false where the system does not let us. */
static bool reset_peak(void) {
    malloc_trim(0); /* what earlier works freed is not this one's */
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f) return false;
    bool done = fputs("5", f) >= 0;
    return fclose(f) == 0 && done;
}

/* Bytes resident at most since then; NaN where unknown. */
static double read_peak(void) {
    char line[256];
    double kib = NAN;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return NAN;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtod(line + 6, NULL);
    fclose(f);
    return kib * 1024;
}

/* --- running */

rrl_status rrl_bench_add(rrl_bench *b, const rrl_bench_measure *m) {
    rrl_bench_report *r = b->report;
    RRL_TRY(rrl_grow(&r->rows, &r->room, r->n_rows + 1, sizeof *r->rows, "rows of the benchmark"));
    rrl_bench_row row = {0};
    RRL_TRY(rrl_bench_rounds(&row, m, b->meter, b->spec->quick));
    r->rows[r->n_rows++] = row;
    return RRL_OK;
}

static rrl_status run_work(rrl_bench *b, const rrl_bench_work *w) {
    const size_t first = b->report->n_rows;
    const bool counted = reset_peak();
    RRL_TRY(rrl_context(w->run(b, w->name, w->size), "rrl bench: %s", w->name));
    const double peak = counted ? read_peak() - (double)rrl_bench_meter_bytes(b->meter) : NAN;
    for (size_t i = first; i < b->report->n_rows; i++) b->report->rows[i].peak_memory = peak;
    return RRL_OK;
}

static int cores(void) {
    cpu_set_t mine;
    return sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
}

static void load_now(double load[3]) {
    if (getloadavg(load, 3) != 3) load[0] = load[1] = load[2] = NAN;
}

static rrl_status open_engine(rrl_bench *b, char **model_dir) {
    const rrl_bench_spec *spec = b->spec;
    RRL_TRY(open_device(b));
    RRL_TRY(rrl_bench_scratch_model(model_dir, b->scratch, spec->model_dir));
    RRL_TRY(rrl_model_open(&b->model, b->device, *model_dir));
    b->dims = rrl_model_dims(b->model);
    RRL_TRY(rrl_tokenizer_open(&b->tokenizer, spec->model_dir));
    return rrl_bench_meter_open(&b->meter, rrl_device_isa(b->device), b->threads);
}

static void close_engine(rrl_bench *b) {
    rrl_bench_meter_close(&b->meter);
    rrl_tokenizer_close(&b->tokenizer);
    rrl_model_close(&b->model);
    rrl_device_close(&b->device);
}

static rrl_status run_chosen(rrl_bench *b, const bool *chosen) {
    rrl_status rc = RRL_OK;
    rrl_progress *progress = NULL;
    int n = 0;
    for (int i = 0; i < N_WORKS; i++) n += chosen[i];
    RRL_GOTO(rrl_progress_open(&progress, "bench", n, b->spec->log != NULL));
    for (int i = 0; i < N_WORKS; i++) {
        if (!chosen[i]) continue;
        rrl_event(b->spec->log, RRL_LOG_INFO, "bench", "work=%s", WORKS[i].name);
        RRL_GOTO(run_work(b, &WORKS[i]));
        rrl_progress_add(progress, 1, WORKS[i].name);
    }
done:
    rrl_progress_close(&progress);
    return rc;
}

rrl_status rrl_bench_run(rrl_bench_report *out, const rrl_bench_spec *spec) {
    rrl_status rc = RRL_OK;
    bool chosen[N_WORKS];
    char *scratch = NULL, *model_dir = NULL;
    rrl_bench_report report = {.cores = cores(), .quick = spec->quick};
    rrl_bench b = {.spec = spec, .report = &report, .threads = spec->threads > 0 ? spec->threads : report.cores};
    RRL_GOTO(choose(chosen, spec->only));
    load_now(report.load_before);
    RRL_GOTO(rrl_bench_scratch_open(&scratch));
    b.scratch = scratch;
    RRL_GOTO(open_engine(&b, &model_dir));
    report.threads = b.threads;
    snprintf(report.model_dir, sizeof report.model_dir, "%s", spec->model_dir);
    snprintf(report.numeric_path, sizeof report.numeric_path, "%s", rrl_device_numeric_path(b.device));
    snprintf(report.isa, sizeof report.isa, "%s", rrl_device_isa(b.device));
    RRL_GOTO(run_chosen(&b, chosen));
    load_now(report.load_after);
    *out = report;
    report = (rrl_bench_report){0};
done:
    close_engine(&b);
    free(model_dir);
    rrl_bench_scratch_close(&scratch);
    rrl_bench_report_free(&report);
    return rc;
}

void rrl_bench_report_free(rrl_bench_report *r) {
    free(r->rows);
    *r = (rrl_bench_report){0};
}
