/* The vocabulary of a byte-level tokenizer: id <-> text as tokenizer.json spells it <-> the bytes it stands
 * for. */
#ifndef RRL_DATA_VOCAB_H
#define RRL_DATA_VOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"

enum { RRL_VOCAB_MAX = 1 << 22 }; /* ids stay below: bounds what a damaged file can ask for */

typedef struct rrl_vocab rrl_vocab;
rrl_status rrl_vocab_open(rrl_vocab **out);
void rrl_vocab_close(rrl_vocab **v);
/** Add a token. Errors: RRL_ERR_DATA (id out of range, id or text taken by another token). */
rrl_status rrl_vocab_add(rrl_vocab *v, const char *text, int64_t id, const char *where);
/** Id of a text, -1 if none. */
int32_t rrl_vocab_find(const rrl_vocab *v, const char *text, size_t len);
/** Id of the token that stands for one byte, -1 if the vocabulary lacks it. */
int32_t rrl_vocab_byte(const rrl_vocab *v, uint8_t byte);
/** Text and bytes of an id; NULL and 0 where the id has no token. */
const char *rrl_vocab_text(const rrl_vocab *v, int32_t id, size_t *len);
const char *rrl_vocab_bytes(const rrl_vocab *v, int32_t id, size_t *len);
/** Largest id + 1. */
int32_t rrl_vocab_size(const rrl_vocab *v);
/** Append the spelling of raw bytes in the byte-level alphabet: 0x20 becomes U+0120 and so on. */
rrl_status rrl_vocab_spell(rrl_buffer *b, const char *bytes, size_t len);

#endif
