/* The plan: conditions, batch geometry, ranks and roles, sampling, memory, work, predictions. */
#include "commands/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "config/config_check.h"
#include "report/predict.h"
#include "verify/references.h"

enum { LABEL_CHARS = 13, LINE_CHARS = 80 };

static void print_geometry(const rrl_config *c) {
    long long g = c->generation.num_generations, rows = c->training.batch_size * c->training.gradient_accumulation_steps;
    long long slot = c->training.slot_rows > 0 ? c->training.slot_rows : g;
    printf("training     %lld updates of %lld questions x %lld completions = %lld rows;\n"
           "             micro-batches of %lld rows, slots of %lld rows: %lld a step\n",
           (long long)c->training.max_steps, rows / g, g, rows, (long long)c->training.batch_size, slot, rows / slot);
    if (g == 2)
        printf("note         a pair of equal rewards teaches nothing: p^2 + (1-p)^2 of the groups at accuracy p, half of "
               "them at best\n");
    printf("loss         %s, beta %g, epsilon %g, learning rate %g %s\n"
           "adapter      LoRA r %lld, alpha %g, dropout %g\n",
           RRL_ENUM_TEXTS(RRL_LOSS_LIST)[c->training.loss_type], c->training.beta, c->training.epsilon,
           c->training.learning_rate, RRL_ENUM_TEXTS(RRL_SCHEDULER_LIST)[c->training.lr_scheduler],
           (long long)c->training.lora.r, c->training.lora.alpha, c->training.lora.dropout);
}

static void print_sampling(const rrl_config *c, const rrl_engine *e) {
    printf("sampling     temperature %g, top_p %g, top_k %lld, repetition penalty %g,\n"
           "             at most %lld tokens\n",
           c->generation.temperature, c->generation.top_p, (long long)c->generation.top_k,
           c->generation.repetition_penalty, (long long)c->generation.max_tokens);
    if (!e->prompt) return;
    printf("prompt       %s, end tokens", rrl_prompt_name(e->prompt));
    for (int32_t i = 0; i < e->dims.n_eos; i++) printf(" %d", e->dims.eos[i]);
    printf(", longest prompt %d of context %d\n",
           e->train.longest > e->test.longest ? e->train.longest : e->test.longest, e->dims.max_positions);
}

static void print_layout(const rrl_setup *s, const rrl_options *o, int32_t slots, bool trains) {
    const rrl_team *t = s->team;
    printf("layout       teams %d, ranks a team %d, threads a rank %d;\n             ", t->count, t->size,
           rrl_engine_threads(s->config, (int)o->threads, t));
    if (t->colocated)
        printf("colocated: every rank generates, verifies and learns\n");
    else
        printf("split: generators %d, verifiers %d, learners %d\n", t->generators.n, t->verifiers.n, t->learners.n);
    if (trains && t->learners.n > slots)
        printf("note         %d of %d learners idle: a step has %d slots (training.slot_rows)\n", t->learners.n - slots,
               t->learners.n, slots);
}

static rrl_status print_conditions(const rrl_config *c) {
    rrl_condition *list = NULL;
    int64_t n = 0, trained = 0;
    RRL_TRY(rrl_conditions_list(&list, &n, c));
    for (int64_t i = 0; i < n; i++) trained += list[i].trains;
    printf("conditions   %lld, of which %lld train\n", (long long)n, (long long)trained);
    for (int64_t i = 0; i < n; i++)
        printf("  %3lld  %s\n", (long long)i, list[i].dir + strlen(c->output_dir) + 1);
    rrl_conditions_free(&list, n);
    return RRL_OK;
}

