/* Defaults that depend on other keys, filled in once after binding, so nothing later needs to know them. The
 * tree tells what was given. */
#include "config/config_bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/text.h"

/* --- names that may be paths */

/* "owner/name" and nothing more. */
static bool is_hub_id(const char *text) {
    const char *slash = strchr(text, '/');
    return slash && slash != text && slash[1] && !strchr(slash + 1, '/') && *text != '.' && slash[1] != '.';
}

static rrl_status resolve_model_name(rrl_config *c, const rrl_binder *b, const rrl_node *model) {
    char *path = NULL;
    if (!*c->model.name) return RRL_OK;
    RRL_TRY(rrl_path_bind(&path, b, c->model.name, rrl_node_get(model, "name")));
    if (!is_hub_id(c->model.name) || rrl_dir_exists(path)) c->model.name = path;
    return RRL_OK;
}

/* Anything but the known names is a file. */
static rrl_status resolve_chat_template(rrl_config *c, const rrl_binder *b, const rrl_node *model) {
#define X(function, name, sha256) name,
    static const char *const KNOWN[] = {"", RRL_CHAT_TEMPLATE_LIST(X)};
#undef X
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strcmp(c->model.chat_template, KNOWN[i]) == 0) return RRL_OK;
    return rrl_path_bind(&c->model.chat_template, b, c->model.chat_template,
                         rrl_node_get(model, "chat_template"));
}

/* --- data sets */

static rrl_status resolve_dataset(rrl_dataset_config *d, const rrl_binder *b, const rrl_node *node,
                                  const char *name) {
    static const char *const SOURCES[] = {"jsonl", "gsm8k", "huggingface", "synthetic"};
    enum { N_SOURCES = sizeof SOURCES / sizeof *SOURCES };
    size_t known = 0;
    while (known < N_SOURCES && strcmp(d->source, SOURCES[known]) != 0) known++;
    if (known == N_SOURCES) {
        const char *nearest = rrl_nearest_name(d->source, SOURCES, N_SOURCES);
        char path[64];
        snprintf(path, sizeof path, "%s.source", name);
        return rrl_node_fail(rrl_node_get(node, "source"), path,
                             "expects one of jsonl | gsm8k | huggingface | synthetic; '%.60s' found%s%s%s",
                             d->source, nearest ? " (did you mean '" : "", nearest ? nearest : "",
                             nearest ? "'?)" : "");
    }
    if (strcmp(d->source, "gsm8k") != 0) return RRL_OK;
    /* the published rows: no ids, and the reference answer behind "####" */
    if (!rrl_node_get(node, "answer_separator"))
        RRL_TRY(rrl_arena_text(&d->answer_separator, b->arena, "####", 4));
    if (!rrl_node_get(node, "id_column")) RRL_TRY(rrl_arena_text(&d->id_column, b->arena, "", 0));
    if (!rrl_node_get(node, "id_prefix"))
        RRL_TRY(rrl_arena_printf(&d->id_prefix, b->arena, "gsm8k-%s-", *d->pool ? d->pool : d->split));
    for (char *p = d->id_prefix; *p && !rrl_node_get(node, "id_prefix"); p++)
        if (*p == '_') *p = '-';
    return RRL_OK;
}

/* --- the arms of a study */

static rrl_status copy_texts(rrl_texts *out, const rrl_binder *b, const rrl_texts *from) {
    rrl_texts t = {.n = from->n};
    RRL_TRY(rrl_arena_take(&t.v, b->arena, (size_t)t.n, sizeof *t.v));
    for (int64_t i = 0; i < t.n; i++)
        RRL_TRY(rrl_arena_text(&t.v[i], b->arena, from->v[i], strlen(from->v[i])));
    *out = t;
    return RRL_OK;
}

static rrl_status copy_reals(rrl_reals *out, const rrl_binder *b, const rrl_reals *from) {
    rrl_reals r = {.n = from->n};
    RRL_TRY(rrl_arena_take(&r.v, b->arena, (size_t)r.n, sizeof *r.v));
    if (r.n) memcpy(r.v, from->v, (size_t)r.n * sizeof *r.v);
    *out = r;
    return RRL_OK;
}

static rrl_status audit_method(rrl_texts *out, const rrl_binder *b) {
    rrl_texts t = {.n = 1};
    RRL_TRY(rrl_arena_take(&t.v, b->arena, 1, sizeof *t.v));
    RRL_TRY(rrl_arena_text(&t.v[0], b->arena, RRL_METHOD_AUDIT, strlen(RRL_METHOD_AUDIT)));
    *out = t;
    return RRL_OK;
}

