/* All checks across keys; single keys were checked when they were read. Each message names both keys. */
#include "config/config_check.h"

#include <string.h>

#include "config/config_paths.h"

#define REFUSE(...) RRL_FAIL(RRL_ERR_CONFIG, __VA_ARGS__)

enum { MAX_MEMBERS = 64 };

/* --- verifiers and rewards */

static rrl_status check_reward(const rrl_reward_config *r, const char *name) {
    if (!(r->moderate_threshold <= r->severe_threshold))
        return REFUSE(
            "%s.moderate_threshold %g is above %s.severe_threshold %g; the moderate one must not be larger",
            name, r->moderate_threshold, name, r->severe_threshold);
    return RRL_OK;
}

static rrl_status check_corruption(const rrl_corruption_config *c, const char *name, int64_t i) {
    if (c->kind == RRL_CORRUPT_BIAS && !*c->bias_key)
        return REFUSE("%s[%lld].corruption: kind bias needs a bias_key", name, (long long)i);
    return RRL_OK;
}

static rrl_status check_verifiers(const rrl_config *c) {
    const rrl_verifier_config *t = &c->training_verifier, *e = &c->evaluation_verifier;
    if (t->n_members < 1 || t->n_members > MAX_MEMBERS)
        return REFUSE("training_verifier.members has %lld members; from 1 to %d are allowed",
                      (long long)t->n_members, MAX_MEMBERS);
    for (int64_t i = 0; i < t->n_members; i++)
        RRL_TRY(check_corruption(&t->members[i].corruption, "training_verifier.members", i));
    if (e->n_members != 1)
        return REFUSE(
            "evaluation_verifier.members has %lld members; it is the independent judge, one member: move an "
            "ensemble to training_verifier.members",
            (long long)e->n_members);
    if (e->members[0].corruption.kind != RRL_CORRUPT_NONE || e->members[0].corruption.confidence_scale != 1)
        return REFUSE(
            "evaluation_verifier.members[0].corruption: the independent judge is never corrupted; move it to "
            "training_verifier.members");
    RRL_TRY(check_reward(&c->reward, "reward"));
    return check_reward(&c->experiment.robust_reward, "experiment.robust_reward");
}

/* --- evaluation, model, ranks */

static rrl_status check_evaluation(const rrl_config *c) {
    const rrl_ints *k = &c->evaluation.k;
    if (k->n == 0) return REFUSE("evaluation.k is empty; name at least one k, such as [1]");
    for (int64_t i = 0; i < k->n; i++) {
        if (k->v[i] > c->generation.num_generations)
            return REFUSE(
                "evaluation.k has %lld, above generation.num_generations %lld; pass@k needs at least k "
                "completions of a question",
                (long long)k->v[i], (long long)c->generation.num_generations);
        for (int64_t j = 0; j < i; j++)
            if (k->v[i] == k->v[j])
                return REFUSE("evaluation.k has %lld twice; remove one", (long long)k->v[i]);
    }
    return RRL_OK;
}

static rrl_status check_model(const rrl_config *c, rrl_purpose purpose) {
    const rrl_model_section *m = &c->model;
    bool fixture = m->backend == RRL_BACKEND_FIXTURE, audit = c->experiment.mode == RRL_MODE_FIXTURE;
    if (audit && !fixture)
        return REFUSE(
            "experiment.mode fixture needs model.backend fixture; transformers found: it audits verifiers on "
            "made-up answers");
    if (fixture && purpose == RRL_FOR_TRAIN)
        return REFUSE("model.backend fixture cannot be trained; set model.backend transformers, or run "
                      "`rrl study` with experiment.mode fixture");
    if (fixture && purpose == RRL_FOR_STUDY && !audit)
        return REFUSE(
            "model.backend fixture needs experiment.mode fixture; train found: nothing can be trained on it");
    if (!fixture && !*m->name)
        return REFUSE("model.name is empty; name a model folder or a hub id owner/name");
    if (*m->prompt_template && !strstr(m->prompt_template, "{question}"))
        return REFUSE("model.prompt_template has no {question}; say where the question goes");
    if (c->training.use_cpu && m->device == RRL_DEVICE_CUDA)
        return REFUSE("training.use_cpu is true and model.device is cuda; remove one");
    return RRL_OK;
}

