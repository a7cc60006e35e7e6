/* config.json, generation_config.json and tokenizer_config.json of a model folder -> rrl_model_config.
 *
 * Everything that would change the numbers and is not implemented is refused by its key: a model that runs,
 * but not as it was trained, is worse than an error. Reads only; no weights here. */
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/json.h"

enum { CONFIG_BYTES = 4 << 20, TOKENIZER_CONFIG_BYTES = 64 << 20 };

/* A member that is there and not null, or NULL. */
static const cJSON *member(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return item && !cJSON_IsNull(item) ? item : NULL;
}

static rrl_status read_size(int32_t *out, const cJSON *root, const char *key, bool optional, int64_t high,
                            const char *where) {
    int64_t value = *out;
    RRL_TRY(rrl_json_int(&value, root, key, optional, where));
    if (value < 1 || value > high)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" is %lld, expected 1 to %lld", where, key, (long long)value,
                        (long long)high);
    *out = (int32_t)value;
    return RRL_OK;
}

static rrl_status read_sizes(rrl_model_config *c, const cJSON *root, const char *where) {
    RRL_TRY(read_size(&c->hidden, root, "hidden_size", false, 1 << 20, where));
    RRL_TRY(read_size(&c->layers, root, "num_hidden_layers", false, 1024, where));
    RRL_TRY(read_size(&c->heads, root, "num_attention_heads", false, 4096, where));
    RRL_TRY(read_size(&c->intermediate, root, "intermediate_size", false, 1 << 22, where));
    RRL_TRY(read_size(&c->vocab, root, "vocab_size", false, 1 << 24, where));
    RRL_TRY(read_size(&c->max_positions, root, "max_position_embeddings", false, 1 << 22, where));
    c->kv_heads = c->heads;
    RRL_TRY(read_size(&c->kv_heads, root, "num_key_value_heads", true, 4096, where));
    if (c->heads % c->kv_heads != 0)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: \"num_attention_heads\" %d is no multiple of \"num_key_value_heads\" %d", where,
                        c->heads, c->kv_heads);
    if (!member(root, "head_dim") && c->hidden % c->heads != 0)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: \"hidden_size\" %d is no multiple of \"num_attention_heads\" %d and there is no "
                        "\"head_dim\"",
                        where, c->hidden, c->heads);
    c->head_dim = c->hidden / c->heads;
    RRL_TRY(read_size(&c->head_dim, root, "head_dim", true, 256, where));
    if (c->head_dim % 2 != 0 || c->head_dim < 2 || c->head_dim > 256)
        return RRL_FAIL(RRL_ERR_DATA, "%s: the head width is %d, expected an even number up to 256", where,
                        c->head_dim);
    return RRL_OK;
}

static rrl_status refuse_bool(const cJSON *root, const char *key, const char *why, const char *where) {
    bool on = false;
    RRL_TRY(rrl_json_bool(&on, root, key, true, where));
    if (on) return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" is true: %s", where, key, why);
    return RRL_OK;
}

static rrl_status refuse_present(const cJSON *root, const char *key, const char *why, const char *where) {
    if (member(root, key)) return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" is set: %s", where, key, why);
    return RRL_OK;
}

/* Settings whose other values mean other maths. */
static rrl_status read_switches(rrl_model_config *c, const cJSON *root, const char *where) {
    bool qwen2 = strcmp(c->family, "qwen2") == 0;
    const char *act = "silu";
    RRL_TRY(rrl_json_string(&act, root, "hidden_act", true, where));
    if (strcmp(act, "silu") != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"hidden_act\" is \"%s\", expected \"silu\"", where, act);
    double eps = 1e-6, dropout = 0, partial = 1;
    RRL_TRY(rrl_json_double(&eps, root, "rms_norm_eps", true, where));
    if (!(eps > 0 && eps < 1))
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"rms_norm_eps\" is %g, expected a number in (0, 1)", where, eps);
    c->rms_eps = (float)eps;
    RRL_TRY(rrl_json_bool(&c->tied, root, "tie_word_embeddings", true, where));
    c->qkv_bias = qwen2; /* transformers' Qwen2 has these always, whatever its config says */
    if (!qwen2) RRL_TRY(refuse_bool(root, "attention_bias", "biases are supported in qwen2 only", where));
    RRL_TRY(refuse_bool(root, "mlp_bias", "biases of the MLP are not supported", where));
    RRL_TRY(refuse_bool(root, "use_sliding_window", "only full attention is supported", where));
    if (!qwen2) RRL_TRY(refuse_present(root, "sliding_window", "only full attention is supported", where));
    RRL_TRY(refuse_present(root, "quantization_config",
                           "quantised weights are not supported; use an f32, bf16 or "
                           "f16 model",
                           where));
    RRL_TRY(rrl_json_double(&dropout, root, "attention_dropout", true, where));
    if (dropout != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"attention_dropout\" is %g: only 0 is supported", where, dropout);
    RRL_TRY(rrl_json_double(&partial, root, "partial_rotary_factor", true, where));
    if (partial != 1)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"partial_rotary_factor\" is %g: only 1 is supported", where,
                        partial);
    const cJSON *types = member(root, "layer_types"), *type = NULL;
    cJSON_ArrayForEach(type, types) {
        if (!cJSON_IsString(type) || strcmp(type->valuestring, "full_attention") != 0)
            return RRL_FAIL(RRL_ERR_DATA,
                            "%s: \"layer_types\" holds other values than \"full_attention\": only "
                            "full attention is supported",
                            where);
    }
    return RRL_OK;
}

