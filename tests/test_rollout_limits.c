/* The limits of a rollout: it allocates what rrl_rollout_bytes says and nothing later; a prompt of more rows than a step
 * takes is computed in pieces beside decoding sequences, with the bits of a prompt computed at once. */
#include <stdlib.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "check.h"
#include "model/slot.h"
#include "rollout_world.h"
#include "rrl/group.h"

#define GOLDEN RRL_SOURCE_DIR "/tests/golden/llama/model"

enum { LONG = 700, SHORT = 5, CHUNK = 256, NEW = 4 };

/* --- memory */

static size_t counted;
static const rrl_device_ops *real_ops;

static rrl_status counting_alloc(rrl_device *d, void **out, size_t bytes, const char *what) {
    counted += bytes;
    return real_ops->alloc(d, out, bytes, what);
}

static void allocates_what_it_says(rrl_dtype kv) {
    static const struct {
        int32_t batch_limit, max_positions;
    } LIMITS[] = {{1, 2}, {1, 33}, {3, 100}, {64, 100}, {200, 70}, {2, 100000}};
    static int32_t prompt[20];
    world w;
    if (!CHECK_OK(world_open_in(&w, (world_numbers){RRL_F32, kv}, GOLDEN, "llama", "auto", 1))) return;
    real_ops = w.device->ops;
    rrl_device_ops ops = *real_ops;
    ops.alloc = counting_alloc;
    w.device->ops = &ops;
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        rrl_rollout *r = NULL;
        result got = {0};
        int64_t index = 0;
        collector k = {.results = &got};
        const size_t predicted =
            rrl_rollout_bytes(rrl_model_dims(w.model), kv, LIMITS[i].batch_limit, LIMITS[i].max_positions);
        rrl_request q = {.prompt = prompt, .n_prompt = 1, .count = 5, .adapter = 0, .user = &index};
        q.sampling = (rrl_sampling){1, 0.9, 1.2, 0, 1};
        if (LIMITS[i].max_positions > 30) q.n_prompt = 20, q.sampling.max_tokens = 10;
        counted = 0;
        if (!CHECK_OK(rrl_rollout_open(&r, w.model, LIMITS[i].batch_limit, LIMITS[i].max_positions))) break;
        CHECK_EQ_INT(counted, predicted);
        CHECK_OK(rrl_rollout_run(r, w.adapters, 2, &q, 1, collect, &k, NULL));
        CHECK_EQ_INT(counted, predicted);
        rrl_rollout_close(&r);
        results_free(&got, 1);
    }
    w.device->ops = real_ops;
    world_close(&w);
}

static void half_the_cache(void) {
    rrl_model_config c;
    if (!CHECK_OK(rrl_model_config_read(&c, GOLDEN))) return;
    CHECK_EQ_INT(rrl_kv_block_bytes(&c, RRL_F32), 2 * rrl_kv_block_bytes(&c, RRL_BF16));
    const size_t blocks = 4 * ((100 + RRL_KV_BLOCK - 1) / RRL_KV_BLOCK) + 1;
    CHECK_EQ_INT(rrl_rollout_bytes(&c, RRL_F32, 4, 100) - rrl_rollout_bytes(&c, RRL_BF16, 4, 100),
                 blocks * rrl_kv_block_bytes(&c, RRL_BF16));
}

/* --- chunks */

/* The golden model with a context for long prompts and an end token that is never drawn. */
static rrl_status long_context(char dir[1024]) {
    char path[1200], from[1200], *text = NULL, *at;
    size_t len = 0;
    rrl_status rc = RRL_OK;
    snprintf(dir, 1024, RRL_BINARY_DIR "/test_rollout_limits.%ld", (long)getpid());
    RRL_TRY(rrl_dir_make(dir));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (symlink(GOLDEN "/model.safetensors", path) != 0) return RRL_FAIL(RRL_ERR_IO, "no link %s", path);
    snprintf(from, sizeof from, "%s/config.json", GOLDEN);
    RRL_TRY(rrl_file_read(&text, &len, from, 1 << 20));
    if ((at = strstr(text, "\"max_position_embeddings\": 256")) == NULL) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: the context is not where it was", from);
        goto done;
    }
    memcpy(at + strlen("\"max_position_embeddings\": "), "999", 3);
    snprintf(path, sizeof path, "%s/config.json", dir);
    RRL_GOTO(rrl_file_publish(path, text, len));
    static const char ends[] = "{\"eos_token_id\": [271]}";
    snprintf(path, sizeof path, "%s/generation_config.json", dir);
    RRL_GOTO(rrl_file_publish(path, ends, sizeof ends - 1));
done:
    free(text);
    return rc;
}

