/* Rollout against golden greedy tokens, and against itself: the same bits at any batch limit, thread count,
 * order and company, the recorded log-probs equal to the training forward's, the counters and blocks exact. */
#include <math.h>

#include "base/json.h"
#include "base/random.h"
#include "check.h"
#include "model/slot.h"
#include "rollout/kv_blocks.h"
#include "rollout_world.h"
#include "rrl/group.h"

#define GOLDEN RRL_SOURCE_DIR "/tests/golden/"

/* --- the mixed requests */

enum { N_REQUESTS = 14, MAX_PROMPT = 96, CONTEXT = 160, VOCAB_AT_LEAST = 272 };

typedef struct {
    int32_t prompts[N_REQUESTS][MAX_PROMPT];
    int64_t index[N_REQUESTS];
    rrl_request requests[N_REQUESTS];
} mix;

/* Block edges (1, 31, 32, 33, 64), every setting, max_tokens 1, and more samples than some batch limits. */
static const struct {
    int32_t n_prompt, first, count, adapter;
    rrl_sampling sampling; /* temperature, top_p, penalty, top_k, max_tokens */
} MIX[N_REQUESTS] = {
    {1, 0, 3, 0, {1.0, 1.0, 1.0, 0, 40}},   {31, 0, 4, -1, {0.7, 0.95, 1.0, 0, 37}},
    {32, 0, 4, 0, {1.0, 1.0, 1.0, 0, 33}},  {33, 2, 5, 1, {1.3, 0.9, 1.0, 20, 12}},
    {64, 0, 2, 0, {0.7, 1.0, 1.3, 0, 20}},  {5, 0, 16, 0, {1.0, 1.0, 1.0, 50, 24}},
    {17, 7, 1, -1, {0.0, 1.0, 1.0, 0, 32}}, {17, 0, 2, 0, {0.0, 1.0, 1.2, 0, 32}},
    {96, 0, 8, 1, {1.0, 0.95, 1.1, 0, 64}}, {90, 0, 2, 0, {1.0, 1.0, 1.0, 0, 1}},
    {95, 0, 3, -1, {0.8, 1.0, 1.0, 5, 2}},  {63, 0, 9, 0, {1.0, 1.0, 1.0, 0, 30}},
    {40, 0, 8, 0, {1.0, 0.95, 1.0, 0, 48}}, {2, 1, 1, 1, {2.0, 1.0, 1.0, 0, 50}},
};

static void mix_make(mix *x, float dropout) {
    for (int i = 0; i < N_REQUESTS; i++) {
        const rrl_rng_key ids = {.seed = 3, .purpose = RRL_RNG_FIXTURE, .sample = (uint32_t)i};
        for (int k = 0; k < MIX[i].n_prompt; k++)
            x->prompts[i][k] = (int32_t)(rrl_rng_uniform(&ids, (uint32_t)k) * VOCAB_AT_LEAST);
        x->index[i] = i;
        x->requests[i] =
            (rrl_request){.prompt = x->prompts[i],
                          .n_prompt = MIX[i].n_prompt,
                          .first = MIX[i].first,
                          .count = MIX[i].count,
                          .adapter = MIX[i].adapter,
                          .sampling = MIX[i].sampling,
                          .key = {.seed = 42 + (uint64_t)(i % 3),
                                  .purpose = RRL_RNG_TRAIN,
                                  .step = 7,
                                  .question = 1000u + (uint64_t)i},
                          .dropout = i % 3 == 2 ? 0 : dropout, /* two probabilities in one call */
                          .user = &x->index[i]};
    }
}

/* Run requests; the counters and blocks must be exact. */
static int run(world *w, result *results, const rrl_request *requests, int64_t n, int32_t batch_limit) {
    collector k = {.results = results};
    rrl_rollout_counters c;
    int64_t prompts = 0, completions = 0, tokens = 0;
    if (!CHECK_OK(generate(&c, &k, w, requests, n, batch_limit, CONTEXT)) || !CHECK_EQ_INT(k.calls, n))
        return 0;
    for (int64_t i = 0; i < n; i++) {
        prompts += requests[i].n_prompt;
        completions += requests[i].count;
        tokens += results[*(int64_t *)requests[i].user].total;
    }
    CHECK_EQ_INT(c.completions, completions);
    CHECK_EQ_INT(c.prefill_tokens, prompts);
    CHECK_EQ_INT(c.decode_rows, tokens);
    CHECK_EQ_INT(c.model_rows, prompts + tokens - completions);
    CHECK(c.decode_steps <= k.beats);
    CHECK_EQ_INT(c.used_blocks, 0);
    CHECK(c.peak_blocks > 0 && c.peak_blocks <= c.pool_blocks);
    CHECK_EQ_INT(c.pool_blocks, batch_limit * (CONTEXT / RRL_KV_BLOCK) + 1);
    if (batch_limit == 1) CHECK_EQ_INT(c.decode_steps, tokens - completions);
    return 1;
}

