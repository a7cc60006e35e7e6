/* Dropout masks: sixteen Philox blocks at a time, side by side, in loops that the compiler vectorises. The
 * words are those of rrl_philox4x32, so the mask is the reference's. */
#include "device/cpu/gemm.h"

enum { BLOCKS = RRL_LANES, WORDS = 4 * BLOCKS, ROUNDS = 10 };

/* Words of blocks first, first + 1, ...: out[w][l] is word w of block first + l. */
static void philox_blocks(uint32_t out[4][BLOCKS], const uint32_t counter[3], uint32_t first,
                          const uint32_t key[2]) {
    uint32_t c0[BLOCKS], c1[BLOCKS], c2[BLOCKS], c3[BLOCKS], k0 = key[0], k1 = key[1];
    for (uint32_t l = 0; l < BLOCKS; ++l) {
        c0[l] = counter[0];
        c1[l] = counter[1];
        c2[l] = counter[2];
        c3[l] = first + l;
    }
    for (int round = 0; round < ROUNDS; ++round) {
        for (int l = 0; l < BLOCKS; ++l) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[l], p1 = (uint64_t)0xCD9E8D57u * c2[l];
            c0[l] = (uint32_t)(p1 >> 32) ^ c1[l] ^ k0;
            c1[l] = (uint32_t)p1;
            c2[l] = (uint32_t)(p0 >> 32) ^ c3[l] ^ k1;
            c3[l] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(out[0], c0, sizeof c0);
    memcpy(out[1], c1, sizeof c1);
    memcpy(out[2], c2, sizeof c2);
    memcpy(out[3], c3, sizeof c3);
}

void RRL_KERNEL(dropout_mask)(float *keep, const rrl_lora_args *args, const rrl_batch *b, int64_t row,
                              int64_t k, int64_t n) {
    const rrl_dropout *d = args->dropout;
    int32_t s = b->row_seq[row];
    uint32_t counter[3] = {d->seq_sample[s], args->module + 65536u * d->iteration,
                           (uint32_t)b->position[row]};
    /* word >= p 2^32 in integers; p < 1, so it fits */
    uint32_t threshold = (uint32_t)ceil((double)d->p * 0x1p32), word[4][BLOCKS];
    float factor = 1.0f / (1.0f - d->p), mask[WORDS];
    for (int64_t i = 0; i < n; i += WORDS) {
        philox_blocks(word, counter, (uint32_t)((k + i) / 4), d->seq_key + 2 * s);
        for (int l = 0; l < BLOCKS; ++l)
            for (int w = 0; w < 4; ++w) mask[4 * l + w] = word[w][l] >= threshold ? factor : 0.0f;
        memcpy(keep + i, mask, (size_t)rrl_min(WORDS, n - i) * sizeof(float));
    }
}
