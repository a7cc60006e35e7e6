/* The tokens themselves: keys, draws and penalty against the host's random numbers and the training forward.
 */
#include <math.h>

#include "base/random.h"
#include "check.h"
#include "model/slot.h"
#include "rollout_world.h"
#include "rrl/group.h"

enum { VOCAB = 272, CONTEXT = 160 };

/* Requests' prompts: 40 ids. */
static int32_t PROMPT[40];

static int run(world *w, result *results, const rrl_request *requests, int64_t n, int32_t batch_limit) {
    collector k = {.results = results};
    return CHECK_OK(generate(NULL, &k, w, requests, n, batch_limit, CONTEXT)) && CHECK_EQ_INT(k.calls, n);
}

/* A group in parts has the completions of the whole; sample, attempt and question each change them. */
static void test_keys(const char *dir) {
    world w;
    enum { WHOLE, FIRST, SECOND, ATTEMPT, QUESTION, N };
    result got[N] = {0};
    rrl_request requests[N];
    int64_t index[N];
    for (int i = 0; i < 40; i++) PROMPT[i] = 3 + i * 37 % 260;
    for (int i = 0; i < N; i++) {
        index[i] = i;
        requests[i] =
            (rrl_request){.prompt = PROMPT,
                          .n_prompt = 40,
                          .count = 8,
                          .adapter = 0,
                          .sampling = {1.0, 0.95, 1.0, 0, 48},
                          .key = {.seed = 42, .purpose = RRL_RNG_TRAIN, .step = 7, .question = 1012},
                          .user = &index[i]};
    }
    requests[FIRST].count = 3;
    requests[SECOND].first = 3;
    requests[SECOND].count = 5;
    requests[ATTEMPT].key.attempt = 1;
    requests[QUESTION].key.question++;
    requests[WHOLE].key.sample = 99; /* the caller's sample has no say */
    if (!CHECK_OK(world_open(&w, dir, "llama", "auto", 1))) return;
    if (run(&w, got, requests, N, 10)) {
        CHECK_EQ_INT(got[FIRST].total + got[SECOND].total, got[WHOLE].total);
        const size_t a = (size_t)got[FIRST].total, b = (size_t)got[SECOND].total;
        CHECK(memcmp(got[WHOLE].tokens, got[FIRST].tokens, a * 4) == 0);
        CHECK(memcmp(got[WHOLE].tokens + a, got[SECOND].tokens, b * 4) == 0);
        CHECK(memcmp(got[WHOLE].logprobs + a, got[SECOND].logprobs, b * 4) == 0);
        CHECK(!results_same(&got[WHOLE], &got[ATTEMPT]));
        CHECK(!results_same(&got[WHOLE], &got[QUESTION]));
    }
    results_free(got, N);
    world_close(&w);
}

/* Log-probs of every token of the vocabulary after the prompt and `prefix`, from one slot: one sequence each.
 */
static int next_logps(rrl_slot_engine *e, float *logp, const rrl_request *q, const int32_t *prefix, int32_t n,
                      rrl_adapter *a) {
    enum { MOST = 8 };
    static int32_t tokens[VOCAB * MOST], n_tokens[VOCAB];
    static uint32_t samples[VOCAB];
    static float all[VOCAB * MOST];
    if (!CHECK(n < MOST)) return 0;
    for (int32_t v = 0; v < VOCAB; v++) {
        memcpy(tokens + v * (n + 1), prefix, (size_t)n * sizeof *tokens);
        tokens[v * (n + 1) + n] = v;
        n_tokens[v] = n + 1;
    }
    const rrl_slot slot = {.prompt = q->prompt,
                           .n_prompt = q->n_prompt,
                           .n_seqs = VOCAB,
                           .tokens = tokens,
                           .n_tokens = n_tokens,
                           .temperature =
                               q->sampling.temperature == 0 ? 1.0f : (float)q->sampling.temperature,
                           .samples = samples};
    if (!CHECK_OK(rrl_slot_forward(e, all, NULL, &slot, a))) return 0;
    for (int32_t v = 0; v < VOCAB; v++) logp[v] = all[v * (n + 1) + n];
    return 1;
}

/* Each token is the first whose running probability in order of ids exceeds the uniform of (key, sample,
 * index of the token), by the host's random numbers and the training forward's probabilities. */
