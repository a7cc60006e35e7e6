/* Chat templates that are known by the SHA-256 of their text, each written as a small function (no Jinja
 * here). */
#ifndef RRL_DATA_CHAT_TEMPLATES_H
#define RRL_DATA_CHAT_TEMPLATES_H

#include "data/prompt.h"

typedef struct {
    const char *name;
    const char *sha256; /* of the template text in tokenizer_config.json, lower-case hex */
    /* n >= 1; appends what the template renders. Errors: RRL_ERR_CONFIG (a role it does not know). */
    rrl_status (*render)(rrl_buffer *out, const rrl_message *messages, int n, bool generation_prompt);
} rrl_chat_template;

/** NULL if there is none. */
const rrl_chat_template *rrl_chat_template_named(const char *name);
const rrl_chat_template *rrl_chat_template_of_sha256(const char *hex);
/** Append the known names, comma-separated, for messages. */
rrl_status rrl_chat_template_names(rrl_buffer *out);

#endif
