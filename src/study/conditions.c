/* The grid: which conditions a study has, and the config of each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "study/study.h"

enum { MEMBER_SEED_STRIDE = 1009 };
static const char AUDIT_METHOD[] = "fixture_verifier_audit";

void rrl_conditions_free(rrl_condition **c, int64_t n) {
    for (int64_t i = 0; *c && i < n; i++) {
        free((*c)[i].arm);
        free((*c)[i].method);
        free((*c)[i].dir);
        rrl_config_close(&(*c)[i].config);
    }
    free(*c);
    *c = NULL;
}

/* Members of a condition: the arm's corruption at this level on each, or the arm's fixed ones. Member i gets
 * seed + 1009 i; a shared arm gives all the same event. */
static rrl_status set_members(rrl_config *c, const rrl_arm_config *arm, double level, uint64_t seed) {
    rrl_verifier_config *v = &c->training_verifier;
    if (arm->n_members > 0 && arm->n_members != v->n_members)
        return RRL_FAIL(RRL_ERR_CONFIG, "experiment.arms: arm %s has %lld members, training_verifier has %lld; give one "
                        "corruption (or none) for each", arm->name, (long long)arm->n_members, (long long)v->n_members);
    for (int64_t i = 0; i < v->n_members; i++) {
        v->members[i].corruption = arm->n_members > 0 ? arm->members[i] : arm->corruption;
        if (arm->n_members == 0) v->members[i].corruption.probability = level;
        v->members[i].corruption.seed = (int64_t)((seed + (arm->shared ? 0 : MEMBER_SEED_STRIDE * (uint64_t)i)) &
                                                  (uint64_t)RRL_SEED_MAX);
    }
    return RRL_OK;
}

static void set_method(rrl_config *c, const char *method) {
    if (strcmp(method, "robust") == 0) c->reward = c->experiment.robust_reward;
    else c->reward.strategy = RRL_SHAPE_STANDARD;
}

void rrl_condition_forget_grid(rrl_config *c, uint64_t seed) {
    static const char name[] = "run", method[] = "baseline";
    rrl_experiment_config *x = &c->experiment;
    x->seeds.n = x->levels.n = x->methods.n = x->n_arms = 1;
    x->seeds.v[0] = (int64_t)seed;
    x->levels.v[0] = 0;
    x->methods.v[0] = (char *)method;
    x->corruption.kind = RRL_CORRUPT_NONE;
    x->arms[0] = (rrl_arm_config){.name = (char *)name, .corruption = x->corruption, .levels = x->levels,
                                  .methods = x->methods};
    x->robust_reward = c->reward;
    c->n_hypotheses = 0;
}

static rrl_status set_dir(rrl_condition *c, const rrl_config *study) {
    rrl_buffer b = {0};
    char level[RRL_NUMBER_CHARS] = "na";
    if (!isnan(c->level)) rrl_format_g(level, c->level);
    rrl_status rc = rrl_buffer_printf(&b, "%s/%s/level-%s/seed-%llu/%s", study->output_dir, c->arm, level,
                                      (unsigned long long)c->seed, c->method);
    c->dir = b.data;
    return rc;
}

static rrl_status make_condition(rrl_condition *c, const rrl_config *study, const rrl_arm_config *arm, double level,
                                 uint64_t seed, const char *method) {
    RRL_TRY(rrl_strdup(&c->arm, arm->name));
    RRL_TRY(rrl_strdup(&c->method, method));
    c->level = level;
    c->seed = seed;
    c->trains = strcmp(method, "base") != 0 && strcmp(method, AUDIT_METHOD) != 0;
    RRL_TRY(set_dir(c, study));
    RRL_TRY(rrl_config_copy(&c->config, study));
    c->config->seed = (int64_t)seed;
    RRL_TRY(set_members(c->config, arm, level, seed));
    set_method(c->config, method);
    rrl_condition_forget_grid(c->config, seed);
    return RRL_OK;
}

static rrl_status arm_conditions(rrl_condition **list, size_t *room, int64_t *n, const rrl_config *study,
                                 const rrl_arm_config *arm) {
    double fixed_level = 0; /* not read: fixed members have no level */
    char *audit[] = {(char *)AUDIT_METHOD};
    const rrl_experiment_config *x = &study->experiment;
    rrl_reals levels = arm->levels;
    rrl_texts methods = arm->methods;
    if (arm->n_members > 0) levels = (rrl_reals){&fixed_level, 1};
    if (x->mode == RRL_MODE_FIXTURE) methods = (rrl_texts){audit, 1};
    for (int64_t l = 0; l < levels.n; l++)
        for (int64_t s = 0; s < x->seeds.n; s++)
            for (int64_t m = 0; m < methods.n; m++) {
                size_t before = *room;
                RRL_TRY(rrl_grow(list, room, (size_t)*n + 1, sizeof **list, "conditions"));
                if (*room != before) memset(*list + *n, 0, (*room - (size_t)*n) * sizeof **list);
                rrl_condition *c = &(*list)[(*n)++];
                RRL_TRY(make_condition(c, study, arm, arm->n_members > 0 ? (double)NAN : levels.v[l],
                                       (uint64_t)x->seeds.v[s], methods.v[m]));
            }
    return RRL_OK;
}

static rrl_status check_distinct(const rrl_condition *c, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (strcmp(c[i].dir, c[j].dir) == 0)
                return RRL_FAIL(RRL_ERR_CONFIG, "experiment: the condition %s stands twice in the study; arms of one name "
                                "may not share a level, method and seed", c[i].dir);
    return RRL_OK;
}

rrl_status rrl_conditions_list(rrl_condition **out, int64_t *n, const rrl_config *study) {
    rrl_status rc = RRL_OK;
    rrl_condition *list = NULL;
    size_t room = 0;
    int64_t count = 0;
    for (int64_t a = 0; a < study->experiment.n_arms; a++)
        RRL_GOTO(arm_conditions(&list, &room, &count, study, &study->experiment.arms[a]));
    RRL_GOTO(check_distinct(list, count));
    *out = list;
    *n = count;
    list = NULL;
done:
    rrl_conditions_free(&list, count);
    return rc;
}
