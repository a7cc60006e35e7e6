/* Normalisation and the cutting of text into the pieces within which bytes are merged. */
#ifndef RRL_DATA_PRETOKENIZE_H
#define RRL_DATA_PRETOKENIZE_H

#include <stdint.h>

#include "base/json.h"
#include "base/memory.h"

typedef struct {
    size_t at, len;
} rrl_span;

typedef struct {
    rrl_span *data;
    size_t n, capacity;
} rrl_spans;

typedef struct rrl_pretokenizer rrl_pretokenizer;
/** From the "pre_tokenizer" of tokenizer.json: Digits, Split and a closing ByteLevel, in a Sequence or alone.
 * Anything else is refused by name. `where` names the file. Errors: RRL_ERR_DATA. */
rrl_status rrl_pretokenizer_open(rrl_pretokenizer **out, const cJSON *node, const char *where);
void rrl_pretokenizer_close(rrl_pretokenizer **p);
/** Pieces of valid UTF-8 in order (out is overwritten, its memory reused). Errors: RRL_ERR_NOMEM,
 * RRL_ERR_INTERNAL. */
rrl_status rrl_pretokenize(rrl_spans *out, const rrl_pretokenizer *p, const char *text, size_t len);

/** Append the NFC form of valid UTF-8 as the tokenizers library computes it. */
rrl_status rrl_nfc(rrl_buffer *out, const char *text, size_t len);

#endif
