/* rrl convert CONFIG --out DIR: the config's model and adapter as one model folder, and what merging costs. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "commands/commands.h"
#include "commands/setup.h"
#include "model/merge.h"

enum { PROMPTS = 4, PROMPT_TOKENS = 256 }; /* compared; a longer prompt by its first tokens */

/* The prompts to compare by: the first questions of the data set. */
typedef struct {
    const rrl_pool *pool;
    int n;
    int32_t n_ids[PROMPTS];
    int64_t positions;
} prompts;

static prompts first_prompts(const rrl_pool *pool) {
    prompts p = {.pool = pool};
    for (; p.n < PROMPTS && p.n < pool->questions->n; p.n++) {
        p.n_ids[p.n] = pool->n_ids[p.n] < PROMPT_TOKENS ? pool->n_ids[p.n] : PROMPT_TOKENS;
        p.positions += p.n_ids[p.n];
    }
    return p;
}

/* logits [positions, vocab] of all prompts */
static rrl_status logits_of(float *out, const prompts *p, rrl_model *m, rrl_adapter *a) {
    for (int i = 0; i < p->n; i++) {
        RRL_TRY(rrl_merge_logits(out, m, a, p->pool->ids[i], p->n_ids[i]));
        out += (int64_t)p->n_ids[i] * rrl_model_dims(m)->vocab;
    }
    return RRL_OK;
}

static void print_result(const rrl_merge_report *r, const rrl_merge_error *e, const prompts *p, const char *dir) {
    printf("%s is complete\n", dir);
    printf("  matrices with an adapter             %d, %lld weights\n", r->matrices, (long long)r->weights);
    printf("  largest change of a weight           %.3g\n", r->change);
    printf("  largest rounding of a stored weight  %.3g, relative %.3g\n", r->rounding, r->rounding_rel);
    printf("  largest error of a logit             %.3g, of its position's largest %.3g\n", e->largest, e->largest_rel);
    printf("  other most likely token              %lld of %lld positions in %d prompts\n", (long long)e->other_argmax,
           (long long)e->positions, p->n);
}

/* Merges in float32 whatever the run computes in, so that the error is that of merging and storing. One model is in
 * memory at a time. */
static rrl_status convert(const rrl_engine *e, const rrl_options *o, rrl_merge_dtype dtype, int threads) {
    rrl_status rc = RRL_OK;
    rrl_device *d = NULL;
    rrl_model *m = NULL;
    rrl_adapter *a = NULL;
    float *unmerged = NULL, *merged = NULL;
    rrl_merge_report report;
    rrl_merge_error error = {0};
    const prompts p = first_prompts(&e->test);
    const size_t n = (size_t)p.positions * (size_t)e->dims.vocab;
    RRL_GOTO(rrl_cpu_open(&d, o->isa ? o->isa : "auto", threads));
    RRL_GOTO(rrl_model_open(&m, d, e->model_dir));
    RRL_GOTO(rrl_adapter_load(&a, m, e->config->model.adapter));
    RRL_GOTO(rrl_alloc(&unmerged, n, sizeof *unmerged, "logits"));
    RRL_GOTO(rrl_alloc(&merged, n, sizeof *merged, "logits"));
    RRL_GOTO(logits_of(unmerged, &p, m, a));
    RRL_GOTO(rrl_merge_write(&report, a, e->model_dir, o->out, dtype));
    rrl_adapter_close(&a);
    rrl_model_close(&m);
    RRL_GOTO(rrl_model_open(&m, d, o->out));
    RRL_GOTO(logits_of(merged, &p, m, NULL));
    rrl_merge_compare(&error, merged, unmerged, (int32_t)p.positions, e->dims.vocab);
    print_result(&report, &error, &p, o->out);
done:
    free(unmerged);
    free(merged);
    rrl_adapter_close(&a);
    rrl_model_close(&m);
    rrl_device_close(&d);
    return rc;
}

static rrl_status check_options(const rrl_options *o, const rrl_config *c, rrl_merge_dtype *dtype) {
    if (!o->out) return RRL_FAIL(RRL_ERR_USAGE, "rrl convert: --out DIR is missing: the folder of the merged model");
    if (!c->model.adapter[0])
        return RRL_FAIL(RRL_ERR_CONFIG, "model.adapter is empty; name the adapter to merge, for example "
                        "--set model.adapter=runs/train/adapter");
    if (c->model.backend == RRL_BACKEND_FIXTURE)
        return RRL_FAIL(RRL_ERR_CONFIG, "model.backend is fixture, which has no weights to merge");
    return rrl_merge_dtype_of(dtype, o->dtype ? o->dtype : "auto");
}

rrl_status rrl_command_convert(const rrl_options *o, rrl_command_context *ctx) {
    rrl_setup s = {0};
    rrl_engine *e = NULL;
    rrl_merge_dtype dtype = RRL_MERGE_AUTO;
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_setup_look(&s, o, ctx, RRL_FOR_EVAL));
    RRL_GOTO(check_options(o, s.config, &dtype));
    if (ctx->rank != 0) goto done;
    RRL_GOTO(rrl_engine_open_plan(&e, s.config, false));
    RRL_GOTO(convert(e, o, dtype, rrl_engine_threads(s.config, (int)o->threads, s.team)));
done:
    rrl_engine_close(&e);
    rrl_setup_close(&s);
    return rc;
}
