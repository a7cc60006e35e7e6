#include "report/study_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"
#include "base/memory.h"
#include "study/study_file.h"

enum { MAX_BYTES = 64 << 20 };

/* --- study.json */

static rrl_status read_study(rrl_report_study *s, const char *path) {
    cJSON *json = NULL;
    const char *text = NULL, *digest = NULL;
    char now[65];
    rrl_status rc;
    RRL_GOTO(rrl_json_file(&json, path, MAX_BYTES));
    RRL_GOTO(rrl_json_string(&digest, json, "hypotheses_sha256", true, path));
    RRL_GOTO(rrl_json_string(&text, json, "config", false, path));
    RRL_GOTO(rrl_config_parse(&s->config, text, strlen(text), path, NULL, NULL, 0));
    snprintf(s->hypotheses, sizeof s->hypotheses, "%s", digest ? digest : "");
    RRL_GOTO(rrl_study_hypotheses_digest(now, s->config));
    s->hypotheses_unchanged = strcmp(now, s->hypotheses) == 0;
    s->seed = s->config->seed;
    s->demanded = s->config->experiment.qualification_min_pass1;
done:
    cJSON_Delete(json);
    return rc;
}

/* A study's label, or that of the first record that has one. */
static rrl_status find_label(rrl_report_study *s, const rrl_report_data *d) {
    rrl_status rc = RRL_OK;
    if (s->config && s->config->experiment.label[0])
        return rrl_strdup(&s->label, s->config->experiment.label);
    for (size_t i = 0; i < d->n && !s->label && rc == RRL_OK; i++) {
        const char *yaml = d->conditions[i].config_yaml;
        rrl_config *c = NULL;
        if (rrl_config_parse(&c, yaml, strlen(yaml), "a recorded configuration", NULL, NULL, 0) != RRL_OK)
            continue;
        if (c->experiment.label[0]) rc = rrl_strdup(&s->label, c->experiment.label);
        rrl_config_close(&c);
    }
    if (rc == RRL_OK && !s->label) rc = rrl_strdup(&s->label, "");
    return rc;
}

/* --- facts */

static rrl_status add_fact(rrl_report_study *s, const char *name, const char *value) {
    RRL_TRY(rrl_grow(&s->facts, &s->fact_capacity, s->n_facts + 1, sizeof *s->facts, "facts"));
    rrl_report_fact *f = &s->facts[s->n_facts];
    *f = (rrl_report_fact){0};
    s->n_facts++;
    RRL_TRY(rrl_strdup(&f->name, name));
    return rrl_strdup(&f->value, value);
}

/* Different values of a fact in the order of the records. */
typedef struct {
    const char *name;
    char **v;
    size_t n, capacity;
} values;

static rrl_status add_value(values *v, const char *text) {
    if (!text || !*text) return RRL_OK;
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->v[i], text) == 0) return RRL_OK;
    RRL_TRY(rrl_grow(&v->v, &v->capacity, v->n + 1, sizeof *v->v, "facts"));
    RRL_TRY(rrl_strdup(&v->v[v->n], text));
    v->n++;
    return RRL_OK;
}

static rrl_status put_values(rrl_report_study *s, const values *v) {
    enum { SHOWN = 12 };
    rrl_buffer b = {0};
    rrl_status rc = RRL_OK;
    for (size_t i = 0; i < v->n && i < SHOWN; i++)
        RRL_GOTO(rrl_buffer_printf(&b, "%s%s", i ? ", " : "", v->v[i]));
    if (v->n > SHOWN) RRL_GOTO(rrl_buffer_printf(&b, " and %zu more", v->n - SHOWN));
    if (v->n) RRL_GOTO(add_fact(s, v->name, b.data));
done:
    rrl_buffer_free(&b);
    return rc;
}

