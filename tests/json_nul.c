#include "json_nul.h"

#include <string.h>

#define STAND_IN "\xEF\xA3\xBE" /* U+F8FE: in no case file */

rrl_status json_nul_hide(rrl_buffer *out, const char *json, size_t len) {
    for (size_t i = 0; i < len;) {
        if (len - i >= 6 && memcmp(json + i, "\\u0000", 6) == 0) {
            RRL_TRY(rrl_buffer_put(out, STAND_IN, 3));
            i += 6;
        } else {
            size_t n = json[i] == '\\' && i + 1 < len ? 2 : 1;
            RRL_TRY(rrl_buffer_put(out, json + i, n));
            i += n;
        }
    }
    return RRL_OK;
}

rrl_status json_nul_text(rrl_buffer *out, const char *text) {
    for (const char *nul; (nul = strstr(text, STAND_IN)) != NULL; text = nul + 3) {
        RRL_TRY(rrl_buffer_put(out, text, (size_t)(nul - text)));
        RRL_TRY(rrl_buffer_put(out, "", 1));
    }
    return rrl_buffer_put(out, text, strlen(text));
}
