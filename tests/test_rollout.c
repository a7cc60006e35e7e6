/* Rollout against golden greedy tokens, and against itself: the same bits at any batch limit, thread count, order and
 * company, the recorded log-probs equal to the training forward's, the counters and blocks exact. */
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/random.h"
#include "check.h"
#include "model/slot.h"
#include "rollout/kv_blocks.h"
#include "rollout/rollout.h"
#include "rrl/group.h"

#define GOLDEN RRL_SOURCE_DIR "/tests/golden/"

/* --- a model on a device with two adapters ------------------------------------------------------------------------ */

typedef struct {
    rrl_device *device;
    rrl_model *model;
    rrl_adapter *adapters[2]; /* golden, and a random one of rank 4 */
} world;

/* B of a fresh adapter is 0, which would make it the base: fill all of it with small numbers of both signs. */
static int stir(rrl_device *d, rrl_adapter *a) {
    const int64_t n = rrl_adapter_size(a);
    float *values = malloc((size_t)n * sizeof *values);
    if (!CHECK(values != NULL)) return 0;
    const rrl_rng_key key = {.seed = 11, .purpose = RRL_RNG_INIT};
    for (int64_t i = 0; i < n; i++) values[i] = (float)(0.2 * (rrl_rng_uniform(&key, (uint32_t)i) - 0.5));
    int ok = CHECK_OK(d->ops->upload(d, rrl_adapter_data(a), values, (size_t)n * sizeof *values)) &&
             CHECK_OK(rrl_adapter_refresh(a));
    free(values);
    return ok;
}

static void world_close(world *w) {
    rrl_adapter_close(&w->adapters[0]);
    rrl_adapter_close(&w->adapters[1]);
    rrl_model_close(&w->model);
    rrl_device_close(&w->device);
}

static int world_open(world *w, const char *model_dir, const char *family, const char *isa, int threads) {
    char adapter_dir[1024];
    *w = (world){0};
    snprintf(adapter_dir, sizeof adapter_dir, GOLDEN "%s/adapter", family);
    const rrl_adapter_spec spec = {.r = 4, .alpha = 8};
    if (CHECK_OK(rrl_cpu_open(&w->device, isa, threads)) &&
        CHECK_OK(rrl_model_open(&w->model, w->device, model_dir)) &&
        CHECK_OK(rrl_adapter_load(&w->adapters[0], w->model, adapter_dir)) &&
        CHECK_OK(rrl_adapter_open(&w->adapters[1], w->model, &spec, 5)) && stir(w->device, w->adapters[1]))
        return 1;
    world_close(w);
    return 0;
}

/* --- collected completions ---------------------------------------------------------------------------------------- */

typedef struct {
    int32_t *tokens, *n_tokens, *finish;
    float *logprobs;
    int64_t total;
    int32_t count;
} result;

typedef struct {
    result *results; /* by position in the caller's list; request->user points to the int64_t position */
    int64_t calls, beats, fail_at;
} collector;

static void *copy_of(const void *from, size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (p) memcpy(p, from, bytes);
    return p;
}

static rrl_status collect(void *context, const rrl_request *q, const rrl_completions *c) {
    collector *k = context;
    result *x = &k->results[*(const int64_t *)q->user];
    if (++k->calls == k->fail_at) return RRL_FAIL(RRL_ERR_COMM, "made to fail");
    const size_t count = (size_t)q->count;
    x->count = q->count;
    x->total = 0;
    for (size_t i = 0; i < count; i++) x->total += c->n_tokens[i];
    x->tokens = copy_of(c->tokens, (size_t)x->total * sizeof *x->tokens);
    x->logprobs = copy_of(c->logprobs, (size_t)x->total * sizeof *x->logprobs);
    x->n_tokens = copy_of(c->n_tokens, count * sizeof *x->n_tokens);
    x->finish = copy_of(c->finish, count * sizeof *x->finish);
    return RRL_OK;
}

static void on_beat(void *context) {
    ((collector *)context)->beats++;
}

