/* A request that does not fit is refused, never trimmed: a shorter max_tokens would change what a study measures. */
#include "rollout/request.h"

#include <inttypes.h>
#include <math.h>

static rrl_status check_prompt(const rrl_request *q, int32_t vocab, int32_t max_positions) {
    if (q->n_prompt < 1) return RRL_FAIL(RRL_ERR_DATA, "the prompt is empty; a completion needs at least one token");
    for (int32_t i = 0; i < q->n_prompt; i++)
        if (q->prompt[i] < 0 || q->prompt[i] >= vocab)
            return RRL_FAIL(RRL_ERR_DATA, "prompt token %d has id %d, outside the model's vocabulary of %d", i,
                            q->prompt[i], vocab);
    if (q->sampling.max_tokens < 1)
        return RRL_FAIL(RRL_ERR_RANGE, "max_tokens is %d, must be at least 1", q->sampling.max_tokens);
    const int64_t positions = (int64_t)q->n_prompt + q->sampling.max_tokens;
    if (positions > max_positions)
        return RRL_FAIL(RRL_ERR_DATA,
                        "prompt of %d tokens + max_tokens %d = %" PRId64 " positions, but the context has %d; "
                        "shorten the prompt or lower max_tokens",
                        q->n_prompt, q->sampling.max_tokens, positions, max_positions);
    return RRL_OK;
}

/* Written so that NaN fails. */
static rrl_status check_settings(const rrl_request *q, int32_t n_adapters) {
    const rrl_sampling *s = &q->sampling;
    if (q->first < 0 || q->count < 1 || q->count > INT32_MAX - q->first)
        return RRL_FAIL(RRL_ERR_RANGE, "samples from %d, %d of them: not a range of samples", q->first, q->count);
    if (q->adapter < -1 || q->adapter >= n_adapters)
        return RRL_FAIL(RRL_ERR_RANGE, "adapter %d, but %d are given (-1 = the base)", q->adapter, n_adapters);
    if (!(s->temperature >= 0 && isfinite(s->temperature)))
        return RRL_FAIL(RRL_ERR_RANGE, "temperature is %g, must be finite and at least 0", s->temperature);
    if (!(s->top_p > 0 && s->top_p <= 1))
        return RRL_FAIL(RRL_ERR_RANGE, "top_p is %g, must be in (0, 1]", s->top_p);
    if (s->top_k < 0) return RRL_FAIL(RRL_ERR_RANGE, "top_k is %d, must be at least 0 (0 = all)", s->top_k);
    if (!(s->repetition_penalty > 0 && isfinite(s->repetition_penalty)))
        return RRL_FAIL(RRL_ERR_RANGE, "repetition_penalty is %g, must be finite and above 0", s->repetition_penalty);
    if (!(q->dropout >= 0 && q->dropout < 1))
        return RRL_FAIL(RRL_ERR_RANGE, "dropout is %g, must be in [0, 1)", (double)q->dropout);
    return RRL_OK;
}

rrl_status rrl_request_check(const rrl_request *q, int64_t index, int32_t vocab, int32_t max_positions,
                             int32_t n_adapters) {
    rrl_status rc = check_settings(q, n_adapters);
    if (rc == RRL_OK) rc = check_prompt(q, vocab, max_positions);
    return rrl_context(rc, "rollout request %" PRId64 " (question key %016" PRIx64 ", samples from %d)", index,
                       q->key.question, q->first);
}
