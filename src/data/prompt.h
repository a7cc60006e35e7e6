/* Prompts: the protocol's text around a question, and chat rendering. */
#ifndef RRL_DATA_PROMPT_H
#define RRL_DATA_PROMPT_H

#include "data/tokenizer.h"

/** The reference protocol's prompt; {question} is replaced. */
#define RRL_PROMPT_TEMPLATE                                                                                  \
    "Solve the problem. End with 'Final answer: <answer>'.\nProblem: {question}\nSolution:"

typedef struct {
    const char *role, *content;
} rrl_message;

typedef struct rrl_prompt rrl_prompt;
/** t is borrowed and outlives the prompt. format "text" or "chat". template_text with {question}, NULL =
 *  RRL_PROMPT_TEMPLATE. chat: NULL = recognise the tokenizer's template by SHA-256; a known name ("smollm2",
 * "qwen2.5", "chatml"); or the path of a text file with {system} and {user}. An unknown template is refused
 * with its SHA-256 and the names. Errors: RRL_ERR_CONFIG. */
rrl_status rrl_prompt_open(rrl_prompt **out, const rrl_tokenizer *t, const char *format,
                           const char *template_text, const char *chat);
void rrl_prompt_close(rrl_prompt **p);
/** Name of the chat template in use ("smollm2", ..., "file"), "text" without one. */
const char *rrl_prompt_name(const rrl_prompt *p);
/** Text of a conversation by the chat template, appended. A template file has places for one exchange: it
 * renders one user message after an optional system message and already holds its own generation prompt.
 * Errors: RRL_ERR_CONFIG (no message, a role that the template does not know). */
rrl_status rrl_prompt_render(rrl_buffer *out, const rrl_prompt *p, const rrl_message *messages, int n,
                             bool generation_prompt);
/** Prompt text of a question, and its token ids (special tokens recognised once, nothing added; the caller
 * frees *ids). The text is appended. */
rrl_status rrl_prompt_text(rrl_buffer *out, const rrl_prompt *p, const char *question);
rrl_status rrl_prompt_ids(int32_t **ids, int64_t *n, const rrl_prompt *p, const char *question);

#endif