static rrl_status check_parallel(const rrl_config *c) {
    const rrl_parallel_config *p = &c->parallel;
    const rrl_roles_config *r = &p->roles;
    int64_t sum = r->generators + r->verifiers + r->learners;
    if (sum == 0) return RRL_OK;
    if (!r->generators || !r->verifiers || !r->learners)
        return REFUSE("parallel.roles has generators %lld, verifiers %lld, learners %lld; give each at least "
                      "one rank, or "
                      "all 0 so that every rank does everything",
                      (long long)r->generators, (long long)r->verifiers, (long long)r->learners);
    if (p->ranks_per_team && p->ranks_per_team != sum)
        return REFUSE(
            "parallel.roles add up to %lld ranks, parallel.ranks_per_team is %lld; make them equal, or leave "
            "ranks_per_team out",
            (long long)sum, (long long)p->ranks_per_team);
    return RRL_OK;
}

/* --- training */

static rrl_status check_steps(const rrl_config *c) {
    const rrl_training_config *t = &c->training;
    int64_t g = c->generation.num_generations,
            rows = t->batch_size * t->gradient_accumulation_steps; /* <= 1e12 */
    if (g < 2)
        return REFUSE("generation.num_generations is 1; training compares completions of a question and "
                      "needs at least 2");
    if (!(c->generation.temperature > 0))
        return REFUSE(
            "generation.temperature is 0; training needs samples that differ, so a temperature above 0");
    if (rows % g != 0)
        return REFUSE("training.batch_size %lld x training.gradient_accumulation_steps %lld = %lld rows an "
                      "update, which "
                      "generation.num_generations %lld does not divide; an update holds whole groups",
                      (long long)t->batch_size, (long long)t->gradient_accumulation_steps, (long long)rows,
                      (long long)g);
    if (g % t->slot_rows != 0)
        return REFUSE("training.slot_rows %lld does not divide generation.num_generations %lld; a slot holds "
                      "rows of one "
                      "group",
                      (long long)t->slot_rows, (long long)g);
    return RRL_OK;
}

static rrl_status check_training(const rrl_config *c) {
    const rrl_training_config *t = &c->training;
    RRL_TRY(check_steps(c));
    if (t->epsilon_high < 0)
        return REFUSE("training.epsilon_high %g is below 0; leave it out for training.epsilon",
                      t->epsilon_high);
    if (t->lr_scheduler == RRL_SCHEDULE_CONSTANT && t->warmup_steps)
        return REFUSE("training.lr_scheduler constant has no warm-up, training.warmup_steps is %lld; use "
                      "constant_with_warmup, or 0 steps",
                      (long long)t->warmup_steps);
    if (t->warmup_steps > t->max_steps)
        return REFUSE("training.warmup_steps %lld is above training.max_steps %lld",
                      (long long)t->warmup_steps, (long long)t->max_steps);
    if (t->lora.dropout_in_rollout && !(t->lora.dropout > 0))
        return REFUSE("training.lora.dropout_in_rollout is true and training.lora.dropout is 0; remove one");
    const rrl_texts *targets = &t->lora.target_modules;
    if (targets->n == 0) return REFUSE("training.lora.target_modules is empty; name modules, or all-linear");
    for (int64_t i = 0; i < targets->n; i++)
        if (targets->n > 1 && strcmp(targets->v[i], "all-linear") == 0)
            return REFUSE("training.lora.target_modules has all-linear beside other names; it stands alone");
    return RRL_OK;
}

/* --- data sets */

