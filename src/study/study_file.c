/* Writing study.json, and comparing with the one that is there. */
#include "study/study_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/memory.h"

enum { MAX_BYTES = 64 << 20 };

static rrl_status put_text(rrl_buffer *b, const char *key, const char *text) {
    RRL_TRY(rrl_buffer_printf(b, "\"%s\": ", key));
    return rrl_json_quote(b, text, strlen(text));
}

rrl_status rrl_study_hypotheses_digest(char out[65], const rrl_config *study) {
    rrl_buffer text = {0};
    rrl_status rc = RRL_OK;
    uint8_t sum[RRL_SHA256_BYTES];
    for (int64_t i = 0; i < study->n_hypotheses; i++) {
        const rrl_hypothesis_config *h = &study->hypotheses[i];
        RRL_GOTO(rrl_buffer_printf(&text, "%s\n%s\n%s\n%s\n%s\n", h->name, h->metric, h->contrast, h->arm, h->direction));
        for (int64_t l = 0; l < h->levels.n; l++) {
            RRL_GOTO(rrl_json_number(&text, h->levels.v[l]));
            RRL_GOTO(rrl_buffer_puts(&text, "\n"));
        }
    }
    RRL_GOTO(rrl_sha256_of(sum, text.data ? text.data : "", text.len));
    rrl_sha256_hex(out, sum);
done:
    rrl_buffer_free(&text);
    return rc;
}

static rrl_status put_hypotheses(rrl_buffer *b, const rrl_config *study) {
    char hex[65];
    RRL_TRY(rrl_study_hypotheses_digest(hex, study));
    return put_text(b, "hypotheses_sha256", hex);
}

/* dir is recorded below the study folder, so that a study can be moved. */
static rrl_status put_condition(rrl_buffer *b, const rrl_condition *c, const char *root) {
    const char *below = c->dir + strlen(root) + 1;
    RRL_TRY(rrl_buffer_puts(b, "    {"));
    RRL_TRY(put_text(b, "arm", c->arm));
    RRL_TRY(rrl_buffer_puts(b, ", \"level\": "));
    RRL_TRY(rrl_json_number(b, c->level));
    RRL_TRY(rrl_buffer_printf(b, ", \"seed\": %llu, ", (unsigned long long)c->seed));
    RRL_TRY(put_text(b, "method", c->method));
    RRL_TRY(rrl_buffer_puts(b, ", "));
    RRL_TRY(put_text(b, "dir", below));
    return rrl_buffer_puts(b, "}");
}

static rrl_status study_text(rrl_buffer *b, const rrl_config *study, const rrl_condition *c, int64_t n,
                             const char *identity, const char *yaml) {
    char digest[65];
    RRL_TRY(rrl_config_digest(digest, study, identity));
    RRL_TRY(rrl_buffer_puts(b, "{\n  \"version\": 1,\n  "));
    RRL_TRY(put_text(b, "digest", digest));
    RRL_TRY(rrl_buffer_puts(b, ",\n  "));
    RRL_TRY(put_text(b, "label", study->experiment.label));
    RRL_TRY(rrl_buffer_puts(b, ",\n  "));
    RRL_TRY(put_hypotheses(b, study));
    RRL_TRY(rrl_buffer_puts(b, ",\n  "));
    RRL_TRY(put_text(b, "config", yaml));
    RRL_TRY(rrl_buffer_puts(b, ",\n  \"conditions\": [\n"));
    for (int64_t i = 0; i < n; i++) {
        RRL_TRY(put_condition(b, &c[i], study->output_dir));
        RRL_TRY(rrl_buffer_puts(b, i + 1 < n ? ",\n" : "\n"));
    }
    return rrl_buffer_puts(b, "  ]\n}\n");
}

/* The study that is there must be this one. */
static rrl_status compare(const char *path, const char *digest, const char *yaml) {
    rrl_status rc = RRL_OK;
    cJSON *json = NULL;
    const char *old_digest = NULL, *old_yaml = NULL;
    char *difference = NULL;
    RRL_GOTO(rrl_json_file(&json, path, MAX_BYTES));
    RRL_GOTO(rrl_json_string(&old_digest, json, "digest", false, path));
    RRL_GOTO(rrl_json_string(&old_yaml, json, "config", false, path));
    if (strcmp(old_digest, digest) == 0) goto done;
    RRL_GOTO(rrl_config_difference(&difference, old_yaml, yaml));
    rc = RRL_FAIL(RRL_ERR_CONFIG, "%s belongs to another study (%s); use another output_dir, or --fresh to put it aside",
                  path, difference ? difference : "model, data or numeric path differ");
done:
    free(difference);
    cJSON_Delete(json);
    return rc;
}

rrl_status rrl_study_file_claim(const rrl_config *study, const rrl_condition *c, int64_t n, const char *identity) {
    rrl_status rc = RRL_OK;
    rrl_buffer text = {0};
    char *path = NULL, *yaml = NULL, digest[65];
    RRL_GOTO(rrl_dir_make(study->output_dir));
    RRL_GOTO(rrl_path_join(&path, study->output_dir, "study.json"));
    RRL_GOTO(rrl_config_yaml(&yaml, study, study->base));
    RRL_GOTO(rrl_config_digest(digest, study, identity));
    RRL_GOTO(study_text(&text, study, c, n, identity, yaml));
    rc = rrl_file_exists(path) ? RRL_ERR_BUSY : rrl_file_create(path, text.data, text.len);
    if (rc == RRL_ERR_BUSY) rc = compare(path, digest, yaml);
done:
    rrl_buffer_free(&text);
    free(path);
    free(yaml);
    return rc;
}

rrl_status rrl_study_file_differs(char **why, const rrl_config *study) {
    rrl_status rc = RRL_OK;
    char *path = NULL, *yaml = NULL;
    cJSON *json = NULL;
    const char *old = NULL;
    *why = NULL;
    RRL_GOTO(rrl_path_join(&path, study->output_dir, "study.json"));
    if (!rrl_file_exists(path)) goto done;
    RRL_GOTO(rrl_json_file(&json, path, MAX_BYTES));
    RRL_GOTO(rrl_json_string(&old, json, "config", false, path));
    RRL_GOTO(rrl_config_yaml(&yaml, study, study->base));
    RRL_GOTO(rrl_config_difference(why, old, yaml));
done:
    cJSON_Delete(json);
    free(yaml);
    free(path);
    return rc;
}
