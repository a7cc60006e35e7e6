/* From a question to the text and ids a model is given. */
#include "data/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/chat_templates.h"

enum { MAX_TEMPLATE = 1 << 20 };
static const char QUESTION[] = "{question}", SYSTEM[] = "{system}", USER[] = "{user}";

struct rrl_prompt {
    const rrl_tokenizer *tokenizer;
    char *text;                    /* around the question */
    const rrl_chat_template *chat; /* known template, or NULL */
    char *file;                    /* template with {system} and {user}, or NULL */
};

static rrl_status load_file(rrl_prompt *p, const char *path) {
    size_t len = 0;
    RRL_TRY(rrl_file_read(&p->file, &len, path, MAX_TEMPLATE));
    if (strlen(p->file) != len || rrl_utf8_valid(p->file, len) != len)
        return RRL_FAIL(RRL_ERR_CONFIG, "chat template %s: is no UTF-8 text", path);
    if (!strstr(p->file, USER))
        return RRL_FAIL(RRL_ERR_CONFIG, "chat template %s: has no %s in it", path, USER);
    return RRL_OK;
}

static rrl_status unknown_template(const char *found) {
    rrl_buffer names = {0};
    rrl_status rc = rrl_chat_template_names(&names);
    if (rc == RRL_OK)
        rc = RRL_FAIL(RRL_ERR_CONFIG,
                      "%s; set model.chat_template to one of %s, or to a text file with %s and %s in it",
                      found, names.data, SYSTEM, USER);
    rrl_buffer_free(&names);
    return rc;
}

static rrl_status recognise(rrl_prompt *p) {
    const char *text = rrl_tokenizer_chat_template(p->tokenizer);
    if (!text) return unknown_template("the model's tokenizer has no chat template");
    uint8_t digest[RRL_SHA256_BYTES];
    char hex[RRL_SHA256_HEX], found[128];
    RRL_TRY(rrl_sha256_of(digest, text, strlen(text)));
    rrl_sha256_hex(hex, digest);
    if ((p->chat = rrl_chat_template_of_sha256(hex))) return RRL_OK;
    snprintf(found, sizeof found, "the model's chat template is not known (SHA-256 %s)", hex);
    return unknown_template(found);
}

static rrl_status open_chat(rrl_prompt *p, const char *chat) {
    if (!chat) return recognise(p);
    if ((p->chat = rrl_chat_template_named(chat))) return RRL_OK;
    if (rrl_file_exists(chat)) return load_file(p, chat);
    char found[256];
    snprintf(found, sizeof found, "chat template \"%.150s\" is neither a known name nor a file", chat);
    return unknown_template(found);
}

rrl_status rrl_prompt_open(rrl_prompt **out, const rrl_tokenizer *t, const char *format,
                           const char *template_text, const char *chat) {
    rrl_status rc = RRL_OK;
    rrl_prompt *p = NULL;
    if (!template_text) template_text = RRL_PROMPT_TEMPLATE;
    bool is_chat = strcmp(format, "chat") == 0;
    RRL_GOTO(rrl_alloc(&p, 1, sizeof *p, "prompt"));
    p->tokenizer = t;
    if (!is_chat && strcmp(format, "text") != 0) {
        rc = RRL_FAIL(RRL_ERR_CONFIG, "prompt format \"%s\": expected text or chat", format);
        goto done;
    }
    if (!strstr(template_text, QUESTION)) {
        rc = RRL_FAIL(RRL_ERR_CONFIG, "prompt template \"%s\": has no %s in it", template_text, QUESTION);
        goto done;
    }
    RRL_GOTO(rrl_strdup(&p->text, template_text));
    if (is_chat) RRL_GOTO(open_chat(p, chat));
    *out = p;
    p = NULL;
done:
    rrl_prompt_close(&p);
    return rc;
}

void rrl_prompt_close(rrl_prompt **p) {
    if (!p || !*p) return;
    free((*p)->text);
    free((*p)->file);
    free(*p);
    *p = NULL;
}

const char *rrl_prompt_name(const rrl_prompt *p) {
    return p->chat ? p->chat->name : p->file ? "file" : "text";
}

/* template with every {key} of keys[n] replaced; what is put in is not looked at again. */
static rrl_status fill(rrl_buffer *out, const char *template, const char *const *keys,
                       const char *const *values, int n) {
    while (*template) {
        int k = 0;
        while (k < n && strncmp(template, keys[k], strlen(keys[k])) != 0) k++;
        if (k < n) {
            RRL_TRY(rrl_buffer_puts(out, values[k]));
            template += strlen(keys[k]);
        } else {
            size_t plain = 1 + strcspn(template + 1, "{");
            RRL_TRY(rrl_buffer_put(out, template, plain));
            template += plain;
        }
    }
    return RRL_OK;
}

/* A template file has places for one exchange: an optional system message and one user message. */
static rrl_status render_file(rrl_buffer *out, const rrl_prompt *p, const rrl_message *messages, int n) {
    const char *system = "", *user = NULL;
    int i = 0;
    if (i < n && strcmp(messages[i].role, "system") == 0) system = messages[i++].content;
    if (i < n && strcmp(messages[i].role, "user") == 0) user = messages[i++].content;
    if (!user || i != n)
        return RRL_FAIL(RRL_ERR_CONFIG,
                        "a chat template file renders one user message after an optional system message");
    return fill(out, p->file, (const char *const[]){SYSTEM, USER}, (const char *const[]){system, user}, 2);
}

rrl_status rrl_prompt_render(rrl_buffer *out, const rrl_prompt *p, const rrl_message *messages, int n,
                             bool generation_prompt) {
    if (n < 1) return RRL_FAIL(RRL_ERR_CONFIG, "a conversation needs at least one message");
    RRL_TRY(rrl_buffer_puts(out, "")); /* so that data is a text even where nothing is rendered */
    if (p->file) return render_file(out, p, messages, n);
    if (p->chat) return p->chat->render(out, messages, n, generation_prompt);
    return RRL_FAIL(RRL_ERR_CONFIG, "prompt format text renders no conversations; use format chat");
}

rrl_status rrl_prompt_text(rrl_buffer *out, const rrl_prompt *p, const char *question) {
    rrl_status rc = RRL_OK;
    rrl_buffer text = {0};
    RRL_GOTO(fill(&text, p->text, (const char *const[]){QUESTION}, (const char *const[]){question}, 1));
    if (p->chat || p->file)
        RRL_GOTO(rrl_prompt_render(out, p, &(rrl_message){"user", text.data}, 1, true));
    else
        RRL_GOTO(rrl_buffer_put(out, text.data, text.len));
done:
    rrl_buffer_free(&text);
    return rc;
}

rrl_status rrl_prompt_ids(int32_t **ids, int64_t *n, const rrl_prompt *p, const char *question) {
    rrl_status rc = RRL_OK;
    rrl_buffer text = {0};
    RRL_GOTO(rrl_prompt_text(&text, p, question));
    RRL_GOTO(rrl_tokenizer_encode(ids, n, p->tokenizer, text.data, text.len));
done:
    rrl_buffer_free(&text);
    return rc;
}
