/* The tile instructions in plain C, after the pseudo-code of the processor's manual, for machines without them: the tile
 * path's layout, loops and tails are tested everywhere. Full tiles only; denormals are 0 by the thread's state. */
#ifndef RRL_TESTS_TILE_MODEL_H
#define RRL_TESTS_TILE_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct {
    bool configured;
    uint32_t tile[8][16][16];
} tile_file;
static _Thread_local tile_file tiles;

static inline void tile_configure(const rrl_tile_config *c) {
    tiles.configured = c->palette == 1;
    for (int i = 0; i < 8; i++) tiles.configured = tiles.configured && c->bytes[i] == 64 && c->rows[i] == 16;
    memset(tiles.tile, 0, sizeof tiles.tile);
}
/* Without a configuration the real ones kill the process: here everything turns NaN. */
static inline void tile_load(int r, const void *p) {
    memcpy(tiles.tile[r], p, 1024);
    if (!tiles.configured) memset(tiles.tile[r], 0xff, 1024);
}
static inline void tile_store(int r, void *p, long stride) {
    for (int m = 0; m < 16; m++) memcpy((char *)p + m * stride, tiles.tile[r][m], 64);
}
static inline float tile_half(uint32_t pair, int odd) {
    uint32_t u = odd ? pair & 0xffff0000u : pair << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
static inline void tile_dot(int c, int a, int b) {
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float sum[2] = {0, 0}, acc;
            for (int k = 0; k < 16; k++)
                for (int odd = 0; odd < 2; odd++)
                    sum[odd] = fmaf(tile_half(tiles.tile[a][m][k], odd), tile_half(tiles.tile[b][k][n], odd), sum[odd]);
            memcpy(&acc, &tiles.tile[c][m][n], sizeof acc);
            acc = acc + (sum[0] + sum[1]);
            memcpy(&tiles.tile[c][m][n], &acc, sizeof acc);
        }
}

#define TILE_CONFIGURE(config)   tile_configure(&(config))
#define TILE_RELEASE()           (tiles.configured = false)
#define TILE_LOAD(r, p)          tile_load(r, p)
#define TILE_STREAM(r, p)        tile_load(r, p)
#define TILE_STORE(r, p, stride) tile_store(r, p, stride)
#define TILE_ZERO(r)             memset(tiles.tile[r], 0, 1024)
#define TILE_DOT(c, a, b)        tile_dot(c, a, b)

#endif
