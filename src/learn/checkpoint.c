/* Writing and finding checkpoints. */
#include "learn/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/safetensors.h"

/* The three vectors of a checkpoint, each tensor by tensor under a prefix. */
static const char *const PREFIX[] = {"", "m.", "v."};
enum { VECTORS = 3, MAX_STATE_BYTES = 1 << 16 };

struct rrl_checkpoint {
    rrl_train_state state;
    rrl_buffer in_flight;
    char digest[RRL_SHA256_HEX];
    const rrl_trainable *tensors; /* [count], the adapter's */
    int32_t count;
    int64_t size;
    float *vectors; /* [VECTORS, size], host */
};

static float *vector_of(rrl_learner *l, rrl_adapter *a, int which) {
    return which == 0 ? rrl_adapter_data(a) : rrl_learner_moment(l, which - 1);
}

rrl_status rrl_checkpoint_take(rrl_checkpoint **out, rrl_learner *l, rrl_adapter *a, const rrl_train_state *state,
                               const rrl_buffer *in_flight, const char *digest) {
    rrl_status rc = RRL_OK;
    rrl_checkpoint *c = NULL;
    rrl_device *d = rrl_learner_device(l);
    RRL_GOTO(rrl_alloc(&c, 1, sizeof *c, "checkpoint"));
    c->state = *state;
    c->tensors = rrl_adapter_tensors(a);
    c->count = rrl_adapter_count(a);
    c->size = rrl_adapter_size(a);
    snprintf(c->digest, sizeof c->digest, "%s", digest);
    RRL_GOTO(rrl_alloc(&c->vectors, (size_t)c->size * VECTORS, sizeof *c->vectors, "checkpoint"));
    for (int v = 0; v < VECTORS; v++)
        RRL_GOTO(d->ops->download(d, c->vectors + v * c->size, vector_of(l, a, v), (size_t)c->size * sizeof *c->vectors));
    if (in_flight->len) RRL_GOTO(rrl_buffer_put(&c->in_flight, in_flight->data, in_flight->len));
    *out = c;
    c = NULL;
done:
    rrl_checkpoint_free(&c);
    return rc;
}

void rrl_checkpoint_free(rrl_checkpoint **c) {
    if (!*c) return;
    rrl_buffer_free(&(*c)->in_flight);
    free((*c)->vectors);
    free(*c);
    *c = NULL;
}

static rrl_status tensors_bytes(rrl_buffer *out, const rrl_checkpoint *c) {
    rrl_status rc = RRL_OK;
    const rrl_trainable *t = c->tensors;
    rrl_st_write *w = NULL;
    char **names = NULL;
    RRL_GOTO(rrl_alloc(&w, (size_t)c->count * VECTORS, sizeof *w, "checkpoint"));
    RRL_GOTO(rrl_alloc(&names, (size_t)c->count * VECTORS, sizeof *names, "checkpoint"));
    for (int v = 0, at = 0; v < VECTORS; v++)
        for (int32_t i = 0; i < c->count; i++, at++) {
            rrl_buffer name = {0};
            RRL_GOTO(rrl_buffer_printf(&name, "%s%s", PREFIX[v], t[i].name));
            names[at] = name.data;
            w[at] = (rrl_st_write){.name = name.data, .data = c->vectors + v * c->size + t[i].offset, .n_dims = 2,
                                   .dims = {t[i].rows, t[i].cols}};
        }
    RRL_GOTO(rrl_safetensors_bytes(out, w, c->count * VECTORS));
done:
    for (int32_t i = 0; names && i < c->count * VECTORS; i++) free(names[i]);
    free(names);
    free(w);
    return rc;
}

