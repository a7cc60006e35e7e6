/* Checks of a study's grid: every condition has one place, one meaning and one folder. */
#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "config/config_check.h"

#define REFUSE(...) RRL_FAIL(RRL_ERR_CONFIG, __VA_ARGS__)

static const char *const TRAINED[] = {"baseline", "robust"};
static const char *const METHODS[] = {"base", "baseline", "robust"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool is_one_of(const char *text, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, list[i]) == 0) return true;
    return false;
}

bool rrl_method_is_trained(const char *method) {
    return is_one_of(method, TRAINED, COUNT(TRAINED));
}

bool rrl_study_trains(const rrl_config *c) {
    if (c->experiment.mode == RRL_MODE_FIXTURE) return false;
    for (int64_t i = 0; i < c->experiment.n_arms; i++)
        for (int64_t j = 0; j < c->experiment.arms[i].methods.n; j++)
            if (rrl_method_is_trained(c->experiment.arms[i].methods.v[j])) return true;
    return false;
}

/* Levels are told apart by the name of their folder. */
static bool same_level(double a, double b) {
    char x[RRL_NUMBER_CHARS], y[RRL_NUMBER_CHARS];
    rrl_format_g(x, a);
    rrl_format_g(y, b);
    return strcmp(x, y) == 0;
}

static rrl_status check_seeds(const rrl_ints *seeds) {
    if (seeds->n == 0) return REFUSE("experiment.seeds is empty; name at least one seed");
    for (int64_t i = 0; i < seeds->n; i++)
        for (int64_t j = 0; j < i; j++)
            if (seeds->v[i] == seeds->v[j])
                return REFUSE("experiment.seeds has %lld twice; remove one", (long long)seeds->v[i]);
    return RRL_OK;
}

/* --- one arm */

/* The name is a folder of the study beside base/, qualification/, report/ and study.json. */
static rrl_status check_name(const rrl_arm_config *arm, int64_t at) {
    static const char *const TAKEN[] = {"base", "qualification", "report", "study.json"};
    const char *p = arm->name;
    bool plain = *p && *p != '.' && *p != '-';
    for (; *p && plain; p++)
        plain = isascii((unsigned char)*p) && (isalnum((unsigned char)*p) || strchr("_.+-", *p));
    if (!plain)
        return REFUSE("experiment.arms[%lld].name '%s' is no folder name; use letters, digits, _ . + and -",
                      (long long)at, arm->name);
    if (is_one_of(arm->name, TAKEN, COUNT(TAKEN)))
        return REFUSE(
            "experiment.arms[%lld].name '%s' is the name of another part of a study's folder; choose another",
            (long long)at, arm->name);
    return RRL_OK;
}

static rrl_status check_methods(const rrl_arm_config *arm, rrl_mode mode) {
    const rrl_texts *m = &arm->methods;
    if (m->n == 0)
        return REFUSE("experiment.methods is empty for arm %s; name at least one method", arm->name);
    for (int64_t i = 0; i < m->n; i++) {
        if (mode == RRL_MODE_FIXTURE && strcmp(m->v[i], RRL_METHOD_AUDIT) != 0)
            return REFUSE("experiment.mode fixture has the one method " RRL_METHOD_AUDIT
                          "; arm %s has '%s': leave its "
                          "methods out",
                          arm->name, m->v[i]);
        if (mode == RRL_MODE_TRAIN && !is_one_of(m->v[i], METHODS, COUNT(METHODS))) {
            const char *nearest = rrl_nearest_name(m->v[i], METHODS, COUNT(METHODS));
            return REFUSE("method '%s' of arm %s is unknown%s%s%s; known: base, baseline, robust", m->v[i],
                          arm->name, nearest ? " (did you mean '" : "", nearest ? nearest : "",
                          nearest ? "'?)" : "");
        }
        for (int64_t j = 0; j < i; j++)
            if (strcmp(m->v[i], m->v[j]) == 0)
                return REFUSE("method '%s' stands twice in the methods of arm %s; remove one", m->v[i],
                              arm->name);
    }
    return RRL_OK;
}

static rrl_status check_levels(const rrl_arm_config *arm) {
    const rrl_reals *l = &arm->levels;
    if (l->n == 0) return REFUSE("experiment.levels is empty for arm %s; name at least one level", arm->name);
    for (int64_t i = 0; i < l->n; i++) {
        if (arm->corruption.kind == RRL_CORRUPT_NONE && l->v[i] > 0)
            return REFUSE("level %g of arm %s corrupts nothing: its corruption.kind is none; set "
                          "experiment.corruption, "
                          "such as flip",
                          l->v[i], arm->name);
        for (int64_t j = 0; j < i; j++)
            if (same_level(l->v[i], l->v[j]))
                return REFUSE("level %g stands twice in arm %s; remove one", l->v[i], arm->name);
    }
    return RRL_OK;
}