/* The mix in its own order, checked token by token for shape. */
static void check_shape(const world *w, const mix *x, const result *results) {
    const rrl_model_config *dims = rrl_model_dims(w->model);
    int64_t ended = 0;
    for (int i = 0; i < N_REQUESTS; i++) {
        const rrl_request *q = &x->requests[i];
        int64_t at = 0;
        for (int32_t s = 0; s < q->count; at += results[i].n_tokens[s++]) {
            const int32_t n = results[i].n_tokens[s];
            CHECK(n >= 1 && n <= q->sampling.max_tokens);
            for (int32_t k = 0; k < n; k++) {
                const int32_t token = results[i].tokens[at + k];
                int end = 0;
                for (int e = 0; e < dims->n_eos; e++) end = end || dims->eos[e] == token;
                CHECK(token >= 0 && token < dims->vocab);
                CHECK(results[i].logprobs[at + k] <= 0);
                CHECK(!end ||
                      k == n - 1); /* nothing follows an end token, and it is part of the completion */
                if (k < n - 1) continue;
                CHECK_EQ_INT(results[i].finish[s], end ? RRL_FINISH_EOS : RRL_FINISH_LENGTH);
                CHECK(end || n == q->sampling.max_tokens);
                ended += end;
            }
        }
        CHECK_EQ_INT(at, results[i].total);
    }
    CHECK(ended > 10); /* the mix has both kinds of ends */
}

/* Recorded log-probs against the training forward, as stored arrays. */
static void check_trained(world *w, const mix *x, const result *results) {
    rrl_slot_engine *e = NULL;
    static float logp[1024];
    uint32_t samples[32];
    if (!CHECK_OK(rrl_slot_engine_open(&e, w->model, &(rrl_slot_limits){.max_rows = 1024, .max_seqs = 32}))) return;
    for (int i = 0; i < N_REQUESTS; i++) {
        const rrl_request *q = &x->requests[i];
        for (int32_t s = 0; s < q->count; s++) samples[s] = (uint32_t)(q->first + s);
        const rrl_slot slot = {.prompt = q->prompt,
                               .n_prompt = q->n_prompt,
                               .n_seqs = q->count,
                               .tokens = results[i].tokens,
                               .n_tokens = results[i].n_tokens,
                               .temperature =
                                   q->sampling.temperature == 0 ? 1.0f : (float)q->sampling.temperature,
                               .dropout = q->dropout,
                               .iteration = 0,
                               .seed = q->key.seed,
                               .step = q->key.step,
                               .question = q->key.question,
                               .samples = samples};
        if (!CHECK_OK(
                rrl_slot_forward(e, logp, NULL, &slot, q->adapter < 0 ? NULL : w->adapters[q->adapter])))
            break;
        if (!CHECK(memcmp(logp, results[i].logprobs, (size_t)results[i].total * sizeof *logp) == 0))
            fprintf(stderr, "  request %d: first recorded %.9g, trained %.9g\n", i,
                    (double)results[i].logprobs[0], (double)logp[0]);
    }
    rrl_slot_engine_close(&e);
}

/* --- tests */

static void test_blocks(void) {
    rrl_kv_blocks *b = NULL;
    int32_t x = -1, y = -1, z = -1;
    if (!CHECK_OK(rrl_kv_blocks_open(&b, 2))) return;
    CHECK_OK(rrl_kv_blocks_take(b, &x));
    CHECK_OK(rrl_kv_blocks_take(b, &y));
    CHECK(x != y && x >= 0 && x < 2 && y >= 0 && y < 2);
    CHECK_STATUS(rrl_kv_blocks_take(b, &z), RRL_ERR_INTERNAL);
    CHECK_EQ_INT(z, -1);
    rrl_kv_blocks_share(b, x);
    rrl_kv_blocks_drop(b, x);
    CHECK_EQ_INT(rrl_kv_blocks_used(b), 2); /* one holder is left */
    rrl_kv_blocks_drop(b, x);
    CHECK_EQ_INT(rrl_kv_blocks_used(b), 1);
    CHECK_OK(rrl_kv_blocks_take(b, &z));
    CHECK_EQ_INT(z, x);
    rrl_kv_blocks_drop(b, y);
    rrl_kv_blocks_drop(b, z);
    CHECK_EQ_INT(rrl_kv_blocks_used(b), 0);
    CHECK_EQ_INT(rrl_kv_blocks_peak(b), 2);
    rrl_kv_blocks_close(&b);
    CHECK(b == NULL);
}