static rrl_status tensors_load(const char *path, rrl_learner *l, rrl_adapter *a, rrl_device *d) {
    rrl_status rc = RRL_OK;
    rrl_safetensors *st = NULL;
    const rrl_trainable *t = rrl_adapter_tensors(a);
    float *host = NULL;
    RRL_GOTO(rrl_safetensors_open(&st, path));
    RRL_GOTO(rrl_alloc(&host, (size_t)rrl_adapter_size(a), sizeof *host, "checkpoint"));
    for (int v = 0; v < VECTORS; v++) {
        for (int32_t i = 0; i < rrl_adapter_count(a); i++) {
            char name[512];
            snprintf(name, sizeof name, "%s%s", PREFIX[v], t[i].name);
            const rrl_st_tensor *x = rrl_safetensors_find(st, name);
            if (!x || x->n_dims != 2 || x->dims[0] != t[i].rows || x->dims[1] != t[i].cols) {
                rc = RRL_FAIL(RRL_ERR_DATA, "checkpoint %s does not fit this run: tensor %s of [%lld,%lld] is missing "
                              "or has another shape; use --fresh to start again", path, name, (long long)t[i].rows,
                              (long long)t[i].cols);
                goto done;
            }
            RRL_GOTO(rrl_safetensors_to_f32(host + t[i].offset, x));
        }
        RRL_GOTO(d->ops->upload(d, vector_of(l, a, v), host, (size_t)rrl_adapter_size(a) * sizeof *host));
    }
    RRL_GOTO(rrl_adapter_refresh(a));
done:
    free(host);
    rrl_safetensors_close(&st);
    return rc;
}

/* The files beside the marker, in the order in which it lists their digests. */
static const char *const FILES[] = {"tensors.safetensors", "state.json", "in_flight.bin"};
enum { N_FILES = 3 };

static rrl_status marker_line(rrl_buffer *marker, const uint8_t sum[RRL_SHA256_BYTES], const char *file) {
    char hex[RRL_SHA256_HEX];
    rrl_sha256_hex(hex, sum);
    return rrl_buffer_printf(marker, "%s  %s\n", hex, file);
}

/* What the marker should hold. */
static rrl_status marker_of(rrl_buffer *out, const char *dir) {
    for (int i = 0; i < N_FILES; i++) {
        char *path = NULL;
        uint8_t sum[RRL_SHA256_BYTES];
        RRL_TRY(rrl_path_join(&path, dir, FILES[i]));
        rrl_status rc = rrl_sha256_file(sum, path);
        free(path);
        RRL_TRY(rc);
        RRL_TRY(marker_line(out, sum, FILES[i]));
    }
    return RRL_OK;
}

static bool marker_valid(const char *dir) {
    char *path = NULL, *found = NULL;
    size_t len = 0;
    rrl_buffer want = {0};
    bool ok = rrl_path_join(&path, dir, "complete") == RRL_OK && rrl_file_exists(path) &&
              rrl_file_read(&found, &len, path, MAX_STATE_BYTES) == RRL_OK && marker_of(&want, dir) == RRL_OK &&
              len == want.len && memcmp(found, want.data, len) == 0;
    free(path);
    free(found);
    rrl_buffer_free(&want);
    return ok;
}

static rrl_status remove_checkpoint(const char *dir) {
    static const char *const files[] = {"complete", "state.json", "in_flight.bin", "tensors.safetensors"}; /* marker first */
    for (size_t i = 0; i < 4; i++) {
        char *path = NULL;
        RRL_TRY(rrl_path_join(&path, dir, files[i]));
        unlink(path);
        free(path);
    }
    rmdir(dir);
    return RRL_OK;
}

/* Names of step-* folders below dir/checkpoints, ascending; none is no error. */
static rrl_status list(char ***names, size_t *n, char **root, const char *dir) {
    *names = NULL;
    *n = 0;
    RRL_TRY(rrl_path_join(root, dir, "checkpoints"));
    if (!rrl_dir_exists(*root)) return RRL_OK;
    return rrl_dir_list(names, n, *root);
}

static bool is_checkpoint(const char *name) { return strncmp(name, "step-", 5) == 0; }

