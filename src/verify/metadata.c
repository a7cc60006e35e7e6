/* A value of a question's metadata as Python's str() writes it: bias corruption compares such texts.
 *
 * cJSON keeps numbers as doubles, so 1 and 1.0 look alike there; the reference tells them apart ("1" and
 * "1.0"). So the text is walked beside the parsed object, which has the members in the same order, and
 * numbers are read from it. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "rrl/verify.h"

/* The text is valid JSON when this runs (rrl_json_parse has seen it). */
static const char *skip_space(const char *p) {
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') p++;
    return p;
}

static const char *skip_string(const char *p) {
    for (p++; *p != '"'; p++)
        if (*p == '\\') p++;
    return p + 1;
}

static const char *skip_value(const char *p) {
    int depth = 0;
    do {
        p = skip_space(p);
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        if (*p == '}' || *p == ']') depth--;
        p++;
    } while (depth > 0);
    while (*p && !strchr(",}] \t\n\r", *p)) p++; /* the rest of a number or literal */
    return p;
}

/* Text of the number-th member's value. */
static void member_text(const char **begin, const char **end, const char *object, int number) {
    const char *p = skip_space(object) + 1;
    for (;; number--) {
        p = skip_space(skip_string(skip_space(p))) + 1; /* key and colon */
        *begin = skip_space(p);
        *end = skip_value(*begin);
        if (number == 0) return;
        p = skip_space(*end) + 1; /* comma */
    }
}

static bool is_float(const char *begin, const char *end) {
    for (; begin < end; begin++)
        if (*begin == '.' || *begin == 'e' || *begin == 'E') return true;
    return false;
}

/* int: its digits (-0 is 0). float: Python's repr, which always has a point, an exponent, inf or nan. */
static rrl_status number_text(rrl_buffer *out, const char *begin, const char *end) {
    size_t len = (size_t)(end - begin);
    if (!is_float(begin, end))
        return len == 2 && memcmp(begin, "-0", 2) == 0 ? rrl_buffer_puts(out, "0")
                                                       : rrl_buffer_put(out, begin, len);
    rrl_status rc = RRL_OK;
    rrl_buffer literal = {0};
    char text[RRL_NUMBER_CHARS];
    double value;
    RRL_GOTO(rrl_buffer_put(&literal, begin, len));
    if (!rrl_parse_double(&value, literal.data)) {
        rc = RRL_FAIL(RRL_ERR_DATA, "metadata number %s does not fit a double", literal.data);
        goto done;
    }
    rrl_format_double(text, value);
    RRL_GOTO(rrl_buffer_puts(out, text));
    if (!strpbrk(text, ".en")) RRL_GOTO(rrl_buffer_puts(out, ".0"));
done:
    rrl_buffer_free(&literal);
    return rc;
}

static rrl_status value_text(rrl_buffer *out, const cJSON *item, const char *metadata, int number,
                             const char *key) {
    if (cJSON_IsTrue(item)) return rrl_buffer_puts(out, "True");
    if (cJSON_IsFalse(item)) return rrl_buffer_puts(out, "False");
    if (cJSON_IsNull(item)) return rrl_buffer_puts(out, "None");
    if (cJSON_IsString(item)) return rrl_buffer_puts(out, item->valuestring);
    if (!cJSON_IsNumber(item))
        return RRL_FAIL(
            RRL_ERR_DATA,
            "metadata \"%s\" is a list or an object; a bias needs a text, number, boolean or null", key);
    const char *begin, *end;
    member_text(&begin, &end, metadata, number);
    return number_text(out, begin, end);
}

rrl_status rrl_metadata_str(char **out, bool *found, const char *metadata, const char *key) {
    rrl_status rc = RRL_OK;
    cJSON *object = NULL;
    rrl_buffer text = {0};
    RRL_GOTO(rrl_json_parse(&object, metadata, strlen(metadata), "metadata of a question"));
    if (!cJSON_IsObject(object)) {
        rc = RRL_FAIL(RRL_ERR_DATA, "metadata of a question is no JSON object: %.60s", metadata);
        goto done;
    }
    int number = 0;
    const cJSON *item = object->child;
    for (; item && strcmp(item->string, key) != 0; item = item->next) number++;
    if (item) {
        RRL_GOTO(rrl_buffer_put(&text, "", 0));
        RRL_GOTO(value_text(&text, item, metadata, number, key));
    }
    *found = item != NULL;
    *out = text.data;
    text = (rrl_buffer){0};
done:
    rrl_buffer_free(&text);
    cJSON_Delete(object);
    return rc;
}