/* --- rotary embedding */

static bool is_known_rope_key(const char *key, bool llama3) {
    static const char *const ALWAYS[] = {"rope_type", "type", "rope_theta", "partial_rotary_factor"};
    static const char *const LLAMA3[] = {"factor", "low_freq_factor", "high_freq_factor",
                                         "original_max_position_embeddings"};
    for (size_t i = 0; i < sizeof ALWAYS / sizeof *ALWAYS; i++)
        if (strcmp(key, ALWAYS[i]) == 0) return true;
    for (size_t i = 0; llama3 && i < sizeof LLAMA3 / sizeof *LLAMA3; i++)
        if (strcmp(key, LLAMA3[i]) == 0) return true;
    return false;
}

static rrl_status read_llama3(rrl_model_config *c, const cJSON *rope, const char *where) {
    RRL_TRY(rrl_json_double(&c->rope_factor, rope, "factor", false, where));
    RRL_TRY(rrl_json_double(&c->rope_low_freq, rope, "low_freq_factor", false, where));
    RRL_TRY(rrl_json_double(&c->rope_high_freq, rope, "high_freq_factor", false, where));
    RRL_TRY(
        rrl_json_int(&c->rope_original_positions, rope, "original_max_position_embeddings", false, where));
    bool good = c->rope_factor >= 1 && c->rope_factor < 1e6 && c->rope_low_freq > 0 &&
                c->rope_high_freq > c->rope_low_freq && c->rope_high_freq < 1e6 &&
                c->rope_original_positions >= 1;
    if (!good)
        return RRL_FAIL(
            RRL_ERR_DATA,
            "%s: llama3 rope scaling needs factor >= 1, 0 < low_freq_factor < high_freq_factor and "
            "original_max_position_embeddings >= 1, found %g, %g, %g, %lld",
            where, c->rope_factor, c->rope_low_freq, c->rope_high_freq,
            (long long)c->rope_original_positions);
    return RRL_OK;
}

/* rope_scaling (transformers 4) or rope_parameters (5): the type and, for llama3, its numbers. */
static rrl_status read_rope_object(rrl_model_config *c, const cJSON *rope, const char *key,
                                   const char *where) {
    const char *type = NULL;
    double partial = 1;
    if (!cJSON_IsObject(rope))
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" must be an object or null", where, key);
    RRL_TRY(rrl_json_string(&type, rope, "type", true, where));
    RRL_TRY(rrl_json_string(&type, rope, "rope_type", true, where));
    if (!type) return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" has no \"rope_type\"", where, key);
    bool llama3 = strcmp(type, "llama3") == 0;
    if (!llama3 && strcmp(type, "default") != 0)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: \"%s\" has the type \"%s\"; supported are \"default\" and \"llama3\"", where,
                        key, type);
    for (const cJSON *item = rope->child; item; item = item->next)
        if (!cJSON_IsNull(item) && !is_known_rope_key(item->string, llama3))
            return RRL_FAIL(RRL_ERR_DATA, "%s: \"%s\" of type \"%s\" has the unknown key \"%s\"", where, key,
                            type, item->string);
    RRL_TRY(rrl_json_double(&partial, rope, "partial_rotary_factor", true, where));
    if (partial != 1)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"partial_rotary_factor\" is %g: only 1 is supported", where,
                        partial);
    return llama3 ? read_llama3(c, rope, where) : RRL_OK;
}

static rrl_status read_rope(rrl_model_config *c, const cJSON *root, const char *where) {
    const cJSON *scaling = member(root, "rope_scaling"), *parameters = member(root, "rope_parameters");
    if (scaling && parameters)
        return RRL_FAIL(RRL_ERR_DATA, "%s: both \"rope_scaling\" and \"rope_parameters\" are given; keep one",
                        where);
    if (scaling) RRL_TRY(read_rope_object(c, scaling, "rope_scaling", where));
    if (parameters) RRL_TRY(read_rope_object(c, parameters, "rope_parameters", where));
    double top = NAN, inner = NAN;
    RRL_TRY(rrl_json_double(&top, root, "rope_theta", true, where));
    if (parameters) RRL_TRY(rrl_json_double(&inner, parameters, "rope_theta", true, where));
    if (!isnan(top) && !isnan(inner) && top != inner)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"rope_theta\" is %g, but %g in \"rope_parameters\"", where, top,
                        inner);
    c->rope_theta = !isnan(top) ? top : !isnan(inner) ? inner : 10000.0;
    if (!(c->rope_theta > 1 && c->rope_theta < 1e12))
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"rope_theta\" is %g, expected a number in (1, 1e12)", where,
                        c->rope_theta);
    return RRL_OK;
}

/* --- end tokens */

