/* Small scalar pieces that every kernel table shares: they are the definition for all. */
#ifndef RRL_DEVICE_CPU_COMMON_H
#define RRL_DEVICE_CPU_COMMON_H

#include "base/exactmath.h"
#include "base/random.h"
#include "device/device.h"

static inline int64_t rrl_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* The LoRA module of a row, NULL if it has none. */
static inline const rrl_lora *rrl_lora_of_row(const rrl_batch *b, const rrl_lora_args *args, int64_t row) {
    int32_t adapter = b->adapter[b->row_seq[row]];
    return adapter < 0 ? NULL : args->modules[adapter];
}

static inline bool rrl_dropout_on(const rrl_lora_args *args) {
    return args->dropout && args->dropout->p > 0.0f;
}

/* Bytes of the K and the V tile of a kv head in a block; the tiles themselves, V half of that behind K. */
static inline int64_t rrl_kv_tile_bytes(const rrl_kv_pool *p) {
    return 2 * (int64_t)p->head_dim * RRL_KV_BLOCK * (p->dtype == RRL_BF16 ? 2 : 4);
}
static inline void *rrl_kv_tile(const rrl_kv_pool *p, int32_t layer, int32_t block, int32_t head) {
    int64_t tile = ((int64_t)layer * p->n_blocks + block) * p->n_kv_heads + head;
    return (char *)p->data + tile * rrl_kv_tile_bytes(p);
}

/* Log-sum-exp of a stretch of the vocabulary: max of z, sum of exp(z - max), sum of exp(z - max) (z - max).
 */
typedef struct {
    float max, sum, weighted;
} rrl_lse;

/* Join a block to the running total; an empty total has sum 0. */
static inline void rrl_lse_join(rrl_lse *total, rrl_lse block) {
    if (total->sum == 0.0f) {
        *total = block;
        return;
    }
    float max = block.max > total->max ? block.max : total->max;
    float shift = total->max - max, block_shift = block.max - max;
    float a = rrl_expf(shift), b = rrl_expf(block_shift);
    total->weighted =
        (total->weighted + total->sum * shift) * a + (block.weighted + block.sum * block_shift) * b;
    total->sum = total->sum * a + block.sum * b;
    total->max = max;
}

/* log-prob of a token with scaled logit z: max is taken off first, which keeps the small differences */
static inline float rrl_lse_logp(rrl_lse t, float z) {
    return (z - t.max) - rrl_logf(t.sum);
}
static inline float rrl_lse_value(rrl_lse t) {
    return t.max + rrl_logf(t.sum);
}
static inline float rrl_lse_entropy(rrl_lse t) {
    return rrl_logf(t.sum) - t.weighted / t.sum;
}

/* Log-probs of temperature 0 (argmax) are taken at temperature 1. */
static inline float rrl_score_temperature(float temperature) {
    return temperature > 0.0f ? temperature : 1.0f;
}

/* Logit of a token that the history holds. It reads the untouched logit, so a token is penalised once. */
static inline float rrl_penalised(float logit, float penalty) {
    return logit > 0.0f ? logit / penalty : logit * penalty;
}

/* Probability relative to the maximum -> integer mass round(p 2^40), ties to even: exact in double, any
 * instruction set. */
static inline uint64_t rrl_mass(float p) {
    double shifted = (double)p * 0x1p40 + 0x1p52;
    union {
        double f;
        uint64_t u;
    } bits = {shifted};
    return bits.u & 0xfffffffffffffu;
}

/* ceil(top_p * total) in integers; top_p in (0, 1). */
static inline uint64_t rrl_mass_target(float top_p, uint64_t total) {
    int exponent = 0;
    float scaled = top_p;
    while (scaled < 0x1p23f) {
        scaled *= 2.0f;
        exponent++;
    }
    if (exponent > 100) return 1; /* below 2^-77: any token reaches it */
    unsigned __int128 product = (unsigned __int128)(uint64_t)scaled * total;
    unsigned __int128 unit = (unsigned __int128)1 << exponent;
    uint64_t target = (uint64_t)((product + unit - 1) >> exponent);
    return target ? target : 1;
}

/* The running mass that the drawn token must exceed: floor(bits * kept / 2^64). */
static inline uint64_t rrl_draw_threshold(const rrl_sample_row *row, uint64_t kept) {
    uint32_t counter[4] = {row->sample, row->attempt, row->position, 0}, word[4];
    rrl_philox4x32(word, counter, row->key);
    uint64_t bits = (uint64_t)word[1] << 32 | word[0];
    return (uint64_t)((unsigned __int128)bits * kept >> 64);
}

#endif
