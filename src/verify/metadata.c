/* A value of a question's metadata as Python's str() writes it: bias corruption compares such texts.
 *
 * cJSON keeps numbers as doubles, so 1 and 1.0 look alike there; the reference tells them apart ("1" and
 * "1.0"). So numbers are read from the text itself. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "data/json_member.h"
#include "rrl/verify.h"

/* int: its digits (-0 is 0). float: Python's repr, which always has a point, an exponent, inf or nan. */
static rrl_status number_text(rrl_buffer *out, const char *literal) {
    char text[RRL_NUMBER_CHARS];
    double value;
    if (!strpbrk(literal, ".eE")) return rrl_buffer_puts(out, strcmp(literal, "-0") == 0 ? "0" : literal);
    if (!rrl_parse_double(&value, literal))
        return RRL_FAIL(RRL_ERR_DATA, "metadata number %s does not fit a double", literal);
    rrl_format_double(text, value);
    RRL_TRY(rrl_buffer_puts(out, text));
    return strpbrk(text, ".en") ? RRL_OK : rrl_buffer_puts(out, ".0");
}

static rrl_status value_text(rrl_buffer *out, const cJSON *object, const cJSON *item, const char *metadata,
                             const char *key) {
    if (cJSON_IsTrue(item)) return rrl_buffer_puts(out, "True");
    if (cJSON_IsFalse(item)) return rrl_buffer_puts(out, "False");
    if (cJSON_IsNull(item)) return rrl_buffer_puts(out, "None");
    if (cJSON_IsString(item)) return rrl_buffer_puts(out, item->valuestring);
    if (!cJSON_IsNumber(item))
        return RRL_FAIL(
            RRL_ERR_DATA,
            "metadata \"%s\" is a list or an object; a bias needs a text, number, boolean or null", key);
    char *literal = NULL;
    RRL_TRY(rrl_json_member_text(&literal, object, metadata, key));
    rrl_status rc = number_text(out, literal);
    free(literal);
    return rc;
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
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (item) {
        RRL_GOTO(rrl_buffer_put(&text, "", 0));
        RRL_GOTO(value_text(&text, object, item, metadata, key));
    }
    *found = item != NULL;
    *out = text.data;
    text = (rrl_buffer){0};
done:
    rrl_buffer_free(&text);
    cJSON_Delete(object);
    return rc;
}