/* Golden argmax tokens; there an end token does not stop, here it does and is the last one. */
static void check_greedy(world *w, const cJSON *cases) {
    enum { MOST = 8, TOKENS = 32 };
    int32_t prompts[MOST][64];
    int64_t index[2 * MOST];
    rrl_request requests[2 * MOST];
    result results[2 * MOST] = {0};
    const cJSON *item;
    int n = 0;
    cJSON_ArrayForEach(item, cases) {
        const cJSON *ids = cJSON_GetObjectItem(item, "prompt_ids");
        const int len = cJSON_GetArraySize(ids);
        if (!CHECK(n < MOST && len <= 64)) return;
        for (int k = 0; k < len; k++) prompts[n][k] = cJSON_GetArrayItem(ids, k)->valueint;
        for (int on = 0; on < 2; on++) {
            index[2 * n + on] = 2 * n + on;
            requests[2 * n + on] = (rrl_request){.prompt = prompts[n],
                                                 .n_prompt = len,
                                                 .count = 1,
                                                 .adapter = on - 1,
                                                 .sampling = {0.0, 1.0, 1.0, 0, TOKENS},
                                                 .user = &index[2 * n + on]};
        }
        n++;
    }
    CHECK_EQ_INT(n, 4);
    if (run(w, results, requests, 2 * n, 3))
        for (int i = 0; i < 2 * n; i++) {
            const cJSON *want = cJSON_GetObjectItem(cJSON_GetArrayItem(cases, i / 2),
                                                    i % 2 ? "output_ids_adapter" : "output_ids");
            int k = 0, end = 0;
            for (; k < TOKENS && !end; k++) {
                const int32_t token = cJSON_GetArrayItem(want, k)->valueint;
                end = token == 2; /* generation_config.json */
                if (!CHECK(k < results[i].total) || !CHECK_EQ_INT(results[i].tokens[k], token)) break;
            }
            CHECK_EQ_INT(results[i].total, k);
            CHECK_EQ_INT(results[i].finish[0], end ? RRL_FINISH_EOS : RRL_FINISH_LENGTH);
        }
    results_free(results, 2 * MOST);
}

static void test_greedy(const char *family) {
    world w;
    cJSON *cases = NULL;
    char path[1024], dir[1024];
    snprintf(path, sizeof path, GOLDEN "%s/greedy.json", family);
    snprintf(dir, sizeof dir, GOLDEN "%s/model", family);
    if (CHECK_OK(rrl_json_file(&cases, path, 1 << 20)) && CHECK_OK(world_open(&w, dir, family, "auto", 1))) {
        check_greedy(&w, cases);
        world_close(&w);
    }
    cJSON_Delete(cases);
}

/* The mix alone, request by request, is the measure of every other way to run it. */
static void test_same_bits(const char *dir, const char *family, rrl_dtype kv, float dropout) {
    static mix x;
    world w;
    result want[N_REQUESTS] = {0}, got[N_REQUESTS] = {0};
    static const struct {
        const char *what, *isa;
        int threads, batch_limit, reversed;
    } WAYS[] = {
        {"batch limit 1", "auto", 1, 1, 0},           {"batch limit 7", "auto", 1, 7, 0},
        {"batch limit 64", "auto", 1, 64, 0},         {"batch limit 2, 2 threads", "auto", 2, 2, 0},
        {"64 reversed, 2 threads", "auto", 2, 64, 1}, {"5 reversed", "auto", 1, 5, 1},
        {"reference loops", "reference", 1, 16, 0},
    };
    mix_make(&x, dropout);
    const world_numbers numbers = {RRL_F32, kv};
    if (!CHECK_OK(world_open_in(&w, numbers, dir, family, "auto", 1))) return;
    int ok = 1;
    for (int i = 0; i < N_REQUESTS; i++) ok = ok && run(&w, want, &x.requests[i], 1, 3);
    if (ok) {
        check_shape(&w, &x, want);
        check_trained(&w, &x, want);
    }
    world_close(&w);
    for (size_t way = 0; ok && way < sizeof WAYS / sizeof *WAYS; way++) {
        rrl_request requests[N_REQUESTS];
        for (int i = 0; i < N_REQUESTS; i++)
            requests[i] = x.requests[WAYS[way].reversed ? N_REQUESTS - 1 - i : i];
        if (!CHECK_OK(world_open_in(&w, numbers, dir, family, WAYS[way].isa, WAYS[way].threads))) break;
        if (run(&w, got, requests, N_REQUESTS, WAYS[way].batch_limit))
            for (int i = 0; i < N_REQUESTS; i++)
                if (!CHECK(results_same(&want[i], &got[i])))
                    fprintf(stderr, "  %s, request %d\n", WAYS[way].what, i);
        results_free(got, N_REQUESTS);
        world_close(&w);
    }
    results_free(want, N_REQUESTS);
}

