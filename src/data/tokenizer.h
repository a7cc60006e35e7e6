/* tokenizer.json: byte-level BPE as the tokenizers library computes it. */
#ifndef RRL_DATA_TOKENIZER_H
#define RRL_DATA_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct rrl_tokenizer rrl_tokenizer;
/** From a model folder: tokenizer.json (BPE; NFC or no normaliser; pre-tokenisers Digits, ByteLevel, Split,
 * Sequence) and, where they are there, tokenizer_config.json and chat_template.jinja. Anything else is
 * refused by name. Thread-safe for reading after open. RRL_ERR_DATA. */
rrl_status rrl_tokenizer_open(rrl_tokenizer **out, const char *dir);
void rrl_tokenizer_close(rrl_tokenizer **t);
/** Token ids of UTF-8 text; added tokens in the text are recognised, nothing is added; the caller frees *ids.
 * Time is near linear in len, whatever the text. Errors: RRL_ERR_DATA (no UTF-8). */
rrl_status rrl_tokenizer_encode(int32_t **ids, int64_t *n, const rrl_tokenizer *t, const char *text,
                                size_t len);
/** Exact bytes of ids, appended; skip_special leaves out tokens marked special. Ids without a token add
 * nothing. */
rrl_status rrl_tokenizer_bytes(rrl_buffer *out, const rrl_tokenizer *t, const int32_t *ids, int64_t n,
                               bool skip_special);
/** As bytes, then invalid UTF-8 replaced by U+FFFD (maximal subparts): the one text of a completion. */
rrl_status rrl_tokenizer_decode(rrl_buffer *out, const rrl_tokenizer *t, const int32_t *ids, int64_t n,
                                bool skip_special);
/** Id of an added or ordinary token by its text; -1 if none. */
int32_t rrl_tokenizer_id(const rrl_tokenizer *t, const char *token);
/** Largest id + 1; not every id below has a token. */
int32_t rrl_tokenizer_size(const rrl_tokenizer *t);
/** Chat template text of tokenizer_config.json (or chat_template.jinja), NULL if none; eos token id of
 *  tokenizer_config.json, -1 if none. */
const char *rrl_tokenizer_chat_template(const rrl_tokenizer *t);
int32_t rrl_tokenizer_eos(const rrl_tokenizer *t);
/** SHA-256 hex over the files used, in this order: tokenizer.json, tokenizer_config.json,
 * chat_template.jinja. */
const char *rrl_tokenizer_digest(const rrl_tokenizer *t);

#endif
