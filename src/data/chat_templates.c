/* All three are ChatML; they differ in the system message they add when a conversation does not begin with
 * one. */
#include "data/chat_templates.h"

#include <string.h>

static rrl_status put_message(rrl_buffer *out, const char *role, const char *content) {
    RRL_TRY(rrl_buffer_puts(out, "<|im_start|>"));
    RRL_TRY(rrl_buffer_puts(out, role));
    RRL_TRY(rrl_buffer_puts(out, "\n"));
    RRL_TRY(rrl_buffer_puts(out, content));
    return rrl_buffer_puts(out, "<|im_end|>\n");
}

/* system: added in front unless the first message is a system message; NULL = none. */
static rrl_status chatml(rrl_buffer *out, const char *system, const rrl_message *messages, int n,
                         bool generation_prompt) {
    if (system && strcmp(messages[0].role, "system") != 0) RRL_TRY(put_message(out, "system", system));
    for (int i = 0; i < n; i++) RRL_TRY(put_message(out, messages[i].role, messages[i].content));
    return generation_prompt ? rrl_buffer_puts(out, "<|im_start|>assistant\n") : RRL_OK;
}

static rrl_status plain(rrl_buffer *out, const rrl_message *messages, int n, bool generation_prompt) {
    return chatml(out, NULL, messages, n, generation_prompt);
}

static rrl_status smollm2(rrl_buffer *out, const rrl_message *messages, int n, bool generation_prompt) {
    return chatml(out, "You are a helpful AI assistant named SmolLM, trained by Hugging Face", messages, n,
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
    return chatml(out, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", messages, n,
                  generation_prompt);
}

static const rrl_chat_template TEMPLATES[] = {
    {"smollm2", "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788", smollm2},
    {"qwen2.5", "cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f", qwen25},
    {"chatml", "153280e3ff55d19da1398bdb3914ee2a51b80429bfaedde11d7d216c39db80f3", plain},
};
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