/* The pool suffices at its tightest: contexts that requests fill exactly, every batch limit, ends in any
 * order. */
static void test_tight_pool(const char *dir) {
    enum { N = 12, LONGEST = 70 };
    static int32_t prompt[LONGEST];
    world w;
    result got[N] = {0};
    int64_t index[N];
    rrl_request requests[N];
    int64_t at_limit = 0;
    for (int k = 0; k < LONGEST; k++) prompt[k] = 3 + k;
    if (!CHECK_OK(world_open(&w, dir, "llama", "auto", 1))) return;
    for (int round = 0; round < 12; round++) {
        const rrl_rng_key key = {.seed = 8, .purpose = RRL_RNG_FIXTURE, .sample = (uint32_t)round};
        const int32_t batch_limit = 1 + round % 6, context = LONGEST + round % 3 * 16;
        collector k = {.results = got};
        rrl_rollout_counters c;
        for (int i = 0; i < N; i++) {
            const int32_t len = 1 + (int32_t)(rrl_rng_uniform(&key, (uint32_t)(2 * i)) * (LONGEST - 1));
            index[i] = i;
            requests[i] =
                (rrl_request){.prompt = prompt,
                              .n_prompt = len,
                              .count = 1 + (int32_t)(rrl_rng_uniform(&key, (uint32_t)(2 * i + 1)) * 7),
                              .adapter = -1,
                              .sampling = {2.0, 1.0, 1.0, 0, context - len},
                              .key = {.seed = (uint64_t)round, .question = (uint64_t)i},
                              .user = &index[i]};
        }
        if (CHECK_OK(generate(&c, &k, &w, requests, N, batch_limit, context))) {
            CHECK_EQ_INT(c.used_blocks, 0);
            CHECK(c.peak_blocks <= c.pool_blocks);
            at_limit += c.peak_blocks >= c.pool_blocks - 1;
        }
        results_free(got, N);
    }
    CHECK(at_limit > 0); /* the rounds reach what the pool is sized for */
    world_close(&w);
}

/* --- refusals */

static void refuse(world *w, rrl_request q, rrl_status want, const char *word) {
    rrl_rollout *r = NULL;
    collector k = {0};
    if (!CHECK_OK(rrl_rollout_open(&r, w->model, 4, 100))) return;
    CHECK_STATUS(rrl_rollout_run(r, w->adapters, 2, &q, 1, collect, &k, NULL), want);
    if (!CHECK(strstr(rrl_error_message(), word) != NULL))
        fprintf(stderr, "  message \"%s\" lacks \"%s\"\n", rrl_error_message(), word);
    CHECK_EQ_INT(rrl_rollout_counts(r)->prefill_tokens, 0);
    rrl_rollout_close(&r);
}

static void test_refusals(const char *dir) {
    static int32_t prompt[200];
    world w;
    rrl_request good = {
        .prompt = prompt, .n_prompt = 40, .count = 2, .adapter = 0, .sampling = {1, 1, 1, 0, 60}};
    good.key.question = 0xabcdef;
    if (!CHECK_OK(world_open(&w, dir, "llama", "auto", 1))) return;
    rrl_request q = good;
    q.n_prompt = 0;
    refuse(&w, q, RRL_ERR_DATA, "prompt is empty");
    q = good, q.n_prompt = 41;
    refuse(&w, q, RRL_ERR_DATA,
           "prompt of 41 tokens + max_tokens 60 = 101 positions, but the context has 100");
    refuse(&w, q, RRL_ERR_DATA, "request 0 (question key 0000000000abcdef");
    prompt[5] = 272;
    refuse(&w, good, RRL_ERR_DATA, "prompt token 5 has id 272");
    prompt[5] = 1;
    q = good, q.adapter = 2;
    refuse(&w, q, RRL_ERR_RANGE, "adapter 2");
    q = good, q.sampling.temperature = NAN;
    refuse(&w, q, RRL_ERR_RANGE, "temperature");
    q = good, q.sampling.top_p = 0;
    refuse(&w, q, RRL_ERR_RANGE, "top_p");
    q = good, q.sampling.repetition_penalty = 0;
    refuse(&w, q, RRL_ERR_RANGE, "repetition_penalty");
    q = good, q.sampling.max_tokens = 0;
    refuse(&w, q, RRL_ERR_RANGE, "max_tokens");
    q = good, q.count = 0;
    refuse(&w, q, RRL_ERR_RANGE, "samples");
    q = good, q.dropout = 1;
    refuse(&w, q, RRL_ERR_RANGE, "dropout");
    rrl_rollout *r = NULL;
    CHECK_STATUS(rrl_rollout_open(&r, w.model, 0, 100), RRL_ERR_RANGE);
    CHECK(r == NULL);
    world_close(&w);
}

