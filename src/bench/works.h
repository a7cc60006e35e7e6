/* What the works of rrl bench share: what is open, the inputs, and how a work hands its rows over. */
#ifndef RRL_BENCH_WORKS_H
#define RRL_BENCH_WORKS_H

#include "bench/rounds.h"
#include "data/tokenizer.h"
#include "rollout/rollout.h"

typedef struct {
    const rrl_bench_spec *spec;
    rrl_bench_report *report;
    rrl_device *device;
    rrl_model *model; /* never draws an end token that ends a completion early: see scratch.h */
    const rrl_model_config *dims;
    rrl_tokenizer *tokenizer;
    rrl_bench_meter *meter;
    const char *scratch; /* a folder of this process's own */
    int threads;
} rrl_bench;

typedef struct {
    const char *name;
    rrl_status (*run)(rrl_bench *b, const char *name, int32_t size);
    int32_t size; /* sequences, or what else the work counts */
    const char *what;
} rrl_bench_work;

/** Measure and append a row. */
rrl_status rrl_bench_add(rrl_bench *b, const rrl_bench_measure *m);

/* The works, a file a kind. `size` is that of the table in works.c. */
rrl_status rrl_bench_gemm(rrl_bench *b, const char *name, int32_t size);     /* work_gemm.c */
rrl_status rrl_bench_prefill(rrl_bench *b, const char *name, int32_t size); /* work_generate.c */
rrl_status rrl_bench_decode(rrl_bench *b, const char *name, int32_t size);   /* work_generate.c */
rrl_status rrl_bench_groups(rrl_bench *b, const char *name, int32_t size);   /* work_generate.c */
rrl_status rrl_bench_fleet(rrl_bench *b, const char *name, int32_t size);    /* work_fleet.c */
rrl_status rrl_bench_train(rrl_bench *b, const char *name, int32_t size);    /* work_train.c */
rrl_status rrl_bench_step(rrl_bench *b, const char *name, int32_t size);     /* work_step.c */
rrl_status rrl_bench_durable(rrl_bench *b, const char *name, int32_t size); /* work_durable.c */

/* Inputs (work_inputs.c) */
enum { RRL_BENCH_RANK = 8, RRL_BENCH_GROUP = 8 };
/** Tokens of a prompt (100) and of a completion (128); few when quick. */
int32_t rrl_bench_prompt_tokens(const rrl_bench *b);
int32_t rrl_bench_new_tokens(const rrl_bench *b);
/** n different prompts of `tokens` tokens each, word problems: ids [n, tokens], the caller frees them. */
rrl_status rrl_bench_prompts(int32_t **ids, const rrl_bench *b, int32_t n, int32_t tokens);
/** LoRA adapter of rank RRL_BENCH_RANK on all linear modules. */
rrl_status rrl_bench_adapter(rrl_adapter **out, const rrl_bench *b, uint64_t seed);
/** `count` samples at temperature 0.7 and top_p 0.95; question tells prompts apart. */
rrl_request rrl_bench_request(const rrl_bench *b, const int32_t *prompt, int32_t n_prompt, int32_t count,
                              int32_t adapter, int64_t question);

/* What a pass must read and compute at least (work_cost.c). Activations are taken to stay in caches. */
double rrl_bench_matrix_bytes(const rrl_bench *b, double elements); /* of packed weights */
double rrl_bench_weight_bytes(const rrl_bench *b); /* of all matrices, the head once */
double rrl_bench_kv_bytes(const rrl_bench *b);     /* keys and values of one position */
/* Rows through the layers, keys they attend to in all, rows through the head. */
typedef struct {
    double rows, keys, scored;
} rrl_bench_rows;
double rrl_bench_forward_flops(const rrl_bench *b, rrl_bench_rows r, bool adapted);
/** Of the backward pass, weights frozen: gradients of activations and of the adapter; nothing computed twice. */
double rrl_bench_backward_flops(const rrl_bench *b, rrl_bench_rows r);
/** Rows of n completions of `tokens` tokens behind prompts of `prompt` tokens, the prompts left out. The last token is
 *  never fed. */
rrl_bench_rows rrl_bench_completion_rows(int32_t n, int32_t prompt, int32_t tokens);
/** Rows of n prompts, each scored at its last row. */
rrl_bench_rows rrl_bench_prompt_rows(int32_t n, int32_t prompt);
rrl_bench_need rrl_bench_prefill_need(const rrl_bench *b, int32_t n, int32_t prompt, bool adapted);
/** Decoding n sequences from the first to the last token in passes of all of them; each `shared` of them have one
 *  prompt, whose keys and values are read once a pass. */
rrl_bench_need rrl_bench_decode_need(const rrl_bench *b, int32_t n, int32_t prompt, int32_t tokens, int32_t shared,
                                     bool adapted);

#endif
