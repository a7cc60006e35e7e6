/* NFC through utf8proc. */
#include <stdlib.h>
#include <utf8proc.h>

#include "data/pretokenize.h"

static bool ascii(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if ((uint8_t)text[i] >= 0x80) return false;
    return true;
}

rrl_status rrl_nfc(rrl_buffer *out, const char *text, size_t len) {
    if (ascii(text, len)) return rrl_buffer_put(out, text, len);
    utf8proc_uint8_t *form = NULL;
    utf8proc_ssize_t n =
        utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &form, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (n < 0)
        return RRL_FAIL(n == UTF8PROC_ERROR_NOMEM ? RRL_ERR_NOMEM : RRL_ERR_DATA, "NFC of %zu bytes of text: %s", len,
                        utf8proc_errmsg(n));
    rrl_status rc = rrl_buffer_put(out, form, (size_t)n);
    free(form);
    return rc;
}
