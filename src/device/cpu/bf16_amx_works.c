/* May the tile path be used on this machine: processor, system, and a trial. */
#include <sys/syscall.h>
#include <unistd.h>

#include "device/cpu/bf16.h"

/* A block of numbers of full width and many sizes, whose sums show order and layout. */
static bool right_bits(void) {
    _Alignas(64) float x[32 * 32], acc[32 * 32];
    _Alignas(64) uint16_t rounded[2 * RRL_BF16_TILE], w[2 * RRL_BF16_TILE];
    for (int i = 0; i < 32 * 32; ++i) {
        x[i] = (float)(i % 251 - 125) * (float)(1 << i % 13);
        w[i] = rrl_bf16_of((float)(i % 241 - 120) * (float)(1 << i % 11));
    }
    unsigned state = rrl_bf16_amx.begin();
    rrl_bf16_amx.round(rounded, x, 32, 32, 32);
    rrl_bf16_amx.block(acc, rounded, 32, w, 1, w, 0);
    rrl_bf16_amx.end(state);
    bool same = true;
    for (int r = 0; r < 32; ++r)
        for (int n = 0; n < 32; ++n) {
            float even = 0.0f, odd = 0.0f;
            for (int k = 0; k < 32; k += 2) {
                const uint16_t *pair = w + n / 16 * RRL_BF16_TILE + k / 2 * 32 + n % 16 * 2;
                even = __builtin_fmaf(rrl_bf16_value(rrl_bf16_of(x[r * 32 + k])), rrl_bf16_value(pair[0]), even);
                odd = __builtin_fmaf(rrl_bf16_value(rrl_bf16_of(x[r * 32 + k + 1])), rrl_bf16_value(pair[1]), odd);
            }
            same = same && acc[r * 32 + n] == even + odd;
        }
    return same;
}

bool rrl_bf16_amx_works(const char **why) {
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, TILE = 1 << 24, TILE_BF16 = 1 << 22, BF16 = 1 << 5 };
    unsigned a = 0, b = 0, c = 0, d = 0, a1 = 0;
    *why = "; this processor has no AMX with bf16";
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    if (!(d & TILE) || !(d & TILE_BF16)) return false;
    __asm__("cpuid" : "=a"(a1), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(1));
    if (!(a1 & BF16)) return false;
    if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) != 0) {
        /* also when a signal stack of the process is too small for the 8 KiB of tiles (AT_MINSIGSTKSZ) */
        *why = "; the system refuses AMX to this process";
        return false;
    }
    *why = "; AMX gives other bits than it should";
    return right_bits();
}
