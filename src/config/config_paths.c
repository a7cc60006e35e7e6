/* Looks names up under the config's folder, then under the working directory. */
#include "config/config_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/memory.h"

/* Names are looked up below models/, data/ or a data set's folder: a step up would leave it. */
static rrl_status stay_below(const char *section, const char *key, const char *name) {
    for (const char *p = name; p; p = (p = strchr(p, '/')) ? p + 1 : NULL)
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
            return RRL_FAIL(RRL_ERR_DATA, "%s.%s: '%s' leads out of the folder that it is looked up in; name it without '..'",
                            section, key, name);
    return RRL_OK;
}

/* "owner/name" as one folder name; the caller frees it. */
static rrl_status hub_folder(char **out, const char *id) {
    rrl_buffer b = {0};
    rrl_status rc = RRL_OK;
    const char *slash = strchr(id, '/');
    if (slash)
        rc = rrl_buffer_printf(&b, "%.*s--%s", (int)(slash - id), id, slash + 1);
    else
        rc = rrl_buffer_puts(&b, id);
    if (rc == RRL_OK)
        *out = b.data;
    else
        rrl_buffer_free(&b);
    return rc;
}

/* The first of n relative names that `exists` under base, then under the working directory; *out NULL if
 * none. */
static rrl_status find(char **out, const char *base, char *const *names, int n,
                       bool (*exists)(const char *)) {
    const char *const roots[] = {base, "."};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < n; j++) {
            char *path = NULL;
            RRL_TRY(rrl_path_join(&path, roots[i], names[j]));
            if (exists(path)) {
                *out = path;
                return RRL_OK;
            }
            free(path);
        }
    *out = NULL;
    return RRL_OK;
}

/* --- models */

static rrl_status model_missing(const rrl_config *c, const char *folder) {
    const char *revision = c->model.revision;
    return RRL_FAIL(
        RRL_ERR_DATA,
        "model.name %s: no folder %s%s%s or %s under %s/models; fetch it with `tools/get_model.sh %s%s%s`, "
        "or place the model's files in that folder",
        c->model.name, folder, *revision ? "@" : "", revision, folder, c->base, c->model.name,
        *revision ? " " : "", revision);
}

static rrl_status find_hub_model(char **out, const rrl_config *c) {
    rrl_status rc = RRL_OK;
    rrl_buffer names[2] = {{0}, {0}};
    char *folder = NULL, *found = NULL;
    int n = 0;
    RRL_GOTO(hub_folder(&folder, c->model.name));
    if (*c->model.revision)
        RRL_GOTO(rrl_buffer_printf(&names[n++], "models/%s@%s", folder, c->model.revision));
    RRL_GOTO(rrl_buffer_printf(&names[n++], "models/%s", folder));
    RRL_GOTO(find(&found, c->base, (char *const[]){names[0].data, names[1].data}, n, rrl_dir_exists));
    if (!found) RRL_GOTO(model_missing(c, folder));
    *out = found;
done:
    free(folder);
    for (int i = 0; i < 2; i++) rrl_buffer_free(&names[i]);
    return rc;
}

rrl_status rrl_config_model_dir(char **out, const rrl_config *c) {
    const char *name = c->model.name;
    if (!*name)
        return RRL_FAIL(RRL_ERR_DATA, "model.name is empty; name a model folder or a hub id owner/name");
    if (*name != '/') {
        RRL_TRY(stay_below("model", "revision", c->model.revision));
        return find_hub_model(out, c);
    }
    if (!rrl_dir_exists(name))
        return RRL_FAIL(
            RRL_ERR_DATA,
            "model.name: no folder %s; name a folder with config.json and model.safetensors, or a hub id "
            "owner/name",
            name);
    return rrl_strdup(out, name);
}

/* --- data sets */

const char *rrl_config_dataset_name(const rrl_config *c, const rrl_dataset_config *d) {
    if (d == &c->experiment.train_dataset) return "experiment.train_dataset";
    if (d == &c->experiment.qualification_dataset) return "experiment.qualification_dataset";
    return "dataset";
}

/* `path` as a file, or <split>.jsonl in it as a folder. */
static rrl_status given_path(char **out, const rrl_config *c, const rrl_dataset_config *d) {
    const char *key = rrl_config_dataset_name(c, d);
    if (rrl_file_exists(d->path)) return rrl_strdup(out, d->path);
    if (!rrl_dir_exists(d->path))
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s.path: no file %s; name a JSONL file, or a folder with <split>.jsonl", key,
                        d->path);
    if (!*d->split)
        return RRL_FAIL(RRL_ERR_DATA, "%s.path: %s is a folder; give %s.split, or name a file in it", key,
                        d->path, key);
    rrl_buffer b = {0};
    rrl_status rc = RRL_OK;
    RRL_GOTO(rrl_buffer_printf(&b, "%s/%s.jsonl", d->path, d->split));
    if (!rrl_file_exists(b.data))
        RRL_GOTO(RRL_FAIL(RRL_ERR_DATA, "%s.split: no file %s in the folder of %s.path", key, b.data, key));
    *out = b.data;
    b = (rrl_buffer){0};
