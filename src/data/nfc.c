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

static rrl_status put_form(rrl_buffer *out, const char *text, size_t len) {
    if (is_ascii(text, len)) return rrl_buffer_put(out, text, len);
    utf8proc_uint8_t *form = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &form,
                                      UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (n < 0)
        return RRL_FAIL(n == UTF8PROC_ERROR_NOMEM ? RRL_ERR_NOMEM : RRL_ERR_DATA,
                        "NFC of %zu bytes of text: %s", len, utf8proc_errmsg(n));
    rrl_status rc = rrl_buffer_put(out, form, (size_t)n);
    free(form);
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