static void print_work(const rrl_config *c, const rrl_engine *e, bool trains) {
    double limit = (double)c->generation.max_tokens, g = (double)c->generation.num_generations;
    double rows = (double)(c->training.batch_size * c->training.gradient_accumulation_steps);
    if (trains)
        printf("work         a trained condition samples and trains on at most %.3g tokens\n",
               (double)c->training.max_steps * rows * limit / (double)c->training.num_iterations);
    if (e->test.questions)
        printf("evaluation   %lld questions x %lld completions, at most %.3g tokens a condition\n",
               (long long)e->test.questions->n, (long long)c->generation.num_generations,
               (double)e->test.questions->n * g * limit);
}

/* What the rewards of the conditions will do, as far as it follows from the config. */
static rrl_status print_predictions(const rrl_config *c) {
    char *text = NULL;
    RRL_TRY(rrl_predict_summary(&text, c));
    fputs(text, stdout);
    free(text);
    return RRL_OK;
}

rrl_status rrl_plan_note(const char *text) {
    rrl_buffer b = {0};
    rrl_status rc = rrl_buffer_printf(&b, "%-*s", LABEL_CHARS, "note");
    if (rc == RRL_OK) rc = rrl_buffer_wrap(&b, text, LABEL_CHARS, LINE_CHARS);
    if (rc == RRL_OK) fputs(b.data, stdout);
    rrl_buffer_free(&b);
    return rc;
}

/* What the config sets without effect, as a run would log it. */
static rrl_status print_notes(const rrl_config *c) {
    char *notes = NULL, *save = NULL;
    RRL_TRY(rrl_config_notes(&notes, c));
    rrl_status rc = RRL_OK;
    for (char *line = strtok_r(notes, "\n", &save); line && rc == RRL_OK; line = strtok_r(NULL, "\n", &save))
        rc = rrl_plan_note(line);
    free(notes);
    return rc;
}

static rrl_status print_references(const rrl_questions *q, const char *name) {
    rrl_buffer note = {0};
    if (!q) return RRL_OK;
    rrl_status rc = rrl_references_note(&note, q, name);
    if (rc == RRL_OK && note.len) rc = rrl_plan_note(note.data);
    rrl_buffer_free(&note);
    return rc;
}

rrl_status rrl_plan_print(const rrl_setup *s, const rrl_options *o, rrl_purpose purpose) {
    rrl_status rc = RRL_OK;
    rrl_engine *e = NULL;
    const rrl_config *c = s->config;
    bool study = purpose == RRL_FOR_STUDY;
    bool trains = purpose == RRL_FOR_TRAIN || (study && rrl_study_trains(c));
    int32_t slot_rows = (int32_t)(c->training.slot_rows > 0 ? c->training.slot_rows : c->generation.num_generations);
    int32_t slots = (int32_t)(c->training.batch_size * c->training.gradient_accumulation_steps / slot_rows);
    RRL_TRY(rrl_engine_open_plan(&e, c, trains));
    printf("config       %s is valid for %s\n", c->file, study ? "study" : trains ? "train" : "eval");
    printf("output       %s\n", c->output_dir);
    if (e->train.questions) printf("train        %lld questions\n", (long long)e->train.questions->n);
    if (e->test.questions) printf("test         %lld questions\n", (long long)e->test.questions->n);
    else printf("test         none: no evaluation (give experiment.train_dataset and dataset)\n");
    if (c->experiment.qualification_min_pass1 > 0)
        printf("qualify      pass@1 of %g at least on the validation questions first\n",
               c->experiment.qualification_min_pass1);
    if (study) RRL_GOTO(print_conditions(c));
    if (trains) print_geometry(c);
    print_sampling(c, e);
    print_layout(s, o, slots, trains);
    if (e->dims.layers > 0) RRL_GOTO(rrl_plan_memory(s, o, e, purpose));
    print_work(c, e, trains);
    if (trains) RRL_GOTO(print_predictions(c));
    RRL_GOTO(print_references(e->train.questions, "training set"));
    RRL_GOTO(print_references(e->test.questions, "evaluation set"));
    rc = print_notes(c);
done:
    rrl_engine_close(&e);
    return rc;
}
