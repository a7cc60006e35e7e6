/* What the rollout tests share: a golden model with adapters on a device, and a run whose completions are
 * kept. */
#ifndef RRL_TESTS_ROLLOUT_WORLD_H
#define RRL_TESTS_ROLLOUT_WORLD_H

#include "rollout/rollout.h"

typedef struct {
    rrl_device *device;
    rrl_model *model;
    rrl_adapter *adapters[2]; /* golden, and a random one of rank 4 */
} world;

/** family: "llama" or "qwen2", whose golden adapter fits the model in model_dir. */
rrl_status world_open(world *w, const char *model_dir, const char *family, const char *isa, int threads);
/** The same on this device, which the world closes, also when it cannot be opened. */
rrl_status world_open_on(world *w, rrl_device *d, const char *model_dir, const char *family);
/** The same on a device of these products, keys and values. */
typedef struct {
    rrl_dtype products, kv;
} world_numbers;
rrl_status world_open_in(world *w, world_numbers numbers, const char *model_dir, const char *family, const char *isa,
                         int threads);
void world_close(world *w);

/** A golden model with more end tokens - 2, 5, 40 to 47, 86, 182 - so that completions have many lengths: a
 * new folder of links, named in dir. */
rrl_status many_ends_make(char dir[1024], const char *family);
void many_ends_remove(const char *dir);

/* The completions of a request. */
typedef struct {
    int32_t *tokens, *n_tokens, *finish;
    float *logprobs;
    int64_t total;
    int32_t count;
} result;

void results_free(result *x, int n);
/** Every array, bit for bit. */
bool results_same(const result *a, const result *b);

typedef struct {
    result *results; /* request->user points to the int64_t position in here */
    int64_t calls, beats;
    int64_t fail_at; /* this call returns RRL_ERR_COMM; 0 = none */
} collector;

/** The callbacks of rrl_rollout_run. */
rrl_status collect(void *context, const rrl_request *q, const rrl_completions *c);
void collect_beat(void *context);

/** Run in a fresh rollout of this batch limit and `context` positions; counters may be NULL. */
rrl_status generate(rrl_rollout_counters *counters, collector *k, world *w, const rrl_request *requests,
                    int64_t n, int32_t batch_limit, int32_t context);

#endif