/* Fixed members: a bare kind is an event that always happens. */
static rrl_status resolve_fixed(rrl_arm_config *arm, const rrl_node *node, const char *path) {
    const rrl_node *members = rrl_node_get(node, "members"), *corruption = rrl_node_get(node, "corruption");
    if (arm->corruption.kind != RRL_CORRUPT_NONE)
        return rrl_node_fail(corruption, path, "has both corruption and members; keep one of them");
    if (arm->levels.n)
        return rrl_node_fail(
            rrl_node_get(node, "levels"), path,
            "has both levels and members; fixed members have no levels, put the probability into each");
    if (!*arm->name) return rrl_node_fail(members, path, "has members and no name; give it one");
    for (int64_t i = 0; i < arm->n_members; i++) {
        const rrl_node *member = rrl_node_at(members, i);
        if (member->kind == RRL_NODE_SCALAR && arm->members[i].kind != RRL_CORRUPT_NONE)
            arm->members[i].probability = 1;
    }
    return RRL_OK;
}

static rrl_status resolve_arm(rrl_arm_config *arm, const rrl_config *c, const rrl_binder *b,
                              const rrl_node *node, const char *path) {
    const rrl_experiment_config *e = &c->experiment;
    if (arm->n_members) {
        RRL_TRY(resolve_fixed(arm, node, path));
    } else {
        if (rrl_node_is_null(rrl_node_get(node, "corruption"))) {
            arm->corruption = e->corruption;
            RRL_TRY(rrl_arena_text(&arm->corruption.bias_key, b->arena, e->corruption.bias_key,
                                   strlen(e->corruption.bias_key)));
            RRL_TRY(rrl_arena_text(&arm->corruption.bias_value, b->arena, e->corruption.bias_value,
                                   strlen(e->corruption.bias_value)));
        }
        if (!arm->levels.n) RRL_TRY(copy_reals(&arm->levels, b, &e->levels));
        if (!*arm->name) {
            const char *kind = rrl_enum_text(RRL_ENUM_TEXTS(RRL_CORRUPTION_LIST), arm->corruption.kind);
            RRL_TRY(rrl_arena_text(&arm->name, b->arena, kind, strlen(kind)));
        }
    }
    if (arm->methods.n) return RRL_OK;
    return e->mode == RRL_MODE_FIXTURE ? audit_method(&arm->methods, b)
                                       : copy_texts(&arm->methods, b, &e->methods);
}

static rrl_status resolve_experiment(rrl_config *c, rrl_binder *b, const rrl_node *node) {
    rrl_experiment_config *e = &c->experiment;
    if (!rrl_node_get(node, "seeds")) e->seeds.v[0] = c->seed; /* the default list has one element */
    if (!e->n_arms) {
        RRL_TRY(rrl_arena_take(&e->arms, b->arena, 1, sizeof *e->arms));
        e->n_arms = 1;
        const rrl_section *experiment = rrl_section_child(rrl_config_root(), "experiment")->section;
        RRL_TRY(rrl_section_bind(b, rrl_section_child(experiment, "arms")->section, e->arms, NULL));
    }
    const rrl_node *arms = rrl_node_get(node, "arms");
    for (int64_t i = 0; i < e->n_arms; i++) {
        char path[64];
        snprintf(path, sizeof path, "experiment.arms[%lld]", (long long)i);
        RRL_TRY(resolve_arm(&e->arms[i], c, b, rrl_node_at(arms, i), path));
    }
    return RRL_OK;
}

rrl_status rrl_config_resolve(rrl_config *c, rrl_binder *b, const rrl_node *root) {
    const rrl_node *model = rrl_node_get(root, "model"), *experiment = rrl_node_get(root, "experiment");
    RRL_TRY(resolve_model_name(c, b, model));
    RRL_TRY(resolve_chat_template(c, b, model));
    RRL_TRY(resolve_dataset(&c->dataset, b, rrl_node_get(root, "dataset"), "dataset"));
    RRL_TRY(resolve_dataset(&c->experiment.train_dataset, b, rrl_node_get(experiment, "train_dataset"),
                            "experiment.train_dataset"));
    RRL_TRY(resolve_dataset(&c->experiment.qualification_dataset, b,
                            rrl_node_get(experiment, "qualification_dataset"),
                            "experiment.qualification_dataset"));
    if (c->training.use_cpu && c->model.device == RRL_DEVICE_AUTO) c->model.device = RRL_DEVICE_CPU;
    if (c->training.slot_rows == 0) c->training.slot_rows = c->generation.num_generations;
    if (c->training.epsilon_high == -1) c->training.epsilon_high = c->training.epsilon;
    return resolve_experiment(c, b, experiment);
}
