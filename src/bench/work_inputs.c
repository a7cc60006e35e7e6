/* Prompts, requests and adapters that the works share. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench/works.h"

int32_t rrl_bench_prompt_tokens(const rrl_bench *b) { return b->spec->quick ? 16 : 100; }
int32_t rrl_bench_new_tokens(const rrl_bench *b) { return b->spec->quick ? 8 : 128; }

/* Text of prompt i: one problem after the other, so that there are always enough tokens. */
static rrl_status prompt_text(rrl_buffer *text, int32_t i, int32_t tokens) {
    text->len = 0;
    for (int32_t k = 0; (int32_t)text->len < 16 * tokens; k++)
        RRL_TRY(rrl_buffer_printf(text, "Problem %d: A farmer has %d baskets with %d apples each and sells %d apples. "
                                  "How many apples are left?\n", i * 7 + k + 1, 3 + (i + k) % 40, 12 + (5 * i + k) % 50,
                                  7 + (3 * i + k) % 20));
    return RRL_OK;
}

static rrl_status fill_prompt(int32_t *to, rrl_buffer *text, const rrl_bench *b, int32_t i, int32_t tokens) {
    int32_t *ids = NULL;
    int64_t n = 0;
    RRL_TRY(prompt_text(text, i, tokens));
    RRL_TRY(rrl_tokenizer_encode(&ids, &n, b->tokenizer, text->data, text->len));
    if (n < tokens) {
        free(ids);
        return RRL_FAIL(RRL_ERR_DATA, "%s: the tokenizer makes %lld tokens of %zu bytes, at least %d are needed",
                        b->spec->model_dir, (long long)n, text->len, tokens);
    }
    memcpy(to, ids, (size_t)tokens * sizeof *to);
    free(ids);
    return RRL_OK;
}

rrl_status rrl_bench_prompts(int32_t **out, const rrl_bench *b, int32_t n, int32_t tokens) {
    rrl_status rc = RRL_OK;
    rrl_buffer text = {0};
    int32_t *ids = NULL;
    RRL_GOTO(rrl_alloc(&ids, (size_t)n * (size_t)tokens, sizeof *ids, "prompts"));
    for (int32_t i = 0; i < n; i++) RRL_GOTO(fill_prompt(ids + (size_t)i * (size_t)tokens, &text, b, i, tokens));
    *out = ids;
    ids = NULL;
done:
    free(ids);
    rrl_buffer_free(&text);
    return rc;
}

rrl_status rrl_bench_adapter(rrl_adapter **out, const rrl_bench *b, uint64_t seed) {
    const rrl_adapter_spec spec = {.r = RRL_BENCH_RANK, .alpha = 2 * RRL_BENCH_RANK};
    return rrl_adapter_open(out, b->model, &spec, seed);
}

rrl_request rrl_bench_request(const rrl_bench *b, const int32_t *prompt, int32_t n_prompt, int32_t count,
                              int32_t adapter, int64_t question) {
    return (rrl_request){.prompt = prompt,
                         .n_prompt = n_prompt,
                         .count = count,
                         .adapter = adapter,
                         .sampling = {.temperature = 0.7,
                                      .top_p = 0.95,
                                      .repetition_penalty = 1,
                                      .max_tokens = rrl_bench_new_tokens(b)},
                         .key = {.seed = 1, .purpose = RRL_RNG_TRAIN, .question = (uint64_t)question}};
}