static void results_free(result *x, int n) {
    for (int i = 0; i < n; i++) {
        free(x[i].tokens);
        free(x[i].logprobs);
        free(x[i].n_tokens);
        free(x[i].finish);
        x[i] = (result){0};
    }
}

static int same(const result *a, const result *b) {
    const size_t count = (size_t)a->count, total = (size_t)a->total;
    return a->tokens && b->tokens && a->count == b->count && a->total == b->total &&
           memcmp(a->n_tokens, b->n_tokens, count * sizeof *a->n_tokens) == 0 &&
           memcmp(a->finish, b->finish, count * sizeof *a->finish) == 0 &&
           memcmp(a->tokens, b->tokens, total * sizeof *a->tokens) == 0 &&
           memcmp(a->logprobs, b->logprobs, total * sizeof *a->logprobs) == 0;
}

/* --- the mixed requests ------------------------------------------------------------------------------------------- */

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
        x->requests[i] = (rrl_request){
            .prompt = x->prompts[i],
            .n_prompt = MIX[i].n_prompt,
            .first = MIX[i].first,
            .count = MIX[i].count,
            .adapter = MIX[i].adapter,
            .sampling = MIX[i].sampling,
            .key = {.seed = 42 + (uint64_t)(i % 3), .purpose = RRL_RNG_TRAIN, .step = 7, .question = 1000u + (uint64_t)i},
            .dropout = i % 3 == 2 ? 0 : dropout, /* two probabilities in one call */
            .user = &x->index[i]};
    }
}

/* Run requests; the counters and blocks must be exact. */
static int generate(world *w, result *results, const rrl_request *requests, int64_t n, int32_t batch_limit) {
    rrl_rollout *r = NULL;
    collector k = {.results = results};
    int64_t prompts = 0, completions = 0, tokens = 0;
    if (!CHECK_OK(rrl_rollout_open(&r, w->model, batch_limit, CONTEXT))) return 0;
    int ok = CHECK_OK(rrl_rollout_run(r, w->adapters, 2, requests, n, collect, &k, on_beat));
    const rrl_rollout_counters *c = rrl_rollout_counts(r);
    ok = CHECK_EQ_INT(k.calls, n) && ok;
    for (int64_t i = 0; i < n && ok; i++) {
        prompts += requests[i].n_prompt;
        completions += requests[i].count;
        tokens += results[*(int64_t *)requests[i].user].total;
    }
    CHECK_EQ_INT(c->completions, completions);
    CHECK_EQ_INT(c->prefill_tokens, prompts);
    CHECK_EQ_INT(c->decode_rows, tokens);
    CHECK_EQ_INT(c->model_rows, prompts + tokens - completions);
    CHECK(c->decode_steps <= k.beats);
    CHECK_EQ_INT(c->used_blocks, 0);
    CHECK(c->peak_blocks > 0 && c->peak_blocks <= c->pool_blocks);
    CHECK_EQ_INT(c->pool_blocks, batch_limit * (CONTEXT / RRL_KV_BLOCK) + 1);
    if (batch_limit == 1) CHECK_EQ_INT(c->decode_steps, tokens - completions);
    rrl_rollout_close(&r);
    return ok;
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
                CHECK(!end || k == n - 1); /* nothing follows an end token, and it is part of the completion */
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
    if (!CHECK_OK(rrl_slot_engine_open(&e, w->model, 1024, 32))) return;
    for (int i = 0; i < N_REQUESTS; i++) {
        const rrl_request *q = &x->requests[i];
        for (int32_t s = 0; s < q->count; s++) samples[s] = (uint32_t)(q->first + s);
        const rrl_slot slot = {.prompt = q->prompt,
                               .n_prompt = q->n_prompt,
                               .n_seqs = q->count,
                               .tokens = results[i].tokens,
                               .n_tokens = results[i].n_tokens,
                               .temperature = q->sampling.temperature == 0 ? 1.0f : (float)q->sampling.temperature,
                               .dropout = q->dropout,
                               .iteration = 0,
                               .seed = q->key.seed,
                               .step = q->key.step,
                               .question = q->key.question,
                               .samples = samples};
        if (!CHECK_OK(rrl_slot_forward(e, logp, NULL, &slot, q->adapter < 0 ? NULL : w->adapters[q->adapter]))) break;
        if (!CHECK(memcmp(logp, results[i].logprobs, (size_t)results[i].total * sizeof *logp) == 0))
            fprintf(stderr, "  request %d: first recorded %.9g, trained %.9g\n", i, (double)results[i].logprobs[0],
                    (double)logp[0]);
    }
    rrl_slot_engine_close(&e);
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

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
    if (generate(w, results, requests, 2 * n, 3))
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
    if (CHECK_OK(rrl_json_file(&cases, path, 1 << 20)) && world_open(&w, dir, family, "auto", 1)) {
        check_greedy(&w, cases);
        world_close(&w);
    }
    cJSON_Delete(cases);
}

