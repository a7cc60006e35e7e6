#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/files.h"

/* Tests fail one allocation at a time through this fault point. */
static bool refused(void) {
    return rrl_fault("memory.alloc");
}

/* `out` is a pointer to some object pointer; memcpy stores through it without breaking aliasing rules. */
static void store(void *out, void *p) {
    memcpy(out, &p, sizeof p);
}

static rrl_status byte_count(size_t *bytes, size_t count, size_t size, const char *what) {
    if (__builtin_mul_overflow(count, size, bytes) || *bytes > PTRDIFF_MAX)
        return RRL_FAIL(RRL_ERR_NOMEM, "%s: %zu x %zu bytes do not fit in memory", what, count, size);
    return RRL_OK;
}

rrl_status rrl_alloc(void *out, size_t count, size_t size, const char *what) {
    size_t bytes;
    RRL_TRY(byte_count(&bytes, count, size, what));
    void *p = bytes && !refused() ? calloc(1, bytes) : NULL;
    if (bytes && !p) return RRL_FAIL(RRL_ERR_NOMEM, "%s: no memory for %zu bytes", what, bytes);
    store(out, p);
    return RRL_OK;
}

/* Weights and caches are read from end to end, faster where a page is large; all of it is touched at once anyway. */
static void *large_pages(size_t bytes) {
    enum { PAGE = 1 << 21 };
    void *p = NULL; /* aligned_alloc would want a multiple of the page */
    if (posix_memalign(&p, PAGE, bytes) != 0) return NULL;
#if defined(MADV_HUGEPAGE)
    madvise(p, bytes, MADV_HUGEPAGE); /* advice: where it is not taken nothing is lost */
#endif
    return p;
}

rrl_status rrl_alloc_aligned(void *out, size_t count, size_t size, const char *what) {
    enum { ALIGN = 64, LARGE = 1 << 22 };
    size_t bytes;
    RRL_TRY(byte_count(&bytes, count, size, what));
    void *p = NULL;
    if (bytes) {
        /* aligned_alloc wants a multiple of the alignment; byte_count keeps the rounding from overflowing */
        size_t rounded = (bytes + ALIGN - 1) / ALIGN * ALIGN;
        p = refused() ? NULL : rounded < LARGE ? aligned_alloc(ALIGN, rounded) : large_pages(rounded);
        if (!p) return RRL_FAIL(RRL_ERR_NOMEM, "%s: no memory for %zu bytes", what, bytes);
        memset(p, 0, rounded);
    }
    store(out, p);
    return RRL_OK;
}

rrl_status rrl_grow(void *array, size_t *capacity, size_t need, size_t size, const char *what) {
    if (need <= *capacity) return RRL_OK;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < need)
        if (__builtin_mul_overflow(wanted, (size_t)2, &wanted)) wanted = need;
    size_t bytes;
    RRL_TRY(byte_count(&bytes, wanted, size, what));

    void *old;
    memcpy(&old, array, sizeof old);
    void *p = refused() ? NULL : realloc(old, bytes);
    if (!p) return RRL_FAIL(RRL_ERR_NOMEM, "%s: no memory for %zu bytes", what, bytes);
    store(array, p);
    *capacity = wanted;
    return RRL_OK;
}

rrl_status rrl_strdup(char **out, const char *text) {
    char *copy = refused() ? NULL : strdup(text);
    if (!copy) return RRL_FAIL(RRL_ERR_NOMEM, "no memory for a text of %zu bytes", strlen(text));
    *out = copy;
    return RRL_OK;
}

/* Room for n more bytes and the closing 0. */
static rrl_status reserve(rrl_buffer *b, size_t n) {
    if (n >= SIZE_MAX - b->len)
        return RRL_FAIL(RRL_ERR_NOMEM, "buffer: %zu more bytes do not fit in memory", n);
    return rrl_grow(&b->data, &b->capacity, b->len + n + 1, 1, "buffer");
}

rrl_status rrl_buffer_put(rrl_buffer *b, const void *bytes, size_t n) {
    RRL_TRY(reserve(b, n));
    if (n) memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = 0;
    return RRL_OK;
}

rrl_status rrl_buffer_puts(rrl_buffer *b, const char *text) {
    return rrl_buffer_put(b, text, strlen(text));
}

rrl_status rrl_buffer_printf(rrl_buffer *b, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) return RRL_FAIL(RRL_ERR_INTERNAL, "buffer: format \"%s\" cannot be printed", fmt);

    RRL_TRY(reserve(b, (size_t)n));
    va_start(args, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, args);
    va_end(args);
    b->len += (size_t)n;
    return RRL_OK;
}

void rrl_buffer_free(rrl_buffer *b) {
    if (!b) return;
    free(b->data);
    *b = (rrl_buffer){0};
}
