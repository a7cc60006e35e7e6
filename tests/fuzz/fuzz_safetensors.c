/* A safetensors file: every tensor of a file that is accepted is read whole. */
#include <stdlib.h>

#include "data/safetensors.h"
#include "fuzz_target.h"

static void read_tensor(const rrl_st_tensor *t) {
    float *values = malloc(t->n_elements ? (size_t)t->n_elements * sizeof *values : 1);
    if (values) (void)rrl_safetensors_to_f32(values, t);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rrl_safetensors *s = NULL;
    char digest[65];
    if (rrl_safetensors_open(&s, fuzz_file(data, size)) != RRL_OK) return 0;
    for (int64_t i = 0; i < rrl_safetensors_count(s); i++) {
        const rrl_st_tensor *t = rrl_safetensors_at(s, i);
        fuzz_want(rrl_safetensors_find(s, t->name) == t, "a tensor is found by its name");
        fuzz_want(t->n_elements <= (int64_t)size, "a tensor lies within its file");
        read_tensor(t);
    }
    fuzz_want(rrl_safetensors_digest(digest, s) == RRL_OK, "a digest");
    rrl_safetensors_close(&s);
    return 0;
}
