/* What durability costs: the quick study's kind of run with a segment and a checkpoint due every step, against one of each
 * at its end. "each step" is how a study would run, where what waits for the writer is joined; "each written" leaves
 * nothing out, and is stated beside it. All are whole runs, set-up and end included. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json_write.h"
#include "bench/scratch.h"
#include "bench/works.h"
#include "roles/run.h"

enum { STEPS = 100 /* as there */, BIG_STEPS = 2, QUICK_STEPS = 2 };
static const double BIG = 1e8; /* bytes of weights: a step takes seconds */

typedef struct {
    rrl_bench_measure m;
    rrl_team *team;
    rrl_config *config;
    rrl_engine *engine;
    char *dir;
    double share; /* records.writer_share as it is by default */
} durable;

static rrl_status run(durable *d, int64_t every, double share) {
    rrl_run_result result = {0};
    const rrl_run_spec spec = {.config = d->config, .dir = d->dir, .arm = "", .method = "train", .level = NAN,
                               .train = true};
    d->config->records.steps_per_segment = every;
    d->config->training.save_steps = every;
    d->config->records.writer_share = share;
    rrl_status rc = rrl_run(d->team, d->engine, &spec, &result);
    rrl_run_result_free(&result);
    (void)rrl_dir_remove(d->dir);
    return rc;
}

static rrl_status each_step(void *context) {
    durable *d = context;
    return run(d, 1, d->share);
}
static rrl_status at_the_end(void *context) {
    durable *d = context;
    return run(d, d->config->training.max_steps, d->share);
}
static rrl_status each_written(void *context) { return run(context, 1, 1); }

/* `key` and a text in quotes, on a line. */
static rrl_status put_text(rrl_buffer *b, const char *key, const char *text) {
    RRL_TRY(rrl_buffer_puts(b, key));
    RRL_TRY(rrl_json_quote(b, text, strlen(text)));
    return rrl_buffer_puts(b, "\n");
}

/* Keys as in configs/quick.yaml; the questions are made up, so that any model and folder will do. */
static rrl_status make_config(rrl_config **out, const rrl_bench *b, const char *dir, int steps) {
    rrl_buffer text = {0};
    rrl_status rc = RRL_OK;
    char *model = realpath(b->spec->model_dir, NULL);
    if (!model) return RRL_FAIL(RRL_ERR_DATA, "%s is no folder", b->spec->model_dir);
    RRL_GOTO(put_text(&text, "output_dir: ", dir));
    RRL_GOTO(put_text(&text, "model:\n  name: ", model));
    RRL_GOTO(rrl_buffer_printf(&text, "  dtype: %s\n  prompt_format: chat\nseed: 42\n"
                               "dataset: {source: synthetic, limit: 64}\n"
                               "generation: {num_generations: 8, temperature: 0.7, top_p: 0.95, max_tokens: 48}\n"
                               "training_verifier: {strategy: mean, members: [rule, rule, rule]}\n"
                               "training: {max_steps: %d, batch_size: 16, learning_rate: 1e-3, beta: 0.04, "
                               "lora: {r: 8, alpha: 16, dropout: 0}}\n", b->spec->dtype, steps));
    RRL_GOTO(rrl_config_parse(out, text.data, text.len, "the run of rrl bench", NULL, NULL, 0));
    rc = rrl_config_check(*out, RRL_FOR_TRAIN);
done:
    rrl_buffer_free(&text);
    free(model);
    return rc;
}

static rrl_status prepare(durable *d, const rrl_bench *b, int steps) {
    char *here = realpath(b->scratch, NULL);
    if (!here) return RRL_FAIL(RRL_ERR_IO, "%s is gone", b->scratch);
    rrl_status rc = rrl_path_join(&d->dir, here, "durable");
    free(here);
    RRL_TRY(rc);
    RRL_TRY(make_config(&d->config, b, d->dir, steps));
    d->share = d->config->records.writer_share;
    RRL_TRY(rrl_team_open(&d->team, MPI_COMM_SELF, &d->config->parallel, false, NULL));
    return rrl_engine_open(&d->engine, d->team, d->config, true, rrl_device_isa(b->device), b->threads);
}

rrl_status rrl_bench_durable(rrl_bench *b, const char *name, int32_t size) {
    rrl_status rc = RRL_OK;
    durable d = {0};
    const int steps = b->spec->quick ? QUICK_STEPS : rrl_bench_weight_bytes(b) > BIG ? BIG_STEPS : STEPS;
    RRL_GOTO(prepare(&d, b, steps));
    d.m = (rrl_bench_measure){.name = name, .unit = "steps/s", .amount = steps, .n_cases = 3, .against = 1,
                              .context = &d};
    d.m.cases[0] = (rrl_bench_case){"each step", each_step, 1};
    d.m.cases[1] = (rrl_bench_case){"at the end", at_the_end, 0};
    d.m.cases[2] = (rrl_bench_case){"each written", each_written, 0};
    d.m.pass_bytes = rrl_bench_weight_bytes(b);
    RRL_GOTO(rrl_bench_add(b, &d.m));
done:
    rrl_engine_close(&d.engine);
    rrl_team_close(&d.team);
    rrl_config_close(&d.config);
    free(d.dir);
    return rc;
}
