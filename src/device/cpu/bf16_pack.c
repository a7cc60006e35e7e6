/* Packing bf16 weights and reading them back; the flush-to-zero switch. Plain C, one copy for all paths. */
#include "device/cpu/bf16.h"
#include "device/cpu/weight.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { FLUSH = 0x8040 }; /* FTZ and DAZ */
unsigned rrl_bf16_flush_begin(void) {
    unsigned state = _mm_getcsr();
    _mm_setcsr(state | FLUSH);
    return state;
}
void rrl_bf16_flush_end(unsigned state) {
    _mm_sfence(); /* results that went past the caches are seen by the other threads */
    _mm_setcsr((_mm_getcsr() & ~(unsigned)FLUSH) | (state & FLUSH));
}
#elif defined(__aarch64__)
enum { FLUSH = 1 << 24 }; /* FZ */
unsigned rrl_bf16_flush_begin(void) {
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    __asm__ volatile("msr fpcr, %0" ::"r"(state | FLUSH));
    return (unsigned)state;
}
void rrl_bf16_flush_end(unsigned state) {
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)state));
}
#else
#error "the bf16 path needs a way to make denormals 0 on this processor"
#endif

rrl_bf16_weight rrl_bf16_shape(int64_t n, int64_t k) {
    return (rrl_bf16_weight){.n = n,
                             .k = k,
                             .panels = (n + RRL_BF16_PANEL - 1) / RRL_BF16_PANEL,
                             .steps = (k + RRL_BF16_STEP - 1) / RRL_BF16_STEP};
}

size_t rrl_bf16_bytes(const rrl_bf16_weight *w) {
    return (size_t)w->panels * (size_t)w->steps * 2 * RRL_BF16_TILE * sizeof(uint16_t);
}

rrl_bf16_weight rrl_bf16_panels(const rrl_bf16_weight *w, int64_t p, int64_t count) {
    rrl_bf16_weight part = *w;
    part.t += p * w->steps * 2 * RRL_BF16_TILE;
    part.panels = count;
    part.n = (p + count) * RRL_BF16_PANEL < w->n ? count * RRL_BF16_PANEL : w->n - p * RRL_BF16_PANEL;
    return part;
}

size_t rrl_cpu_weight_bytes_bf16(int64_t n, int64_t k) {
    const rrl_bf16_weight w = rrl_bf16_shape(n, k);
    return rrl_bf16_bytes(&w);
}

typedef struct {
    rrl_bf16_weight w;
    const void *src;
    rrl_dtype dtype;
} pack_job;

/* 32 k of one output to its pairs in a tile, `count` of them there; src may have any alignment. */
static void pack_step(uint16_t *to, const pack_job *j, int64_t i, int64_t count) {
    uint16_t h[RRL_BF16_STEP] = {0};
    if (j->dtype == RRL_BF16)
        memcpy(h, (const char *)j->src + 2 * i, (size_t)count * sizeof *h);
    else
        for (int64_t k = 0; k < count; ++k) h[k] = rrl_bf16_of(rrl_weight_element(j->src, j->dtype, i + k));
    for (int k = 0; k < RRL_BF16_STEP; k += 2) memcpy(to + k * 16, h + k, 2 * sizeof *h);
}

/* unit: panel, step by step so that what is written stays near */
static void pack_panels(const void *job, int64_t begin, int64_t end) {
    const pack_job *j = job;
    for (int64_t p = begin; p < end; ++p)
        for (int64_t k = 0; k < j->w.k; k += RRL_BF16_STEP)
            for (int64_t n = p * RRL_BF16_PANEL; n < (p + 1) * RRL_BF16_PANEL && n < j->w.n; ++n)
                pack_step(rrl_bf16_at(&j->w, n, k), j, n * j->w.k + k,
                          j->w.k - k < RRL_BF16_STEP ? j->w.k - k : RRL_BF16_STEP);
}

rrl_status rrl_bf16_view(rrl_weight **out, void *room, int64_t n, int64_t k) {
    rrl_weight *w = NULL;
    RRL_TRY(rrl_weight_view_cpu(&w, NULL, n, k));
    w->tiles = room;
    *out = w;
    return RRL_OK;
}

void rrl_bf16_fill(const rrl_weight *w, rrl_pool *pool, const void *src, rrl_dtype dtype) {
    pack_job job = {rrl_bf16_shape(w->n, w->k), src, dtype};
    job.w.t = w->tiles;
    rrl_pool_run(pool, pack_panels, &job, job.w.panels, 4);
}

void rrl_bf16_row(float *y, const rrl_bf16_weight *w, int64_t n) {
    for (int64_t k = 0; k < w->k; ++k) y[k] = rrl_bf16_value(*rrl_bf16_at(w, n, k));
}