/* A number or a list of them; null and missing leave n_eos 0. */
static rrl_status read_eos_ids(rrl_model_config *c, const cJSON *root, const char *where) {
    const cJSON *eos = member(root, "eos_token_id");
    if (!eos) return RRL_OK;
    int n = cJSON_IsArray(eos) ? cJSON_GetArraySize(eos) : 1;
    if (n < 1 || n > (int)(sizeof c->eos / sizeof *c->eos))
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"eos_token_id\" lists %d tokens, expected 1 to %d", where, n,
                        (int)(sizeof c->eos / sizeof *c->eos));
    for (int i = 0; i < n; i++) {
        const cJSON *id = cJSON_IsArray(eos) ? cJSON_GetArrayItem(eos, i) : eos;
        double value = cJSON_IsNumber(id) ? id->valuedouble : -1;
        if (!(value >= 0 && value < c->vocab && value == floor(value)))
            return RRL_FAIL(RRL_ERR_DATA, "%s: \"eos_token_id\" must hold token ids from 0 to %d", where,
                            c->vocab - 1);
        c->eos[i] = (int32_t)value;
    }
    c->n_eos = n;
    return RRL_OK;
}

/* tokenizer_config.json names the end token by its text; added_tokens_decoder tells its id. */
static rrl_status read_eos_text(rrl_model_config *c, const cJSON *root, const char *where) {
    const cJSON *eos = member(root, "eos_token"), *added = member(root, "added_tokens_decoder"),
                *entry = NULL;
    if (cJSON_IsObject(eos)) eos = member(eos, "content");
    if (!cJSON_IsString(eos)) return RRL_OK;
    cJSON_ArrayForEach(entry, added) {
        const cJSON *content = member(entry, "content");
        if (!cJSON_IsString(content) || strcmp(content->valuestring, eos->valuestring) != 0) continue;
        char *end = NULL;
        long id = strtol(entry->string, &end, 10);
        if (*end || end == entry->string || id < 0 || id >= c->vocab)
            return RRL_FAIL(RRL_ERR_DATA, "%s: the end token has the id \"%s\", expected 0 to %d", where,
                            entry->string, c->vocab - 1);
        c->eos[0] = (int32_t)id;
        c->n_eos = 1;
        return RRL_OK;
    }
    return RRL_OK;
}

/* Reads dir/name with `read` if it is there and no end token is known yet. */
static rrl_status eos_from(rrl_model_config *c, const char *dir, const char *name, size_t max_bytes,
                           rrl_status (*read)(rrl_model_config *, const cJSON *, const char *)) {
    if (c->n_eos > 0) return RRL_OK;
    rrl_status rc = RRL_OK;
    char *path = NULL;
    cJSON *root = NULL;
    RRL_GOTO(rrl_path_join(&path, dir, name));
    if (!rrl_file_exists(path)) goto done;
    RRL_GOTO(rrl_json_file(&root, path, max_bytes));
    RRL_GOTO(read(c, root, path));
done:
    cJSON_Delete(root);
    free(path);
    return rc;
}

static rrl_status read_eos(rrl_model_config *c, const char *dir) {
    RRL_TRY(eos_from(c, dir, "generation_config.json", CONFIG_BYTES, read_eos_ids));
    RRL_TRY(eos_from(c, dir, "config.json", CONFIG_BYTES, read_eos_ids));
    RRL_TRY(eos_from(c, dir, "tokenizer_config.json", TOKENIZER_CONFIG_BYTES, read_eos_text));
    if (c->n_eos == 0)
        return RRL_FAIL(RRL_ERR_DATA,
                        "%s: no end token: give \"eos_token_id\" in generation_config.json or "
                        "config.json",
                        dir);
    return RRL_OK;
}

static rrl_status read_root(rrl_model_config *c, const cJSON *root, const char *where) {
    const char *type = NULL;
    RRL_TRY(rrl_json_string(&type, root, "model_type", false, where));
    if (strcmp(type, "llama") != 0 && strcmp(type, "qwen2") != 0)
        return RRL_FAIL(RRL_ERR_DATA, "%s: \"model_type\" is \"%s\"; supported are \"llama\" and \"qwen2\"",
                        where, type);
    strcpy(c->family, type);
    RRL_TRY(read_sizes(c, root, where));
    RRL_TRY(read_switches(c, root, where));
    return read_rope(c, root, where);
}

rrl_status rrl_model_config_read(rrl_model_config *out, const char *dir) {
    rrl_status rc = RRL_OK;
    rrl_model_config c = {0};
    char *path = NULL;
    cJSON *root = NULL;
    RRL_GOTO(rrl_path_join(&path, dir, "config.json"));
    if (!rrl_file_exists(path)) {
        rc = RRL_FAIL(RRL_ERR_DATA, "%s: no config.json; expected a Hugging Face model folder", dir);
        goto done;
    }
    RRL_GOTO(rrl_json_file(&root, path, CONFIG_BYTES));
    RRL_GOTO(read_root(&c, root, path));
    RRL_GOTO(read_eos(&c, dir));
    *out = c;
done:
    cJSON_Delete(root);
    free(path);
    return rc;
}