/* The model's own context bounds a larger max_positions, and is reached exactly. */
static void test_context(const char *dir) {
    static int32_t prompt[256];
    world w;
    rrl_rollout *r = NULL;
    result got = {0};
    int64_t index = 0;
    collector k = {.results = &got};
    rrl_request q = {.prompt = prompt, .n_prompt = 250, .count = 1, .adapter = -1, .user = &index};
    q.sampling = (rrl_sampling){1, 1, 1, 0, 6};
    if (!CHECK_OK(world_open(&w, dir, "llama", "auto", 1))) return;
    if (CHECK_OK(rrl_rollout_open(&r, w.model, 2, 100000))) {
        CHECK_OK(rrl_rollout_run(r, NULL, 0, &q, 1, collect, &k, NULL));
        CHECK_EQ_INT(k.calls, 1);
        q.sampling.max_tokens = 7;
        CHECK_STATUS(rrl_rollout_run(r, NULL, 0, &q, 1, collect, &k, NULL), RRL_ERR_DATA);
        CHECK(strstr(rrl_error_message(), "context has 256") != NULL);
        CHECK_OK(rrl_rollout_run(r, NULL, 0, NULL, 0, collect, &k, NULL)); /* nothing to do */
    }
    CHECK(rrl_rollout_bytes(rrl_model_dims(w.model), RRL_F32, 2, 100000) >=
          (2 * 8 + 1) * rrl_kv_block_bytes(rrl_model_dims(w.model), RRL_F32));
    rrl_rollout_close(&r);
    results_free(&got, 1);
    world_close(&w);
}

/* A callback that fails ends the run; the engine is then as good as new. */
static void test_callback_fails(const char *dir) {
    static mix x;
    world w;
    rrl_rollout *r = NULL;
    result first[N_REQUESTS] = {0}, again[N_REQUESTS] = {0};
    mix_make(&x, 0);
    if (!CHECK_OK(world_open(&w, dir, "llama", "auto", 1))) return;
    if (CHECK_OK(rrl_rollout_open(&r, w.model, 9, CONTEXT))) {
        collector k = {.results = first, .fail_at = 3};
        CHECK_STATUS(rrl_rollout_run(r, w.adapters, 2, x.requests, N_REQUESTS, collect, &k, collect_beat),
                     RRL_ERR_COMM);
        CHECK_EQ_INT(k.calls, 3);
        CHECK_EQ_INT(rrl_rollout_counts(r)->used_blocks, 0);
        k = (collector){.results = again};
        CHECK_OK(rrl_rollout_run(r, w.adapters, 2, x.requests, N_REQUESTS, collect, &k, collect_beat));
        CHECK_EQ_INT(k.calls, N_REQUESTS);
        CHECK_EQ_INT(rrl_rollout_counts(r)->used_blocks, 0);
        for (int i = 0; i < N_REQUESTS; i++)
            if (first[i].tokens) CHECK(results_same(&first[i], &again[i]));
    }
    rrl_rollout_close(&r);
    results_free(first, N_REQUESTS);
    results_free(again, N_REQUESTS);
    world_close(&w);
}

int main(void) {
    char dir[1024];
    test_blocks();
    test_greedy("llama");
    test_greedy("qwen2");
    if (CHECK_OK(many_ends_make(dir, "llama"))) {
        test_same_bits(dir, "llama", RRL_F32, 0);
        test_same_bits(dir, "llama", RRL_BF16, 0.1f);
        test_tight_pool(dir);
        test_refusals(dir);
        test_context(dir);
        test_callback_fails(dir);
    }
    many_ends_remove(dir);
    if (CHECK_OK(many_ends_make(dir, "qwen2"))) test_same_bits(dir, "qwen2", RRL_F32, 0.1f);
    many_ends_remove(dir);
    return CHECK_DONE();
}