static void remove_folder(const char *dir) {
    static const char *const FILES[] = {"model.safetensors", "config.json", "generation_config.json"};
    char path[1200];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, FILES[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* A training slot computes the prompt's rows all at once. */
static void trained_alike(world *w, const rrl_request *q, const result *x) {
    const rrl_slot_limits most = {.max_rows = LONG + 64, .max_seqs = 4, .block_rows = LONG + 64};
    const uint32_t samples[] = {0, 1, 2};
    float logp[64];
    rrl_slot_engine *e = NULL;
    const rrl_slot s = {.prompt = q->prompt, .n_prompt = q->n_prompt, .n_seqs = q->count, .tokens = x->tokens,
                        .n_tokens = x->n_tokens, .temperature = 1, .samples = samples};
    if (!CHECK_OK(rrl_slot_engine_open(&e, w->model, &most))) return;
    CHECK_OK(rrl_slot_forward(e, logp, NULL, &s, w->adapters[0]));
    CHECK(memcmp(logp, x->logprobs, (size_t)x->total * sizeof *logp) == 0);
    rrl_slot_engine_close(&e);
}

static void long_prompt(const char *dir, rrl_dtype products, rrl_dtype kv) {
    static int32_t prompt[LONG];
    world w;
    result got[2] = {0}, alone = {0};
    int64_t index[2] = {0, 1}, zero = 0;
    rrl_request q[2];
    rrl_rollout_counters counters;
    for (int k = 0; k < LONG; k++) prompt[k] = 3 + k * k % 260;
    for (int i = 0; i < 2; i++) {
        q[i] = (rrl_request){.prompt = prompt, .n_prompt = i ? LONG : SHORT, .count = i ? 3 : 1, .user = &index[i]};
        q[i].sampling = (rrl_sampling){1, 1, 1, 0, NEW};
        q[i].key = (rrl_rng_key){.seed = 9, .purpose = RRL_RNG_TRAIN, .question = (uint64_t)i};
    }
    if (!CHECK_OK(world_open_in(&w, (world_numbers){products, kv}, dir, "llama", "auto", 2))) return;
    collector k = {.results = got};
    CHECK_OK(generate(&counters, &k, &w, q, 2, 4, LONG + NEW));
    CHECK(got[0].total == NEW && got[1].total == 3 * NEW); /* no end token */
    /* Rows of prompts a step: 5 + 251, 256, 193. The short request's tokens come in steps 1 to 4, the long one's in 3 to
     * 6: nobody waited. */
    const int steps = (SHORT + LONG + CHUNK - 1) / CHUNK + NEW - 1;
    CHECK_EQ_INT(k.beats, steps);
    CHECK_EQ_INT(counters.decode_steps, steps - 1);
    CHECK_EQ_INT(counters.prefill_tokens, SHORT + LONG);
    trained_alike(&w, &q[1], &got[1]);
    q[1].user = &zero;
    k = (collector){.results = &alone};
    CHECK_OK(generate(NULL, &k, &w, &q[1], 1, 1, LONG + NEW)); /* pieces of other lengths */
    CHECK(results_same(&got[1], &alone));
    results_free(got, 2);
    results_free(&alone, 1);
    world_close(&w);
}

/* --- draws */

/* More draws a step than rows of logits are held, and, where few decode at once, more than the drawer takes. */
static void many_draws(void) {
    enum { DRAWS = 300 };
    static const int32_t prompt[SHORT] = {4, 8, 15, 16, 23}, LIMITS[] = {DRAWS, 70, 3};
    world w;
    result got[3] = {{0}};
    if (!CHECK_OK(world_open(&w, GOLDEN, "llama", "auto", 2))) return;
    for (int i = 0; i < 3; i++) {
        int64_t index = i;
        collector k = {.results = got};
        const rrl_request q = {.prompt = prompt, .n_prompt = SHORT, .count = DRAWS, .sampling = {1, 0.9, 1, 0, 2},
                               .key = {.seed = 1, .purpose = RRL_RNG_TRAIN}, .user = &index};
        CHECK_OK(generate(NULL, &k, &w, &q, 1, LIMITS[i], SHORT + 2));
        CHECK(got[i].count == DRAWS && got[i].total > DRAWS);
        CHECK(results_same(&got[0], &got[i]));
    }
    results_free(got, 3);
    world_close(&w);
}

int main(void) {
    char dir[1024];
    many_draws();
    allocates_what_it_says(RRL_F32);
    allocates_what_it_says(RRL_BF16);
    half_the_cache();
    if (CHECK_OK(long_context(dir))) {
        long_prompt(dir, RRL_F32, RRL_F32);
        long_prompt(dir, RRL_BF16, RRL_BF16);
    }
    remove_folder(dir);
    return CHECK_DONE();
}
