/* The parsed object tells which member it is, by number: keys may be written with escapes. The text is known
 * to be valid, so walking to that member needs no checks. */
#include "data/json_member.h"

#include <string.h>

static const char *skip_space(const char *p) {
    return p + strspn(p, " \t\r\n");
}

static const char *skip_string(const char *p) {
    for (p++; *p != '"'; p++)
        if (*p == '\\') p++;
    return p + 1;
}

static const char *skip_value(const char *p) {
    int depth = 0;
    do {
        if (*p == '"') {
            p = skip_string(p);
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;
        } else { /* a number, a literal, a comma or a colon */
            p += 1 + strcspn(p + 1, "\"{[]},: \t\r\n");
        }
        if (depth) p = skip_space(p);
    } while (depth);
    return p;
}

rrl_status rrl_json_member_text(char **out, const cJSON *object, const char *text, const char *key) {
    int number = 0;
    for (const cJSON *item = object->child; strcmp(item->string, key) != 0; item = item->next) number++;
    const char *p = skip_space(text) + 1, *begin, *end;
    for (;; number--) {
        p = skip_space(skip_string(skip_space(p))) + 1; /* key and colon */
        begin = skip_space(p);
        end = skip_value(begin);
        if (number == 0) break;
        p = skip_space(end) + 1; /* comma */
    }
    rrl_buffer b = {0};
    RRL_TRY(rrl_buffer_put(&b, begin, (size_t)(end - begin)));
    *out = b.data;
    return RRL_OK;
}
