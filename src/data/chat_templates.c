/* All three are ChatML; they differ in the system message they add when a conversation does not begin with
 * one. */
#include "data/chat_templates.h"

#include <string.h>

#include "rrl/config.h"

static rrl_status put_message(rrl_buffer *out, const char *role, const char *content) {
    RRL_TRY(rrl_buffer_puts(out, "<|im_start|>"));
    RRL_TRY(rrl_buffer_puts(out, role));
    RRL_TRY(rrl_buffer_puts(out, "\n"));
    RRL_TRY(rrl_buffer_puts(out, content));
    return rrl_buffer_puts(out, "<|im_end|>\n");
}

/* system: added in front unless the first message is a system message; NULL = none. */
static rrl_status conversation(rrl_buffer *out, const char *system, const rrl_message *messages, int n,
                         bool generation_prompt) {
    if (system && strcmp(messages[0].role, "system") != 0) RRL_TRY(put_message(out, "system", system));
    for (int i = 0; i < n; i++) RRL_TRY(put_message(out, messages[i].role, messages[i].content));
    return generation_prompt ? rrl_buffer_puts(out, "<|im_start|>assistant\n") : RRL_OK;
}

static rrl_status chatml(rrl_buffer *out, const rrl_message *messages, int n, bool generation_prompt) {
    return conversation(out, NULL, messages, n, generation_prompt);
}

static rrl_status smollm2(rrl_buffer *out, const rrl_message *messages, int n, bool generation_prompt) {
    return conversation(out, "You are a helpful AI assistant named SmolLM, trained by Hugging Face", messages, n,
                  generation_prompt);
}

/* The branches for tools are left out, so a message of role "tool" is refused rather than rendered wrongly.
 */
static rrl_status qwen25(rrl_buffer *out, const rrl_message *messages, int n, bool generation_prompt) {
    for (int i = 0; i < n; i++) {
        const char *role = messages[i].role;
        if (strcmp(role, "system") != 0 && strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0)
            return RRL_FAIL(
                RRL_ERR_CONFIG,
                "chat template qwen2.5: role \"%s\" is not supported (system, user, assistant are)", role);
    }
    return conversation(out, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", messages, n,
                  generation_prompt);
}

#define X(function, name, sha256) {name, sha256, function},
static const rrl_chat_template TEMPLATES[] = {RRL_CHAT_TEMPLATE_LIST(X)};
#undef X
enum { N_TEMPLATES = sizeof TEMPLATES / sizeof TEMPLATES[0] };

const rrl_chat_template *rrl_chat_template_named(const char *name) {
    for (int i = 0; i < N_TEMPLATES; i++)
        if (strcmp(TEMPLATES[i].name, name) == 0) return &TEMPLATES[i];
    return NULL;
}

const rrl_chat_template *rrl_chat_template_of_sha256(const char *hex) {
    for (int i = 0; i < N_TEMPLATES; i++)
        if (strcmp(TEMPLATES[i].sha256, hex) == 0) return &TEMPLATES[i];
    return NULL;
}

rrl_status rrl_chat_template_names(rrl_buffer *out) {
    for (int i = 0; i < N_TEMPLATES; i++)
        RRL_TRY(rrl_buffer_printf(out, "%s%s", i ? ", " : "", TEMPLATES[i].name));
    return RRL_OK;
}