static void test_draws(const char *dir) {
    static int32_t prompt[] = {17, 201, 5, 99, 40};
    world w;
    rrl_slot_engine *e = NULL;
    result got = {0};
    int64_t index = 0;
    float logp[VOCAB];
    const rrl_request q = {
        .prompt = prompt,
        .n_prompt = 5,
        .first = 3,
        .count = 6,
        .adapter = 0,
        .sampling = {0.9, 1.0, 1.0, 0, 6},
        .key = {.seed = 77, .purpose = RRL_RNG_TRAIN, .step = 9, .question = 1u << 20, .attempt = 2},
        .user = &index};
    if (!CHECK_OK(world_open(&w, dir, "llama", "auto", 1))) return;
    if (CHECK_OK(rrl_slot_engine_open(&e, w.model, &(rrl_slot_limits){.max_rows = 2048, .max_seqs = VOCAB})) &&
        run(&w, &got, &q, 1, 4)) {
        const int32_t *tokens = got.tokens;
        for (int32_t s = 0; s < q.count; tokens += got.n_tokens[s++])
            for (int32_t k = 0; k < got.n_tokens[s]; k++) {
                rrl_rng_key key = q.key;
                key.sample = (uint32_t)(q.first + s);
                const double u = rrl_rng_uniform(&key, (uint32_t)k);
                double sum = 0;
                int32_t v = -1;
                if (!next_logps(e, logp, &q, tokens, k, w.adapters[0])) break;
                while (v + 1 < VOCAB && sum <= u) sum += exp((double)logp[++v]);
                CHECK_EQ_INT(tokens[k], v);
            }
        CHECK(got.total > 20);
    }
    rrl_slot_engine_close(&e);
    results_free(&got, 1);
    world_close(&w);
}

/* A penalty so large that no token of the prompt or the completion so far can win again: the greedy token is
 * the best of all others. Without a penalty this prompt repeats 151. */
static void test_penalty(const char *dir) {
    static int32_t prompt[] = {79, 151, 151};
    world w;
    rrl_slot_engine *e = NULL;
    result got = {0};
    int64_t index = 0;
    float logp[VOCAB];
    const rrl_request q = {.prompt = prompt,
                           .n_prompt = 3,
                           .count = 3,
                           .adapter = 0,
                           .sampling = {0.0, 1.0, 1e9, 0, 7},
                           .user = &index};
    if (!CHECK_OK(world_open(&w, dir, "llama", "auto", 1))) return;
    if (CHECK_OK(rrl_slot_engine_open(&e, w.model, &(rrl_slot_limits){.max_rows = 2304, .max_seqs = VOCAB})) &&
        run(&w, &got, &q, 1, 2)) {
        const int32_t *tokens = got.tokens;
        for (int32_t s = 0; s < q.count; tokens += got.n_tokens[s++]) {
            char seen[VOCAB] = {[79] = 1, [151] = 1};
            for (int32_t k = 0; k < got.n_tokens[s]; k++) {
                int32_t best = -1;
                if (!next_logps(e, logp, &q, tokens, k, w.adapters[0])) break;
                for (int32_t v = 0; v < VOCAB; v++)
                    if (!seen[v] && (best < 0 || logp[v] > logp[best])) best = v;
                CHECK_EQ_INT(tokens[k], best);
                CHECK(logp[tokens[k]] ==
                      got.logprobs[tokens - got.tokens + k]); /* recorded before the penalty */
                seen[tokens[k]] = 1;
            }
        }
        CHECK(got.total >= 9);
    }
    rrl_slot_engine_close(&e);
    results_free(&got, 1);
    world_close(&w);
}

/* Greedy on the fourth golden prompt draws 182 first, which is an end token here. */
static void test_first_is_end(const char *dir) {
    static int32_t prompt[] = {141, 256, 221, 27, 219, 107, 108, 150, 224,
                               15,  165, 158, 55, 207, 75,  30,  139};
    world w;
    result got = {0};
    int64_t index = 0;
    const rrl_request q = {.prompt = prompt,
                           .n_prompt = 17,
                           .count = 4,
                           .adapter = -1,
                           .sampling = {0.0, 1.0, 1.0, 0, 32},
                           .user = &index};
    if (!CHECK_OK(world_open(&w, dir, "llama", "auto", 1))) return;
    if (run(&w, &got, &q, 1, 2))
        for (int s = 0; s < 4; s++) {
            CHECK_EQ_INT(got.n_tokens[s], 1);
            CHECK_EQ_INT(got.tokens[s], 182);
            CHECK_EQ_INT(got.finish[s], RRL_FINISH_EOS);
        }
    results_free(&got, 1);
    world_close(&w);
}

int main(void) {
    char dir[1024];
    if (CHECK_OK(many_ends_make(dir, "llama"))) {
        test_keys(dir);
        test_draws(dir);
        test_penalty(dir);
        test_first_is_end(dir);
    }
    many_ends_remove(dir);
    return CHECK_DONE();
}
