/* NFC through utf8proc, but as the tokenizers library computes it: its tables are those of Unicode 9, to
 * which later combining marks are characters like any other. Such marks are copied, and the text between them
 * is normalised by itself; since nothing joins or passes a character that does not combine, this is the same.
 */
#include <stdlib.h>
#include <utf8proc.h>

#include "base/text.h"
#include "data/pretokenize.h"

/* Characters whose NFC changed after Unicode 9: all with a combining class, U+11938 and what it is made of.
 * Found by comparing tokenizers 0.22.2 with utf8proc 2.8 (Unicode 15) for every character. */
static const struct {
    uint32_t first, last;
} NEWER[] = {
    {0x7fd, 0x7fd},     {0x898, 0x89f},     {0x8ca, 0x8d3},     {0x9fe, 0x9fe},     {0xc3c, 0xc3c},
    {0xd3b, 0xd3c},     {0xeba, 0xeba},     {0x1715, 0x1715},   {0x1abf, 0x1ace},   {0x1df6, 0x1dfa},
    {0xa82c, 0xa82c},   {0x10d24, 0x10d27}, {0x10eab, 0x10eac}, {0x10efd, 0x10eff}, {0x10f46, 0x10f50},
    {0x10f82, 0x10f85}, {0x11070, 0x11070}, {0x1133b, 0x1133b}, {0x1145e, 0x1145e}, {0x11839, 0x1183a},
    {0x11930, 0x11930}, {0x11938, 0x11938}, {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0},
    {0x11a34, 0x11a34}, {0x11a47, 0x11a47}, {0x11a99, 0x11a99}, {0x11d42, 0x11d42}, {0x11d44, 0x11d45},
    {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136},
    {0x1e2ae, 0x1e2ae}, {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef},
};

enum { MAX_PARTS = 32 }; /* characters of one decomposition; Unicode has at most 4 */

typedef struct {
    int32_t *data;
    size_t n, capacity;
} code_points;

static bool is_newer(uint32_t cp) {
    if (cp < NEWER[0].first) return false;
    for (size_t i = 0; i < sizeof NEWER / sizeof *NEWER; i++)
        if (cp <= NEWER[i].last) return cp >= NEWER[i].first;
    return false;
}

static bool is_ascii(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((uint8_t)text[i] >= 0x80) return false;
    return true;
}

static int combining_class(int32_t cp) {
    return (int)utf8proc_get_property(cp)->combining_class;
}

static rrl_status decompose(code_points *c, const char *text, size_t len) {
    for (const char *p = text, *end = text + len; p < end;) {
        int32_t cp = (int32_t)rrl_utf8_next(&p, end);
        RRL_TRY(rrl_grow(&c->data, &c->capacity, c->n + MAX_PARTS, sizeof *c->data, "NFC"));
        int class = 0;
        utf8proc_ssize_t n =
            utf8proc_decompose_char(cp, c->data + c->n, MAX_PARTS, UTF8PROC_DECOMPOSE, &class);
        if (n < 0 || n > MAX_PARTS)
            return RRL_FAIL(RRL_ERR_INTERNAL, "NFC: U+%04X cannot be decomposed", (unsigned)cp);
        c->n += (size_t)n;
    }
    return RRL_OK;
}

static int by_key(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Canonical order of the marks cps[n]: by class, equal ones as they were. A key is class, place, character.
 */
static rrl_status order_marks(int32_t *cps, size_t n) {
    bool ordered = true;
    for (size_t i = 1; i < n && ordered; i++)
        ordered = combining_class(cps[i - 1]) <= combining_class(cps[i]);
    if (ordered) return RRL_OK;
    uint64_t *keys = NULL;
    RRL_TRY(rrl_alloc(&keys, n, sizeof *keys, "NFC"));
    for (size_t i = 0; i < n; i++)
        keys[i] = (uint64_t)combining_class(cps[i]) << 56 | (uint64_t)i << 24 | (uint32_t)cps[i];
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0; i < n; i++) cps[i] = (int32_t)(keys[i] & 0xffffff);
    free(keys);
    return RRL_OK;
}

/* utf8proc_map would do all of this, but it sorts marks by swapping neighbours: a text of a few ten thousand
 * would take minutes. */
static rrl_status put_form(rrl_buffer *out, const char *text, size_t len) {
    if (is_ascii(text, len)) return rrl_buffer_put(out, text, len);
    rrl_status rc = RRL_OK;
    code_points c = {0};
    RRL_GOTO(decompose(&c, text, len));
    for (size_t i = 0, first; i < c.n; i++) {
        for (first = i; i < c.n && combining_class(c.data[i]);) i++;
        RRL_GOTO(order_marks(c.data + first, i - first));
    }
    utf8proc_ssize_t n =
        utf8proc_normalize_utf32(c.data, (utf8proc_ssize_t)c.n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) RRL_GOTO(rrl_utf8_put(out, (uint32_t)c.data[i]));
done:
    free(c.data);
    return rc;
}

rrl_status rrl_nfc(rrl_buffer *out, const char *text, size_t len) {
    const char *begin = text, *end = text + len;
    for (const char *p = text; p < end;) {
        const char *at = p;
        if (!is_newer(rrl_utf8_next(&p, end))) continue;
        RRL_TRY(put_form(out, begin, (size_t)(at - begin)));
        RRL_TRY(rrl_buffer_put(out, at, (size_t)(p - at)));
        begin = p;
    }
    return put_form(out, begin, (size_t)(end - begin));
}
