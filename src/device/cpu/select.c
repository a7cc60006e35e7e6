#include "device/cpu/select.h"

#include <string.h>

/* Masses are at most 2^40: five digits of eight bits and a last one of one. */
static const struct {
    int shift;
    unsigned mask;
} DIGITS[] = {{33, 255}, {25, 255}, {17, 255}, {9, 255}, {1, 255}, {0, 1}};
enum { N_DIGITS = sizeof DIGITS / sizeof DIGITS[0] };

/* Where the walk from large to small masses stops: all above `mass` are kept, and `ties` of those equal to
 * it. */
typedef struct {
    uint64_t mass, sum; /* sum and count of those above */
    int64_t count, ties;
} cut;

/* The digit at which the walk stops, -1 if it never does; *c takes what lies above. */
static int stop_digit(cut *c, const rrl_candidate *list, int64_t n, int digit, int64_t limit,
                      uint64_t target) {
    uint64_t sum[256] = {0};
    int64_t count[256] = {0};
    for (int64_t i = 0; i < n; ++i) {
        unsigned d = (unsigned)(list[i].mass >> DIGITS[digit].shift) & DIGITS[digit].mask;
        sum[d] += list[i].mass;
        count[d]++;
    }
    for (int d = (int)DIGITS[digit].mask; d >= 0; --d) {
        if (count[d] && (c->sum + sum[d] >= target || c->count + count[d] >= limit)) return d;
        c->sum += sum[d];
        c->count += count[d];
    }
    return -1;
}

/* Radix select: each digit leaves those candidates that share the stopping mass's upper digits. */
static cut find_cut(const rrl_candidate *list, int64_t n, int64_t limit, uint64_t target,
                    rrl_candidate *work) {
    cut c = {0};
    for (int digit = 0; digit < N_DIGITS; ++digit) {
        int stop = stop_digit(&c, list, n, digit, limit, target);
        if (stop < 0) return c;
        int64_t m = 0;
        for (int64_t i = 0; i < n; ++i)
            if (((unsigned)(list[i].mass >> DIGITS[digit].shift) & DIGITS[digit].mask) == (unsigned)stop)
                work[m++] = list[i];
        list = work;
        n = m;
    }
    c.mass = list[0].mass;
    while (c.count + c.ties < limit && c.sum + (uint64_t)c.ties * c.mass < target) c.ties++;
    return c;
}

int64_t rrl_select_keep(rrl_candidate *c, int64_t n, int64_t limit, uint64_t target, rrl_candidate *work,
                        uint64_t *sum) {
    cut at = find_cut(c, n, limit, target, work);
    int64_t kept = 0, ties = at.ties;
    *sum = at.sum + (uint64_t)at.ties * at.mass;
    for (int64_t i = 0; i < n; ++i)
        if (c[i].mass > at.mass || (c[i].mass == at.mass && ties-- > 0)) c[kept++] = c[i];
    return kept;
}

int32_t rrl_select_draw(const rrl_candidate *c, int64_t n, uint64_t threshold) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; ++i)
        if ((sum += c[i].mass) > threshold) return c[i].id;
    return 0; /* no masses: NaN logits, which the learner reports as non-finite */
}