static rrl_status prune(const char *dir, int64_t keep) {
    rrl_status rc = RRL_OK;
    char **names = NULL, *root = NULL, *path = NULL;
    size_t n = 0;
    int64_t seen = 0;
    RRL_GOTO(list(&names, &n, &root, dir));
    for (size_t i = n; i-- > 0;) {
        if (!is_checkpoint(names[i]) || ++seen <= keep) continue;
        free(path);
        path = NULL;
        RRL_GOTO(rrl_path_join(&path, root, names[i]));
        RRL_GOTO(remove_checkpoint(path));
    }
done:
    free(path);
    free(root);
    rrl_names_free(&names, n);
    return rc;
}

static rrl_status state_text(rrl_buffer *out, const rrl_checkpoint *c) {
    const rrl_train_state *s = &c->state;
    return rrl_buffer_printf(out, "{\"version\": 1, \"digest\": \"%s\", \"step\": %lld, \"updates\": %lld, "
                             "\"num_tokens\": %lld, \"nonfinite\": %lld}\n",
                             c->digest, (long long)s->step, (long long)s->updates, (long long)s->num_tokens,
                             (long long)s->nonfinite);
}

/* The marker makes all names of the folder durable. A crash before may keep it and lose another: then it does not match. */
static rrl_status publish_all(const char *folder, const rrl_buffer content[N_FILES]) {
    rrl_status rc = RRL_OK;
    rrl_buffer marker = {0};
    char *path = NULL;
    for (int i = 0; i < N_FILES; i++) {
        uint8_t sum[RRL_SHA256_BYTES];
        RRL_GOTO(rrl_path_join(&path, folder, FILES[i]));
        RRL_GOTO(rrl_file_publish_early(path, content[i].data, content[i].len));
        RRL_GOTO(rrl_sha256_of(sum, content[i].data, content[i].len));
        RRL_GOTO(marker_line(&marker, sum, FILES[i]));
        free(path);
        path = NULL;
    }
    RRL_GOTO(rrl_path_join(&path, folder, "complete"));
    RRL_GOTO(rrl_file_publish(path, marker.data, marker.len));
done:
    free(path);
    rrl_buffer_free(&marker);
    return rc;
}

rrl_status rrl_checkpoint_write(const rrl_checkpoint *c, const char *dir, int64_t keep) {
    rrl_status rc = RRL_OK;
    rrl_buffer folder = {0}, content[N_FILES] = {{0}};
    RRL_GOTO(rrl_buffer_printf(&folder, "%s/checkpoints/step-%08lld", dir, (long long)c->state.step));
    RRL_GOTO(rrl_dir_make(folder.data));
    RRL_GOTO(tensors_bytes(&content[0], c));
    RRL_GOTO(state_text(&content[1], c));
    content[2] = c->in_flight; /* borrowed */
    RRL_GOTO(publish_all(folder.data, content));
    RRL_GOTO(prune(dir, keep));
done:
    rrl_buffer_free(&content[0]);
    rrl_buffer_free(&content[1]);
    rrl_buffer_free(&folder);
    return rc;
}

rrl_status rrl_checkpoint_save(const char *dir, rrl_learner *l, rrl_adapter *a, const rrl_train_state *state,
                               const rrl_buffer *in_flight, const char *digest, int64_t keep) {
    rrl_checkpoint *c = NULL;
    RRL_TRY(rrl_checkpoint_take(&c, l, a, state, in_flight, digest));
    rrl_status rc = rrl_checkpoint_write(c, dir, keep);
    rrl_checkpoint_free(&c);
    return rc;
}