done:
    rrl_buffer_free(&b);
    return rc;
}

static bool is_gsm8k(const rrl_dataset_config *d) {
    if (strcmp(d->source, "gsm8k") == 0) return true;
    const char *slash = strrchr(d->name, '/');
    return strcmp(d->source, "huggingface") == 0 && strcmp(slash ? slash + 1 : d->name, "gsm8k") == 0;
}

static rrl_status dataset_missing(const rrl_config *c, const rrl_dataset_config *d, const char *first) {
    const char *key = rrl_config_dataset_name(c, d);
    if (is_gsm8k(d))
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: no file data/gsm8k/%s.jsonl under %s; fetch it with `tools/get_gsm8k.sh`", key,
                        d->split, c->base);
    return RRL_FAIL(
        RRL_ERR_DATA,
        "%s: no file %s under %s; save the split of %s there, one JSON object a row, or give %s.path", key,
        first, c->base, d->name, key);
}

/* Where a hub data set may lie, most specific first; returns their number. */
static rrl_status hub_names(rrl_buffer names[4], int *n, const rrl_dataset_config *d, const char *folder) {
    const char *slash = strrchr(d->name, '/'), *last = slash ? slash + 1 : d->name;
    if (*d->revision)
        RRL_TRY(rrl_buffer_printf(&names[(*n)++], "data/%s@%s%s%s/%s.jsonl", folder, d->revision,
                                  *d->subset ? "/" : "", d->subset, d->split));
    if (*d->subset)
        RRL_TRY(rrl_buffer_printf(&names[(*n)++], "data/%s/%s/%s.jsonl", folder, d->subset, d->split));
    RRL_TRY(rrl_buffer_printf(&names[(*n)++], "data/%s/%s.jsonl", folder, d->split));
    return rrl_buffer_printf(&names[(*n)++], "data/%s/%s.jsonl", last, d->split);
}

static rrl_status named_path(char **out, const rrl_config *c, const rrl_dataset_config *d) {
    rrl_status rc = RRL_OK;
    rrl_buffer names[4] = {{0}, {0}, {0}, {0}};
    char *folder = NULL, *found = NULL;
    int n = 0;
    if (strcmp(d->source, "gsm8k") == 0) {
        RRL_GOTO(rrl_buffer_printf(&names[n++], "data/gsm8k/%s.jsonl", d->split));
    } else {
        RRL_GOTO(hub_folder(&folder, d->name));
        RRL_GOTO(hub_names(names, &n, d, folder));
    }
    char *const list[4] = {names[0].data, names[1].data, names[2].data, names[3].data};
    RRL_GOTO(find(&found, c->base, list, n, rrl_file_exists));
    if (!found) RRL_GOTO(dataset_missing(c, d, names[0].data));
    *out = found;
done:
    free(folder);
    for (int i = 0; i < 4; i++) rrl_buffer_free(&names[i]);
    return rc;
}

rrl_status rrl_config_dataset_path(char **out, const rrl_config *c, const rrl_dataset_config *d) {
    const char *key = rrl_config_dataset_name(c, d);
    if (strcmp(d->source, "synthetic") == 0) {
        *out = NULL;
        return RRL_OK;
    }
    RRL_TRY(stay_below(key, "split", d->split));
    if (*d->path) return given_path(out, c, d);
    if (strcmp(d->source, "jsonl") == 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s.path is empty; name a JSONL file", key);
    RRL_TRY(stay_below(key, "name", d->name));
    RRL_TRY(stay_below(key, "subset", d->subset));
    RRL_TRY(stay_below(key, "revision", d->revision));
    return named_path(out, c, d);
}

rrl_status rrl_config_pools_path(char **out, const rrl_config *c, const rrl_dataset_config *d) {
    rrl_status rc = RRL_OK;
    char *file = NULL, *folder = NULL, *path = NULL;
    if (!*d->pool) {
        *out = NULL;
        return RRL_OK;
    }
    RRL_GOTO(rrl_config_dataset_path(&file, c, d));
    if (file) {
        RRL_GOTO(rrl_path_parent(&folder, file));
        RRL_GOTO(rrl_path_join(&path, folder, "pools.json"));
        if (!rrl_file_exists(path)) {
            free(path);
            path = NULL;
        }
    }
    if (!path) RRL_GOTO(find(&path, c->base, (char *const[]){"data/gsm8k/pools.json"}, 1, rrl_file_exists));
    if (!path)
        RRL_GOTO(RRL_FAIL(RRL_ERR_DATA,
                          "%s.pool %s: no pools.json beside the data set's file and no "
                          "data/gsm8k/pools.json under %s",
                          rrl_config_dataset_name(c, d), d->pool, c->base));
    *out = path;
    path = NULL;
done:
    free(file);
    free(folder);
    free(path);
    return rc;
}
