/* Measuring what a model can do before it is trained, and comparing it with what a study demands. */
#include "study/qualify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files.h"
#include "base/memory.h"
#include "roles/run.h"
#include "study/study.h"

static const char FOLDER[] = "qualification", METHOD[] = "qualification";
static char all_linear[] = "all-linear", *every_module[] = {all_linear};

/* What a study does with a model after the gate is not what was measured at it. */
static rrl_status forget_training(rrl_config *c) {
    rrl_config *d = NULL;
    RRL_TRY(rrl_config_parse(&d, "{}", 2, "defaults", NULL, NULL, 0));
    c->training = d->training;
    c->training.lora.target_modules = (rrl_texts){every_module, 1};
    c->training.slot_rows = c->generation.num_generations;
    c->reward = d->reward;
    c->parallel.pipeline_depth = 0;
    rrl_config_close(&d);
    return RRL_OK;
}

static void one_clean_member(rrl_verifier_config *v) {
    rrl_corruption_config *k = &v->members[0].corruption;
    v->n_members = 1;
    v->strategy = RRL_ENSEMBLE_MEAN;
    v->members[0].kind = RRL_MEMBER_RULE;
    k->kind = RRL_CORRUPT_NONE;
    k->probability = 0;
    k->seed = 0;
    k->confidence_scale = 1;
}

rrl_status rrl_qualification_config(rrl_config **out, const rrl_config *study) {
    rrl_status rc;
    rrl_config *c = NULL;
    char *dir = NULL;
    int64_t *k = NULL;
    RRL_GOTO(rrl_config_copy(&c, study));
    if (c->experiment.qualification_dataset.given) c->dataset = c->experiment.qualification_dataset;
    c->experiment.train_dataset.given = c->experiment.qualification_dataset.given = false;
    if (!c->experiment.qualification_sampled) {
        c->generation.temperature = 0;
        c->generation.num_generations = 1;
    }
    c->experiment.qualification_min_pass1 = 0;
    c->experiment.mode = RRL_MODE_TRAIN;
    RRL_GOTO(rrl_config_memory(&k, c, 1, sizeof *k));
    *k = 1;
    c->evaluation.k = (rrl_ints){k, 1};
    one_clean_member(&c->training_verifier);
    RRL_GOTO(forget_training(c));
    rrl_condition_forget_grid(c, (uint64_t)study->seed);
    RRL_GOTO(rrl_path_join(&dir, study->output_dir, FOLDER));
    RRL_GOTO(rrl_config_text(&c->output_dir, c, dir));
    *out = c;
    c = NULL;
done:
    free(dir);
    rrl_config_close(&c);
    return rc;
}

/* The run's folder is claimed by one team; the others look again until it is complete. */
static rrl_status run(bool *before, rrl_team *team, rrl_engine *engine, const rrl_config *c, bool fresh) {
    rrl_run_spec spec = {.config = c, .dir = c->output_dir, .arm = "", .method = METHOD, .level = NAN, .fresh = fresh};
    for (;;) {
        bool stop = false;
        rrl_run_result result = {0};
        rrl_status rc = rrl_run(team, engine, &spec, &result);
        *before = result.complete_before;
        rrl_run_result_free(&result);
        if (rc != RRL_ERR_BUSY) return rc;
        RRL_TRY(rrl_team_stop(team, &stop));
        if (stop) return RRL_FAIL(RRL_ERR_REQUEUE, "stopped by a signal while another job measures %s", c->output_dir);
        nanosleep(&(struct timespec){0, 200000000}, NULL);
    }
}

static rrl_status read_result(rrl_qualification *q, const char *dir) {
    rrl_record *r = NULL;
    rrl_config *c = NULL;
    rrl_status rc;
    RRL_GOTO(rrl_record_read(&r, dir, 0));
    RRL_GOTO(rrl_config_parse(&c, r->config_yaml, strlen(r->config_yaml), dir, NULL, NULL, 0));
    q->greedy = c->generation.temperature == 0;
    const rrl_record_set *s = r->n_evaluations ? &r->evaluations[r->n_evaluations - 1] : NULL;
    for (int64_t i = 0; s && i < s->n_metrics; i++)
        if (strcmp(s->metrics[i].name, "pass@1") == 0 && s->metrics[i].defined) q->pass1 = s->metrics[i].value;
    q->questions = s ? s->n_questions : 0;
    q->samples = s && s->n_questions ? s->n / s->n_questions : 0;
done:
    rrl_config_close(&c);
    rrl_record_free(&r);
    return rc;
}

rrl_status rrl_qualification_read(rrl_qualification *out, const char *study) {
    rrl_status rc;
    char *dir = NULL, *record = NULL;
    rrl_qualification q = {.pass1 = NAN};
    RRL_GOTO(rrl_path_join(&dir, study, FOLDER));
    RRL_GOTO(rrl_path_join(&record, dir, "run.h5"));
    if (rrl_file_exists(record)) RRL_GOTO(read_result(&q, dir));
    *out = q;
done:
    free(record);
    free(dir);
    return rc;
}

/* The recorder reads; the others get its numbers. A share in [0,1] is ordered as its bits are. */
static rrl_status share_result(rrl_qualification *q, rrl_team *team, const char *dir) {
    int64_t x[] = {-1, 0, 0};
    bool reads = team->rank == team->recorder;
    RRL_TRY(rrl_team_agree(team, reads ? read_result(q, dir) : RRL_OK, "qualification read"));
    if (reads && !isnan(q->pass1)) memcpy(&x[0], &q->pass1, sizeof q->pass1);
    if (reads) x[1] = q->questions, x[2] = q->samples;
    RRL_TRY(rrl_team_max(team, x, 3));
    q->pass1 = NAN;
    if (x[0] >= 0) memcpy(&q->pass1, &x[0], sizeof q->pass1);
    q->questions = x[1];
    q->samples = x[2];
    return RRL_OK;
}

rrl_status rrl_qualification_measure(rrl_qualification *out, rrl_team *team, const rrl_config *study, const char *isa,
                                     int threads, bool fresh) {
    rrl_status rc;
    rrl_config *c = NULL;
    rrl_engine *engine = NULL;
    rrl_qualification q = {.pass1 = NAN};
    RRL_GOTO(rrl_team_agree(team, rrl_qualification_config(&c, study), "qualification"));
    q.greedy = c->generation.temperature == 0;
    RRL_GOTO(rrl_engine_open(&engine, team, c, false, isa, threads));
    RRL_GOTO(run(&q.before, team, engine, c, fresh));
    RRL_GOTO(share_result(&q, team, c->output_dir));
    *out = q;
done:
    rrl_engine_close(&engine);
    rrl_config_close(&c);
    return rc;
}

rrl_status rrl_qualification_demand(const rrl_qualification *q, const rrl_config *study) {
    double least = study->experiment.qualification_min_pass1;
    if (isnan(q->pass1))
        return RRL_FAIL(RRL_ERR_DATA, "%s/%s: pass@1 is undefined; rrl show says what was measured", study->output_dir,
                        FOLDER);
    if (q->pass1 >= least) return RRL_OK;
    return RRL_FAIL(RRL_ERR_DATA, "the model does not qualify: pass@1 is %.4g on %lld validation questions (%s), "
                    "experiment.qualification_min_pass1 demands %.4g; see rrl show %s/%s, then choose another model or "
                    "another demand", q->pass1, (long long)q->questions, q->greedy ? "greedy" : "sampled", least,
                    study->output_dir, FOLDER);
}