/* A golden model with more end tokens: completions then have many lengths. Returns its folder. */
static const char *many_ends(const char *family) {
    static char dir[1024];
    char from[1100], to[1100];
    static const char CONFIG[] = "{\"eos_token_id\": [2, 182, 86, 5, 40, 41, 42, 43, 44, 45, 46, 47]}";
    snprintf(dir, sizeof dir, RRL_BINARY_DIR "/test_rollout.%ld.%s", (long)getpid(), family);
    if (!CHECK(mkdir(dir, 0777) == 0)) return dir;
    static const char *const FILES[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, GOLDEN "%s/model/%s", family, FILES[i]);
        snprintf(to, sizeof to, "%s/%s", dir, FILES[i]);
        CHECK(symlink(from, to) == 0);
    }
    snprintf(to, sizeof to, "%s/generation_config.json", dir);
    FILE *f = fopen(to, "w");
    if (CHECK(f != NULL)) {
        CHECK(fputs(CONFIG, f) >= 0);
        CHECK(fclose(f) == 0);
    }
    return dir;
}

static void remove_ends(const char *dir) {
    static const char *const FILES[] = {"config.json", "model.safetensors", "generation_config.json"};
    char path[1100];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, FILES[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* The mix alone, request by request, is the measure of every other way to run it. */
static void test_same_bits(const char *dir, const char *family, float dropout) {
    static mix x;
    world w;
    result want[N_REQUESTS] = {0}, got[N_REQUESTS] = {0};
    static const struct {
        const char *what, *isa;
        int threads, batch_limit, reversed;
    } WAYS[] = {
        {"batch limit 1", "auto", 1, 1, 0},        {"batch limit 7", "auto", 1, 7, 0},
        {"batch limit 64", "auto", 1, 64, 0},      {"batch limit 2, 2 threads", "auto", 2, 2, 0},
        {"64 reversed, 2 threads", "auto", 2, 64, 1}, {"5 reversed", "auto", 1, 5, 1},
        {"reference loops", "reference", 1, 16, 0},
    };
    mix_make(&x, dropout);
    if (!world_open(&w, dir, family, "auto", 1)) return;
    int ok = 1;
    for (int i = 0; i < N_REQUESTS; i++) ok = ok && generate(&w, want, &x.requests[i], 1, 3);
    if (ok) {
        check_shape(&w, &x, want);
        check_trained(&w, &x, want);
    }
    world_close(&w);
    for (size_t way = 0; ok && way < sizeof WAYS / sizeof *WAYS; way++) {
        rrl_request requests[N_REQUESTS];
        for (int i = 0; i < N_REQUESTS; i++) requests[i] = x.requests[WAYS[way].reversed ? N_REQUESTS - 1 - i : i];
        if (!world_open(&w, dir, family, WAYS[way].isa, WAYS[way].threads)) break;
        if (generate(&w, got, requests, N_REQUESTS, WAYS[way].batch_limit))
            for (int i = 0; i < N_REQUESTS; i++)
                if (!CHECK(same(&want[i], &got[i]))) fprintf(stderr, "  %s, request %d\n", WAYS[way].what, i);
        results_free(got, N_REQUESTS);
        world_close(&w);
    }
    results_free(want, N_REQUESTS);
}

/* A group in parts has the completions of the whole; sample, attempt and question each change them. */
static void test_keys(const char *dir) {
    static mix x;
    world w;
    enum { WHOLE, FIRST, SECOND, ATTEMPT, QUESTION, N };
    result got[N] = {0};
    rrl_request requests[N];
    int64_t index[N];
    mix_make(&x, 0);
    for (int i = 0; i < N; i++) {
        index[i] = i;
        requests[i] = x.requests[12];
        requests[i].user = &index[i];
    }
    requests[FIRST].count = 3;
    requests[SECOND].first = 3;
    requests[SECOND].count = 5;
    requests[ATTEMPT].key.attempt = 1;
    requests[QUESTION].key.question++;
    requests[WHOLE].key.sample = 99; /* the caller's sample has no say */
    if (!world_open(&w, dir, "llama", "auto", 1)) return;
    if (generate(&w, got, requests, N, 10)) {
        CHECK_EQ_INT(got[FIRST].total + got[SECOND].total, got[WHOLE].total);
        const size_t a = (size_t)got[FIRST].total, b = (size_t)got[SECOND].total;
        CHECK(memcmp(got[WHOLE].tokens, got[FIRST].tokens, a * 4) == 0);
        CHECK(memcmp(got[WHOLE].tokens + a, got[SECOND].tokens, b * 4) == 0);
        CHECK(memcmp(got[WHOLE].logprobs + a, got[SECOND].logprobs, b * 4) == 0);
        CHECK(!same(&got[WHOLE], &got[ATTEMPT]));
        CHECK(!same(&got[WHOLE], &got[QUESTION]));
    }
    results_free(got, N);
    world_close(&w);
}

/* Log-probs of every token of the vocabulary after the prompt and `prefix`, from one slot: one sequence each. */
static int next_logps(rrl_slot_engine *e, float *logp, const rrl_request *q, const int32_t *prefix, int32_t n,
                      rrl_adapter *a) {
    enum { VOCAB = 272, MOST = 8 };
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
                           .temperature = q->sampling.temperature == 0 ? 1.0f : (float)q->sampling.temperature,
                           .samples = samples};
    if (!CHECK_OK(rrl_slot_forward(e, all, NULL, &slot, a))) return 0;
    for (int32_t v = 0; v < VOCAB; v++) logp[v] = all[v * (n + 1) + n];
    return 1;
}

/* Each token is the first whose running probability in order of ids exceeds the uniform of (key, sample, index of the
 * token), by the host's random numbers and the training forward's probabilities. */
static void test_draws(const char *dir) {
    static int32_t prompt[] = {17, 201, 5, 99, 40};
    world w;
    rrl_slot_engine *e = NULL;
    result got = {0};
    int64_t index = 0;
    float logp[VOCAB_AT_LEAST];
    const rrl_request q = {.prompt = prompt,
                           .n_prompt = 5,
                           .first = 3,
                           .count = 6,
                           .adapter = 0,
                           .sampling = {0.9, 1.0, 1.0, 0, 6},
                           .key = {.seed = 77, .purpose = RRL_RNG_TRAIN, .step = 9, .question = 1u << 20, .attempt = 2},
                           .user = &index};
    if (!world_open(&w, dir, "llama", "auto", 1)) return;
    if (CHECK_OK(rrl_slot_engine_open(&e, w.model, 2048, VOCAB_AT_LEAST)) && generate(&w, &got, &q, 1, 4)) {
        const int32_t *tokens = got.tokens;
        for (int32_t s = 0; s < q.count; tokens += got.n_tokens[s++])
            for (int32_t k = 0; k < got.n_tokens[s]; k++) {
                rrl_rng_key key = q.key;
                key.sample = (uint32_t)(q.first + s);
                const double u = rrl_rng_uniform(&key, (uint32_t)k);
                double sum = 0;
                int32_t v = -1;
                if (!next_logps(e, logp, &q, tokens, k, w.adapters[0])) break;
                while (v + 1 < VOCAB_AT_LEAST && sum <= u) sum += exp((double)logp[++v]);
                CHECK_EQ_INT(tokens[k], v);
            }
        CHECK(got.total > 20);
    }
    rrl_slot_engine_close(&e);
    results_free(&got, 1);
    world_close(&w);
}

/* A penalty so large that no token of the prompt or the completion so far can win again: the greedy token is the best
 * of all others. Without a penalty this prompt repeats 151. */
static void test_penalty(const char *dir) {
    static int32_t prompt[] = {79, 151, 151};
    world w;
    rrl_slot_engine *e = NULL;
    result got = {0};
    int64_t index = 0;
    float logp[VOCAB_AT_LEAST];
    const rrl_request q = {.prompt = prompt,
                           .n_prompt = 3,
                           .count = 3,
                           .adapter = 0,
                           .sampling = {0.0, 1.0, 1e9, 0, 7},
                           .user = &index};
    if (!world_open(&w, dir, "llama", "auto", 1)) return;
    if (CHECK_OK(rrl_slot_engine_open(&e, w.model, 2304, VOCAB_AT_LEAST)) && generate(&w, &got, &q, 1, 2)) {
        const int32_t *tokens = got.tokens;
        for (int32_t s = 0; s < q.count; tokens += got.n_tokens[s++]) {
            char seen[VOCAB_AT_LEAST] = {[79] = 1, [151] = 1};
            for (int32_t k = 0; k < got.n_tokens[s]; k++) {
                int32_t best = -1;
                if (!next_logps(e, logp, &q, tokens, k, w.adapters[0])) break;
                for (int32_t v = 0; v < VOCAB_AT_LEAST; v++)
                    if (!seen[v] && (best < 0 || logp[v] > logp[best])) best = v;
                CHECK_EQ_INT(tokens[k], best);
                CHECK(logp[tokens[k]] == got.logprobs[tokens - got.tokens + k]); /* recorded before the penalty */
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
    static int32_t prompt[] = {141, 256, 221, 27, 219, 107, 108, 150, 224, 15, 165, 158, 55, 207, 75, 30, 139};
    world w;
    result got = {0};
    int64_t index = 0;
    const rrl_request q = {.prompt = prompt,
                           .n_prompt = 17,
                           .count = 4,
                           .adapter = -1,
                           .sampling = {0.0, 1.0, 1.0, 0, 32},
                           .user = &index};
    if (!world_open(&w, dir, "llama", "auto", 1)) return;
    if (generate(&w, &got, &q, 1, 2))
        for (int s = 0; s < 4; s++) {
            CHECK_EQ_INT(got.n_tokens[s], 1);
            CHECK_EQ_INT(got.tokens[s], 182);
            CHECK_EQ_INT(got.finish[s], RRL_FINISH_EOS);
        }
    results_free(&got, 1);
    world_close(&w);
}

/* The pool suffices at its tightest: contexts that requests fill exactly, every batch limit, ends in any order. */
static void test_tight_pool(const char *dir) {
    enum { N = 12, LONGEST = 70 };
    static int32_t prompt[LONGEST];
    world w;
    result got[N] = {0};
    int64_t index[N];
    rrl_request requests[N];
    int64_t at_limit = 0;
    for (int k = 0; k < LONGEST; k++) prompt[k] = 3 + k;
    if (!world_open(&w, dir, "llama", "auto", 1)) return;
    for (int round = 0; round < 12; round++) {
        const rrl_rng_key key = {.seed = 8, .purpose = RRL_RNG_FIXTURE, .sample = (uint32_t)round};
        const int32_t batch_limit = 1 + round % 6, context = LONGEST + round % 3 * 16;
        rrl_rollout *r = NULL;
        collector k = {.results = got};
        for (int i = 0; i < N; i++) {
            const int32_t len = 1 + (int32_t)(rrl_rng_uniform(&key, (uint32_t)(2 * i)) * (LONGEST - 1));
            index[i] = i;
            requests[i] = (rrl_request){.prompt = prompt,
                                        .n_prompt = len,
                                        .count = 1 + (int32_t)(rrl_rng_uniform(&key, (uint32_t)(2 * i + 1)) * 7),
                                        .adapter = -1,
                                        .sampling = {2.0, 1.0, 1.0, 0, context - len},
                                        .key = {.seed = (uint64_t)round, .question = (uint64_t)i},
                                        .user = &index[i]};
        }
        if (CHECK_OK(rrl_rollout_open(&r, w.model, batch_limit, context)) &&
            CHECK_OK(rrl_rollout_run(r, w.adapters, 2, requests, N, collect, &k, NULL))) {
            const rrl_rollout_counters *c = rrl_rollout_counts(r);
            CHECK_EQ_INT(c->used_blocks, 0);
            CHECK(c->peak_blocks <= c->pool_blocks);
            at_limit += c->peak_blocks >= c->pool_blocks - 1;
        }
        rrl_rollout_close(&r);
        results_free(got, N);
    }
    CHECK(at_limit > 0); /* the rounds reach what the pool is sized for */
    world_close(&w);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

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
    rrl_request good = {.prompt = prompt, .n_prompt = 40, .count = 2, .adapter = 0, .sampling = {1, 1, 1, 0, 60}};
    good.key.question = 0xabcdef;
    if (!world_open(&w, dir, "llama", "auto", 1)) return;
    rrl_request q = good;
    q.n_prompt = 0;
    refuse(&w, q, RRL_ERR_DATA, "prompt is empty");
    q = good, q.n_prompt = 41;
    refuse(&w, q, RRL_ERR_DATA, "prompt of 41 tokens + max_tokens 60 = 101 positions, but the context has 100");
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
    if (!world_open(&w, dir, "llama", "auto", 1)) return;
    if (CHECK_OK(rrl_rollout_open(&r, w.model, 2, 100000))) {
        CHECK_OK(rrl_rollout_run(r, NULL, 0, &q, 1, collect, &k, NULL));
        CHECK_EQ_INT(k.calls, 1);
        q.sampling.max_tokens = 7;
        CHECK_STATUS(rrl_rollout_run(r, NULL, 0, &q, 1, collect, &k, NULL), RRL_ERR_DATA);
        CHECK(strstr(rrl_error_message(), "context has 256") != NULL);
        CHECK_OK(rrl_rollout_run(r, NULL, 0, NULL, 0, collect, &k, NULL)); /* nothing to do */
    }
    CHECK(rrl_rollout_bytes(rrl_model_dims(w.model), 2, 100000) >=
          (2 * 8 + 1) * rrl_kv_block_bytes(rrl_model_dims(w.model)));
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
    if (!world_open(&w, dir, "llama", "auto", 1)) return;
    if (CHECK_OK(rrl_rollout_open(&r, w.model, 9, CONTEXT))) {
        collector k = {.results = first, .fail_at = 3};
        CHECK_STATUS(rrl_rollout_run(r, w.adapters, 2, x.requests, N_REQUESTS, collect, &k, on_beat), RRL_ERR_COMM);
        CHECK_EQ_INT(k.calls, 3);
        CHECK_EQ_INT(rrl_rollout_counts(r)->used_blocks, 0);
        k = (collector){.results = again};
        CHECK_OK(rrl_rollout_run(r, w.adapters, 2, x.requests, N_REQUESTS, collect, &k, on_beat));
        CHECK_EQ_INT(k.calls, N_REQUESTS);
        CHECK_EQ_INT(rrl_rollout_counts(r)->used_blocks, 0);
        for (int i = 0; i < N_REQUESTS; i++)
            if (first[i].tokens) CHECK(same(&first[i], &again[i]));
    }
    rrl_rollout_close(&r);
    results_free(first, N_REQUESTS);
    results_free(again, N_REQUESTS);
    world_close(&w);
}

int main(void) {
    test_blocks();
    test_greedy("llama");
    test_greedy("qwen2");
    const char *dir = many_ends("llama");
    test_same_bits(dir, "llama", 0);
    test_same_bits(dir, "llama", 0.1f);
    test_keys(dir);
    test_draws(dir);
    test_penalty(dir);
    test_first_is_end(dir);
    test_tight_pool(dir);
    test_refusals(dir);
    test_context(dir);
    test_callback_fails(dir);
    remove_ends(dir);
    dir = many_ends("qwen2");
    test_same_bits(dir, "qwen2", 0.1f);
    remove_ends(dir);
    return CHECK_DONE();
}