static rrl_status check_dataset(const rrl_config *c, const rrl_dataset_config *d) {
    const char *key = rrl_config_dataset_name(c, d), *source = d->source;
    if (!d->given) return RRL_OK;
    bool jsonl = strcmp(source, "jsonl") == 0, synthetic = strcmp(source, "synthetic") == 0;
    bool hub = strcmp(source, "huggingface") == 0;
    if (jsonl && !*d->path) return REFUSE("%s.source jsonl needs %s.path", key, key);
    if (hub && !*d->name && !*d->path) return REFUSE("%s.source huggingface needs %s.name", key, key);
    if (!jsonl && !synthetic && !*d->split && !*d->path)
        return REFUSE("%s.source %s needs %s.split: train, validation or test", key, source, key);
    if (synthetic && d->limit == 0)
        return REFUSE("%s.source synthetic needs %s.limit, the number of questions to make", key, key);
    if (synthetic && *d->pool)
        return REFUSE("%s.pool %s has no rows in %s.source synthetic", key, d->pool, key);
    if (!*d->question_column || !*d->answer_column)
        return REFUSE("%s.question_column and %s.answer_column must not be empty", key, key);
    return RRL_OK;
}

static rrl_status check_data(const rrl_config *c, rrl_purpose purpose) {
    const rrl_experiment_config *e = &c->experiment;
    RRL_TRY(check_dataset(c, &c->dataset));
    RRL_TRY(check_dataset(c, &e->train_dataset));
    RRL_TRY(check_dataset(c, &e->qualification_dataset));
    bool eval = c->dataset.given, train = e->train_dataset.given, qualify = e->qualification_dataset.given;
    switch (purpose) {
    case RRL_FOR_TRAIN:
        if (!eval && !train) return REFUSE("dataset is missing; say where the training questions are");
        break;
    case RRL_FOR_EVAL:
        if (!eval) return REFUSE("dataset is missing; say where the evaluation questions are");
        break;
    case RRL_FOR_STUDY:
        if (!eval) return REFUSE("dataset is missing; say where the evaluation questions are");
        if (!train && rrl_study_trains(c))
            return REFUSE("experiment.train_dataset is missing; methods of experiment.arms train, and "
                          "dataset holds the "
                          "evaluation questions");
        if (e->qualification_min_pass1 > 0 && !qualify)
            return REFUSE("experiment.qualification_min_pass1 needs experiment.qualification_dataset");
        break;
    case RRL_FOR_QUALIFY:
        if (!eval && !qualify)
            return REFUSE(
                "experiment.qualification_dataset is missing; say where the validation questions are");
        break;
    }
    return RRL_OK;
}

/* --- all */

rrl_purpose rrl_config_purpose(const rrl_config *c) {
    const rrl_experiment_config *x = &c->experiment;
    bool one = x->n_arms == 1 && x->arms[0].n_members == 0 && x->arms[0].corruption.kind == RRL_CORRUPT_NONE &&
               x->arms[0].levels.n == 1 && x->seeds.n == 1;
    if (!one || x->mode == RRL_MODE_FIXTURE) return RRL_FOR_STUDY;
    bool samples = c->generation.temperature > 0 && c->generation.num_generations > 1;
    return samples && c->model.backend != RRL_BACKEND_FIXTURE ? RRL_FOR_TRAIN : RRL_FOR_EVAL;
}

static rrl_status check_all(const rrl_config *c, rrl_purpose purpose) {
    RRL_TRY(check_model(c, purpose));
    RRL_TRY(check_verifiers(c));
    RRL_TRY(check_evaluation(c));
    RRL_TRY(check_parallel(c));
    if (!c->training.lora.enabled)
        return REFUSE("training.lora.enabled: false is refused: training of all weights does not exist yet, "
                      "only adapters");
    if (purpose == RRL_FOR_STUDY) RRL_TRY(rrl_check_study(c));
    if (purpose == RRL_FOR_TRAIN || (purpose == RRL_FOR_STUDY && rrl_study_trains(c)))
        RRL_TRY(check_training(c));
    return check_data(c, purpose);
}

rrl_status rrl_config_check(const rrl_config *c, rrl_purpose purpose) {
    rrl_status rc = check_all(c, purpose);
    return *c->file ? rrl_context(rc, "%s", c->file) : rc;
}
