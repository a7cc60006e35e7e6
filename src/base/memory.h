/* Checked allocation and a growable byte buffer. */
#ifndef RRL_BASE_MEMORY_H
#define RRL_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "rrl/status.h"

/** count * size bytes, zeroed; NULL-able only when the product is 0. Errors: RRL_ERR_NOMEM (overflow counts as such).
 *  `what` names the thing for the message. The caller frees with free(). */
rrl_status rrl_alloc(void *out, size_t count, size_t size, const char *what);
/** As rrl_alloc, aligned to 64 bytes, freed with free(). */
rrl_status rrl_alloc_aligned(void *out, size_t count, size_t size, const char *what);
/** Grow *array to hold at least `need` elements (doubling); *capacity is updated. New elements are not zeroed. */
rrl_status rrl_grow(void *array, size_t *capacity, size_t need, size_t size, const char *what);
/** A copy of text; the caller frees it. */
rrl_status rrl_strdup(char **out, const char *text);

/** Bytes that grow; data[len] is always 0 once anything was put. */
typedef struct {
    char *data;
    size_t len, capacity;
} rrl_buffer;

rrl_status rrl_buffer_put(rrl_buffer *b, const void *bytes, size_t n);
rrl_status rrl_buffer_puts(rrl_buffer *b, const char *text);
rrl_status rrl_buffer_printf(rrl_buffer *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void rrl_buffer_free(rrl_buffer *b);

#endif