enum { KIND, MODEL, PATH, PARSER, VERSION, COMMIT, COMPILER, MPI_LIBRARY, ISA, HOSTS, QUESTIONS, TRAINED_ON, FACTS };

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* What the run wrote about its machine; a record without it has no such facts. */
static rrl_status add_provenance(values v[FACTS], const rrl_report_condition *c) {
    static const struct {
        int fact;
        const char *key;
    } KEYS[] = {{VERSION, "rrl_version"}, {COMMIT, "git_commit"}, {COMPILER, "compiler"}, {MPI_LIBRARY, "mpi"}, {ISA, "isa"}};
    rrl_status rc = RRL_OK;
    cJSON *json = cJSON_Parse(c->provenance);
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        RRL_GOTO(add_value(&v[KEYS[i].fact], text_of(json, KEYS[i].key)));
    const cJSON *rank, *ranks = cJSON_GetObjectItemCaseSensitive(json, "ranks");
    cJSON_ArrayForEach(rank, ranks) RRL_GOTO(add_value(&v[HOSTS], text_of(rank, "host")));
done:
    cJSON_Delete(json);
    return rc;
}

static rrl_status gather(rrl_report_study *s, const rrl_report_data *d) {
    values v[FACTS] = {[KIND] = {.name = "execution"},
                       [MODEL] = {.name = "model (SHA-256)"},
                       [PATH] = {.name = "numeric path"},
                       [PARSER] = {.name = "answer parser version"},
                       [VERSION] = {.name = "rrl version"},
                       [COMMIT] = {.name = "source commit"},
                       [COMPILER] = {.name = "compiler"},
                       [MPI_LIBRARY] = {.name = "MPI"},
                       [ISA] = {.name = "instruction set"},
                       [HOSTS] = {.name = "hosts"},
                       [QUESTIONS] = {.name = "evaluation questions (SHA-256)"},
                       [TRAINED_ON] = {.name = "training questions (SHA-256)"}};
    rrl_status rc = RRL_OK;
    for (size_t i = 0; i < d->n; i++) {
        const rrl_report_condition *c = &d->conditions[i];
        RRL_GOTO(add_value(&v[KIND], c->kind));
        RRL_GOTO(add_value(&v[MODEL], c->model_digest));
        RRL_GOTO(add_value(&v[PATH], c->numeric_path));
        RRL_GOTO(add_value(&v[PARSER], c->parser_version));
        RRL_GOTO(add_value(&v[QUESTIONS], c->questions));
        RRL_GOTO(add_value(&v[TRAINED_ON], c->train_questions));
        RRL_GOTO(add_provenance(v, c));
    }
    for (int f = 0; f < FACTS; f++) RRL_GOTO(put_values(s, &v[f]));
done:
    for (int f = 0; f < FACTS; f++) {
        for (size_t i = 0; i < v[f].n; i++) free(v[f].v[i]);
        free(v[f].v);
    }
    return rc;
}

/* --- */

rrl_status rrl_report_study_read(rrl_report_study *out, const char *dir, const rrl_report_data *d) {
    rrl_report_study s = {0};
    char *path = NULL, seed[64];
    rrl_status rc;
    for (size_t i = 0; i < d->n; i++)
        if (i == 0 || d->conditions[i].seed < s.seed) s.seed = d->conditions[i].seed;
    RRL_GOTO(rrl_path_join(&path, dir, "study.json"));
    if (rrl_file_exists(path)) {
        rc = read_study(&s, path);
        if (rc == RRL_ERR_NOMEM) goto done;
        if (rc != RRL_OK) RRL_GOTO(add_fact(&s, "study.json could not be read", rrl_error_message()));
    }
    rc = rrl_qualification_read(&s.qualification, dir);
    if (rc == RRL_ERR_NOMEM) goto done;
    if (rc != RRL_OK) RRL_GOTO(add_fact(&s, "qualification could not be read", rrl_error_message()));
    RRL_GOTO(find_label(&s, d));
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s.seed);
    RRL_GOTO(add_fact(&s, "seed of the report's draws", seed));
    if (*s.hypotheses) RRL_GOTO(add_fact(&s, "hypotheses (SHA-256, written before the first run)", s.hypotheses));
    RRL_GOTO(gather(&s, d));
    *out = s;
    s = (rrl_report_study){0};
done:
    free(path);
    rrl_report_study_free(&s);
    return rc;
}

void rrl_report_study_free(rrl_report_study *s) {
    for (size_t i = 0; i < s->n_facts; i++) {
        free(s->facts[i].name);
        free(s->facts[i].value);
    }
    free(s->facts);
    free(s->label);
    rrl_config_close(&s->config);
    *s = (rrl_report_study){0};
}
