/* The wire form of a group: one that is accepted packs to the same bytes again. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "rrl/group.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rrl_group *g = NULL;
    char *again = NULL;
    size_t n = 0;
    if (rrl_group_unpack(&g, (const char *)data, size) != RRL_OK) return 0;
    fuzz_want(rrl_group_pack(&again, &n, g) == RRL_OK, "what was unpacked is packed");
    fuzz_want(n == size && memcmp(again, data, n) == 0, "to the same bytes");
    for (int32_t i = 0; i < g->head.count; i++)
        fuzz_want(rrl_group_token_at(g, i) <= g->head.n_tokens && rrl_group_answer_at(g, i) <= g->head.n_text,
                  "offsets lie in the arrays");
    free(again);
    rrl_group_free(&g);
    return 0;
}