static rrl_status state_read(rrl_train_state *state, const char *folder, const char *digest) {
    rrl_status rc = RRL_OK;
    char *path = NULL;
    cJSON *json = NULL;
    const char *found = NULL;
    rrl_train_state s = {0};
    RRL_GOTO(rrl_path_join(&path, folder, "state.json"));
    RRL_GOTO(rrl_json_file(&json, path, MAX_STATE_BYTES));
    RRL_GOTO(rrl_json_string(&found, json, "digest", false, path));
    if (digest && strcmp(found, digest) != 0) {
        rc = RRL_FAIL(RRL_ERR_CONFIG, "checkpoint %s belongs to another run (digest %.12s, this run %.12s); use another "
                      "output_dir or --fresh", folder, found, digest);
        goto done;
    }
    RRL_GOTO(rrl_json_int(&s.step, json, "step", false, path));
    RRL_GOTO(rrl_json_int(&s.updates, json, "updates", false, path));
    RRL_GOTO(rrl_json_int(&s.num_tokens, json, "num_tokens", false, path));
    RRL_GOTO(rrl_json_int(&s.nonfinite, json, "nonfinite", false, path));
    *state = s;
done:
    cJSON_Delete(json);
    free(path);
    return rc;
}

static rrl_status not_there(const char *folder) {
    return RRL_FAIL(RRL_ERR_DATA, "checkpoint %s is not there; name a folder RUN/checkpoints/step-NNNNNNNN", folder);
}

rrl_status rrl_checkpoint_check(int64_t *step, const char *folder, const char *digest) {
    rrl_train_state state = {0};
    if (!rrl_dir_exists(folder)) return not_there(folder);
    if (!marker_valid(folder))
        return RRL_FAIL(RRL_ERR_DATA, "checkpoint %s is damaged or incomplete (its files do not match %s/complete)", folder,
                        folder);
    rrl_status rc = state_read(&state, folder, digest);
    if (rc == RRL_ERR_CONFIG) rc = RRL_ERR_DATA; /* of another run */
    if (rc == RRL_OK) *step = state.step;
    return rc;
}

static rrl_status in_flight_read(rrl_buffer *in_flight, const char *folder) {
    rrl_status rc = RRL_OK;
    char *path = NULL, *bytes = NULL;
    size_t n = 0;
    RRL_GOTO(rrl_path_join(&path, folder, "in_flight.bin"));
    RRL_GOTO(rrl_file_read(&bytes, &n, path, SIZE_MAX - 1));
    in_flight->len = 0;
    RRL_GOTO(rrl_buffer_put(in_flight, bytes, n));
done:
    free(path);
    free(bytes);
    return rc;
}

static rrl_status load_from(const char *folder, rrl_learner *l, rrl_adapter *a, rrl_train_state *state,
                            rrl_buffer *in_flight, const char *digest) {
    char *path = NULL;
    RRL_TRY(in_flight_read(in_flight, folder));
    RRL_TRY(state_read(state, folder, digest));
    RRL_TRY(rrl_path_join(&path, folder, "tensors.safetensors"));
    rrl_status rc = tensors_load(path, l, a, rrl_learner_device(l));
    free(path);
    if (rc == RRL_OK) rrl_learner_set_updates(l, state->updates);
    return rc;
}

rrl_status rrl_checkpoint_load(bool *found, int *skipped, const char *dir, const char *path, rrl_learner *l,
                               rrl_adapter *a, rrl_train_state *state, rrl_buffer *in_flight, const char *digest) {
    rrl_status rc = RRL_OK;
    char **names = NULL, *root = NULL, *folder = NULL;
    size_t n = 0;
    *found = false;
    *skipped = 0;
    if (path) {
        if (!rrl_dir_exists(path)) return not_there(path);
        if (!marker_valid(path))
            return RRL_FAIL(RRL_ERR_DATA, "checkpoint %s is damaged or incomplete (its files do not match %s/complete)",
                            path, path);
        *found = true;
        return load_from(path, l, a, state, in_flight, digest);
    }
    RRL_GOTO(list(&names, &n, &root, dir));
    for (size_t i = n; i-- > 0 && !*found;) {
        if (!is_checkpoint(names[i])) continue;
        free(folder);
        folder = NULL;
        RRL_GOTO(rrl_path_join(&folder, root, names[i]));
        if (!marker_valid(folder)) {
            ++*skipped;
            continue;
        }
        RRL_GOTO(load_from(folder, l, a, state, in_flight, digest));
        *found = true;
    }
done:
    free(folder);
    free(root);
    rrl_names_free(&names, n);
    return rc;
}
