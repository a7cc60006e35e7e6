/* Opening model, tokenizer and question pools for a team. */
#include "roles/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "config/config_paths.h"

rrl_adapter_spec rrl_engine_adapter_spec(const rrl_config *config) {
    const rrl_lora_config *l = &config->training.lora;
    bool all = l->target_modules.n == 1 && strcmp(l->target_modules.v[0], "all-linear") == 0;
    return (rrl_adapter_spec){.r = (int32_t)l->r, .alpha = l->alpha, .dropout = l->dropout,
                              .targets = (const char *const *)l->target_modules.v,
                              .n_targets = all ? 0 : (int32_t)l->target_modules.n};
}

rrl_slot_limits rrl_engine_slot_limits(const rrl_engine *e, const rrl_config *config) {
    const rrl_training_config *t = &config->training;
    const int32_t rows = (int32_t)(t->slot_rows > 0 ? t->slot_rows : config->generation.num_generations);
    rrl_slot_limits most = {.max_rows = e->train.longest + rows * (int32_t)config->generation.max_tokens,
                            .max_seqs = rows};
    const size_t memory = t->gradient_checkpointing ? 0 : (size_t)t->activation_memory << 20;
    rrl_slot_fit(&most, &e->dims, (int32_t)t->lora.r, memory);
    return most;
}

rrl_status rrl_engine_slots(rrl_engine *e, const rrl_slot_limits *most) {
    const rrl_slot_limits *now = e->slots ? rrl_slot_engine_limits(e->slots) : NULL;
    if (now && now->max_rows >= most->max_rows && now->max_seqs >= most->max_seqs && now->again >= most->again)
        return RRL_OK;
    rrl_slot_engine_close(&e->slots);
    return rrl_slot_engine_open(&e->slots, e->model, most);
}

int rrl_engine_threads(const rrl_config *config, int given, const rrl_team *team) {
    int64_t omp = 0;
    const char *text = getenv("OMP_NUM_THREADS");
    if (given > 0) return given;
    if (config->model.cpu_threads > 0) return (int)config->model.cpu_threads;
    if (text && rrl_parse_int64(&omp, text) && omp > 0 && omp <= 4096) return (int)omp;
    int threads = team->cores_on_node / team->ranks_on_node;
    return threads > 0 ? threads : 1;
}

static void pool_close(rrl_pool *p) {
    for (int64_t i = 0; p->questions && p->ids && i < p->questions->n; i++) free(p->ids[i]);
    free(p->ids);
    free(p->n_ids);
    free(p->keys);
    rrl_questions_close(&p->questions);
    *p = (rrl_pool){0};
}

static rrl_status read_questions(rrl_questions **out, const rrl_config *c, const rrl_dataset_config *d) {
    char *path = NULL, *pools = NULL;
    rrl_status rc = RRL_OK;
    if (strcmp(d->source, "synthetic") == 0)
        return rrl_questions_synthetic(out, d->limit > 0 ? d->limit : 64,
                                       d->shuffle_seed < 0 ? 0 : (uint64_t)d->shuffle_seed, d->id_prefix);
    RRL_GOTO(rrl_config_dataset_path(&path, c, d));
    RRL_GOTO(rrl_config_pools_path(&pools, c, d));
    bool gsm8k = strcmp(d->source, "gsm8k") == 0;
    rrl_questions_spec spec = {.path = path, .question_column = d->question_column, .answer_column = d->answer_column,
                               .answer_separator = d->answer_separator[0] ? d->answer_separator : gsm8k ? "####" : NULL,
                               .id_column = d->id_column, .id_prefix = d->id_prefix, .pools = pools,
                               .pool = d->pool[0] ? d->pool : NULL, .shuffle_seed = d->shuffle_seed, .limit = d->limit};
    RRL_GOTO(rrl_questions_open(out, &spec));
done:
    free(path);
    free(pools);
    return rc;
}

