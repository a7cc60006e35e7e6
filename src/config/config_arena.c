/* One malloc a piece, chained: configs are small, and a sanitizer sees each piece's end. */
#include "config/config_arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct piece piece;
struct piece {
    piece *next;
    alignas(max_align_t) char bytes[];
};

struct rrl_arena {
    piece *pieces;
};

rrl_status rrl_arena_open(rrl_arena **out) {
    return rrl_alloc(out, 1, sizeof **out, "configuration");
}

void rrl_arena_close(rrl_arena **a) {
    if (!*a) return;
    for (piece *p = (*a)->pieces; p;) {
        piece *next = p->next;
        free(p);
        p = next;
    }
    free(*a);
    *a = NULL;
}

rrl_status rrl_arena_take(void *out, rrl_arena *a, size_t count, size_t size) {
    size_t bytes, total;
    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, sizeof(piece), &total))
        return RRL_FAIL(RRL_ERR_NOMEM, "configuration: %zu x %zu bytes do not fit in memory", count, size);
    void *memory = NULL;
    if (bytes) {
        piece *p = NULL;
        RRL_TRY(rrl_alloc(&p, total, 1, "configuration"));
        p->next = a->pieces;
        a->pieces = p;
        memory = p->bytes;
    }
    memcpy(out, &memory,
           sizeof memory); /* stores through any object pointer without breaking aliasing rules */
    return RRL_OK;
}

rrl_status rrl_arena_text(char **out, rrl_arena *a, const char *text, size_t len) {
    char *copy = NULL;
    RRL_TRY(rrl_arena_take(&copy, a, len + 1, 1));
    memcpy(copy, text, len);
    *out = copy;
    return RRL_OK;
}

rrl_status rrl_arena_printf(char **out, rrl_arena *a, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = NULL;
    rrl_status rc = n < 0 ? RRL_FAIL(RRL_ERR_INTERNAL, "format \"%s\" failed", fmt)
                          : rrl_arena_take(&text, a, (size_t)n + 1, 1);
    if (rc == RRL_OK) {
        vsnprintf(text, (size_t)n + 1, fmt, again);
        *out = text;
    }
    va_end(again);
    return rc;
}
