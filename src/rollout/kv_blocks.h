/* Which blocks of the KV pool are in use, and by how many holders. Knows numbers of blocks only, not their content. */
#ifndef RRL_ROLLOUT_KV_BLOCKS_H
#define RRL_ROLLOUT_KV_BLOCKS_H

#include <stdint.h>

#include "rrl/status.h"

typedef struct rrl_kv_blocks rrl_kv_blocks;
rrl_status rrl_kv_blocks_open(rrl_kv_blocks **out, int32_t n_blocks);
void rrl_kv_blocks_close(rrl_kv_blocks **b);
/** A free block, with one holder. Errors: RRL_ERR_INTERNAL (none is free; the pool's size rules that out). */
rrl_status rrl_kv_blocks_take(rrl_kv_blocks *b, int32_t *block);
/** One more holder of a block in use. */
void rrl_kv_blocks_share(rrl_kv_blocks *b, int32_t block);
/** One holder less; without any the block is free again. */
void rrl_kv_blocks_drop(rrl_kv_blocks *b, int32_t block);
int32_t rrl_kv_blocks_used(const rrl_kv_blocks *b);
/** Most blocks in use at a time since the pool was opened. */
int32_t rrl_kv_blocks_peak(const rrl_kv_blocks *b);

#endif
