/* A stack of free blocks and a count of holders each. Block numbers never reach a result: attention reads through the
 * tables, so which free block is taken next does not matter. */
#include "rollout/kv_blocks.h"

#include <stdlib.h>

#include "base/memory.h"

struct rrl_kv_blocks {
    int32_t *holders; /* [n_blocks]; 0 = free */
    int32_t *free;    /* [n_free] stack */
    int32_t n_blocks, n_free, peak;
};

rrl_status rrl_kv_blocks_open(rrl_kv_blocks **out, int32_t n_blocks) {
    rrl_status rc;
    rrl_kv_blocks *b = NULL;
    RRL_GOTO(rrl_alloc(&b, 1, sizeof *b, "block pool"));
    b->n_blocks = b->n_free = n_blocks;
    RRL_GOTO(rrl_alloc(&b->holders, (size_t)n_blocks, sizeof *b->holders, "block holders"));
    RRL_GOTO(rrl_alloc(&b->free, (size_t)n_blocks, sizeof *b->free, "free blocks"));
    for (int32_t i = 0; i < n_blocks; i++) b->free[i] = n_blocks - 1 - i; /* block 0 on top */
    *out = b;
    b = NULL;
done:
    rrl_kv_blocks_close(&b);
    return rc;
}

void rrl_kv_blocks_close(rrl_kv_blocks **b) {
    if (!*b) return;
    free((*b)->holders);
    free((*b)->free);
    free(*b);
    *b = NULL;
}

rrl_status rrl_kv_blocks_take(rrl_kv_blocks *b, int32_t *block) {
    if (b->n_free == 0)
        return RRL_FAIL(RRL_ERR_INTERNAL, "rollout: all %d blocks of the KV pool are in use", b->n_blocks);
    int32_t taken = b->free[--b->n_free];
    b->holders[taken] = 1;
    int32_t used = b->n_blocks - b->n_free;
    if (used > b->peak) b->peak = used;
    *block = taken;
    return RRL_OK;
}

void rrl_kv_blocks_share(rrl_kv_blocks *b, int32_t block) {
    b->holders[block]++;
}

void rrl_kv_blocks_drop(rrl_kv_blocks *b, int32_t block) {
    if (--b->holders[block] == 0) b->free[b->n_free++] = block;
}

int32_t rrl_kv_blocks_used(const rrl_kv_blocks *b) {
    return b->n_blocks - b->n_free;
}

int32_t rrl_kv_blocks_peak(const rrl_kv_blocks *b) {
    return b->peak;
}