/* One prompt: its tokens are the model's, and the context leaves room for a completion. */
static rrl_status check_prompt(const rrl_engine *e, const char *pool, const char *id, const int32_t *ids, int64_t n) {
    int64_t most = e->config->generation.max_tokens;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] >= e->dims.vocab)
            return RRL_FAIL(RRL_ERR_DATA, "%s: question %s has token %d in its prompt, the model a vocabulary of %d; "
                            "model.tokenizer is not this model's", pool, id, ids[i], e->dims.vocab);
    if (n + most > e->dims.max_positions)
        return RRL_FAIL(RRL_ERR_DATA, "%s: question %s has a prompt of %lld tokens; with generation.max_tokens %lld it "
                        "does not fit the model's context of %d; shorten one of them", pool, id, (long long)n,
                        (long long)most, e->dims.max_positions);
    return RRL_OK;
}

/* Prompts of a pool as ids. */
static rrl_status pool_open(rrl_pool *p, const rrl_engine *e, const rrl_dataset_config *d, const char *name) {
    const rrl_config *c = e->config;
    RRL_TRY(rrl_context(read_questions(&p->questions, c, d), "%s", name));
    size_t n = (size_t)p->questions->n;
    RRL_TRY(rrl_alloc(&p->ids, n, sizeof *p->ids, "prompts"));
    RRL_TRY(rrl_alloc(&p->n_ids, n, sizeof *p->n_ids, "prompts"));
    RRL_TRY(rrl_alloc(&p->keys, n, sizeof *p->keys, "prompts"));
    for (size_t i = 0; i < n; i++) {
        const rrl_question *q = &p->questions->rows[i];
        int64_t len = 0;
        p->keys[i] = rrl_rng_question(q->id);
        if (!e->prompt) continue;
        RRL_TRY(rrl_prompt_ids(&p->ids[i], &len, e->prompt, q->question));
        RRL_TRY(check_prompt(e, name, q->id, p->ids[i], len));
        p->n_ids[i] = (int32_t)len;
        if (p->n_ids[i] > p->longest) p->longest = p->n_ids[i];
    }
    return RRL_OK;
}

static rrl_status open_pools(rrl_engine *e, bool train) {
    const rrl_config *c = e->config;
    const rrl_experiment_config *x = &c->experiment;
    char joined[2 * 65 + 16] = "";
    uint8_t sum[RRL_SHA256_BYTES];
    if (train) RRL_TRY(pool_open(&e->train, e, x->train_dataset.given ? &x->train_dataset : &c->dataset, "training set"));
    if (!train || x->train_dataset.given) RRL_TRY(pool_open(&e->test, e, &c->dataset, "evaluation set"));
    if (e->train.questions && e->test.questions)
        RRL_TRY(rrl_questions_disjoint(e->train.questions, "training set", e->test.questions, "evaluation set"));
    strcat(joined, e->train.questions ? e->train.questions->digest : "-");
    strcat(joined, "\n");
    strcat(joined, e->test.questions ? e->test.questions->digest : "-");
    RRL_TRY(rrl_sha256_of(sum, joined, strlen(joined)));
    rrl_sha256_hex(e->data_digest, sum);
    return RRL_OK;
}

static rrl_status open_tokenizer(rrl_engine *e) {
    static const char *const formats[] = {"chat", "text"};
    const rrl_model_section *m = &e->config->model;
    const char *dir = m->tokenizer[0] ? m->tokenizer : e->model_dir;
    RRL_TRY(rrl_model_config_read(&e->dims, e->model_dir));
    RRL_TRY(rrl_tokenizer_open(&e->tokenizer, dir));
    return rrl_prompt_open(&e->prompt, e->tokenizer, formats[m->prompt_format == RRL_PROMPT_TEXT],
                           m->prompt_template[0] ? m->prompt_template : NULL,
                           m->chat_template[0] ? m->chat_template : NULL);
}

rrl_status rrl_engine_dtype(rrl_dtype *out, const rrl_config *config, const char *model_dir) {
    rrl_dtype stored = RRL_F32;
    int asked = config->model.dtype;
    if (asked == RRL_DTYPE_AUTO) RRL_TRY(rrl_model_dtype(&stored, model_dir));
    *out = asked == RRL_DTYPE_F32 || (asked == RRL_DTYPE_AUTO && stored == RRL_F32) ? RRL_F32 : RRL_BF16;
    return RRL_OK;
}

rrl_dtype rrl_engine_kv_dtype(const rrl_config *config, rrl_dtype dtype) {
    int asked = config->generation.kv_dtype;
    return asked == RRL_KV_BF16 || (asked == RRL_KV_AUTO && dtype == RRL_BF16) ? RRL_BF16 : RRL_F32;
}

