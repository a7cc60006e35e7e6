/* A tokenizer.json: one that is accepted encodes a text and gives back bytes for every id. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer.h"
#include "fuzz_target.h"

static const char TEXT[] = "The sum of 12 and 34.5 is 46.5 \xe2\x9c\x93 <|im_end|>\n\n  caf\x65\xcc\x81, it's";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rrl_tokenizer *t = NULL;
    rrl_buffer bytes = {0};
    int32_t *ids = NULL;
    int64_t n = 0;
    if (rrl_tokenizer_open(&t, fuzz_folder("tokenizer.json", data, size)) != RRL_OK) return 0;
    if (rrl_tokenizer_encode(&ids, &n, t, TEXT, strlen(TEXT)) == RRL_OK) {
        for (int64_t i = 0; i < n; i++) fuzz_want(ids[i] >= 0 && ids[i] < rrl_tokenizer_size(t), "ids of tokens");
        fuzz_want(rrl_tokenizer_decode(&bytes, t, ids, n, true) == RRL_OK, "ids are decoded");
    }
    rrl_buffer_free(&bytes);
    free(ids);
    rrl_tokenizer_close(&t);
    return 0;
}