static rrl_status check_fixed(const rrl_arm_config *arm, int64_t n_members) {
    if (arm->n_members != n_members)
        return REFUSE("arm %s has %lld members, training_verifier.members has %lld; give one corruption (or "
                      "none) for each",
                      arm->name, (long long)arm->n_members, (long long)n_members);
    for (int64_t i = 0; i < arm->n_members; i++)
        if (arm->members[i].kind != RRL_CORRUPT_NONE && !(arm->members[i].probability > 0))
            return REFUSE("members[%lld] of arm %s has probability 0, so its %s never happens; give its "
                          "probability, or "
                          "none",
                          (long long)i, arm->name,
                          rrl_enum_text(RRL_ENUM_TEXTS(RRL_CORRUPTION_LIST), arm->members[i].kind));
    return RRL_OK;
}

/* --- all arms */

static bool same_corruption(const rrl_arm_config *a, const rrl_arm_config *b) {
    const rrl_corruption_config *p = &a->corruption, *q = &b->corruption;
    return p->kind == q->kind && a->shared == b->shared && p->noise_std == q->noise_std &&
           p->confidence_scale == q->confidence_scale && p->bias_reward == q->bias_reward &&
           strcmp(p->bias_key, q->bias_key) == 0 && strcmp(p->bias_value, q->bias_value) == 0;
}

/* An arm may stand in several entries, with other methods at other levels. */
static rrl_status check_pair(const rrl_arm_config *a, const rrl_arm_config *b) {
    if (strcmp(a->name, b->name) != 0) return RRL_OK;
    if (a->n_members || b->n_members || !same_corruption(a, b))
        return REFUSE(
            "experiment.arms has two arms called %s that differ in more than levels and methods; name one of "
            "them otherwise",
            a->name);
    for (int64_t i = 0; i < a->levels.n; i++)
        for (int64_t j = 0; j < b->levels.n; j++)
            if (same_level(a->levels.v[i], b->levels.v[j]))
                return REFUSE("experiment.arms has level %g of arm %s in two entries; remove one",
                              a->levels.v[i], a->name);
    return RRL_OK;
}

/* What stands in training_verifier would be overwritten by the arms, silently. */
static rrl_status check_members_clean(const rrl_verifier_config *v) {
    for (int64_t i = 0; i < v->n_members; i++) {
        const rrl_corruption_config *c = &v->members[i].corruption;
        if ((c->kind != RRL_CORRUPT_NONE && c->probability > 0) || c->confidence_scale != 1)
            return REFUSE(
                "training_verifier.members[%lld].corruption and experiment.arms both corrupt; in a study the "
                "arms do: move it to an arm",
                (long long)i);
    }
    return RRL_OK;
}

/* --- hypotheses */

static const char *trim_method(char out[64], const char *from, const char *to) {
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    size_t n = (size_t)(to - from) < 63 ? (size_t)(to - from) : 63;
    memcpy(out, from, n);
    out[n] = 0;
    return out;
}

static rrl_status check_hypothesis(const rrl_hypothesis_config *h, int64_t at,
                                   const rrl_experiment_config *e) {
    static const char *const DIRECTIONS[] = {"greater", "less", "equal"};
    char a[64], b[64];
    const char *minus = strstr(h->contrast, " - ");
    if (!minus || !is_one_of(trim_method(a, h->contrast, minus), METHODS, COUNT(METHODS)) ||
        !is_one_of(trim_method(b, minus + 3, h->contrast + strlen(h->contrast)), METHODS, COUNT(METHODS)))
        return REFUSE("hypotheses[%lld].contrast '%s' is no 'method_a - method_b' of base, baseline, robust",
                      (long long)at, h->contrast);
    if (!is_one_of(h->direction, DIRECTIONS, COUNT(DIRECTIONS)))
        return REFUSE("hypotheses[%lld].direction '%s' is none of greater | less | equal", (long long)at,
                      h->direction);
    bool known = !*h->arm;
    for (int64_t i = 0; i < e->n_arms && !known; i++) known = strcmp(h->arm, e->arms[i].name) == 0;
    if (!known)
        return REFUSE("hypotheses[%lld].arm '%s' is no arm of experiment.arms", (long long)at, h->arm);
    return RRL_OK;
}

rrl_status rrl_check_study(const rrl_config *c) {
    const rrl_experiment_config *e = &c->experiment;
    RRL_TRY(check_seeds(&e->seeds));
    RRL_TRY(check_members_clean(&c->training_verifier));
    for (int64_t i = 0; i < e->n_arms; i++) {
        const rrl_arm_config *arm = &e->arms[i];
        RRL_TRY(check_name(arm, i));
        RRL_TRY(check_methods(arm, e->mode));
        RRL_TRY(arm->n_members ? check_fixed(arm, c->training_verifier.n_members) : check_levels(arm));
        for (int64_t j = 0; j < i; j++) RRL_TRY(check_pair(&e->arms[j], arm));
    }
    for (int64_t i = 0; i < c->n_hypotheses; i++) RRL_TRY(check_hypothesis(&c->hypotheses[i], i, e));
    return RRL_OK;
}
