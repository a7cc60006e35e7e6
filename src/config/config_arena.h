/* Memory that is freed at once: what a config's texts and lists stand in. */
#ifndef RRL_CONFIG_ARENA_H
#define RRL_CONFIG_ARENA_H

#include <stddef.h>

#include "rrl/status.h"

typedef struct rrl_arena rrl_arena;
rrl_status rrl_arena_open(rrl_arena **out);
/** Frees all that was taken; accepts NULL. */
void rrl_arena_close(rrl_arena **a);
/** count * size zeroed bytes, aligned for any type; NULL when the product is 0. Errors: RRL_ERR_NOMEM. */
rrl_status rrl_arena_take(void *out, rrl_arena *a, size_t count, size_t size);
/** A copy of len bytes with a NUL behind them. */
rrl_status rrl_arena_text(char **out, rrl_arena *a, const char *text, size_t len);
/** A formatted text. */
rrl_status rrl_arena_printf(char **out, rrl_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
