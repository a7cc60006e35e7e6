/* The tile instructions. Own asm: gcc 12's tile loads have no memory clobber and its tile configuration names 8 of the
 * 64 bytes it reads, so stores before them may vanish. RRL_TILE_MODEL: a test brings its own in C. */
#ifndef RRL_DEVICE_CPU_BF16_TILES_H
#define RRL_DEVICE_CPU_BF16_TILES_H

#include <stdint.h>

/* What ldtilecfg reads. */
typedef struct {
    uint8_t palette, start, pad[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} rrl_tile_config;

#if defined(RRL_TILE_MODEL)
#include RRL_TILE_MODEL
#else
#define TILE_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" ::"m"(config))
#define TILE_RELEASE()         __asm__ volatile("tilerelease")
/* tile r from 16 rows of 64 bytes; _STREAM: not to be kept in the first cache */
#define TILE_LOAD(r, p)   __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #r ::"r"(p), "r"(64L) : "memory")
#define TILE_STREAM(r, p) __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #r ::"r"(p), "r"(64L) : "memory")
#define TILE_STORE(r, p, stride) \
    __asm__ volatile("tilestored %%tmm" #r ", (%0,%1,1)" ::"r"(p), "r"((long)(stride)) : "memory")
#define TILE_ZERO(r) __asm__ volatile("tilezero %%tmm" #r ::)
/* c += a b */
#define TILE_DOT(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
#endif

#endif
