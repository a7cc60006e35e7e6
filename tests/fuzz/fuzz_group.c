/* The wire forms of a group, whole and of its rows alone: what is accepted packs to the same bytes again. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "rrl/group.h"

typedef rrl_status unpack_fn(rrl_group **out, const char *bytes, size_t len);
typedef rrl_status pack_fn(char **bytes, size_t *len, const rrl_group *g);

/* Both ways; *out, NULL where it is refused, is the caller's. */
static void there_and_back(rrl_group **out, unpack_fn *unpack, pack_fn *pack, const uint8_t *data, size_t size) {
    char *again = NULL;
    size_t n = 0;
    if (unpack(out, (const char *)data, size) != RRL_OK) return;
    fuzz_want(pack(&again, &n, *out) == RRL_OK, "what was unpacked is packed");
    fuzz_want(n == size && memcmp(again, data, n) == 0, "to the same bytes");
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rrl_group *whole = NULL, *rows = NULL;
    there_and_back(&whole, rrl_group_unpack, rrl_group_pack, data, size);
    there_and_back(&rows, rrl_group_unpack_rows, rrl_group_pack_rows, data, size);
    for (int32_t i = 0; whole && i < whole->head.count; i++)
        fuzz_want(rrl_group_token_at(whole, i) <= whole->head.n_tokens &&
                      rrl_group_answer_at(whole, i) <= whole->head.n_text, "offsets lie in the arrays");
    fuzz_want(!whole || !rows || whole->head.n_tokens + whole->head.n_text == 0, "rows alone are no group with text");
    rrl_group_free(&whole);
    rrl_group_free(&rows);
    return 0;
}
