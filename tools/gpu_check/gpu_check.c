/* gpu_check --module FILE [--gpu N] [--small] [--json FILE] [--only ops,step,ranks,speed]
 * Exit code 0 = all good, 1 = a check failed, 77 = no GPU. tools/gpu_check.sh says what is checked. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

double rrl_gpu_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void rrl_gpu_say(rrl_gpu_check *c, const char *name, const char *outcome, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    printf("%-8s %-48s %s\n", outcome, name, text);
    fflush(stdout);
    if (strcmp(outcome, "FAILED") == 0) c->failed++;
    for (char *p = text; *p; p++)
        if (*p == '"' || *p == '\\') *p = '\'';
    (void)rrl_buffer_printf(&c->checks, "%s\n  {\"name\": \"%s\", \"outcome\": \"%s\", \"text\": \"%s\"}",
                            c->checks.len ? "," : "", name, outcome, text);
}

void rrl_gpu_say_status(rrl_gpu_check *c, const char *name, rrl_status rc) {
    rrl_gpu_say(c, name, rc == RRL_OK ? "ok" : "FAILED", "%s", rc == RRL_OK ? "" : rrl_error_message());
}

rrl_status rrl_gpu_open(rrl_device **out, const rrl_gpu_check *c, rrl_dtype dtype, rrl_determinism determinism) {
    const rrl_cuda_options o = {.gpu = c->gpu, .dtype = dtype, .determinism = determinism};
    return c->module->open(out, &o);
}

static const struct {
    const char *name;
    void (*run)(rrl_gpu_check *c);
} PARTS[] = {{"ops", rrl_gpu_check_ops},
             {"step", rrl_gpu_check_step},
             {"ranks", rrl_gpu_check_ranks},
             {"speed", rrl_gpu_measure}};

typedef struct {
    const char *module, *json, *only;
    int gpu, rank, socket;
    bool small;
} options;

static bool parse(options *o, int argc, char **argv) {
    *o = (options){.rank = -1};
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--small") == 0) o->small = true;
        else if (more && strcmp(argv[i], "--module") == 0) o->module = argv[++i];
        else if (more && strcmp(argv[i], "--json") == 0) o->json = argv[++i];
        else if (more && strcmp(argv[i], "--only") == 0) o->only = argv[++i];
        else if (more && strcmp(argv[i], "--gpu") == 0) o->gpu = atoi(argv[++i]);
        else if (i + 2 < argc && strcmp(argv[i], "--rank") == 0) {
            o->rank = atoi(argv[++i]);
            o->socket = atoi(argv[++i]);
        } else return false;
    }
    return o->module != NULL;
}

static bool write_json(const rrl_gpu_check *c, const char *path, double seconds) {
    FILE *f = fopen(path, "w");
    if (!f) return false;
    fprintf(f, "{\"failed\": %d, \"seconds\": %.1f, \"checks\": [%s\n], \"figures\": [%s\n]}\n", c->failed, seconds,
            c->checks.data ? c->checks.data : "", c->figures.data ? c->figures.data : "");
    return fclose(f) == 0;
}

/* Nothing to check: skipped, unless a GPU is demanded. */
static int without(const char *what, const char *why) {
    const char *demanded = getenv("RRL_REQUIRE_GPU");
    printf("%s%s\n", what, why);
    return demanded && strcmp(demanded, "1") == 0 ? 1 : 77;
}

int main(int argc, char **argv) {
    options o;
    rrl_gpu_check c = {0};
    const char *why = "";
    char beyond[64];
    const double start = rrl_gpu_clock();
    if (!parse(&o, argc, argv)) {
        fprintf(stderr, "gpu_check --module FILE [--gpu N] [--small] [--json FILE] [--only PARTS]\n");
        return 2;
    }
    c.module_path = o.module;
    c.gpu = o.gpu;
    c.small = o.small;
    if (rrl_cuda_module_load_file(&c.module, o.module) != RRL_OK) return without("", rrl_error_message());
    const int gpus = c.module->count(&why);
    if (gpus == 0) return without("no GPU: ", why);
    snprintf(beyond, sizeof beyond, "no GPU %d: this process sees %d", o.gpu, gpus);
    if (o.gpu >= gpus) return without(beyond, "");
    if (o.rank >= 0) return rrl_gpu_rank(&c, o.rank, o.socket);
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if (!o.only || strstr(o.only, PARTS[i].name)) PARTS[i].run(&c);
    bool written = !o.json || write_json(&c, o.json, rrl_gpu_clock() - start);
    rrl_buffer_free(&c.checks);
    rrl_buffer_free(&c.figures);
    return c.failed > 0 || !written;
}