/* Packed once for the ranks of the node, where they can share memory; else in memory of this rank. */
static rrl_status open_weights(rrl_engine *e, rrl_team *team) {
    const size_t bytes = rrl_model_room_bytes(e->device, &e->dims);
    char name[65];
    if (team->memory && bytes > 0) {
        RRL_TRY(rrl_model_room_name(name, e->device, e->model_dir));
        e->memory = team->memory;
        rrl_node_block_open(&e->weights, e->memory, name, bytes, &team->watch);
    }
    const rrl_model_room room = {e->weights.data, e->weights.filled};
    RRL_TRY(rrl_model_open_in(&e->model, e->device, e->model_dir, room.data ? &room : NULL));
    rrl_node_block_filled(e->memory, &e->weights);
    return RRL_OK;
}

static rrl_status open_model(rrl_engine *e, rrl_team *team, bool train, const char *isa, int threads) {
    const rrl_config *c = e->config;
    int32_t longest = e->train.longest > e->test.longest ? e->train.longest : e->test.longest;
    rrl_dtype dtype = RRL_F32;
    RRL_TRY(rrl_engine_dtype(&dtype, c, e->model_dir));
    RRL_TRY(rrl_engine_device_open(&e->device, e->device_why, c, team, dtype, isa, rrl_engine_threads(c, threads, team)));
    RRL_TRY(rrl_links_check(e->device, &c->parallel, team->rank));
    e->device->kv_dtype = rrl_engine_kv_dtype(c, dtype);
    RRL_TRY(open_weights(e, team));
    memcpy(e->model_digest, rrl_model_digest(e->model), sizeof e->model_digest);
    return rrl_rollout_open(&e->rollout, e->model, (int32_t)c->generation.batch_limit,
                            longest + (int32_t)c->generation.max_tokens);
}

/* All but the weights. */
static rrl_status open_texts(rrl_engine *e, bool train) {
    strcpy(e->model_digest, "fixture");
    if (e->config->model.backend != RRL_BACKEND_FIXTURE) {
        RRL_TRY(rrl_config_model_dir(&e->model_dir, e->config));
        RRL_TRY(open_tokenizer(e));
    }
    return open_pools(e, train);
}

static rrl_status open_all(rrl_engine *e, rrl_team *team, bool train, const char *isa, int threads) {
    bool works = team->generators.index >= 0 || team->learners.index >= 0;
    RRL_TRY(open_texts(e, train));
    return works && e->prompt ? open_model(e, team, train, isa, threads) : RRL_OK;
}

rrl_status rrl_engine_open_plan(rrl_engine **out, const rrl_config *config, bool train) {
    rrl_engine *e = NULL;
    RRL_TRY(rrl_alloc(&e, 1, sizeof *e, "engine"));
    e->config = config;
    rrl_status rc = open_texts(e, train);
    if (rc == RRL_OK) *out = e;
    else rrl_engine_close(&e);
    return rc;
}

rrl_status rrl_engine_open(rrl_engine **out, rrl_team *team, const rrl_config *config, bool train, const char *isa,
                           int threads) {
    rrl_engine *e = NULL;
    RRL_TRY(rrl_alloc(&e, 1, sizeof *e, "engine"));
    e->config = config;
    rrl_status rc = rrl_team_agree(team, open_all(e, team, train, isa, threads), "after setup");
    if (rc == RRL_OK) rc = rrl_engine_alike(e, team);
    if (rc == RRL_OK && train)
        rc = rrl_team_agree(team, rrl_links_open(&e->links, team, e->device, &config->parallel), "ranks connected");
    if (rc == RRL_OK) *out = e;
    else rrl_engine_close(&e);
    return rc;
}

void rrl_engine_close(rrl_engine **ep) {
    rrl_engine *e = *ep;
    if (!e) return;
    rrl_slot_engine_close(&e->slots);
    rrl_rollout_close(&e->rollout);
    rrl_model_close(&e->model);
    rrl_links_close(&e->links);
    rrl_device_close(&e->device);
    pool_close(&e->train);
    pool_close(&e->test);
    rrl_prompt_close(&e->prompt);
    rrl_tokenizer_close(&e->tokenizer);
    rrl_node_block_close(e->memory, &e->weights);
    free(e->model_dir);
    free(e);
    *ep = NULL;
}
