/* The parts of a tokenizer, shared by tokenizer.c and tokenizer_load.c alone. */
#ifndef RRL_DATA_TOKENIZER_PARTS_H
#define RRL_DATA_TOKENIZER_PARTS_H

#include "base/hash.h"
#include "data/added_tokens.h"
#include "data/bpe.h"
#include "data/pretokenize.h"
#include "data/tokenizer.h"
#include "data/vocab.h"

struct rrl_tokenizer {
    rrl_vocab *vocab; /* ordinary and added tokens */
    rrl_added_tokens *added;
    rrl_bpe *bpe;
    rrl_pretokenizer *pretokenizer;
    bool nfc;
    char *chat_template; /* NULL = none */
    int32_t eos;         /* -1 = none */
    char digest[RRL_SHA256_HEX];
};

/** Fill an empty tokenizer from the files of a folder. On failure what is there is freed by
 * rrl_tokenizer_close. */
rrl_status rrl_tokenizer_load(rrl_tokenizer *t, const char *dir);

#endif
